"""The queue: a workload is in exactly one place, nothing that wakes it is lost, and nobody floods it."""

import dataclasses
import itertools
import time

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from slurm_bridge.hooks import chain
from slurm_bridge.hooks.base import Rank
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod, PodSpec
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.scheduler import pending_workloads
from slurm_bridge.scheduler.order import Order
from slurm_bridge.scheduler.pod_index import PodIndex, alone
from slurm_bridge.scheduler.queue import AT_ONCE, FORGET, LINE_UP, WOKEN, Filed, WorkQueue
from slurm_bridge.scheduler.state import WorkloadStore
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods
from tests.examples import examples
from tests.unit.hooks.builders import hook, workload

UIDS = st.sampled_from("abcdef")
FILED = st.one_of(st.sampled_from((WOKEN, FORGET, LINE_UP, AT_ONCE)), st.floats(0.1, 9).map(lambda s: Filed(after=s)))


@dataclasses.dataclass
class Place:
    """Where the model believes a workload to be."""

    name: str
    until: float | None = None
    dirty: bool = False


class QueueMachine(RuleBasedStateMachine):
    """The queue beside a dictionary that says where each workload is."""

    @initialize()
    def begin(self) -> None:
        self.clock = VirtualClock()
        self.states = WorkloadStore()
        self.queue = WorkQueue(self.states, self.clock, lambda uid: uid)
        self.places: dict[str, Place] = {}
        #: Whether each lines up, by all news so far.
        self.line: dict[str, bool] = {}

    @rule(uid=UIDS, urgent=st.booleans())
    def activate(self, uid: str, *, urgent: bool) -> None:
        place = self.places.get(uid)
        if place is not None and place.name == "flying":
            place.dirty = True
        elif urgent or place is None or place.name not in ("urgent", "ordered"):
            self.places[uid] = Place("urgent" if urgent else "ordered")
        self.queue.activate(uid, urgent=urgent)

    @rule(seconds=st.floats(0.1, 5))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(room=st.booleans())
    def pop(self, *, room: bool) -> None:
        now = self.clock.now()
        for place in self.places.values():
            if place.name == "waiting" and place.until is not None and place.until <= now:
                place.name = "urgent"
        urgent = {uid for uid, place in self.places.items() if place.name == "urgent"}
        ordered = sorted(uid for uid, place in self.places.items() if place.name == "ordered")
        popped = self.queue.pop(room=room)
        if popped is None:
            assert not urgent
            assert not (room and ordered)
            return
        uid, turn = popped
        assert (uid == ordered[0]) if turn else (uid in urgent)
        assert not (turn and (urgent or not room))
        self.places[uid] = Place("flying")

    @rule(filed=FILED, pick=st.randoms(use_true_random=False))
    def done(self, filed: Filed, pick: object) -> None:
        flying = sorted(uid for uid, place in self.places.items() if place.name == "flying")
        if not flying:
            return
        uid = flying[pick.randrange(len(flying))]  # type: ignore[attr-defined]
        if self.places[uid].dirty:
            self.places[uid] = Place("urgent")
        elif filed.line_up:
            self.places[uid] = Place("ordered")
        elif filed.forget:
            del self.places[uid]
        else:
            until = None if filed.after is None else self.clock.now() + filed.after
            self.places[uid] = Place("waiting", until)
        self.queue.done(uid, filed)

    @rule()
    def reorder(self) -> None:
        self.queue.reorder()

    @rule()
    def clear(self) -> None:
        self.queue.clear()
        self.places = {uid: place for uid, place in self.places.items() if place.name == "flying"}
        self.line = {}

    @invariant()
    def counts_are_true(self) -> None:
        names = [
            "backoff" if place.until is not None and place.name == "waiting" else place.name
            for place in self.places.values()
        ]
        assert pending_workloads.count(self.states).by_status == {
            "active": names.count("urgent") + names.count("ordered"),
            "inflight": names.count("flying"),
            "backoff": names.count("backoff"),
            "parked": 0,
            "waiting": names.count("waiting"),
        }
        ordered = {uid for uid, place in self.places.items() if place.name == "ordered"}
        assert self.queue.lining_up == len(ordered)
        self.line |= self.queue.line_news()
        assert {uid for uid, lines_up in self.line.items() if lines_up} == ordered
        assert len(self.states) == len(self.places)


QueueMachine.TestCase.settings = settings(max_examples=examples(30), stateful_step_count=30)
TestOnePlace = QueueMachine.TestCase


@pytest.fixture
def clock() -> VirtualClock:
    """Time that stands still."""
    return VirtualClock()


@pytest.fixture
def queue(clock: VirtualClock) -> WorkQueue:
    """A queue in the order of the alphabet."""
    return WorkQueue(WorkloadStore(), clock, lambda uid: uid)


def drain(queue: WorkQueue, *, room: bool = True) -> list[str]:
    """All that there is to pop, each done at once, by name."""
    popped = []
    while (found := queue.pop(room=room)) is not None:
        popped.append(found[0].rpartition("/")[2])
        queue.done(found[0], WOKEN)
    return popped


def test_what_reacts_comes_before_what_submits(queue: WorkQueue) -> None:
    """First come, first served among the urgent; in order among the rest."""
    for uid in "ba":
        queue.activate(uid)
    for uid in "zy":
        queue.activate(uid, urgent=True)
    assert drain(queue) == ["z", "y", "a", "b"]


def test_without_room_only_what_is_urgent_is_popped(queue: WorkQueue) -> None:
    """A full Slurm queue holds nobody back who has something to bind or to end."""
    queue.activate("a")
    queue.activate("z", urgent=True)
    assert drain(queue, room=False) == ["z"]
    assert queue.line_news() == {"a": True}


def test_what_wakes_it_in_flight_brings_it_back(queue: WorkQueue) -> None:
    """Once, however often it was woken, and whatever it was filed as."""
    queue.activate("a")
    assert queue.pop(room=True) == ("a", True)
    queue.activate("a")
    queue.activate("a", urgent=True)
    queue.done("a", FORGET)
    assert drain(queue) == ["a"]


def test_a_timer_brings_it_back_and_an_earlier_call_ends_the_timer(queue: WorkQueue, clock: VirtualClock) -> None:
    """Nothing comes twice for one reason."""
    queue.activate("a")
    queue.pop(room=True)
    queue.done("a", Filed(after=5))
    assert queue.next_due == 5.0
    assert queue.backing_off() == ("a",)
    queue.activate("a", urgent=True)
    assert drain(queue) == ["a"]
    clock.advance(10)
    assert drain(queue) == []


def test_who_lines_up_is_popped_with_its_turn(queue: WorkQueue) -> None:
    """It wanted to submit, and that takes its turn."""
    queue.activate("a", urgent=True)
    assert queue.pop(room=True) == ("a", False)
    queue.done("a", LINE_UP)
    assert queue.pop(room=False) is None
    assert queue.pop(room=True) == ("a", True)


def test_a_changed_order_holds_for_those_who_wait_already(clock: VirtualClock) -> None:
    """Every key is asked for anew."""
    sign = [1]
    queue = WorkQueue(WorkloadStore(), clock, lambda uid: sign[0] * ord(uid))
    for uid in "abc":
        queue.activate(uid)
    sign[0] = -1
    queue.reorder()
    assert drain(queue) == ["c", "b", "a"]


def test_waiting_for_work_ends_at_once_when_there_is_some_and_room_for_it(queue: WorkQueue) -> None:
    """Else it takes its time."""
    queue.activate("a")
    began = time.monotonic()
    queue.wait(0.1, room=False)
    without_room = time.monotonic() - began
    began = time.monotonic()
    queue.wait(20, room=True)
    with_room = time.monotonic() - began
    assert without_room >= 0.1
    assert with_room < 20


def pod(name: str, namespace: str, priority: int = 0, created: str = "2026-01-01T00:00:00Z") -> Pod:
    """A pod that wants to be submitted."""
    meta = ObjectMeta(name=name, namespace=namespace, uid=name, creation_timestamp=created)
    return Pod(metadata=meta, spec=PodSpec(priority=priority))


def lined_up(clock: VirtualClock) -> tuple[PodIndex, WorkQueue]:
    """A queue in the order of the daemon."""
    pod_index, plain = PodIndex(), chain.Chain([], ChainServices(clock=clock))
    order = Order(pod_index, lambda: plain, lambda _crew, *_stands: None)
    return pod_index, WorkQueue(WorkloadStore(), clock, order.key, order.served)


def join(pod_index: PodIndex, queue: WorkQueue, *pods: Pod) -> None:
    """These pods want to be submitted."""
    for one in pods:
        pod_index.put(None, one)
        queue.activate(alone(one).key)


def test_priority_comes_first_then_turns_then_age(clock: VirtualClock) -> None:
    """The order in which users expect to be served."""
    pod_index, queue = lined_up(clock)
    join(pod_index, queue, pod("young", "a"), pod("vip", "b", 100))
    assert drain(queue) == ["vip", "young"]


def test_a_flood_in_one_namespace_waits_behind_its_own(clock: VirtualClock) -> None:
    """The other namespace's single pod is the second to go, not the hundred and first."""
    pod_index, queue = lined_up(clock)
    join(pod_index, queue, *(pod(f"f{number:03}", "flood") for number in range(100)), pod("lone", "quiet"))
    assert drain(queue).index("lone") <= 1


def test_a_newcomer_starts_at_the_head_and_not_in_the_past(clock: VirtualClock) -> None:
    """Who has been served for long is not made to wait for all that a newcomer could have had meanwhile."""
    pod_index, queue = lined_up(clock)
    join(pod_index, queue, *(pod(f"old{number:03}", "veteran") for number in range(100)))
    drain(queue)
    join(pod_index, queue, *(pod(f"new{number:03}", "newcomer") for number in range(50)))
    join(pod_index, queue, *(pod(f"own{number:03}", "veteran") for number in range(50)))
    first = drain(queue)[:20]
    assert sum(uid.startswith("own") for uid in first) >= 9


def test_namespaces_take_turns_over_time(clock: VirtualClock) -> None:
    """Three namespaces that always want more get a third each."""
    pod_index, queue = lined_up(clock)
    numbers = itertools.count()
    for space in "abc":
        join(pod_index, queue, *(pod(f"{space}{next(numbers)}", space) for _ in range(5)))
    served = []
    for _ in range(60):
        popped = queue.pop(room=True)
        assert popped is not None
        space = popped[0].rpartition("/")[2][0]
        served.append(space)
        queue.done(popped[0], FORGET)
        join(pod_index, queue, pod(f"{space}{next(numbers)}", space))
    assert {space: served.count(space) for space in "abc"} == dict.fromkeys("abc", 20)


def test_a_workload_that_is_gone_sorts_somewhere(clock: VirtualClock) -> None:
    """It is looked at and forgotten."""
    _, queue = lined_up(clock)
    queue.activate("nobody")
    assert drain(queue) == ["nobody"]


def test_an_order_hook_decides_who_is_first(clock: VirtualClock) -> None:
    """Its key alone: neither priority nor turns mix in; who cannot be ranked is looked at all the same."""
    pod_index = PodIndex()
    ordering = hook(order=lambda one: Rank(key=len(one.root.name)))
    ranked = chain.Chain([ordering], ChainServices(clock=clock))

    def ranking(members: WorkloadPods, *_stands: PodState) -> Workload | None:
        one = members.first(PodState.WANTING)
        return None if one is None or one.uid == "unknown" else workload(one)

    order = Order(pod_index, lambda: ranked, ranking)
    queue = WorkQueue(WorkloadStore(), clock, order.key, order.served)
    join(pod_index, queue, pod("aaa", "a", 100), pod("bb", "b"), pod("c", "c"), pod("unknown", "d"))
    assert [uid for uid in drain(queue) if uid != "unknown"] == ["c", "bb", "aaa"]
