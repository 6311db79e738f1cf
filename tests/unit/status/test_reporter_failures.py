"""Conditions and events that fail, come too often or are too long are tried again, dropped or shortened."""

import threading
import tracemalloc

import msgspec
import pytest

from slurm_bridge import ports
from slurm_bridge.model import texts
from slurm_bridge.model.pod import Pod
from slurm_bridge.overlays.fenced import FencedCluster
from slurm_bridge.sim import faults
from slurm_bridge.status import conditions
from slurm_bridge.status.condition_queue import ConditionQueue, PendingCondition
from slurm_bridge.status.event_queue import EventQueue
from slurm_bridge.status.reporter import ReporterLimits
from tests.unit.status.reporter_desk import Desk

SLOW = ReporterLimits(
    conditions_per_second=1, events_per_second=1, patience_seconds=0, most_conditions=3, most_events=3
)


@pytest.fixture
def desk() -> Desk:
    """A reporter without patience."""
    return Desk()


def test_a_failed_condition_is_tried_again_after_a_pause(desk: Desk) -> None:
    """A server in trouble is left alone for a moment, and nothing is lost."""
    desk.waits(desk.pod())
    desk.line.faults.plan(faults.Answer(status=503), method="PATCH")
    assert desk.reporter.step()
    assert not desk.reporter.step()
    idle = desk.reporter.idle_for()
    assert idle is not None
    assert idle > 0
    desk.clock.advance(idle)
    assert desk.reporter.step()
    assert desk.shown() is not None


def test_the_servers_wish_for_a_pause_is_kept(desk: Desk) -> None:
    """Whatever was to be written next."""
    desk.waits(desk.pod())
    desk.line.faults.plan(faults.Answer(status=429, headers=(("retry-after", "9"),)), method="PATCH")
    desk.reporter.step()
    desk.clock.advance(8.9)
    assert not desk.reporter.step()
    desk.clock.advance(0.2)
    assert desk.reporter.step()


def test_a_refused_condition_is_not_repeated(desk: Desk) -> None:
    """The server would say the same again."""
    invalid = b'{"kind":"Status","code":422,"reason":"Invalid","message":"no","details":{"name":"pod"}}'
    desk.waits(desk.pod())
    desk.line.faults.plan(faults.Answer(status=422, body=invalid), method="PATCH")
    desk.write_all()
    desk.clock.advance(60)
    assert desk.write_all() == 0
    assert desk.counted["condition failed"] == 1


def test_newer_words_replace_those_that_failed(desk: Desk) -> None:
    """What could not be written is not worth more than what is true now."""
    pod = desk.pod()
    desk.waits(pod, "old")
    desk.line.faults.plan(faults.Meanwhile(lambda: desk.waits(pod, "new")), method="PATCH")
    desk.line.faults.plan(faults.Answer(status=503), method="PATCH")
    for _ in range(4):
        desk.reporter.step()
        desk.clock.advance(1)
    shown = desk.shown()
    assert shown is not None
    assert shown.message == "new"


def test_conditions_keep_their_rate() -> None:
    """A thousand pods that begin to wait at once do not flood the server."""
    desk = Desk(ReporterLimits(conditions_per_second=2, patience_seconds=0))
    for number in range(6):
        desk.waits(desk.pod(f"pod-{number}"))
    assert desk.write_all() == 2
    assert desk.reporter.idle_for() == pytest.approx(0.5)
    desk.clock.advance(1)
    assert desk.write_all() == 2


def test_too_many_conditions_drop_the_oldest_and_count_it() -> None:
    """Memory is bounded; what was dropped may be said again."""
    desk = Desk(SLOW)
    waiting = [desk.pod(f"pod-{number}") for number in range(5)]
    for pod in waiting:
        desk.waits(pod)
    assert desk.reporter.queued == (3, 0)
    assert desk.counted == {"condition dropped": 2}
    desk.waits(waiting[0])
    assert desk.reporter.queued == (3, 0)
    assert desk.counted == {"condition dropped": 3}


def test_an_event_that_fails_is_dropped_and_counted(desk: Desk) -> None:
    """Events are news, and news grows old; when it is said again it is sent."""
    pod = desk.pod()
    desk.line.faults.plan(faults.Drop(), method="POST", target="events")
    desk.reporter.event(pod, "R", "words")
    desk.write_all()
    assert desk.counted == {"event failed": 1}
    assert desk.reporter.queued == (0, 0)
    desk.clock.advance(1)
    desk.reporter.event(pod, "R", "words")
    assert desk.write_all() == 1


def test_too_many_events_drop_the_oldest_and_count_it() -> None:
    """And of one reason only the latest waits."""
    desk = Desk(SLOW)
    pod = desk.pod()
    desk.reporter.event(pod, "A", "1")
    desk.reporter.event(pod, "A", "2")
    assert desk.reporter.queued == (0, 1)
    for reason in "BCDE":
        desk.reporter.event(pod, reason, "words")
    assert desk.reporter.queued == (0, 3)
    assert desk.counted == {"event dropped": 2}


def test_an_event_survives_that_its_pod_is_forgotten(desk: Desk) -> None:
    """That its job has ended is said of pods that are gone."""
    pod = desk.pod()
    desk.reporter.event(pod, "SlurmJobEnded", "gone")
    desk.reporter.forget(pod.uid)
    assert desk.write_all() == 1


def test_long_words_are_shortened(desk: Desk) -> None:
    """Every watcher of the pod carries them."""
    desk.waits(desk.pod(), "x" * 5000)
    desk.write_all()
    shown = desk.shown()
    assert shown is not None
    assert len(shown.message or "") == texts.MOST


def test_it_runs_until_it_is_stopped(desk: Desk) -> None:
    """The thread writes what is asked for and ends when told."""
    stop = threading.Event()
    desk.waits(desk.pod())
    desk.line.faults.plan(faults.Meanwhile(stop.set), method="PATCH")
    desk.reporter.run(stop)
    assert desk.shown() is not None


def test_it_waits_for_what_is_not_due_yet() -> None:
    """Patience is spent waiting, not spinning."""
    desk, stop = Desk(ReporterLimits(patience_seconds=2)), threading.Event()
    desk.waits(desk.pod())
    desk.line.faults.plan(faults.Meanwhile(stop.set), method="PATCH")
    desk.reporter.run(stop)
    assert desk.clock.now() == pytest.approx(2)


def test_a_pod_that_was_bound_by_the_second_look_is_not_told(desk: Desk) -> None:
    """Nor is one that went between our look and our write."""
    pod = desk.pod()
    desk.line.faults.plan(faults.Meanwhile(desk.bind), method="PATCH")
    desk.waits(pod)
    desk.write_all()
    assert desk.counted == {"condition stale": 1}


def test_what_is_remembered_of_events_is_bounded() -> None:
    """A pod that says ever new things, and ever new pods, do not fill the memory; at worst a thing is said twice."""
    desk = Desk(ReporterLimits(events_per_second=1000, remembered=2))
    pod = desk.pod()
    for number in range(70):
        desk.reporter.event(pod, "R", str(number))
    desk.write_all()
    desk.reporter.event(pod, "R", "0")
    assert desk.reporter.queued == (0, 1)
    for number in range(3):
        desk.reporter.event(desk.pod(f"other-{number}"), "R", "words")
    desk.write_all()
    desk.reporter.event(pod, "R", "69")
    assert desk.reporter.queued == (0, 1)


def test_nothing_to_say_is_no_time(desk: Desk) -> None:
    """A simulation has nothing to wait for."""
    assert desk.reporter.idle_for() is None
    desk.reporter.event(desk.pod(), "R", "words")
    assert desk.reporter.idle_for() == 0


def test_a_replica_that_lost_the_lead_drops_its_events() -> None:
    """Each try would come to the same; once it leads again, the same news is news again."""
    desk = Desk()
    pod = desk.pod()
    leads = False
    desk.reporter._cluster = FencedCluster(desk.cluster, lambda: leads)
    for reason in ("One", "Two", "Three"):
        desk.reporter.event(pod, reason, "text")
    assert desk.write_all() == 1
    assert desk.reporter.queued == (0, 0)
    assert desk.reporter.idle_for() is None
    assert desk.counted == {"event dropped": 3}
    leads = True
    desk.reporter.event(pod, "Two", "text")
    desk.write_all()
    assert desk.events() == ["Two"]


@pytest.mark.security("fairness")
def test_long_messages_are_neither_kept_nor_sent() -> None:
    """A pod whose messages change again and again costs the bridge a few bytes for each message, however long it is."""
    desk = Desk(ReporterLimits(patience_seconds=0, events_per_second=1))
    pod = desk.pod("a")
    tracemalloc.start()
    for number in range(60):
        desk.reporter.waiting(pod, "UnknownPartition", f"{number}" + "x" * 200_000)
        desk.reporter.event(pod, "UnknownPartition", f"{number}" + "x" * 200_000)
    # Threads of other cases may still be at work, elsewhere.
    ours = [tracemalloc.Filter(True, f"*/slurm_bridge/{room}/*") for room in ("status", "model", "runtime")]
    held = tracemalloc.take_snapshot().filter_traces([*ours, tracemalloc.Filter(True, __file__)])
    tracemalloc.stop()
    assert 0 < sum(each.size for each in held.traces) < 100_000


@pytest.mark.security("fairness")
def test_words_of_one_namespace_do_not_hold_up_those_of_another() -> None:
    """Conditions and events of a flooded namespace and those of a quiet one are written in turn."""
    desk = Desk()
    pod = desk.pod("a")
    flood = [_renamed(pod, "flood", f"f{number}") for number in range(50)]
    quiet = _renamed(pod, "quiet", "q")
    waits, news = ConditionQueue(most=100), EventQueue(most=100, remembered=100)
    for one in (*flood, quiet):
        condition = conditions.waiting("SlurmJobPending", "wait")
        waits.put(PendingCondition(pod=one, condition=condition, key="k", due=0.0))
        note = ports.Note(
            kind="Pod",
            api_version="v1",
            namespace=one.metadata.namespace,
            name=one.metadata.name,
            uid=one.uid,
            reason="R",
            message="m",
        )
        news.put(note, "k")
    written = [one.pod.metadata.namespace for one in (waits.pop(0.0), waits.pop(0.0)) if one is not None]
    sent = [one[0].namespace for one in (news.pop(), news.pop()) if one is not None]
    assert written == sent == ["flood", "quiet"]


def test_what_makes_room_is_of_the_namespace_that_has_most() -> None:
    """The others lose nothing by its flood."""
    pod = Desk().pod("a")
    waits = ConditionQueue(most=3)
    names = [("quiet", "q"), *(("flood", f"f{number}") for number in range(5))]
    dropped = [
        waits.put(
            PendingCondition(pod=_renamed(pod, space, name), condition=conditions.waiting("R", "m"), key="k", due=0.0)
        )
        for space, name in names
    ]
    assert dropped == [0, 0, 0, 1, 1, 1]
    left = [one.pod.metadata.name for one in (waits.pop(0.0), waits.pop(0.0), waits.pop(0.0)) if one is not None]
    assert "q" in left


def _renamed(pod: Pod, namespace: str, name: str) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, namespace=namespace, name=name, uid=f"{namespace}/{name}")
    return msgspec.structs.replace(pod, metadata=metadata)
