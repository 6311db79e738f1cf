"""A workload keeps away from nodes that are held for others, and from nothing else."""

from slurm_bridge.model import names
from slurm_bridge.scheduler.eviction.cases import NodeHold
from slurm_bridge.scheduler.eviction.hold_table import HIGHEST, HoldTable
from slurm_bridge.scheduler.state import WorkloadStore


def hold(uid: str, *nodes: str, priority: int = 10, by: str = "") -> NodeHold:
    """For a workload."""
    return NodeHold(workload=names.WorkloadKey(uid), priority=priority, nodes=frozenset(nodes), by=by)


def made(*holds: NodeHold) -> HoldTable:
    """All of them."""
    found = HoldTable(WorkloadStore())
    for one in holds:
        found.put(one)
    return found


def test_others_keep_away_unless_they_are_more_important() -> None:
    """The workload that they are held for does not."""
    known = made(hold("u", "n1", "n2"))
    assert known.away("v", 10).keys() == {"n1", "n2"}
    assert known.away("v", 11) == {}
    assert known.away("u", 0) == {}


def test_a_hold_of_the_highest_priority_holds_against_all() -> None:
    """Also for pods that are as important as pods can be."""
    assert made(hold("u", "n1", priority=HIGHEST)).away("v", 2**31 - 1).keys() == {"n1"}


def test_two_that_the_same_node_is_held_for_both_go_there() -> None:
    """Otherwise each would wait for the other."""
    known = made(hold("u", "n1", "n2"), hold("v", "n1", "n3"))
    assert known.away("u", 0).keys() == {"n3"}
    assert known.away("v", 0).keys() == {"n2"}
    assert known.away("w", 0).keys() == {"n1", "n2", "n3"}


def test_to_end_a_hold_ends_none_of_another_part() -> None:
    """Two parts may make room for the same workload."""
    known = made(hold("u", "n1", by="a"), hold("u", "n2", by="b"))
    known.end("u", "a")
    assert known.nodes == {"n2"}
    known.put(hold("u", "n1", by="a"))
    known.clear("b")
    assert known.nodes == {"n1"}
