"""Values keep the place of whoever said them last."""

from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.settings import trees
from slurm_bridge.settings.trees import Assignment, SettingsTree

EMPTY = SettingsTree(values={}, places={})
WORDS = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(WORDS, min_size=1, max_size=3).map(tuple)
VALUES = st.recursive(
    st.integers() | st.none() | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
GIVEN = st.lists(
    st.builds(Assignment, path=PATHS, value=VALUES, place=st.sampled_from(["file:1", "VARIABLE", "--set"])), max_size=6
)


def built(given_: list[Assignment]) -> SettingsTree:
    """One after the other."""
    tree = EMPTY
    for one in given_:
        tree = trees.assign(tree, one)
    return tree


def at(tree: SettingsTree, path: trees.Path) -> object:
    """What is at the end of the path, which has to be there."""
    value: object = tree.values
    for step in path:
        assert isinstance(value, dict)
        value = value[step]
    return value


def leaves(value: object, path: trees.Path = ()) -> set[trees.Path]:
    """The paths to all values that are no groups."""
    if isinstance(value, dict) and (value or not path):
        return {leaf for key, inner in value.items() for leaf in leaves(inner, (*path, key))}
    return {path}


@given(GIVEN, PATHS, st.integers())
def test_what_was_said_last_is_there_with_its_place(
    before: list[Assignment], path: tuple[str, ...], value: int
) -> None:
    """Whatever stood there before, or on the way."""
    tree = trees.assign(built(before), Assignment(path=path, value=value, place="last"))
    assert at(tree, path) == value
    assert tree.place(path) == "last"


@given(GIVEN)
def test_places_belong_to_values_that_are_there(given_: list[Assignment]) -> None:
    """No place outlives its value, and every value has one."""
    tree = built(given_)
    assert leaves(tree.values) - {()} <= set(tree.places)
    for path in tree.places:
        at(tree, path)


@given(GIVEN, st.integers())
def test_groups_are_merged(before: list[Assignment], value: int) -> None:
    """A group that is given does not remove the keys that it does not name."""
    tree = built(before)
    more = trees.assign(tree, Assignment(path=("z",), value={"y": value}, place="last"))
    assert at(more, ("z", "y")) == value
    assert {key: more.values[key] for key in tree.values} == tree.values


def test_what_is_missing_has_the_place_of_what_should_contain_it() -> None:
    """Down to the file itself."""
    tree = SettingsTree(values={"a": {"b": 1}}, places={(): "file", ("a",): "file:1", ("a", "b"): "file:2"})
    assert [tree.place(path) for path in (("a", "b"), ("a", "c"), ("z",))] == ["file:2", "file:1", "file"]


def test_a_group_made_by_flags_alone_has_the_place_of_one_of_them() -> None:
    """It was written nowhere as a whole."""
    tree = trees.assign(EMPTY, Assignment(path=("a", "b"), value=1, place="--set a.b"))
    assert tree.place(("a",)) == "--set a.b"
    assert tree.place(("z",)) == "the configuration"
