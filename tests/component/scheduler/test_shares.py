"""The window of jobs that have not started, and who is looked at next: no namespace takes them from another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import kinds
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.scheduler.queue import LINE_UP, URGENT_IN_A_ROW, WOKEN, WorkQueue
from slurm_bridge.scheduler.queue_notices import LASTS
from slurm_bridge.scheduler.shares import Shares
from slurm_bridge.scheduler.state import WorkloadStore
from tests.component.scheduler.whole_core import Bridge

AMOUNTS = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 20), max_size=5)


def crowded(bridge: Bridge, window: int) -> Bridge:
    """The namespace `flood` fills the window with jobs that Slurm never starts, and wants more."""
    made = Bridge(bridge.folder, world=bridge.world, scheduling={"unstarted_window": window})
    made.slurm.control.pause()
    for space in ("flood", "quiet", "one", "two"):
        made.kube.create(kinds.NAMESPACES, {"metadata": {"name": space}})
    for number in range(2 * window):
        made.pod(f"f{number:02}", "flood")
    made.run(6)
    assert made.core.context.table.unstarted_by_namespace() == {"flood": window}
    return made


def words(bridge: Bridge) -> int:
    """How often pods of the crowd were told anything since the last question."""
    told = bridge.kube_calls.count(method="PATCH", target="/namespaces/flood/pods/f[0-9]+/status")
    bridge.kube_calls.forget()
    return told


def test_a_short_wait_of_another_namespace_has_no_words_written_twice(bridge: Bridge) -> None:
    """What a whole crowd was told stays for a while: else each pod of others would cost two writes for each of them."""
    bridge = crowded(bridge, 20)
    bridge.run(30)
    words(bridge)
    for number in range(3):
        bridge.pod(f"q{number}", "quiet")
    bridge.run(10)
    for number in range(3):
        bridge.kube.delete(kinds.PODS, ("quiet", f"q{number}"), grace=0)
    bridge.run(60)
    # The pods of the jobs that made room: these were given back, and submitted again.
    assert words(bridge) <= 4 * 3


def test_another_reason_that_lasts_is_told(bridge: Bridge) -> None:
    """All that line up are told it, once."""
    bridge = crowded(bridge, 8)
    bridge.run(30)
    words(bridge)
    for number in range(20):
        bridge.pod(f"q{number:02}", "quiet")
    bridge.run(LASTS + 5)
    told = [
        one["reason"]
        for pod in bridge.kube.list(kinds.PODS, "flood")
        for one in pod["status"]["conditions"]
        if one["type"] == "PodScheduled"
    ]
    assert told.count("SlurmShareUsed") >= 8
    assert told.count("SlurmQueueFull") == 0
    assert words(bridge) <= 2 * 16


@pytest.mark.security("fairness")
def test_a_window_full_of_one_namespaces_jobs_keeps_no_other_namespace_out(bridge: Bridge) -> None:
    """A namespace whose jobs never start does not keep the pods of another namespace out of Slurm."""
    bridge = crowded(bridge, 8)
    for number in range(12):
        bridge.pod(f"q{number:02}", "quiet")
    bridge.run(20)
    held = bridge.core.context.table.unstarted_by_namespace()
    assert held["quiet"] >= 4
    assert sum(held.values()) <= 10


def test_a_third_namespace_gets_in_as_well(bridge: Bridge) -> None:
    """The jobs that came last to the namespace with most are given back, until all have their share."""
    bridge = crowded(bridge, 8)
    for space in ("one", "two"):
        for number in range(9):
            bridge.pod(f"{space}{number:02}", space)
        bridge.run(20)
    held = bridge.core.context.table.unstarted_by_namespace()
    assert all(held[space] >= 2 for space in ("flood", "one", "two"))
    assert sum(held.values()) <= 10


def test_who_has_used_the_share_is_told_the_counts(bridge: Bridge) -> None:
    """The condition names the namespace, what it has, its share and the window."""
    bridge = crowded(bridge, 8)
    for number in range(12):
        bridge.pod(f"q{number:02}", "quiet")
    bridge.run(20)
    told = [
        (one["reason"], one["message"])
        for pod in bridge.kube.list(kinds.PODS, "flood")
        for one in pod["status"]["conditions"]
    ]
    said = next(text for reason, text in told if reason == "SlurmShareUsed")
    assert said.startswith("namespace flood has ")
    assert " its share is 4 of 8 while other namespaces need the rest" in said
    bridge.slurm.control.unpause()
    bridge.until(lambda: sum("nodeName" in pod["spec"] for pod in bridge.kube.list(kinds.PODS, "flood")) > 3, 300)


def test_jobs_that_were_given_back_are_submitted_again(bridge: Bridge) -> None:
    """As soon as the other namespace needs nothing more."""
    bridge = crowded(bridge, 4)
    names = [f"q{number:02}" for number in range(4)]
    for name in names:
        bridge.pod(name, "quiet")
    bridge.run(10)
    assert bridge.core.context.table.unstarted_by_namespace() == {"flood": 3, "quiet": 2}
    for name in names:
        bridge.kube.delete(kinds.PODS, ("quiet", name), grace=0)
    bridge.run(10)
    assert bridge.core.context.table.unstarted_by_namespace() == {"flood": 4}


@given(AMOUNTS, AMOUNTS, st.integers(1, 30))
def test_shares_are_max_min_fair(held: dict[str, int], wanted: dict[str, int], window: int) -> None:
    """Nobody below the level is kept out before the headroom is used up, and room is never left unused."""
    shares = Shares.of(window, held, wanted)
    admitted = {name for name in wanted if shares.admits(name)}
    below = {name for name in wanted if held.get(name, 0) < shares.level}
    assert shares.level >= 1
    if shares.total < shares.limit:
        assert below <= admitted
    else:
        assert not admitted
    if shares.total < window and wanted:
        assert admitted
    given_back = shares.to_give_back
    assert all(held[name] - number >= shares.level for name, number in given_back.items())
    if given_back:
        assert not admitted
        assert sum(held.values()) - sum(given_back.values()) >= window


@given(AMOUNTS, st.integers(1, 30))
def test_a_namespace_by_itself_has_the_whole_window(wanted: dict[str, int], window: int) -> None:
    """Shares cost nothing where nobody shares."""
    for name, number in wanted.items():
        alone = Shares.of(window, {name: window - 1}, {name: number})
        assert alone.admits(name)
        full = Shares.of(window, {name: window}, {name: number})
        assert not full.admits(name)
        assert full.why(name) == ("SlurmQueueFull", full.why(name)[1])  # type: ignore[index]


def busy(count: int) -> WorkQueue:
    """The namespace `flood` has so many workloads that are looked at before others."""
    queue = WorkQueue(WorkloadStore(), VirtualClock(), lambda uid: uid, namespace=lambda uid: uid[:5])
    for number in range(count):
        queue.activate(f"flood{number:04}", urgent=True)
    return queue


@pytest.mark.security("fairness")
def test_urgent_looks_take_turns_by_namespace() -> None:
    """A thousand changed pods of one namespace take turns with the pods of another namespace."""
    queue = busy(1000)
    queue.activate("quiet", urgent=True)
    first = [queue.pop(room=True) for _ in range(2)]
    assert ("quiet", False) in first


@pytest.mark.security("fairness")
def test_urgent_looks_leave_turns_to_what_is_to_be_submitted() -> None:
    """Pods that are changed all the time do not delay the submission of other pods."""
    queue = busy(100)
    queue.activate("quiet")
    seen = []
    for _ in range(URGENT_IN_A_ROW + 1):
        popped = queue.pop(room=True)
        assert popped is not None
        seen.append(popped)
        queue.done(popped[0], WOKEN)
        queue.activate(popped[0], urgent=popped[0] != "quiet")
    assert seen.index(("quiet", True)) == URGENT_IN_A_ROW


def test_a_namespace_that_may_not_submit_keeps_its_line() -> None:
    """Its workloads are served in their order as soon as it may, those that came meanwhile included."""
    queue = WorkQueue(WorkloadStore(), VirtualClock(), lambda uid: uid, namespace=lambda uid: uid[:1])
    for uid in ("a2", "a3", "b1"):
        queue.activate(uid)
    assert queue.pop(room=True, admits=lambda name: name != "a") == ("b1", True)
    assert queue.pop(room=True, admits=lambda name: name != "a") is None
    queue.activate("a1")
    queue.activate("a3", urgent=True)
    assert queue.pop(room=True, admits=lambda name: name != "a") == ("a3", False)
    queue.done("a3", LINE_UP)
    assert queue.demand() == {"a": 3}
    served = [queue.pop(room=True) for _ in range(4)]
    assert served == [("a1", True), ("a2", True), ("a3", True), None]
    assert queue.demand() == {}
