"""Cordons of Kubernetes and drains of Slurm."""

import pytest

from slurm_bridge.controllers.nodes.options import Managed
from slurm_bridge.model import names
from slurm_bridge.sim.slurm import node_updates
from tests.component.nodes.node_world import PREFIX, NodeWorld

MAPPED = {names.LABEL_SLURM_NODE_NAME: "ext019"}
CORDONED = f"{PREFIX}cordoned in Kubernetes"


def test_t51_a_cordon_drains_and_an_uncordon_undrains(world: NodeWorld) -> None:
    """T25: under the name that the node has in Slurm. Each is one call."""
    world.add("k19", labels=MAPPED)
    world.cordon("k19")
    world.settle(30)
    assert world.drained("ext019") == CORDONED
    world.cordon("k19", wanted=False)
    world.settle(30)
    assert world.drained("ext019") is None
    assert len(world.orders()) == 2


def test_many_cordons_are_one_call(world: NodeWorld) -> None:
    """All nodes of which Slurm is told the same."""
    world.restart(managed=Managed.ALL)
    nodes = [f"ext{number:03}" for number in range(1, 13)]
    world.add(*nodes, labels={})
    for name in nodes:
        world.cordon(name)
    world.settle()
    assert len(world.orders()) == 1
    assert {world.drained(name) for name in nodes} == {CORDONED}


@pytest.mark.parametrize("word", ["DRAIN", "DOWN", "FAIL"])
def test_t51_a_state_that_an_administrator_set_is_not_touched(world: NodeWorld, word: str) -> None:
    """Neither its reason by a cordon, nor itself by an uncordon."""
    world.add("k19", labels=MAPPED)
    node_updates.change(world.slurm.world, "ext019", [word], "bad fan")
    world.cordon("k19")
    world.settle(30)
    world.cordon("k19", wanted=False)
    world.settle(30)
    assert world.node("ext019").reason == "bad fan"
    assert world.orders() == []


def test_an_administrator_who_takes_a_drain_over_keeps_it(world: NodeWorld) -> None:
    """Another reason on our drain makes it the administrator's."""
    world.add("k19", labels=MAPPED)
    world.cordon("k19")
    world.settle()
    world.slurm.control.drain("ext019", "bad fan")
    world.cordon("k19", wanted=False)
    world.settle(30)
    assert world.drained("ext019") == "bad fan"


def test_an_administrator_who_undrains_a_cordoned_node_is_told_by_the_drain(world: NodeWorld) -> None:
    """The cordon stands, so the node is drained again."""
    world.add("k19", labels=MAPPED)
    world.cordon("k19")
    world.settle()
    world.slurm.control.resume("ext019")
    world.settle(10)
    assert world.drained("ext019") == CORDONED


def test_another_clusters_drain_stays(world: NodeWorld) -> None:
    """A reason with another cluster's id is not ours, and neither is one that only begins alike."""
    world.add("k19", labels=MAPPED)
    for reason in ("slurm-bridge(k2): cordoned in Kubernetes", "slurm-bridge(k1) cordoned", "slurm-bridge(k11): x"):
        world.slurm.control.drain("ext019", reason)
        world.settle(10)
        assert world.drained("ext019") == reason
    assert world.orders() == []


def test_a_drain_that_slurmctld_forgot_is_set_again(world: NodeWorld) -> None:
    """At a restart slurmctld puts external nodes of its configuration into service, and keeps the reason."""
    world.add("k19", labels=MAPPED)
    world.cordon("k19")
    world.settle()
    world.slurm.control.crash(lose_seconds=0)
    assert world.drained("ext019") is None
    world.settle(10)
    assert world.drained("ext019") == CORDONED


def test_a_reason_that_is_left_over_is_cleared(world: NodeWorld) -> None:
    """An administrator who drains the node without a reason must not find it undrained."""
    world.add("k19", labels=MAPPED)
    world.cordon("k19")
    world.settle()
    world.slurm.control.crash(lose_seconds=0)
    world.cordon("k19", wanted=False)
    world.settle(10)
    assert (world.node("ext019").reason, world.drained("ext019")) == ("", None)


def test_a_registered_node_that_leaves_is_not_undrained_meanwhile(world: NodeWorld) -> None:
    """T51: cordoned, uncordoned, with a job on it: the drain of its departure stays."""
    world.add("w1")
    world.settle()
    world.occupy("w1")
    world.cordon("w1")
    world.settle()
    world.label("w1", names.LABEL_EXTERNAL_NODE, None)
    world.label("w1", names.LABEL_SLURM_NODE_NAME, "w1")
    world.settle()
    world.cordon("w1", wanted=False)
    world.settle(30)
    assert world.drained("w1") is not None
