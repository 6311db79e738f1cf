"""Answers that are kept by row behave as the mappings that they are, and say at once what chains want to know."""

import collections
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Mask, NodeColumns, Numbers, Reasons, Ruling
from slurm_bridge.cluster.columns.members import FEW
from slurm_bridge.cluster.facts import NodeFacts
from tests.unit.hooks.builders import node

LETTERS = "abcdef"
WORDS = ((), ("too small",), ("tainted",), ("too small", "tainted"))

_nodes = st.frozensets(st.sampled_from([*LETTERS, "nobody"]))
_codes = st.lists(st.integers(0, 3), min_size=6, max_size=6)


def rows(names: str = LETTERS) -> NodeColumns:
    """Nodes of these names."""
    return NodeColumns.of({name: _facts(name) for name in names})


def _facts(name: str) -> NodeFacts:
    one = node(name, labels={"zone": name})
    return NodeFacts(name=name, slurm_name=name, node=one, slurm=None, allocatable={}, used={}, placed={})


COLUMNS = rows()


def reasons(codes: list[int], columns: NodeColumns = COLUMNS) -> Reasons:
    """What is said against nodes, by row."""
    return Reasons(columns, np.array(codes, np.int32), WORDS)


@hypothesis.given(_codes, _nodes)
def test_reasons_are_a_mapping_from_names(codes: list[int], nodes: frozenset[str]) -> None:
    """Of the nodes that are denied; what is left, and how often each reason was given, follows from it."""
    found = reasons(codes)
    plain = {name: WORDS[code] for name, code in zip(LETTERS, codes, strict=True) if code}
    assert (dict(found), len(found), set(found)) == (plain, len(plain), set(plain))
    assert [name in found for name in (*LETTERS, "nobody")] == [name in plain for name in (*LETTERS, "nobody")]
    assert found.left(nodes) == nodes.difference(plain)
    assert found.counts() == collections.Counter(reason for said in plain.values() for reason in said)


@hypothesis.given(_codes, _codes, st.booleans())
def test_both_denials_at_once(one: list[int], other: list[int], elsewhere: Any) -> None:
    """What two of them deny, in the words of the first; whether the second was worked out over the same rows or not."""
    second = reasons(other[::-1], rows(LETTERS[::-1])) if elsewhere else reasons(other)
    first = reasons(one)
    assert dict(first.also(second)) == {name: said for name, said in dict(first).items() if name in second}


def test_what_is_not_denied_is_the_same_set() -> None:
    """Whoever remembers by it finds it."""
    some = frozenset("abc")
    assert reasons([0, 0, 0, 1, 1, 1]).left(some) is some


@pytest.mark.parametrize("number", [FEW, FEW + 1])
def test_few_and_many_are_denied_alike(number: int) -> None:
    """Few are looked up by name, many all at once; names that no node has are left as they are by both."""
    names = [f"n{place:03}" for place in range(number - 1)]
    columns = NodeColumns.of({name: _facts(name) for name in [*names, "other"]})
    nodes = frozenset([*names, "nobody"])
    none, one = [0] * (number - 1) + [1], [1] + [0] * (number - 1)
    assert (len(nodes), reasons(none, columns).left(nodes)) == (number, nodes)
    assert reasons(one, columns).left(nodes) == nodes - {"n000"}
    assert reasons([1] * number, columns).left(nodes) == {"nobody"}


def test_nobody_is_denied_who_is_not_there() -> None:
    """Nor is anything said about a hole, whatever its code is."""
    with pytest.raises(KeyError):
        reasons([1] * 6)["nobody"]
    holed = COLUMNS.after({name: _facts(name) for name in "abcde"}, frozenset("abcde"), ["f"])
    assert set(reasons([1] * 6, holed)) == set("abcde")


_values = st.lists(st.sampled_from([0.0, 1.0, 2.0, 2.5]), min_size=6, max_size=6)


@hypothesis.given(_values, st.frozensets(st.sampled_from(LETTERS)), _nodes, st.integers(0, 8))
def test_the_best_nodes(values: list[float], rated: frozenset[str], nodes: frozenset[str], count: int) -> None:
    """The highest first, equal ones by name; a node without a number has 0."""
    found = Numbers(COLUMNS, lambda: (np.array(values), COLUMNS.mask(rated)))
    plain = {name: value for name, value in zip(LETTERS, values, strict=True) if name in rated}
    expected = sorted(nodes & set(LETTERS), key=lambda name: (-plain.get(name, 0.0), name))[:count]
    assert found.best(nodes, count) == expected
    assert (dict(found), len(found)) == (plain, len(plain))
    assert [name in found for name in (*LETTERS, "nobody")] == [name in plain for name in (*LETTERS, "nobody")]
    backwards = rows(LETTERS[::-1])
    assert found.values_of(COLUMNS).tolist() == found.values_of(backwards).tolist()[::-1]


def test_numbers_for_which_nobody_asks_are_not_worked_out() -> None:
    """Whoever does gets them, and the second one gets the same."""
    made: list[int] = []

    def make() -> tuple[NDArray[np.float64], Mask]:
        made.append(1)
        return np.arange(6.0), COLUMNS.mask("bc")

    found = Numbers(COLUMNS, make)
    assert made == []
    assert (dict(found), found["c"], "a" in found, made) == ({"b": 1.0, "c": 2.0}, 2.0, False, [1])


def test_the_first_rule_that_says_no_is_told() -> None:
    """Of shortages all that are true of a node; of a value what is said about it."""
    ruling = Ruling(COLUMNS)
    ruling.deny(COLUMNS.mask("ab"), "first")
    ruling.deny(COLUMNS.mask("bc"), "second")
    ruling.deny_by(COLUMNS.label("zone"), lambda zone: "third" if zone in ("c", "d") else None)
    ruling.deny_by(COLUMNS.label("zone"), lambda _: None)
    ruling.deny_all_of(
        [("short of x", COLUMNS.mask("def")), ("short of y", COLUMNS.mask("e")), ("no", COLUMNS.mask(""))]
    )
    assert dict(ruling.reasons()) == {
        "a": ("first",),
        "b": ("first",),
        "c": ("second",),
        "d": ("third",),
        "e": ("short of x", "short of y"),
        "f": ("short of x",),
    }


def test_more_kinds_of_shortages_than_a_number_has_bits() -> None:
    """However many resources a pod asks for, a node that lacks any of them is denied."""
    ruling = Ruling(COLUMNS)
    ruling.deny_all_of([(f"short of {number}", COLUMNS.mask("a" if number < 70 else "b")) for number in range(71)])
    found = ruling.reasons()
    assert set(found) == {"a", "b"}
    assert found["b"] == ("short of 70",)
