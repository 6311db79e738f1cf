"""The record of a workload: each part has its own end, and the record goes with the last one."""

import dataclasses
import sys
import threading

import pytest

from slurm_bridge.model.meta import Object, ObjectMeta
from slurm_bridge.model.names import WorkloadKey, workload_key
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.scheduler import state
from slurm_bridge.scheduler.avoid import Avoided, Holds
from slurm_bridge.scheduler.eviction.cases import NodeHold
from slurm_bridge.scheduler.eviction.hold_table import HoldTable
from slurm_bridge.scheduler.eviction.store import EvictionStore
from slurm_bridge.scheduler.queue import FORGET, LINE_UP, WorkQueue
from slurm_bridge.scheduler.reservations.store import ReservationStore
from slurm_bridge.scheduler.state import WorkloadState, WorkloadStore

KEY = WorkloadKey("Job/team/j/1")


@pytest.fixture
def states() -> WorkloadStore:
    """Without any record."""
    return WorkloadStore()


@pytest.mark.parametrize("part", [field.name for field in dataclasses.fields(WorkloadState)])
def test_a_record_with_any_part_is_not_empty(part: str) -> None:
    """A part that did not count would be lost with the next one that ends."""
    assert WorkloadState().empty
    assert not WorkloadState(**{part: object()}).empty  # type: ignore[arg-type]


def test_what_a_look_has_left_ends_with_drop(states: WorkloadStore) -> None:
    """Whatever else is known of the workload."""
    states.of(KEY).announced = True
    states.drop(KEY)
    assert states.get(KEY) is None
    assert not states.of(KEY).announced


def test_parts_with_an_end_of_their_own_outlive_drop(states: WorkloadStore) -> None:
    """A pod that was refused is replaced by another of the same controller."""
    avoided, queue = Avoided(states), WorkQueue(states, VirtualClock(), str)
    states.of(KEY)
    avoided.add(KEY, "n1", "full", 0.0)
    avoided.stumble(KEY)
    queue.activate(KEY)
    states.drop(KEY)
    assert (avoided.tries(KEY), queue.line_news()) == (1, {KEY: True})
    assert avoided.nodes((KEY,), 1.0, lambda _name: None).keys() == {"n1"}


def test_the_record_goes_with_its_last_part(states: WorkloadStore) -> None:
    """In whatever order they end."""
    avoided, held, promised = Avoided(states), Holds(states), HoldTable(states)
    evictions, reservations = EvictionStore(states), ReservationStore(states)
    queue = WorkQueue(states, VirtualClock(), str)
    states.begin_regaining(KEY)
    avoided.stumble(KEY)
    held.put(KEY, "its time was over")
    promised.put(NodeHold(workload=KEY, priority=1, nodes=frozenset({"n1"}), by="a"))
    promised.crowds_out(KEY)
    evictions.of(KEY)
    reservations.of(KEY)
    queue.activate(KEY, urgent=True)
    queue.pop(room=True)
    queue.done(KEY, LINE_UP)
    queue.pop(room=True)
    queue.done(KEY, FORGET)
    states.drop(KEY)
    promised.clear("a")
    evictions.drop_ended(lambda _key: False)
    reservations.begin()
    held.deleted(Object(metadata=ObjectMeta(namespace="team", name="j", uid="1")))
    assert promised.returning() == {KEY}
    assert len(states) == 1
    avoided.success(KEY)
    assert len(states) == 0
    assert states.regaining == ()


def test_jobs_that_regain_their_nodes_are_told_of_in_turn(states: WorkloadStore) -> None:
    """Once each, until they have nodes or are dropped."""
    keys = [workload_key("Job", "team", "j", str(number)) for number in range(4)]
    for key in (*keys, keys[0]):
        states.begin_regaining(key)
    states.end_regaining(keys[1])
    states.drop(keys[2])
    assert states.regaining == (keys[0], keys[3])


def test_a_leadership_begins_without_what_was_measured_in_the_last(states: WorkloadStore) -> None:
    """What the workload wants is the same under any leader."""
    states.of(KEY).leadership.settling_since = 1.0
    states.of(KEY).update_refused = "refused"
    states.begin()
    assert states.of(KEY).leadership == state.Leadership()
    assert states.of(KEY).update_refused == "refused"


def test_a_workload_that_is_woken_while_it_is_forgotten_is_not_lost(states: WorkloadStore) -> None:
    """Watches wake workloads while the scheduler drops their records."""
    queue, rounds = WorkQueue(states, VirtualClock(), str), 2000
    seen, interval = 0, sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def forget() -> None:
        for _ in range(rounds):
            states.of(KEY)
            states.drop(KEY)

    thread = threading.Thread(target=forget)
    try:
        thread.start()
        for _ in range(rounds):
            queue.activate(KEY, urgent=True)
            seen += queue.pop(room=True) is not None
            queue.done(KEY, FORGET)
    finally:
        thread.join()
        sys.setswitchinterval(interval)
    assert (seen, len(states)) == (rounds, 0)
