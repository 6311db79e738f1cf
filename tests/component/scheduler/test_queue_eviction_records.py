"""What is written on pods about evictions for queues survives restarts and kills, and is not believed of strangers."""

import json
import pathlib
from collections.abc import Callable

import pytest

from slurm_bridge import errors
from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.queue_evictions import (
    ALL,
    MARKS,
    borrowed,
    evictions,
    go,
    left,
    notes,
    planned,
    teams,
    until,
)
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.weather import Killed, Odds
from tests.simulation.world import NAMESPACE, World

pytestmark = pytest.mark.thorough


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus."""
    return Bridge(tmp_path)


def restart(bridge: Bridge) -> Queues:
    """Another process in the same world, with the same queues."""
    bridge.start()
    queues = Queues(bridge, *teams(), evict_seconds=20)
    while not all(feed.store.synced for feed in bridge.feeds):
        # A daemon acts only when it has seen everything.
        bridge.hear()
    bridge.recover()
    return queues


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
    """An annotation about victims that do not exist keeps no node from pods of others, also after a restart."""
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
