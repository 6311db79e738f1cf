"""Columns over nodes and their pods, made from scratch."""

import threading
from fractions import Fraction
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from slurm_bridge.cluster import columns
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.columns import Coded, NodeColumns
from slurm_bridge.cluster.columns.coded import units_given, units_left
from slurm_bridge.cluster.columns.members import MOST_SETS
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.translate import resources
from tests import wait
from tests.unit.hooks.builders import cluster, node, pod

ZONES = {"a": "x", "b": "y", "c": "x", "d": None}


def seen() -> ClusterSnapshot:
    """Four nodes in two zones, one of them in none; three pods on two of them."""
    made = ClusterCache(resources.requests_of)
    for name, zone in ZONES.items():
        made.on_node(None, node(name, labels={"zone": zone} if zone else {}))
    for name, where, app in (("p", "a", "web"), ("q", "a", "db"), ("r", "b", "web")):
        asked = {"cpu": "1500m", "memory": "1Gi"}
        one = pod(name, requests=asked, node_name=where, phase="Running", metadata={"labels": {"app": app}})
        made.on_pod(None, one)
    return made.snapshot()


def test_a_column_that_hangs_blocks_no_other() -> None:
    """A site's hook may work one out by code that never ends; the scheduler goes on."""
    found, begun, release = seen().columns, threading.Event(), threading.Event()

    def hangs(_: NodeFacts) -> str:
        begun.set()
        release.wait()
        return "at last"

    made: list[Any] = []
    worker = threading.Thread(target=lambda: made.append(found.attribute("of a site", hangs)), daemon=True)
    worker.start()
    begun.wait()
    other = threading.Thread(target=lambda: made.append(found.label("zone").where(bool)), daemon=True)
    other.start()
    other.join(wait.PATIENCE)
    blocked = other.is_alive()
    release.set()
    worker.join()
    other.join()
    assert not blocked
    assert len(made) == 2


def test_every_node_has_a_row() -> None:
    """Its name, its facts and its place agree."""
    found, cluster = seen().columns, seen()
    assert len(found) == 4
    assert {name: found.names[found.row(name)] for name in ZONES} == {name: name for name in ZONES}
    assert [facts.name for facts in found.facts if facts] == found.names.tolist()
    assert found.row("nobody") is None
    assert cluster.columns is cluster.columns


def test_labels_are_coded() -> None:
    """Rules are asked once for each value, and absence is a value too."""
    zones, asked = seen().columns.label("zone"), []
    found = zones.where(lambda value: asked.append(value) or value == "x")  # type: ignore[func-returns-value]
    assert sorted(map(str, asked)) == ["None", "x", "y"]
    assert seen().columns.nodes(found) == {"a", "c"}
    assert zones.whole(lambda value: len(value or "")).tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [(("x",), [True, False, True, False]), ((None, "y", "z"), [False, True, False, True]), ((), [False] * 4)],
)
def test_rows_that_have_one_of_some_values(wanted: tuple[str | None, ...], rows: list[bool]) -> None:
    """They are looked up; a value that no row has changes nothing."""
    assert seen().columns.label("zone").among(wanted).tolist() == rows


def test_holes_have_no_value() -> None:
    """They pass no rule, and count as nothing."""
    coded = Coded(np.array([0, -1, 1], np.int32), ("a", "b"))
    assert coded.where(lambda _: True).tolist() == [True, False, True]
    assert coded.whole(lambda _: 7).tolist() == [7, 0, 7]
    assert coded.among(("a", "b")).tolist() == [True, False, True]
    assert (coded.code("b"), coded.code("c")) == (1, None)


@pytest.mark.parametrize(
    ("resource", "allocatable", "used"),
    [
        ("cpu", 16000, [3000, 1500, 0, 0]),
        ("memory", 64 * 2**30, [2 * 2**30, 2**30, 0, 0]),
        ("pods", 110, [2, 1, 0, 0]),
        ("nvidia.com/gpu", 0, [0, 0, 0, 0]),
    ],
)
def test_amounts_are_whole_numbers(resource: str, allocatable: int, used: list[int]) -> None:
    """Processors in thousandths, everything else as it is counted; what a node does not have is 0."""
    found = seen().columns
    assert found.allocatable(resource).tolist() == [allocatable] * 4
    assert found.used(resource).tolist() == used


@pytest.mark.parametrize(
    ("resource", "amount", "number"),
    [
        ("cpu", Fraction(3, 2), 1500),
        ("cpu", Fraction(1, 3000), 1),
        ("memory", Fraction(5, 2), 3),
        ("memory", Fraction(0), 0),
        ("memory", Fraction(10**30), 2**62 - 1),
    ],
)
def test_what_is_asked_for_is_rounded_up(resource: str, amount: Fraction, number: int) -> None:
    """A part of a unit takes the unit; what no node could have stays a number."""
    assert columns.units(resource, amount) == number


@hypothesis.given(st.sampled_from(["cpu", "memory"]), st.fractions(-1 << 70, 1 << 70), st.fractions(0, 1 << 70))
def test_what_is_left_is_counted_once(resource: str, there: Fraction, used: Fraction) -> None:
    """As if it had been subtracted before, however odd the amounts are."""
    assert units_left(resource, there, used) == units_given(resource, there - used)


def test_what_is_there_is_rounded_down() -> None:
    """Half a unit helps nobody."""
    made = ClusterCache(resources.requests_of)
    made.on_node(None, node("a", allocatable={"cpu": "1500500u", "memory": "2.5"}))
    found = made.snapshot().columns
    assert (found.allocatable("cpu").tolist(), found.allocatable("memory").tolist()) == ([1500], [2])


def test_names_and_masks() -> None:
    """Both ways; names that nobody has are left out, and any iterable of names will do."""
    found = seen().columns
    for names in (frozenset({"a", "c"}), ["c", "a", "nobody"], iter(("a", "c"))):
        assert found.nodes(found.mask(names)) == {"a", "c"}
    assert not found.mask(()).any()


def test_equal_masks_are_one_set() -> None:
    """Whoever remembers by sets of nodes finds them by identity, and their masks cost nothing."""
    found, cluster = seen().columns, seen()
    some = np.array([True, False, True, False])
    assert found.nodes(some) is found.nodes(some.copy())
    assert found.mask(found.nodes(some)) is found.mask(found.nodes(some))
    assert cluster.columns.nodes(cluster.columns.present) is cluster.names
    assert cluster.columns.mask(cluster.names) is cluster.columns.present


def test_rows_are_a_set_whose_mask_is_known() -> None:
    """Few of many nodes are a set of their own each time, many of them the same again."""
    members = cluster([node(f"n{place:02}") for place in range(40)]).columns.members
    few = members.at(np.array([3, 1]))
    assert (few, members.knows(few), members.mask(few).nonzero()[0].tolist()) == ({"n01", "n03"}, True, [1, 3])
    assert members.at(np.arange(20)) is members.at(np.arange(20)[::-1])
    assert members.at(np.arange(40)) is members.every
    assert not members.knows(frozenset({"n01", "n03"}))
    members.mask(strangers := frozenset({"n01", "stranger"}))
    assert not members.knows(strangers)


def test_what_is_known_of_sets_is_bounded() -> None:
    """However many a hook makes up: those that were asked about long ago are looked up anew."""
    members = cluster([node(f"n{place:02}") for place in range(40)]).columns.members
    first = members.at(np.array([3, 1]))
    others = [frozenset({"n01", f"stranger {number}"}) for number in range(MOST_SETS)]
    assert [members.mask(one).nonzero()[0].tolist() for one in others] == [[1]] * MOST_SETS
    assert not members.knows(first)
    assert (members.mask(first).nonzero()[0].tolist(), members.knows(first)) == ([1, 3], True)


def test_pods_have_rows_of_their_own() -> None:
    """They are counted by node, by what they are."""
    nodes = seen().columns
    pods = nodes.pods
    assert [nodes.names[row] for row in pods.node_rows] == ["a", "a", "b"]
    assert pods.count(pods.present).tolist() == [2, 1, 0, 0]
    assert pods.count(pods.label("app").where(lambda app: app == "web")).tolist() == [1, 1, 0, 0]
    assert [pods.pods[row] for row in pods.rows_on(0)] == list(seen().nodes["a"].pods)
    assert nodes.pods is pods


def test_an_attribute_is_asked_once_for_each_node() -> None:
    """However often it is looked at; under one name one function is remembered."""
    asked: list[str] = []

    def noted(facts: NodeFacts) -> int:
        asked.append(facts.name)
        return len(facts.name)

    found = seen().columns
    for _ in range(2):
        assert found.whole("length", noted).tolist() == [1] * 4
        assert found.attribute("length", noted).values == (1,)
    assert sorted(asked) == sorted([*ZONES] * 2)


def test_nobody_writes_into_columns() -> None:
    """They are shared by all passes."""
    found = seen().columns
    for array in (found.present, found.allocatable("cpu"), found.label("zone").codes, found.pods.node_rows):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_no_node_at_all() -> None:
    """Everything is empty, and nothing fails."""
    found = EMPTY.columns
    assert (len(found), len(found.pods), found.nodes(found.present)) == (0, 0, frozenset())
    assert found.label("zone").where(lambda _: True).tolist() == []
    assert found.pods.count(found.pods.present).tolist() == []


def test_only_so_many_columns_are_kept() -> None:
    """Labels are for users to choose; whatever they ask for, memory stays bounded and answers right."""
    found = NodeColumns.of(seen().nodes)
    for number in range(500):
        assert found.label(f"label-{number}").values == (None,)
    assert found.nodes(found.label("zone").among(("y",))) == {"b"}
    assert len(found._sides.kube._known) <= 128
