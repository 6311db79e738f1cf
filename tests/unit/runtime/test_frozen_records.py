"""Records that are made quickly are like any other frozen record."""

import copy
import dataclasses

import pytest

from slurm_bridge.runtime import frozen_records


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """Names that a careless constructor would use itself are among its fields."""

    cls: str
    new: int = 1
    plain: tuple[int, ...] = ()
    self: list[int] = dataclasses.field(default_factory=list)


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Positive:
    """One that looks at what it is given."""

    number: int

    def __post_init__(self) -> None:
        if self.number <= 0:
            raise ValueError(f"number is {self.number}, and has to be positive")


def test_fields_have_what_they_are_given_or_their_defaults() -> None:
    """Each record has a default of its own where a factory makes it."""
    one, other = Thing(cls="a"), Thing(cls="a", new=2, plain=(3,), self=[4])
    assert (one.cls, one.new, one.plain, one.self) == ("a", 1, (), [])
    assert (other.cls, other.new, other.plain, other.self) == ("a", 2, (3,), [4])
    assert one.self is not Thing(cls="a").self


def test_they_are_of_their_class_equal_by_value_and_frozen() -> None:
    """And have nothing beside their fields."""
    one = Thing(cls="a")
    assert type(one) is Thing
    assert one == Thing(cls="a") != Thing(cls="b")
    assert hash(Positive(number=1)) == hash(Positive(number=1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.new = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        object.__setattr__(one, "more", 3)


def test_they_can_be_replaced_and_copied() -> None:
    """As the standard library does it."""
    one = Thing(cls="a", new=2)
    assert dataclasses.replace(one, cls="b") == Thing(cls="b", new=2)
    assert copy.copy(one) == one
    assert dataclasses.asdict(one) == {"cls": "a", "new": 2, "plain": (), "self": []}


def test_replaced_makes_what_the_standard_library_makes() -> None:
    """Whatever is replaced, and the record itself stays as it is."""
    one = Thing(cls="a", new=2, plain=(3,), self=[4])
    for changes in ({}, {"cls": "b"}, {"self": [5], "new": 0}, {"plain": None}):
        assert frozen_records.replaced(one, **changes) == dataclasses.replace(one, **changes)
    other = frozen_records.replaced(one, cls="b")
    assert (type(other), one.cls, other.self) == (Thing, "a", one.self)
    with pytest.raises(dataclasses.FrozenInstanceError):
        other.new = 3  # type: ignore[misc]


def test_replaced_refuses_what_the_constructor_refuses() -> None:
    """A field that is not there, with its name, and a value that the record does not take."""
    with pytest.raises(TypeError, match="other"):
        frozen_records.replaced(Thing(cls="a"), other=1)
    with pytest.raises(ValueError, match="number is 0"):
        frozen_records.replaced(Positive(number=1), number=0)


def test_a_field_that_is_missing_or_not_there_is_an_error() -> None:
    """With its name."""
    with pytest.raises(TypeError, match="cls"):
        Thing()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="other"):
        Thing(cls="a", other=1)  # type: ignore[call-arg]


def test_what_it_checks_itself_is_checked() -> None:
    """After all fields are set."""
    assert Positive(number=1).number == 1
    with pytest.raises(ValueError, match="number is 0"):
        Positive(number=0)


def test_fields_that_are_not_given_by_name_are_refused() -> None:
    """When the class is made, and not when the first record is."""

    @dataclasses.dataclass(frozen=True, slots=True)
    class Plain:
        number: int

    with pytest.raises(TypeError, match="by name"):
        frozen_records.quick(Plain)
