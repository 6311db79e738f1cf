"""Queues get back what is theirs: of others only what is borrowed, by eviction, for one that is named, only once."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from slurm_bridge import errors
from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from tests.component.families.yunikorn.yunikorn_scenes import Queues, document, queue
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.weather import Killed, Odds
from tests.simulation.world import NAMESPACE, World

pytestmark = pytest.mark.thorough

#: How long a workload waits before others go for it.
DELAY = 5.0
SOON = {"preemption.delay": "5s"}


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus."""
    return Bridge(tmp_path)


def teams(*, least: str = "2", most: str = "4", **b: Any) -> tuple[Any, ...]:
    """Two queues share what the one above them may have; of it so many cpus are a's."""
    mine = queue("a", resources={"guaranteed": {"vcore": least}}, properties=SOON)
    return (queue("team", mine, queue("b", **b), resources={"max": {"vcore": most}}),)


def go(bridge: Bridge, seconds: float) -> None:
    """Let time pass, with a look at what has to leave at every step."""
    for _ in range(round(seconds / 0.5)):
        bridge.step(0.5)
        bridge.core.preempt_step()


def until(bridge: Bridge, condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Likewise, until it holds."""
    end = bridge.clock.now() + seconds
    while not condition():
        assert bridge.clock.now() < end, "it never came to that:\n" + "\n".join(bridge.world.journal[-30:])
        go(bridge, 0.5)


def borrowed(bridge: Bridge, *four: str, **changes: Any) -> Queues:
    """Queue b has everything, in pods of one cpu that came one after the other."""
    queues = Queues(bridge, *teams(), evict_seconds=20)
    for name in four or ("b1", "b2", "b3", "b4"):
        queues.pod(name, "root.team.b", **changes)
        bridge.run(2)
    assert len(queues.running(*(four or ("b1", "b2", "b3", "b4")))) == 4
    return queues


def restart(bridge: Bridge) -> Queues:
    """Another process in the same world, with the same queues."""
    bridge.start()
    queues = Queues(bridge, *teams(), evict_seconds=20)
    while not all(feed.store.synced for feed in bridge.feeds):
        # A daemon acts only when it has seen everything.
        bridge.hear()
    bridge.recover()
    return queues


def evictions(bridge: Bridge) -> int:
    """How many this process has asked for."""
    return bridge.kube_calls.count(method="POST", target="/eviction")


def left(bridge: Bridge, *pods: str) -> list[str]:
    """Those of these pods that have gone, or are on their way."""
    return [name for name in pods if bridge.leaving(name)]


def notes(bridge: Bridge, name: str, key: str) -> dict[str, str]:
    """What a pod says of it."""
    found = json.loads((bridge.manifest(name)["metadata"].get("annotations") or {}).get(key, "{}"))
    assert isinstance(found, dict)
    return found


ALL = ("b1", "b2", "b3", "b4")
MARKS = (names.ANNOTATION_ROOM, names.ANNOTATION_MAKES_ROOM)


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
        "room is made in queue root.team.a: 2 workloads with more than their queues are entitled to have to go"
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


def test_a_refused_eviction_is_asked_again(bridge: Bridge) -> None:
    """A budget may have another opinion later."""
    queues = borrowed(bridge)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=3)
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: bridge.node_of("mine"))
    assert left(bridge, *ALL) == ["b3", "b4"]


def test_a_pod_that_a_budget_keeps_is_spared_and_another_one_goes(bridge: Bridge) -> None:
    """After the time that is configured; what was written on it is taken back."""
    queues = borrowed(bridge, "b1", "b2", "b3", "b4")
    bridge.kube.merge(kinds.PODS, (NAMESPACE, "b4"), {"metadata": {"labels": {"app": "db"}}})
    spec = {"selector": {"matchLabels": {"app": "db"}}, "minAvailable": 1}
    bridge.kube.create(kinds.PODDISRUPTIONBUDGETS, {"metadata": {"name": "x", "namespace": NAMESPACE}, "spec": spec})
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: bridge.node_of("mine"), 120)
    assert left(bridge, *ALL) == ["b2", "b3"]
    go(bridge, 2)
    assert notes(bridge, "b4", names.ANNOTATION_MAKES_ROOM) == {}


def keeps(bridge: Bridge, name: str) -> None:
    """A budget that lets this pod never go."""
    bridge.kube.merge(kinds.PODS, (NAMESPACE, name), {"metadata": {"labels": {"app": "db"}}})
    spec = {"selector": {"matchLabels": {"app": "db"}}, "minAvailable": 1}
    bridge.kube.create(kinds.PODDISRUPTIONBUDGETS, {"metadata": {"name": "x", "namespace": NAMESPACE}, "spec": spec})


def test_no_other_pod_is_evicted_while_one_is_refused(bridge: Bridge) -> None:
    """Without it the room is not enough: those that had left already would have left for nothing."""
    queues = Queues(bridge, *teams(most="2"), evict_seconds=20)
    for name in ("b1", "b2"):
        queues.pod(name, "root.team.b")
        bridge.run(2)
    keeps(bridge, "b2")
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: evictions(bridge))
    go(bridge, 25)
    assert [notes(bridge, name, key) for name in ("b1", "b2", "mine") for key in MARKS] == [{}] * 6
    go(bridge, 170)
    assert left(bridge, "b1", "b2") == []


def test_a_pod_that_a_budget_kept_before_is_asked_first(bridge: Bridge) -> None:
    """So that others go in vain at most once, however often it is tried."""
    queues = Queues(bridge, *teams(most="2"), evict_seconds=20)
    for name in ("b1", "b2"):
        queues.pod(name, "root.team.b")
        bridge.run(2)
    keeps(bridge, "b1")
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: bridge.leaving("b2"))
    queues.pod("b3", "root.team.b")
    until(bridge, lambda: bridge.node_of("b3"), 120)
    before = evictions(bridge)
    until(bridge, lambda: evictions(bridge) > before, 120)
    go(bridge, 60)
    assert left(bridge, "b1", "b3") == []


OFF: dict[str, Any] = {"preemption": {"enabled": False}}


@pytest.mark.parametrize("options", [{"configuration": document(*teams(), **OFF)}, {"mode": "slurm"}])
def test_a_pod_that_is_not_evicted_yet_stays_when_preemption_is_switched_off(bridge: Bridge, options: Any) -> None:
    """At once, and not when it has been refused for long enough: its operator does not want it to go."""
    queues = borrowed(bridge)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=3)
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: evictions(bridge))
    queues.configure(**{"configuration": document(*teams()), "evict_seconds": 20, **options})
    told = evictions(bridge)
    go(bridge, 30)
    assert (evictions(bridge), left(bridge, *ALL), bridge.core.evictions.queue_evictions) == (told, [], {})
    assert [notes(bridge, name, key) for name in ("b3", "b4", "mine") for key in MARKS] == [{}] * 6


def test_without_the_right_to_evict_all_are_spared(bridge: Bridge) -> None:
    """And nothing is kept for the asker."""
    queues = borrowed(bridge)
    bridge.kube_calls.plan(faults.Answer(403), method="POST", target="/eviction", times=1000)
    queues.pod("mine", "root.team.a", cpu="2")
    go(bridge, 30)
    assert left(bridge, *ALL) == []
    assert notes(bridge, "b4", names.ANNOTATION_MAKES_ROOM) == {}


def test_no_pod_leaves_any_more_for_one_that_has_gone(bridge: Bridge) -> None:
    """A victim that is not evicted yet is spared."""
    queues = borrowed(bridge)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=1000)
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: evictions(bridge))
    bridge.delete("mine", grace=0)
    bridge.step()
    bridge.core.preempt_step()
    bridge.kube_calls.clear()
    go(bridge, 20)
    assert left(bridge, *ALL) == []
    assert bridge.core.evictions.queue_evictions == {}


def test_a_lowered_maximum_takes_back_what_is_too_much(bridge: Bridge) -> None:
    """After the delay that the queue has; there is no asker, so the queue is named."""
    slow = {"quota.preemption.delay": "10s"}
    queues = Queues(
        bridge, configuration=document(queue("b", properties=slow), preemption={"quotapreemptionenabled": True})
    )
    for name in ALL:
        queues.pod(name, "root.b")
        bridge.run(2)
    lowered = queue("b", resources={"max": {"vcore": "3"}}, properties=slow)
    queues.configure(configuration=document(lowered, preemption={"quotapreemptionenabled": True}))
    go(bridge, 8)
    assert left(bridge, *ALL) == []
    until(bridge, lambda: left(bridge, *ALL))
    go(bridge, 30)
    (gone,) = left(bridge, *ALL)
    told = [note for reason, note in bridge.events(gone) if reason == "Preempted"]
    assert told[0].startswith("Preempted by queue root.b (over its maximum) on node n")


def test_without_the_hook_what_was_begun_ends(bridge: Bridge) -> None:
    """No other pod is evicted, and nothing is said on pods any more."""
    queues = borrowed(bridge)
    queues.pod("mine", "root.team.a", cpu="2")
    planned(bridge)
    bridge.core.configure(queues.base)
    bridge.kube_calls.clear()
    go(bridge, 5)
    assert left(bridge, *ALL) == []
    assert [notes(bridge, name, key) for name in ("b4", "mine") for key in MARKS] == [{}] * 4
    assert not bridge.core.context.promised.nodes


def test_nodes_are_not_kept_for_ever(bridge: Bridge) -> None:
    """The asker may be held in Slurm."""
    queues = borrowed(bridge)
    bridge.slurm.control.pause()
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: "mine" in queues.submitted())
    assert bridge.core.context.promised.nodes
    go(bridge, 15)
    assert bridge.core.context.promised.nodes
    go(bridge, 10)
    assert not bridge.core.context.promised.nodes


def test_what_was_written_without_an_answer_is_taken_back_although_no_watch_has_told_of_it(bridge: Bridge) -> None:
    """A pod that stays does not say that it goes."""
    queues = borrowed(bridge)
    queues.pod("mine", "root.team.a", cpu="2")
    bridge.kube_calls.plan(faults.Reset(acted=True), method="PATCH", target="/pods/b4", times=9)
    until(bridge, lambda: notes(bridge, "b4", names.ANNOTATION_MAKES_ROOM))
    bridge.kube_calls.clear()
    bridge.core.configure(queues.base)
    bridge.core.preempt_step()
    assert notes(bridge, "b4", names.ANNOTATION_MAKES_ROOM) == {}


def test_what_cannot_be_taken_back_now_is_taken_back_later(bridge: Bridge) -> None:
    """It would mislead the next daemon."""
    queues = borrowed(bridge)
    queues.pod("mine", "root.team.a", cpu="2")
    until(bridge, lambda: len(left(bridge, *ALL)) == 2)
    bridge.kube_calls.plan(faults.Answer(500), method="PATCH", target="/pods/mine", times=1000)
    until(bridge, lambda: bridge.node_of("mine"))
    assert notes(bridge, "mine", names.ANNOTATION_ROOM)
    bridge.kube_calls.clear()
    go(bridge, 2)
    assert not notes(bridge, "mine", names.ANNOTATION_ROOM)


def planned(bridge: Bridge) -> None:
    """Everything is written, and the API server lets no pod go yet."""
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=1000)
    until(bridge, lambda: evictions(bridge))


def first_gone(bridge: Bridge) -> None:
    """One is on its way out, the other one was not told."""
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", nth=2, times=1000)
    until(bridge, lambda: left(bridge, *ALL))


def both_leave(bridge: Bridge) -> None:
    """They run their grace period out."""
    until(bridge, lambda: len(left(bridge, *ALL)) == 2)


def both_gone(bridge: Bridge) -> None:
    """While no daemon runs they go, and so do their jobs."""
    until(bridge, lambda: len(left(bridge, *ALL)) == 2)
    until(bridge, lambda: sum(bridge.exists(name) for name in ALL) == 2)


def noted(bridge: Bridge) -> None:
    """Which workloads leave is only on the pods of the asker."""
    bridge.kube_calls.plan(faults.Answer(500), method="PATCH", target="/pods/b", times=1000)
    until(bridge, lambda: notes(bridge, "mine", names.ANNOTATION_ROOM))


def let_in(bridge: Bridge) -> None:
    """They have gone, and the asker may have a job; Slurm takes none."""
    both_leave(bridge)
    bridge.slurm_calls.plan(faults.Answer(500), method="POST", target="/job/submit", times=1000)
    before = bridge.submits()
    until(bridge, lambda: bridge.submits() > before)


def submitted(bridge: Bridge) -> None:
    """It has a job, which waits."""
    both_leave(bridge)
    bridge.slurm.control.pause()
    until(bridge, lambda: [job for job in bridge.jobs(bridge.uid("mine")) if not job.over])


STEPS = [noted, planned, first_gone, both_leave, both_gone, let_in, submitted]


@pytest.mark.parametrize("step", STEPS)
def test_another_leadership_neither_forgets_nor_evicts_twice(bridge: Bridge, step: Callable[[Bridge], None]) -> None:
    """In the same process everything is read anew, too."""
    queues = borrowed(bridge)
    queues.pod("mine", "root.team.a", cpu="2")
    step(bridge)
    bridge.kube_calls.clear()
    bridge.slurm_calls.clear()
    bridge.recover()
    bridge.slurm.control.unpause()
    queues.pod("late", "root.team.b")
    until(bridge, lambda: bridge.node_of("mine"))
    go(bridge, 20)
    assert len(left(bridge, *ALL)) == 2
    assert queues.running("late") == []
    assert bridge.core.evictions.queue_evictions == {}


@pytest.mark.parametrize("step", STEPS)
def test_a_restart_neither_forgets_nor_evicts_twice(bridge: Bridge, step: Callable[[Bridge], None]) -> None:
    """Wherever it was: two leave in all, and the asker gets what they leave, though others want it, too."""
    queues = borrowed(bridge)
    queues.pod("mine", "root.team.a", cpu="2")
    step(bridge)
    before = left(bridge, *ALL)
    queues = restart(bridge)
    bridge.slurm.control.unpause()
    for name in ("late1", "late2"):
        queues.pod(name, "root.team.b")
    until(bridge, lambda: bridge.node_of("mine"))
    go(bridge, 20)
    assert len(left(bridge, *ALL)) == 2
    assert evictions(bridge) == 2 - len(before)
    assert queues.running("late1", "late2") == []
    assert bridge.core.evictions.queue_evictions == {}


def test_what_was_lowered_before_a_restart_is_not_taken_twice(bridge: Bridge) -> None:
    """A pod that leaves is counted as leaving, whatever the cause."""
    queues = borrowed(bridge)
    bridge.kube.merge(kinds.PODS, (NAMESPACE, "b4"), {"metadata": {"finalizers": ["x/y"]}})
    bridge.delete("b4")
    bridge.step()
    queues.pod("mine", "root.team.a", cpu="1")
    restart(bridge)
    go(bridge, 30)
    assert evictions(bridge) == 0


def test_nonsense_on_pods_is_not_believed(bridge: Bridge) -> None:
    """No pod leaves because a user has written on his own pod that others leave for it."""
    queues = borrowed(bridge)
    claims = {names.ANNOTATION_ROOM: json.dumps({"victims": {"y": 1}, "nodes": 2}), names.ANNOTATION_MAKES_ROOM: "{"}
    queues.pod("mine", "root.team.b", annotations=claims)
    real = {names.ANNOTATION_ROOM: json.dumps({"victims": {bridge.uid("b1"): "b1"}, "nodes": ["n2"]})}
    queues.pod("other", "root.team.b", annotations=real)
    restart(bridge)
    go(bridge, 30)
    assert left(bridge, *ALL) == []
    assert notes(bridge, "other", names.ANNOTATION_ROOM) == {}


@pytest.mark.security("identity")
def test_no_nodes_are_kept_for_a_pod_that_only_says_that_others_have_left_them(bridge: Bridge) -> None:
    """A note on a pod about victims that never were keeps no node from the pods of others, after any restart."""
    two = (queue("a"), queue("b", resources={"max": {"vcore": "1"}}))
    queues = Queues(bridge, *two, evict_seconds=600)
    queues.pod("full", "root.b")
    bridge.run(3)
    says = {"victims": {"Pod/other/x/u": "x"}, "nodes": ["n1", "n2", "n3", "n4"]}
    queues.pod("evil", "root.b", annotations={names.ANNOTATION_ROOM: json.dumps(says)})
    bridge.run(2)
    bridge.start()
    queues = Queues(bridge, *two, evict_seconds=600)
    while not all(feed.store.synced for feed in bridge.feeds):
        bridge.hear()
    bridge.recover()
    assert bridge.core.context.promised.nodes == frozenset()
    assert queues.hook.rooms() == {}
    queues.pod("mine", "root.a")
    until(bridge, lambda: bridge.node_of("mine"), seconds=10)


def pods_alone(bridge: Bridge) -> list[str]:
    """Two of four; evicted."""
    borrowed(bridge)
    return ["b3", "b4"]


def a_group(bridge: Bridge) -> list[str]:
    """Both of its pods; evicted."""
    queues = Queues(bridge, *teams(), evict_seconds=20)
    for name in ("b1", "b2"):
        queues.pod(name, "root.team.b")
        bridge.run(2)
    for name in ("g1", "g2"):
        queues.pod(name, "root.team.b", labels={names.GROUP: "pair", names.GROUP_SIZE: "2"})
    bridge.until(lambda: queues.running("g1", "g2") == ["g1", "g2"])
    return ["g1", "g2"]


def one_that_waits(bridge: Bridge) -> list[str]:
    """Of one the job is taken back, the other one is evicted."""
    queues = Queues(bridge, *teams(), evict_seconds=20)
    for name in ("b1", "b2", "b3"):
        queues.pod(name, "root.team.b")
        bridge.run(2)
    bridge.slurm.control.pause()
    queues.pod("b4", "root.team.b")
    bridge.run(2)
    bridge.slurm.control.hold(bridge.job("b4").job_id)
    bridge.slurm.control.unpause()
    return ["b3"]


def played(bridge: Bridge, scene: Callable[[Bridge], list[str]], kill: int | None = None) -> list[int]:
    """Room is made for one, and the daemon dies after this call; all calls that change something from then on."""
    victims = scene(bridge)
    weather = bridge.world.weather
    began = weather.calls
    for name, path, cpu in (("mine", "root.team.a", "2"), ("late", "root.team.b", "1")):
        bridge.pod(name, cpu=cpu, annotations={"slurmjob.slinky.slurm.net/queue": path})
    if kill is not None:
        weather.after(kill, weather.kill)
    for _ in range(2):
        try:
            until(bridge, lambda: bridge.node_of("mine"))
            go(bridge, 10)
        except Killed:
            restart(bridge)
    there = [name for name in (*ALL, "g1", "g2") if name in victims or bridge.node_of(name)]
    assert left(bridge, *there) == victims
    assert sum("/eviction" in line for line in bridge.world.journal) == len(victims)
    assert not bridge.node_of("late")
    assert bridge.core.evictions.queue_evictions == {}
    assert [notes(bridge, name, key) for name in ("b1", "b2", "mine") for key in MARKS] == [{}] * 6
    return [call for call in weather.orders if call > began]


@pytest.mark.parametrize("scene", [pods_alone, a_group, one_that_waits])
def test_a_daemon_that_is_killed_after_any_order_neither_forgets_nor_evicts_twice(
    tmp_path: pathlib.Path, scene: Callable[[Bridge], list[str]]
) -> None:
    """Whichever was its last one, the next daemon comes to the same end."""
    for call in played(Bridge(tmp_path), scene):
        try:
            played(Bridge(tmp_path), scene, call)
        except AssertionError as broken:
            pytest.fail(f"killed after call {call}: {broken}")


ROUGH = Odds(lost=0.03, unanswered=0.03, orders_unanswered=0.05, killed=0.02)


@pytest.mark.parametrize("scene", [pods_alone, a_group, one_that_waits])
@pytest.mark.parametrize("seed", range(1, 7))
def test_whatever_is_lost_they_go_and_the_asker_gets_their_room(
    tmp_path: pathlib.Path, seed: int, scene: Callable[[Bridge], list[str]]
) -> None:
    """Calls, answers and daemons: in the end it is as if nothing had been."""
    bridge = Bridge(tmp_path, world=World(seed, tmp_path / "token"))
    victims = scene(bridge)
    for name, path, cpu in (("mine", "root.team.a", "2"), ("late", "root.team.b", "1")):
        bridge.pod(name, cpu=cpu, annotations={"slurmjob.slinky.slurm.net/queue": path})
    bridge.world.weather.odds = ROUGH
    end = bridge.clock.now() + 40
    while bridge.clock.now() < end:
        try:
            go(bridge, 0.5)
        except (Killed, errors.BridgeError):
            again(bridge)
    bridge.world.weather.calm()
    again(bridge)
    until(bridge, lambda: bridge.node_of("mine"), 400)
    go(bridge, 30)
    there = [name for name in (*ALL, "g1", "g2") if name in victims or bridge.node_of(name)]
    assert left(bridge, *there) == victims
    assert not bridge.node_of("late")
    assert bridge.core.evictions.queue_evictions == {}


def again(bridge: Bridge) -> None:
    """Another daemon, as often as it takes."""
    for _ in range(50):
        try:
            restart(bridge)
        except (Killed, errors.BridgeError):
            continue
        return
    raise AssertionError("no daemon comes up")
