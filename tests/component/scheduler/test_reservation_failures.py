"""Reservations whose orders are refused, lost or cut off by a kill leave nothing behind."""

import contextlib
import pathlib
from collections.abc import Callable

import pytest

from slurm_bridge import errors
from slurm_bridge.scheduler.reservations import node_record
from slurm_bridge.scheduler.reservations.acquire import AGAIN, MOST_REFUSED, SECONDS
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.traffic import (
    AFTER,
    LASTS,
    OPTIONS,
    Traffic,
    emptied,
    record,
    refused,
    reserved,
)
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.weather import Killed, Odds
from tests.simulation.world import NAMESPACE, World

pytestmark = pytest.mark.thorough


QUEUE = {"slurmjob.slinky.slurm.net/queue": "root.a"}


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus, on one of which another scheduler has a pod for good."""
    return emptied(tmp_path)


def test_after_a_crash_the_reservation_goes_by_itself(bridge: Bridge) -> None:
    """Its job is not held, and waits on."""
    traffic = Traffic(bridge)
    traffic.held()
    job = bridge.job("large")
    bridge.world.pass_time(130)
    assert reserved(bridge) == []
    assert (bridge.of(job).pending, bridge.of(job).held) == (True, False)


def test_its_job_enters_again_what_had_to_be_made_anew(bridge: Bridge) -> None:
    """Slurm was away for longer than it lasted, and what is known of the job is of before."""
    traffic = Traffic(bridge, reserve_seconds=600)
    traffic.held()
    job = bridge.job("large")
    bridge.world.pass_time(SECONDS + 10)
    assert (reserved(bridge), bridge.of(job).ask.reservation) == ([], "")
    bridge.core.preempt_step()
    assert bridge.of(job).ask.reservation == reserved(bridge)[0].name


@pytest.mark.parametrize("order", ["reserve", "assign", "unreserve", "leave"])
def test_orders_that_are_not_answered_are_given_again(bridge: Bridge, order: str) -> None:
    """Nothing is made twice, and nothing is left behind."""
    traffic = Traffic(bridge)
    lost = faults.Drop()
    where = {"reserve": ("POST", "/reservation"), "unreserve": ("DELETE", "/reservation/")}.get(order)
    if order in ("assign", "leave"):
        traffic.queues.pod("large", cpu="4")
        traffic.until(lambda: bridge.jobs(bridge.uid("large")))
        where = ("POST", f"/job/{bridge.job('large').job_id}")
    if order == "leave":
        traffic.until(lambda: reserved(bridge))
    assert where is not None
    bridge.slurm_calls.plan(lost, method=where[0], target=where[1], times=2)
    if order in ("reserve", "unreserve"):
        traffic.queues.pod("large", cpu="4")
    traffic.until(lambda: bridge.node_of("large"), 180)
    traffic.flow(10)
    assert reserved(bridge) == []
    assert record(bridge, bridge.job("large")).reserved == ""


def test_without_the_right_others_of_ours_keep_away_and_the_job_is_first(bridge: Bridge) -> None:
    """Its own priority comes back when it is over."""
    traffic = Traffic(bridge)
    bridge.slurm_calls.plan(refused(2010), method="POST", target="/reservation", times=1000)
    traffic.queues.pod("large", cpu="4")
    traffic.until(lambda: bridge.core.reservations.kept)
    traffic.flow(1)
    job = bridge.job("large")
    assert bridge.of(job).priority > 1_000_000_000
    assert bridge.core.context.promised.nodes
    assert record(bridge, job).reserved.split()[2:] == ["1"]
    for _ in range(round(LASTS)):
        bridge.step(1)
        bridge.core.preempt_step()
    assert (bridge.of(job).priority, record(bridge, job).reserved) == (1, "")


def test_without_the_right_a_large_workload_starts_all_the_same(bridge: Bridge) -> None:
    """As long as no job of others takes the nodes."""
    traffic = Traffic(bridge)
    bridge.slurm_calls.plan(refused(2010), method="POST", target="/reservation", times=1000)
    traffic.queues.pod("large", cpu="4")
    traffic.until(lambda: bridge.node_of("large"), 120)


def test_nodes_that_others_have_reserved_are_not_kept(bridge: Bridge) -> None:
    """From soon on: its job keeps its place in Slurm, no pod keeps away, and next time it is another node."""
    traffic = Traffic(bridge)
    taken: list[str] = []

    def take() -> None:
        kept = (bridge.core.context.states.of(key).leadership.reserved for key in bridge.core.reservations.kept)
        taken.extend(one.partition(" ")[2] for one in kept)
        soon = bridge.slurm.world.now + 60
        bridge.slurm.control.reserve(state.Reservation(name="works", nodes=tuple(taken), users=("root",), start=soon))

    bridge.slurm_calls.plan(faults.Meanwhile(take), method="POST", target="/reservation")
    traffic.queues.pod("large", cpu="4")
    traffic.until(lambda: taken)
    traffic.flow(1)
    job = bridge.of(bridge.job("large"))
    assert (job.priority, job.ask.reservation, record(bridge, job).reserved) == (1, "", "")
    assert (bridge.core.reservations.kept, bridge.core.context.promised.nodes) == ((), frozenset())
    traffic.until(lambda: reserved(bridge))
    assert reserved(bridge)[0].nodes != tuple(taken)


def test_a_job_that_may_not_enter_is_not_asked_for_ever(bridge: Bridge) -> None:
    """After a few refusals, with pauses, the nodes are free to all; the job is no more urgent than before."""
    traffic = Traffic(bridge)
    entering = traffic.refuse_to_enter(2052)
    traffic.until(lambda: bridge.core.reservations.kept)
    began = bridge.clock.now()
    traffic.until(lambda: not bridge.core.reservations.kept)
    assert bridge.clock.now() - began >= (MOST_REFUSED - 1) * AGAIN
    assert bridge.slurm_calls.count(**entering) == MOST_REFUSED
    assert (reserved(bridge), bridge.core.context.promised.nodes) == ([], frozenset())
    assert bridge.of(bridge.job("large")).priority == 1


def test_a_busy_slurm_is_not_asked_at_every_step(bridge: Bridge) -> None:
    """Its job enters when there is time for it, and has the node that has become free meanwhile."""
    traffic = Traffic(bridge)
    entering = traffic.refuse_to_enter(2020)
    traffic.until(lambda: bridge.core.reservations.kept)
    traffic.flow(4 * AGAIN)
    assert 3 <= bridge.slurm_calls.count(**entering) <= 5
    bridge.slurm_calls.clear()
    assert not bridge.node_of("large")
    traffic.flow(2 * AGAIN)
    assert bridge.node_of("large")


def test_what_is_not_taken_back_yet_is_tried_again_with_pauses(bridge: Bridge) -> None:
    """Slurm does not remove a reservation while it is busy with it."""
    traffic = Traffic(bridge)
    traffic.held()
    bridge.delete("large", grace=0)
    bridge.slurm_calls.forget()
    bridge.slurm_calls.plan(refused(2055), method="DELETE", target="/reservation/", times=1000)
    traffic.flow(4 * AGAIN)
    assert 3 <= bridge.slurm_calls.count(method="DELETE", target="/reservation/") <= 5
    bridge.slurm_calls.clear()
    traffic.flow(AGAIN + 1)
    assert reserved(bridge) == []


@pytest.mark.parametrize("number", [2002, 1007])
def test_a_job_is_not_the_first_for_ever_because_slurm_refused_once(bridge: Bridge, number: int) -> None:
    """A token that was wrong for a while is right again."""
    traffic = Traffic(bridge)
    bridge.slurm_calls.plan(refused(2010), method="POST", target="/reservation", times=1000)
    traffic.queues.pod("large", cpu="4")
    traffic.until(lambda: bridge.core.reservations.kept)
    job = bridge.job("large")
    bridge.step(1)
    bridge.core.preempt_step()
    assert bridge.of(job).priority == node_record.FIRST
    bridge.slurm_calls.plan(refused(number), method="POST", target=f"/job/{job.job_id}", times=3)
    for _ in range(round(LASTS + 5 * AGAIN)):
        bridge.step(1)
        bridge.core.preempt_step()
    assert (bridge.of(job).priority, record(bridge, job).reserved) == (1, "")


def test_nodes_are_kept_for_a_group(bridge: Bridge) -> None:
    """As many as hold all of it."""
    traffic = Traffic(bridge)
    together = {"scheduler.slinky.slurm.net/group": "pair", "scheduler.slinky.slurm.net/group-size": "2"}
    for name in ("g1", "g2"):
        traffic.queues.pod(name, cpu="3", labels=together)
    traffic.until(lambda: reserved(bridge))
    assert len(reserved(bridge)[0].nodes) == 2
    traffic.until(lambda: bridge.node_of("g1") and bridge.node_of("g2"), 200)
    traffic.flow(2)
    assert reserved(bridge) == []
    (job,) = bridge.jobs(f"Group:{NAMESPACE}/pair")
    assert record(bridge, job).reserved == ""


def test_only_so_many_at_once(bridge: Bridge) -> None:
    """The second one has its turn when the first has its nodes; a node that was kept in vain comes last after that."""
    traffic = Traffic(bridge, reserve_seconds=40)
    traffic.held()
    traffic.queues.pod("larger", cpu="4")
    traffic.flow(6)
    assert len(reserved(bridge)) == 1
    traffic.until(lambda: bridge.node_of("large"))
    assert not bridge.node_of("larger")
    traffic.until(lambda: bridge.node_of("larger"), 200)


def test_a_configuration_without_it_gives_everything_back(bridge: Bridge) -> None:
    """At the next step."""
    traffic = Traffic(bridge)
    traffic.held()
    traffic.queues.configure(queue("a"), reservations=0)
    traffic.flow(1)
    assert reserved(bridge) == []


class Play:
    """Full nodes, a large pod that is passed, and a daemon that may die; small ones end when nodes are kept."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.small = [f"small-{number}" for number in range(6)]
        self._start()
        for name in self.small:
            bridge.pod(name, cpu="2", annotations=QUEUE)
        self.until(lambda: all(map(bridge.node_of, self.small)))

    def _start(self) -> None:
        """With the queue, in this process and in each that follows."""
        Queues(self.bridge, queue("a"), **OPTIONS)

    def until(self, condition: Callable[[], object], seconds: float = 200.0) -> None:
        """A daemon that dies is followed by another one; nothing is ever kept twice."""
        end = self.bridge.clock.now() + seconds
        while not condition():
            assert self.bridge.clock.now() < end, "it never came to that"
            self.go(0.5)

    def go(self, seconds: float) -> None:
        """Time passes."""
        for _ in range(round(seconds / 0.5)):
            try:
                self.bridge.step(0.5)
                self.bridge.core.preempt_step()
            except (Killed, errors.BridgeError):
                self.again()
            assert len(reserved(self.bridge)) <= 1

    def again(self) -> None:
        """Another daemon, as often as it takes."""
        for _ in range(50):
            try:
                self.bridge.start()
                self._start()
                while not all(feed.store.synced for feed in self.bridge.feeds):
                    self.bridge.hear()
                self.bridge.recover()
            except (Killed, errors.BridgeError):
                continue
            return
        raise AssertionError("no daemon comes up")

    def run(self) -> None:
        """From when the large one comes until it has been bound for a while."""
        self.bridge.pod("large", cpu="4", annotations=QUEUE)
        self.until(lambda: self.bridge.jobs(self.bridge.uid("large")))
        self.bridge.pod("late", cpu="1", annotations=QUEUE)
        self.until(lambda: self.bridge.node_of("late"))
        # A daemon does not tell the next one which workloads came by: then nothing is kept.
        self.go(3 * AFTER)
        for name in self.small:
            self.bridge.status(name, phase="Succeeded")
        self.until(lambda: self.bridge.node_of("large"))
        self.go(20)

    def see(self) -> None:
        """It has its node by one job, and nothing else is left."""
        (job,) = [one for one in self.bridge.jobs(self.bridge.uid("large")) if not one.over]
        assert (job.ask.reservation, record(self.bridge, job).reserved) == ("", "")
        assert reserved(self.bridge) == []
        assert self.bridge.core.reservations.kept == ()
        assert self.bridge.core.context.promised.nodes == frozenset()


def test_a_daemon_that_is_killed_after_any_order_leaves_nothing_and_keeps_nothing_twice(tmp_path: pathlib.Path) -> None:
    """Whichever was its last one."""
    whole = Play(Bridge(tmp_path))
    began, weather = whole.bridge.world.weather.calls, whole.bridge.world.weather
    whole.run()
    whole.see()
    assert sum("/reservation" in line and "GET" not in line for line in whole.bridge.world.journal) == 2
    kept = 0
    for call in [call for call in weather.orders if call > began]:
        one = Play(Bridge(tmp_path))
        one.bridge.world.weather.after(call, one.bridge.world.weather.kill)
        try:
            one.run()
            one.see()
        except AssertionError as broken:
            pytest.fail(f"killed after call {call}: {broken}")
        kept += any("POST" in line and "/reservation" in line for line in one.bridge.world.journal)
    assert kept > len(weather.orders) // 4


ROUGH = Odds(lost=0.03, unanswered=0.03, orders_unanswered=0.05, killed=0.02)


@pytest.mark.parametrize("seed", range(1, 9))
def test_whatever_is_lost_it_starts_and_nothing_is_left(tmp_path: pathlib.Path, seed: int) -> None:
    """Calls, answers and daemons."""
    play = Play(Bridge(tmp_path, world=World(seed, tmp_path / "token")))
    play.bridge.world.weather.odds = ROUGH
    with contextlib.suppress(AssertionError):
        # It may take longer than that.
        play.run()
    play.bridge.world.weather.calm()
    play.again()
    for name in play.small:
        play.bridge.status(name, phase="Succeeded")
    play.until(lambda: play.bridge.node_of("large"))
    play.go(30)
    play.see()
