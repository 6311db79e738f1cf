"""Which part a namespace belongs to: by its label, else by its name, alike in every daemon."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import names, parts
from slurm_bridge.model.parts import ClusterParts

LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
CUTS = st.lists(LABELS, min_size=1, max_size=6, unique=True)


def cut(*every: str) -> ClusterParts:
    """The first of these is the daemon's own."""
    return ClusterParts(own=every[0], every=every, lease_namespace="system", lease_name="bridge")


@given(CUTS, LABELS, st.randoms())
def test_every_namespace_belongs_to_one_part_whatever_the_order_of_their_names(
    every: list[str], namespace: str, dice: object
) -> None:
    """Two daemons whose files differ in order agree."""
    there = parts.by_name(namespace, every)
    assert there in every
    shuffled = list(every)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    assert parts.by_name(namespace, shuffled) == there


@given(CUTS, LABELS, LABELS)
def test_a_part_that_is_added_takes_and_gives_nothing_else(every: list[str], more: str, namespace: str) -> None:
    """Nor does one that is removed: the others keep what they have."""
    before, after = parts.by_name(namespace, every), parts.by_name(namespace, [*every, more])
    assert after in (before, more)


def test_namespaces_are_spread() -> None:
    """Of 3 000 each of three parts gets about a third."""
    found = [parts.by_name(f"team-{number}", ("a", "b", "c")) for number in range(3000)]
    assert all(900 < found.count(part) < 1100 for part in "abc")


def test_a_label_wins_over_the_name() -> None:
    """One that names no part says nothing: any user may have written it."""
    given_parts = cut("a", "b")
    by_name = given_parts.of("team", {})
    other = "b" if by_name == "a" else "a"
    assert given_parts.of("team", {names.LABEL_PART: other}) == other
    assert given_parts.of("team", {names.LABEL_PART: "x"}) == by_name
    assert given_parts.strange({names.LABEL_PART: "x"}) == "x"
    assert given_parts.strange({names.LABEL_PART: other}) == ""
    assert given_parts.of("team", {names.LABEL_PART: ""}) == by_name


@given(LABELS)
def test_the_name_of_a_record_says_its_namespace(namespace: str) -> None:
    """And no other lease is taken for one."""
    given_parts = cut("a", "b")
    assert given_parts.recorded(given_parts.record(namespace)) == namespace
    assert given_parts.recorded(given_parts.lease(namespace)) is None
    assert given_parts.recorded(namespace) is None


@pytest.mark.parametrize(
    ("text", "holds"), [("team-a", True), ("", False), ("A", False), ("a/b", False), ("a.b", False)]
)
def test_what_no_namespace_can_be_called_is_none(text: str, *, holds: bool) -> None:
    """An owner record may have been written by hand; a lease of such a name could not be made."""
    assert parts.is_namespace(text) is holds
    assert not parts.is_namespace("a" * 64)
