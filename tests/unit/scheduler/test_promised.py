"""Whoever was promised nothing keeps away from nodes that somebody is promised, and from nothing else."""

from slurm_bridge.model import names
from slurm_bridge.scheduler.eviction.hold_table import HIGHEST, HoldTable, NodeHold


def promise(uid: str, *nodes: str, priority: int = 10, by: str = "") -> NodeHold:
    """For a workload."""
    return NodeHold(workload=names.WorkloadKey(uid), priority=priority, nodes=frozenset(nodes), by=by)


def made(*holds: NodeHold) -> HoldTable:
    """All of them."""
    found = HoldTable()
    for one in holds:
        found.put(one)
    return found


def test_others_keep_away_unless_they_are_more_important() -> None:
    """Whoever it is promised to does not."""
    known = made(promise("u", "n1", "n2"))
    assert known.away("v", 10).keys() == {"n1", "n2"}
    assert known.away("v", 11) == {}
    assert known.away("u", 0) == {}


def test_a_promise_of_the_highest_priority_holds_for_everybody() -> None:
    """Also for pods that are as important as pods can be."""
    assert made(promise("u", "n1", priority=HIGHEST)).away("v", 2**31 - 1).keys() == {"n1"}


def test_two_that_are_promised_the_same_node_both_go_there() -> None:
    """Otherwise each would wait for the other."""
    known = made(promise("u", "n1", "n2"), promise("v", "n1", "n3"))
    assert known.away("u", 0).keys() == {"n3"}
    assert known.away("v", 0).keys() == {"n2"}
    assert known.away("w", 0).keys() == {"n1", "n2", "n3"}


def test_whoever_ends_a_promise_ends_none_of_another_ones() -> None:
    """Two may make room for the same workload."""
    known = made(promise("u", "n1", by="a"), promise("u", "n2", by="b"))
    known.end("u", "a")
    assert known.nodes == {"n2"}
    known.put(promise("u", "n1", by="a"))
    known.clear("b")
    assert known.nodes == {"n1"}
