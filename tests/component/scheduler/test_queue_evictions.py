"""Queues get back what is theirs: of others only what is borrowed, by eviction, for one that is named, only once."""

import pathlib

import pytest

from slurm_bridge.model import kinds, names
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.queue_evictions import ALL, borrowed, evictions, go, left, notes, teams, until
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

pytestmark = pytest.mark.thorough


#: How long a workload waits before others go for it.
DELAY = 5.0


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus."""
    return Bridge(tmp_path)


def test_a_queue_gets_back_what_is_guaranteed_to_it(bridge: Bridge) -> None:
    """As much as it asks for, from the pods that came last; both sides are told of each other."""
    queues = borrowed(bridge)
    queues.pod("mine", "root.team.a", cpu="2")
    go(bridge, DELAY - 2)
    assert evictions(bridge) == 0
    until(bridge, lambda: bridge.node_of("mine"))
    assert left(bridge, *ALL) == ["b3", "b4"]
    assert evictions(bridge) == 2
    told = [note for reason, note in bridge.events("b4") if reason == "Preempted"]
    assert len(told) == 1
    assert told[0].startswith(f"Preempted by {NAMESPACE}/mine on node n")
    said = [note for reason, note in bridge.events("mine") if reason == "PreemptionStarted"]
    assert said[-1] == (
        "room is made in queue root.team.a: 2 workloads of queues beyond their guarantees will be evicted"
    )
    go(bridge, 3)
    assert bridge.core.evictions.queue_evictions == {}
    assert notes(bridge, "mine", names.ANNOTATION_ROOM) == {}


def test_nothing_is_remembered_of_victims_that_have_gone(bridge: Bridge) -> None:
    """Though a workload that is over is one that is not asked about again: else memory grows with each eviction."""
    queues = borrowed(bridge)
    for number in range(2):
        queues.pod(f"mine-{number}", "root.team.a")
        until(bridge, lambda name=f"mine-{number}": bridge.node_of(name))
        bridge.run(10)
    assert evictions(bridge) == 2
    assert len(bridge.core.evictions._evictor._let_go) == 1


def test_no_pod_is_told_twice_although_a_watch_is_slow(bridge: Bridge) -> None:
    """The API server has said yes, and the pods look as before."""
    queues = borrowed(bridge)
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: evictions(bridge))
    for _ in range(3):
        bridge.core.preempt_step()
    assert evictions(bridge) == 2
    bridge.settle()
    assert len([note for reason, note in bridge.events("b4") if reason == "Preempted"]) == 1


def test_no_pod_leaves_for_more_than_is_guaranteed(bridge: Bridge) -> None:
    """Three are one too many."""
    queues = borrowed(bridge)
    queues.pod("mine", "root.team.a", cpu="3")
    go(bridge, 60)
    assert evictions(bridge) == 0


def test_no_pod_leaves_for_pods_that_do_not_want_it(bridge: Bridge) -> None:
    """Their priority class says so."""
    queues = borrowed(bridge)
    queues.pod("mine", "root.team.a", cpu="2", spec={"preemptionPolicy": "Never"})
    go(bridge, 60)
    assert evictions(bridge) == 0


def test_no_pod_leaves_for_one_that_no_node_would_take(bridge: Bridge) -> None:
    """It says why itself, holds up no pod behind it, and enters its queue when there is such a node."""
    queues = borrowed(bridge)
    queues.pod("lost", "root.team.a", cpu="2", spec={"nodeSelector": {"disk": "ssd"}})
    go(bridge, 60)
    assert evictions(bridge) == 0
    assert queues.said("lost")[0] == "Unschedulable"
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: bridge.node_of("mine"))
    bridge.delete("mine", grace=0)
    bridge.kube.merge(kinds.NODES, ("", "n1"), {"metadata": {"labels": {"disk": "ssd"}}})
    until(bridge, lambda: "lost" in queues.submitted())


def test_a_pod_that_replaces_a_victim_does_not_get_its_room(bridge: Bridge) -> None:
    """It waits in its queue while the victim runs its grace period out, and after that, too."""
    queues = borrowed(bridge)
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: bridge.leaving("b4"))
    queues.pod("again", "root.team.b")
    until(bridge, lambda: bridge.node_of("mine"))
    go(bridge, 20)
    assert not bridge.node_of("again")
    assert left(bridge, *ALL) == ["b3", "b4"]


def test_the_nodes_are_kept_for_the_asker(bridge: Bridge) -> None:
    """Others of another queue, which has room, wait in Slurm for any node, and would get them."""
    queues = Queues(bridge, *teams(least="3", most="9"), queue("c"), evict_seconds=20)
    for name in ("b1", "b2", "b3"):
        queues.pod(name, "root.team.b", cpu="3")
        bridge.run(2)
    node = bridge.node_of("b3")
    assert node
    queues.pod("rival", "root.c", cpu="3")
    bridge.run(2)
    assert queues.submitted()[-1] == "rival"
    queues.pod("mine", "root.team.a", cpu="3")
    until(bridge, lambda: bridge.leaving("b3"))
    assert bridge.job("rival").ask.excluded == (node.replace("n", "s"),)
    until(bridge, lambda: bridge.node_of("mine"))
    assert bridge.node_of("mine") == node
    until(bridge, lambda: not bridge.job("rival").ask.excluded)


def test_two_askers_of_the_same_node_both_get_it(bridge: Bridge) -> None:
    """Neither waits for the other to give it up."""
    queues = Queues(bridge, *teams(), queue("c"), evict_seconds=300)
    for name, path in [*((name, "root.team.b") for name in ALL), *((f"c{number}", "root.c") for number in range(4))]:
        queues.pod(name, path)
        bridge.run(2)
    there = {bridge.node_of("b3"), bridge.node_of("b4")}
    assert len(there) == 1
    for name in ("mine1", "mine2"):
        queues.pod(name, "root.team.a")
    until(bridge, lambda: queues.running("mine1", "mine2") == ["mine1", "mine2"])
    assert {bridge.node_of(name) for name in ("mine1", "mine2")} == there


def test_a_rival_of_a_higher_priority_does_not_get_the_nodes(bridge: Bridge) -> None:
    """What is guaranteed to a queue is not for a pod that is only more important in another one."""
    queues = Queues(bridge, *teams(least="3", most="9"), queue("c"), evict_seconds=20)
    for name in ("b1", "b2", "b3"):
        queues.pod(name, "root.team.b", cpu="3")
        bridge.run(2)
    queues.pod("rival", "root.c", cpu="3", spec={"priority": 1000})
    bridge.run(2)
    queues.pod("mine", "root.team.a", cpu="3")
    until(bridge, lambda: bridge.node_of("mine"))
    assert not bridge.node_of("rival")


def test_a_workload_without_another_node_gives_its_job_back_meanwhile(bridge: Bridge) -> None:
    """It would get the node in Slurm the moment it comes free; it asks again when the other one has it."""
    queues = Queues(bridge, *teams(least="3", most="9"), queue("c"), evict_seconds=20)
    for name in ("b1", "b2", "b3"):
        queues.pod(name, "root.team.b", cpu="3")
        bridge.run(2)
    node = bridge.node_of("b3")
    queues.pod("rival", "root.c", cpu="2", spec={"nodeSelector": {"kubernetes.io/hostname": node}})
    bridge.run(2)
    assert queues.submitted()[-1] == "rival"
    queues.pod("mine", "root.team.a", cpu="3")
    until(bridge, lambda: bridge.leaving("b3"))
    assert "rival" not in queues.submitted()
    assert not bridge.park_note("rival")
    until(bridge, lambda: bridge.node_of("mine"))
    assert bridge.node_of("mine") == node
    until(bridge, lambda: "rival" in queues.submitted(), 10)


def test_what_waits_in_slurm_is_taken_back_and_waits_in_its_queue(bridge: Bridge) -> None:
    """It has no pod on any node that would have to be evicted."""
    queues = Queues(bridge, *teams(), evict_seconds=20)
    for name in ("b1", "b2"):
        queues.pod(name, "root.team.b")
        bridge.run(2)
    bridge.slurm.control.pause()
    for name in ("b3", "b4"):
        queues.pod(name, "root.team.b")
        bridge.run(2)
    assert queues.submitted() == ["b1", "b2", "b3", "b4"]
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: queues.submitted() == ["b1", "b2", "mine"])
    assert evictions(bridge) == 0
    text = f"Preempted by {NAMESPACE}/mine before it had a node: it waits in its queue again"
    assert ("Preempted", text) in bridge.events("b4")
    go(bridge, 5)
    assert queues.said("b4")[0] == "QueueWaiting"
    assert not bridge.park_note("b4")


def test_whose_job_ends_before_it_is_its_turn_does_not_say_so_any_longer(bridge: Bridge) -> None:
    """It was written that it goes, and there is nothing left of it that could."""
    queues = Queues(bridge, *teams(), evict_seconds=20)
    for name in ("b1", "b2", "b3"):
        queues.pod(name, "root.team.b")
        bridge.run(2)
    bridge.slurm.control.pause()
    queues.pod("b4", "root.team.b")
    bridge.run(2)
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: notes(bridge, "b4", names.ANNOTATION_MAKES_ROOM))
    bridge.run(20)
    go(bridge, 5)
    assert queues.said("b4")[0] == "QueueWaiting"
    assert notes(bridge, "b4", names.ANNOTATION_MAKES_ROOM) == {}


def test_a_group_goes_as_a_whole(bridge: Bridge) -> None:
    """Its job is ended when all of its pods have gone."""
    queues = Queues(bridge, *teams(), evict_seconds=20)
    for name in ("b1", "b2"):
        queues.pod(name, "root.team.b")
        bridge.run(2)
    together = {names.GROUP: "pair", names.GROUP_SIZE: "2"}
    for name in ("g1", "g2"):
        queues.pod(name, "root.team.b", labels=together)
    bridge.until(lambda: queues.running("g1", "g2") == ["g1", "g2"])
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: bridge.node_of("mine"))
    assert left(bridge, "b1", "b2", "g1", "g2") == ["g1", "g2"]
    (job,) = bridge.jobs(f"Group:{NAMESPACE}/pair")
    assert job.over
