"""An adapter reads a case field by field, with types; what it leaves unread fails the case."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance import fields
from tests.conformance.fields import Fields, Malformed

PLAIN = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.booleans())
TREES = st.recursive(
    st.dictionaries(st.text(min_size=1), PLAIN, max_size=3),
    lambda inner: st.dictionaries(st.text(min_size=1), st.one_of(PLAIN, inner), max_size=3),
    max_leaves=8,
)


def read(**record: Any) -> Fields:
    """What is given in a case."""
    return Fields(record, "schedule.yaml: case one: given")


def test_every_field_is_taken_by_its_type() -> None:
    """A whole number is a number; the rest is what it is."""
    case = read(a="x", b=1, c=1.5, d=True, e=["x"], f=[1], g=[1, 2.5], h=[["n", 1]], i={"x": 1}, j=2)
    assert (case.text("a"), case.whole("b"), case.number("c"), case.flag("d")) == ("x", 1, 1.5, True)
    assert (case.texts("e"), case.wholes("f"), case.numbers("g")) == (("x",), (1,), (1, 2.5))
    assert (case.list("h"), case.mapping("i"), case.number("j")) == ((["n", 1],), {"x": 1}, 2)
    fields.finish(case)


@pytest.mark.parametrize(
    ("take", "value", "told"),
    [
        (Fields.text, 1, "is 1, not a text"),
        (Fields.whole, "1", "is '1', not a whole number"),
        (Fields.whole, True, "is True, not a whole number"),
        (Fields.whole, 1.5, "is 1.5, not a whole number"),
        (Fields.number, True, "is True, not a number"),
        (Fields.flag, 1, "is 1, not true or false"),
        (Fields.flag, None, "is None, not true or false"),
        (Fields.texts, ["a", 1], "[1]: is 1, not a text"),
        (Fields.wholes, "12", "is '12', not a list"),
        (Fields.fields, ["a"], "is ['a'], not a map"),
        (Fields.records, [{}, 1], "[1]: is a whole number, not a map"),
        (Fields.mapping, {"a": {"b": 1}}, "{'b': 1} has fields of its own"),
        (Fields.list, [["a", {"b": 1}]], "{'b': 1} has fields of its own"),
    ],
)
def test_a_wrong_type_is_told_with_its_path(take: Callable[..., Any], value: object, told: str) -> None:
    """File, case, field and value."""
    with pytest.raises(Malformed) as raised:
        take(read(x=value), "x")
    assert str(raised.value).startswith("schedule.yaml: case one: given.x")
    assert told in str(raised.value)


TAKERS = (
    Fields.text,
    Fields.whole,
    Fields.number,
    Fields.flag,
    Fields.list,
    Fields.texts,
    Fields.mapping,
    Fields.fields,
    Fields.records,
    Fields.named,
)


@pytest.mark.parametrize("take", TAKERS)
def test_a_field_that_is_left_out_has_the_default_or_is_missed(take: Callable[..., Any]) -> None:
    """`null` stands for no value only where the default is None."""
    fallback = object()
    assert take(read(), "x", fallback) is fallback
    assert take(read(x=None), "x", None) is None
    with pytest.raises(Malformed, match="x: is missing"):
        take(read(), "x")
    with pytest.raises(Malformed, match="x: is None, not"):
        take(read(x=None), "x", fallback)


def test_null_can_be_told_from_a_field_that_is_left_out() -> None:
    """In some rules an absent list and an undefined one differ."""
    assert read(x=None).has("x")
    assert read(x=None).null("x")
    assert not read(x=[]).null("x")
    assert not read().null("x")
    assert not read().has("x")


def test_records_within_are_read_as_strictly() -> None:
    """One that is read twice is read once and again, not half by each."""
    case = read(pod={"name": "a", "colour": "red"}, nodes=[{"name": "n"}], claims={"c": {"deleting": True}})
    assert case.fields("pod").text("name") == "a"
    assert [node.text("name") for node in case.records("nodes")] == ["n"]
    assert [(name, claim.flag("deleting")) for name, claim in case.named("claims").items()] == [("c", True)]
    with pytest.raises(Malformed, match=r"case one: given\.pod\.colour: is not a field that anything reads"):
        fields.finish(case)
    assert case.fields("pod").text("colour") == "red"
    fields.finish(case)


def test_an_operation_that_is_not_known_is_told_with_those_that_are() -> None:
    """It fails; it is not skipped."""
    assert read(op="less").choice("op", {"less": 1, "sort": 2}) == 1
    with pytest.raises(Malformed, match=r"given\.op: 'pick' is not known here; these are less, sort"):
        read(op="pick").choice("op", {"sort": 2, "less": 1})


@given(TREES)
def test_whatever_nobody_took_is_told(tree: dict[str, Any]) -> None:
    """Every field of a record that was not looked at, and no other."""
    case = Fields(tree, "c")
    assert list(case.unread()) == [f"c.{key}" for key in tree]


@given(TREES)
def test_a_record_that_is_compared_is_read(tree: dict[str, Any]) -> None:
    """It equals itself, and nothing of it is left."""
    case = Fields({"expect": tree}, "c")
    case.fields("expect").compare(tree)
    fields.finish(case)
