"""The snapshot says what both sides said last, and moves its versions only for a reason."""

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.model import names
from slurm_bridge.model.meta import Condition
from slurm_bridge.model.node import Node, Taint
from slurm_bridge.translate import resources
from tests.unit.cluster.cache_scenes import ONE, bound, keeper
from tests.unit.hooks.builders import node, partition, slurm_node


def test_nothing_new_is_the_same_snapshot() -> None:
    """Looking twice costs nothing."""
    made = keeper(node("n1"))
    assert made.snapshot() is made.snapshot()


def test_a_snapshot_does_not_change() -> None:
    """What was given out stays as it was."""
    made = keeper(node("n1"))
    before = made.snapshot()
    made.on_pod(None, bound("a", "n1"))
    made.on_node(node("n1"), None)
    assert list(before.nodes) == ["n1"]
    assert not before.nodes["n1"].used


def test_t25_both_names_of_a_node() -> None:
    """A label names the node's counterpart in Slurm, and both ways lead to the same facts."""
    made = keeper(node("n1", labels={names.LABEL_SLURM_NODE_NAME: "slurm1"}))
    seen = made.snapshot()
    found = seen.by_slurm_name("slurm1")
    assert found is seen.nodes["n1"]
    assert found.slurm == slurm_node("slurm1")
    assert seen.by_slurm_name("n1") is None


def test_t24_a_slurm_node_that_kubernetes_does_not_have() -> None:
    """It is known as a Slurm node, and leads to no facts."""
    made = keeper()
    made.set_slurm([slurm_node("ghost")], [])
    assert made.snapshot().by_slurm_name("ghost") is None
    assert "ghost" in made.snapshot().slurm_nodes


def test_two_nodes_that_claim_one_counterpart_get_none() -> None:
    """Nobody could say which of them an allocation means; the one that remains gets it back."""
    label = {names.LABEL_SLURM_NODE_NAME: "s"}
    one, other = node("n1", labels=label), node("n2", labels=label)
    made = keeper(one, other)
    assert [facts.slurm for facts in made.snapshot().nodes.values()] == [None, None]
    made.on_node(other, None)
    assert made.snapshot().by_slurm_name("s") is made.snapshot().nodes["n1"]


def test_a_node_that_takes_another_slurm_name() -> None:
    """The old name leads nowhere, the new one to it."""
    made = keeper(node("n1"))
    made.set_slurm([slurm_node("n1"), slurm_node("s")], [])
    made.on_node(node("n1"), node("n1", labels={names.LABEL_SLURM_NODE_NAME: "s"}))
    seen = made.snapshot()
    assert seen.by_slurm_name("n1") is None
    assert seen.by_slurm_name("s") is not None


CHANGES: Mapping[str, Node] = {
    "label": node("n1", labels={"a": "b"}),
    "taint": node("n1", taints=[Taint(key="k", effect="NoSchedule")]),
    "cordoned": node("n1", unschedulable=True),
    "readiness": node("n1", ready=False),
    "allocatable": node("n1", allocatable={"cpu": "8"}),
    "deletion": node("n1", deleting=True),
    "another incarnation": node("n1", uid="other"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_placement_depends_on_moves_the_version(what: str) -> None:
    """A plan that was worked out before must not be used any more."""
    made = keeper(node("n1"))
    before = made.snapshot().version
    made.on_node(node("n1"), CHANGES[what])
    assert made.snapshot().version > before
    assert made.snapshot().nodes["n1"].node == CHANGES[what]


def test_a_heartbeat_does_not_move_the_version() -> None:
    """Kubelets report every few seconds; only the object is taken over."""
    made = keeper(node("n1"))
    before = made.snapshot()
    fresh = node("n1", version="2")
    pressure = (*fresh.status.conditions, Condition(type="MemoryPressure", status="False"))
    fresh = msgspec.structs.replace(fresh, status=msgspec.structs.replace(fresh.status, conditions=pressure))
    made.on_node(node("n1"), fresh)
    after = made.snapshot()
    assert after.nodes["n1"].node == fresh
    assert (after.version, after.names) == (before.version, before.names)
    assert after.names is before.names


def test_nodes_come_and_go() -> None:
    """Both move the version, and names follow."""
    made = keeper(node("n1"))
    first = made.snapshot()
    made.on_node(None, node("n2"))
    second = made.snapshot()
    made.on_node(node("n1"), None)
    third = made.snapshot()
    assert [set(one.names) for one in (first, second, third)] == [{"n1"}, {"n1", "n2"}, {"n2"}]
    assert first.version < second.version < third.version


def test_the_end_of_an_unknown_node_is_nothing() -> None:
    """A node that was never seen cannot leave."""
    made = keeper(node("n1"))
    before = made.snapshot()
    made.on_node(node("n2"), None)
    assert made.snapshot() is before


def test_slurm_says_the_same_again() -> None:
    """An unchanged answer is no change."""
    made = keeper(node("n1"))
    before = made.snapshot()
    made.set_slurm([slurm_node("n1")], [partition("debug", "n1")])
    assert made.snapshot() is before


def test_a_slurm_node_that_gets_busy_does_not_move_the_version() -> None:
    """Slurm itself knows its states; our plans do not depend on them."""
    made = keeper(node("n1"))
    before = made.snapshot()
    made.set_slurm([slurm_node("n1", states="ALLOCATED EXTERNAL")], [partition("debug", "n1")])
    after = made.snapshot()
    assert after.version == before.version
    assert after.nodes["n1"].slurm == slurm_node("n1", states="ALLOCATED EXTERNAL")


def test_a_partition_that_goes_down_does_not_move_the_version() -> None:
    """Slurm queues for it; but the snapshot tells."""
    made = keeper(node("n1"))
    before = made.snapshot()
    down = dataclasses.replace(partition("debug", "n1"), states=frozenset({"DOWN"}))
    made.set_slurm([slurm_node("n1")], [down])
    after = made.snapshot()
    assert (after.version, after.partitions) == (before.version, (down,))


@pytest.mark.parametrize(
    ("nodes", "partitions"),
    [
        ([], [partition("debug", "n1")]),
        ([slurm_node("n1"), slurm_node("n2")], [partition("debug", "n1")]),
        ([slurm_node("n1", partitions=("other",))], [partition("debug", "n1")]),
        ([slurm_node("n1")], [partition("debug")]),
        ([slurm_node("n1")], [partition("debug", "n1"), partition("big", "n1")]),
    ],
)
def test_slurm_nodes_and_partitions_move_the_version(nodes: list[Any], partitions: list[Any]) -> None:
    """What belongs where decides which names may be sent."""
    made = keeper(node("n1"))
    before = made.snapshot().version
    made.set_slurm(nodes, partitions)
    assert made.snapshot().version > before


def test_what_slurm_knows_of_what_is_used() -> None:
    """Pods that name their job, and those that are about to be bound for one; not those of other schedulers."""

    def placed(made: ClusterCache) -> tuple[Mapping[str, Fraction], Mapping[str, Fraction]]:
        facts = made.snapshot().nodes["n1"]
        return dict(facts.placed), dict(facts.used)

    made = keeper(node("n1"))
    made.on_pod(None, bound("theirs", "n1"))
    assert placed(made) == ({}, ONE)
    made.assume("uid-ours", "n1", ONE)
    two = {name: 2 * amount for name, amount in ONE.items()}
    assert placed(made) == (ONE, two)
    ours = bound("ours", "n1")
    labelled = msgspec.structs.replace(
        ours, metadata=msgspec.structs.replace(ours.metadata, labels={names.LABEL_JOB_ID: "7"})
    )
    made.on_pod(None, labelled)
    assert placed(made) == (ONE, two)
    made.on_pod(labelled, None)
    assert placed(made) == ({}, ONE)


def test_what_jobs_use_moves_no_rule() -> None:
    """It changes with every start; what is cached for rules about placement stands."""
    made = keeper(node("n1"))
    before = made.snapshot()
    busy = slurm_node("n1", used_cpus=4, used_memory_mib=100)
    made.set_slurm([busy], before.partitions)
    after = made.snapshot()
    assert (after.version, after.nodes["n1"].slurm) == (before.version, busy)
    assert after.use_version > before.use_version
    made.set_slurm([slurm_node("n1", cpus=8)], before.partitions)
    assert made.snapshot().version > before.version


def test_a_link_that_changes_is_followed() -> None:
    """Slurm comes to know a node, takes another name for it, forgets it."""
    made = ClusterCache(resources.requests_of)
    made.on_node(None, node("n1"))
    found = [dict(made.snapshot().by_slurm)]
    for names_of_slurm in (["n1"], [], ["n1"]):
        made.set_slurm(map(slurm_node, names_of_slurm), [])
        found.append(dict(made.snapshot().by_slurm))
    made.on_node(node("n1"), node("n1", labels={"a": "b"}))
    found.append(dict(made.snapshot().by_slurm))
    made.on_node(node("n1"), node("n1", labels={names.LABEL_SLURM_NODE_NAME: "s"}))
    found.append(dict(made.snapshot().by_slurm))
    linked = {"n1": "n1"}
    assert found == [{}, linked, {}, linked, linked, {}]


def test_another_default_partition_is_another_version() -> None:
    """Jobs that name none come to other nodes then; who remembers by version must not give the old ones."""
    follows = keeper()
    machines = [slurm_node("a"), slurm_node("b")]
    follows.set_slurm(machines, [partition("x", "a", default=True), partition("y", "b")])
    before = follows.version
    follows.set_slurm(machines, [partition("x", "a"), partition("y", "b", default=True)])
    assert follows.version > before


def test_what_drivers_publish_counts_beside_what_kubelets_count() -> None:
    """Until it is published no more; the version moves only where something is another number."""
    made = keeper(node("n1"), node("n2"))
    made.offer({"n1": {"example.com/gpu": 4}, "gone": {"example.com/gpu": 1}})
    seen = made.snapshot()
    assert seen.nodes["n1"].allocatable["example.com/gpu"] == Fraction(4)
    assert "cpu" in seen.nodes["n1"].allocatable
    assert "example.com/gpu" not in seen.nodes["n2"].allocatable
    made.offer({"n1": {"example.com/gpu": 4}})
    assert made.snapshot() is seen
    made.on_node(node("n1"), node("n1", labels={"a": "b"}))
    assert made.snapshot().nodes["n1"].allocatable["example.com/gpu"] == Fraction(4)
    made.offer({})
    assert "example.com/gpu" not in made.snapshot().nodes["n1"].allocatable
