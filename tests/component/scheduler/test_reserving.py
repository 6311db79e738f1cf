"""Nodes are kept for a workload that others pass: by promise among ours, by Slurm's reservation among all."""

import contextlib
import json
import pathlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from slurm_bridge import errors
from slurm_bridge.model import marks
from slurm_bridge.model.job import Done
from slurm_bridge.scheduler.reservations import node_record
from slurm_bridge.scheduler.reservations.acquire import AGAIN, MOST_REFUSED, SECONDS
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.observer import CLUSTER_ID
from tests.simulation.weather import Killed, Odds
from tests.simulation.world import NAMESPACE, World

pytestmark = pytest.mark.thorough

#: How long a workload waits before nodes are kept for it, and for how long they are.
AFTER, LASTS = 10.0, 120.0
QUEUE = {"slurmjob.slinky.slurm.net/queue": "root.a"}
OPTIONS = {"reserve_after": AFTER, "reserve_seconds": LASTS}
#: Small pods are preferred by Slurm, by so much.
PREFERRED = 100


def emptied(tmp_path: pathlib.Path) -> Bridge:
    """Slurm has no job at all."""
    made = Bridge(tmp_path)
    for job in [job for job in made.slurm.world.jobs.values() if not job.over]:
        made.world.end_job(job)
    return made


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus, on one of which another scheduler has a pod for good."""
    return emptied(tmp_path)


class Traffic:
    """Small pods that Slurm prefers: each time one ends, the next one has come already."""

    def __init__(self, bridge: Bridge, **options: Any) -> None:
        self.bridge = bridge
        self.queues = Queues(bridge, queue("a"), **(OPTIONS | options))
        self.made: list[str] = []
        for _ in range(7):
            self.come()
        for _ in range(6):
            self.step(0.5)

    def come(self) -> str:
        """One more."""
        name = f"small-{len(self.made)}"
        self.made.append(name)
        self.queues.pod(name, cpu="2")
        return name

    def flow(self, seconds: float) -> None:
        """Every two seconds one comes, and then the oldest one ends."""
        for number in range(round(seconds / 0.5)):
            if number % 4 == 0:
                self.come()
            if number % 4 == 1:
                self.end()
            self.step(0.5)

    def step(self, seconds: float) -> None:
        """Some time passes; what is small comes first in Slurm as soon as it is there."""
        self.bridge.step(seconds)
        self.bridge.core.preempt_step()
        for job in self.bridge.jobs():
            owner = self.bridge.world.observer.owner(job)
            if job.pending and job.priority == 1 and owner is not None and owner.name.startswith("small"):
                self.bridge.slurm.control.prioritise(job.job_id, PREFERRED)

    def end(self) -> None:
        """The oldest one that runs succeeds."""
        running = [name for name in self.made if self.bridge.phase(name) == "Running"]
        for name in running[:1]:
            self.bridge.status(name, phase="Succeeded")

    def until(self, condition: Callable[[], object], seconds: float = 90.0) -> None:
        """Until it holds."""
        end = self.bridge.clock.now() + seconds
        while not condition():
            assert self.bridge.clock.now() < end, "it never came to that:\n" + "\n".join(
                self.bridge.world.journal[-20:]
            )
            self.flow(2)

    def refuse_to_enter(self, number: int) -> dict[str, str]:
        """A large pod waits, and Slurm changes its job no more; which call that would be, uncounted so far."""
        self.queues.pod("large", cpu="4")
        self.until(lambda: self.bridge.jobs(self.bridge.uid("large")))
        call = {"method": "POST", "target": f"/job/{self.bridge.job('large').job_id}"}
        self.bridge.slurm_calls.forget()
        self.bridge.slurm_calls.plan(_refused(number), **call, times=1000)
        return call

    def held(self) -> None:
        """A large pod waits, and nodes are kept for it."""
        self.queues.pod("large", cpu="4")
        self.until(lambda: reserved(self.bridge))
        self.bridge.step(0.5)


def reserved(bridge: Bridge) -> list[state.Reservation]:
    """What Slurm keeps for us."""
    mine = node_record.prefix(CLUSTER_ID)
    return [one for one in bridge.slurm.world.reservations.values() if one.name.startswith(mine)]


def record(bridge: Bridge, job: state.SlurmJob) -> marks.Owner:
    """Its owner record, as Slurm has it."""
    found = bridge.world.observer.owner(bridge.of(job))
    assert found is not None
    return found


def restart(traffic: Traffic, **options: Any) -> None:
    """Another process in the same world, with the same queues."""
    bridge = traffic.bridge
    bridge.start()
    traffic.queues = Queues(bridge, queue("a"), **(OPTIONS | options))
    while not all(feed.store.synced for feed in bridge.feeds):
        bridge.hear()
    bridge.recover()


def test_without_it_a_large_workload_waits_for_as_long_as_small_ones_come(bridge: Bridge) -> None:
    """Each of them finds room for itself, and never is a whole node free."""
    traffic = Traffic(bridge, reservations=0)
    traffic.queues.pod("large", cpu="4")
    traffic.flow(120)
    assert not bridge.node_of("large")
    assert reserved(bridge) == []


def test_a_large_workload_starts_although_small_ones_keep_coming(bridge: Bridge) -> None:
    """No other pod comes to the node that is kept, and nothing of that is left when it has it."""
    traffic = Traffic(bridge)
    traffic.held()
    (kept,) = reserved(bridge)
    (slurm_node,) = kept.nodes
    job = bridge.job("large")
    assert bridge.of(job).ask.reservation == kept.name
    assert record(bridge, job).reserved.split()[1] == slurm_node
    before = {one.job_id for one in bridge.slurm.world.jobs_on(slurm_node)}
    seen = set(before)

    def started() -> bool:
        seen.update(one.job_id for one in bridge.slurm.world.jobs_on(slurm_node))
        return bool(bridge.node_of("large"))

    traffic.until(started)
    assert seen == before | {job.job_id}
    traffic.flow(3)
    assert reserved(bridge) == []
    assert record(bridge, job).reserved == ""
    assert bridge.core.reservations.kept == ()
    assert bridge.core.context.promised.nodes == frozenset()


def test_it_is_not_begun_before_another_workload_has_passed(bridge: Bridge) -> None:
    """A workload that waits because nothing has started since is the next one anyway."""
    traffic = Traffic(bridge)
    for number in range(160):
        if number == 80:
            traffic.queues.pod("large", cpu="4")
        traffic.step(0.5)
    assert reserved(bridge) == []


def test_others_of_ours_do_not_ask_for_the_nodes(bridge: Bridge) -> None:
    """Their jobs leave them out, and those that wait are told why; its own pods say which nodes are kept."""
    traffic = Traffic(bridge)
    traffic.held()
    (slurm_node,) = reserved(bridge)[0].nodes
    traffic.flow(4)
    newest = bridge.jobs(bridge.uid(traffic.made[-1]))[-1]
    assert slurm_node in newest.ask.excluded
    reason, message = bridge.condition("large")
    assert reason == "SlurmJobPending"
    assert f"; node {slurm_node} is kept for it until " in message


def test_jobs_that_are_not_ours_do_not_get_the_nodes(bridge: Bridge) -> None:
    """A native job of the highest priority waits for it like all others."""
    traffic = Traffic(bridge)
    traffic.held()
    (slurm_node,) = reserved(bridge)[0].nodes
    fields: dict[str, Any] = {
        "required_nodes": [slurm_node],
        "priority": {"set": True, "number": 10_000},
        "user_id": "alice",
    }
    native = bridge.world.submit("rival", **fields)
    traffic.until(lambda: bridge.node_of("large"))
    assert bridge.slurm.world.jobs[native].pending


def test_nodes_are_for_all_again_when_its_time_is_over(bridge: Bridge) -> None:
    """The job waits on in its place; for a while nothing is kept for it."""
    traffic = Traffic(bridge)
    traffic.held()
    job = bridge.job("large")
    for _ in range(round(LASTS)):
        bridge.step(1)
        bridge.core.preempt_step()
    assert reserved(bridge) == []
    assert bridge.job("large").job_id == job.job_id
    assert (bridge.of(job).ask.reservation, record(bridge, job).reserved) == ("", "")
    traffic.flow(20)
    assert reserved(bridge) == []


def test_it_is_prolonged_for_as_long_as_it_is_needed(bridge: Bridge) -> None:
    """It would go by itself long before its time is over."""
    traffic = Traffic(bridge, reserve_seconds=600)
    traffic.held()
    ends = reserved(bridge)[0].end
    for _ in range(200):
        bridge.step(1)
        bridge.core.preempt_step()
    assert reserved(bridge)[0].end > ends + 120


def test_a_workload_that_has_gone_leaves_nothing(bridge: Bridge) -> None:
    """Neither in Slurm nor among promises."""
    traffic = Traffic(bridge)
    traffic.held()
    bridge.delete("large", grace=0)
    traffic.flow(4)
    assert reserved(bridge) == []
    assert bridge.core.context.promised.nodes == frozenset()


def test_nodes_that_it_may_not_have_any_more_are_given_up(bridge: Bridge) -> None:
    """An administrator drains the node: another one is kept."""
    traffic = Traffic(bridge)
    traffic.held()
    (before,) = reserved(bridge)[0].nodes
    bridge.slurm.control.drain(before)
    bridge.core.context.refresh_facts()
    traffic.until(lambda: reserved(bridge) and reserved(bridge)[0].nodes != (before,))
    traffic.until(lambda: bridge.node_of("large"))


def test_a_restart_goes_on(bridge: Bridge) -> None:
    """The same reservation, for as long as it was to last; no other pod comes to the node meanwhile."""
    traffic = Traffic(bridge)
    traffic.held()
    (kept,) = reserved(bridge)
    says = record(bridge, bridge.job("large")).reserved
    restart(traffic)
    assert bridge.core.context.promised.nodes == {bridge.core.context.keeper.snapshot().by_slurm[kept.nodes[0]]}
    traffic.flow(2)
    assert [one.name for one in reserved(bridge)] == [kept.name]
    assert record(bridge, bridge.job("large")).reserved == says
    traffic.until(lambda: bridge.node_of("large"))
    traffic.flow(2)
    assert reserved(bridge) == []


def test_a_restart_gives_back_what_was_used(bridge: Bridge) -> None:
    """It started while no daemon ran."""
    traffic = Traffic(bridge)
    traffic.held()
    (node,) = reserved(bridge)[0].nodes
    for job in bridge.slurm.world.jobs_on(node):
        bridge.slurm.control.end(job.job_id)
    bridge.world.pass_time(2)
    assert bridge.job("large").running
    restart(traffic)
    traffic.flow(2)
    assert reserved(bridge) == []
    assert record(bridge, bridge.job("large")).reserved == ""


def test_a_restart_removes_what_no_job_speaks_of(bridge: Bridge) -> None:
    """The process before ended between reservation and record; those of others stay."""
    traffic = Traffic(bridge)
    for name in (f"{node_record.prefix(CLUSTER_ID)}left", f"{node_record.prefix('another')}theirs", "held-by-hand"):
        bridge.slurm.control.reserve(state.Reservation(name=name, nodes=("n2",)))
    restart(traffic)
    traffic.flow(2)
    assert reserved(bridge) == []
    assert {f"{node_record.prefix('another')}theirs", "held-by-hand"} <= bridge.slurm.world.reservations.keys()


def test_what_the_leader_before_orders_late_is_given_back(bridge: Bridge) -> None:
    """Its orders come to Slurm when this one has read all records already."""
    traffic = Traffic(bridge, reserve_after=10_000)
    traffic.queues.pod("large", cpu="4")
    traffic.until(lambda: bridge.jobs(bridge.uid("large")))
    slurm, job = bridge.core.context.slurm, bridge.job("large")
    known = bridge.known(job)
    assert known is not None
    says = node_record.NodeRecord(nodes=("s4",), until=int(bridge.slurm.world.now + LASTS), priority=job.priority)
    owner, name = msgspec.structs.replace(known.owner, reserved=says.text), node_record.name(known.owner)
    assert isinstance(slurm.reserve(name, says.nodes, bridge.of(job).user, 10_000), Done)
    assert isinstance(slurm.assign(known.job_id, owner, name, node_record.FIRST), Done)
    for _ in range(60):
        traffic.step(0.5)
    assert reserved(bridge) == []
    job = bridge.of(job)
    assert (job.priority, job.ask.reservation, record(bridge, job).reserved) == (1, "", "")


def test_a_record_that_a_late_change_has_brought_back_does_not_stay(bridge: Bridge) -> None:
    """It would say of nodes that they are kept; those of a case that goes on stay."""
    traffic = Traffic(bridge)
    traffic.held()
    says = record(bridge, bridge.job("large")).reserved
    small = bridge.job(next(name for name in traffic.made if bridge.phase(name) == "Running"))
    known = bridge.known(small)
    assert known is not None
    bridge.core.context.slurm.note(known.job_id, msgspec.structs.replace(known.owner, reserved=says))
    bridge.core.context.mirror.look(known.job_id, known.owner, tell=False)
    traffic.step(0.5)
    assert record(bridge, small).reserved == ""
    assert record(bridge, bridge.job("large")).reserved == says


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
    bridge.slurm_calls.plan(_refused(2010), method="POST", target="/reservation", times=1000)
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
    bridge.slurm_calls.plan(_refused(2010), method="POST", target="/reservation", times=1000)
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
    bridge.slurm_calls.plan(_refused(2055), method="DELETE", target="/reservation/", times=1000)
    traffic.flow(4 * AGAIN)
    assert 3 <= bridge.slurm_calls.count(method="DELETE", target="/reservation/") <= 5
    bridge.slurm_calls.clear()
    traffic.flow(AGAIN + 1)
    assert reserved(bridge) == []


@pytest.mark.parametrize("number", [2002, 1007])
def test_a_job_is_not_the_first_for_ever_because_slurm_refused_once(bridge: Bridge, number: int) -> None:
    """A token that was wrong for a while is right again."""
    traffic = Traffic(bridge)
    bridge.slurm_calls.plan(_refused(2010), method="POST", target="/reservation", times=1000)
    traffic.queues.pod("large", cpu="4")
    traffic.until(lambda: bridge.core.reservations.kept)
    job = bridge.job("large")
    bridge.step(1)
    bridge.core.preempt_step()
    assert bridge.of(job).priority == node_record.FIRST
    bridge.slurm_calls.plan(_refused(number), method="POST", target=f"/job/{job.job_id}", times=3)
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


def _refused(number: int) -> faults.Answer:
    """An error of slurmctld."""
    error = {"error_number": number, "error": "Invalid user id", "description": "Error creating", "source": "x"}
    return faults.Answer(422, json.dumps({"errors": [error], "warnings": []}).encode())
