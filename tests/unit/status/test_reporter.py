"""What users see on their pods: on change only, within a rate, never over what others wrote, never in the way."""

import random
import threading
import tracemalloc
from collections import Counter

import msgspec
import pytest

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds
from slurm_bridge.model.meta import Condition
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root
from slurm_bridge.overlays.fenced import FencedCluster
from slurm_bridge.sim import faults
from slurm_bridge.sim.kube import pods
from slurm_bridge.status import conditions
from slurm_bridge.status.condition_queue import ConditionQueue, PendingCondition
from slurm_bridge.status.event_queue import EventQueue
from slurm_bridge.status.reporter import ReporterLimits, Sight, StatusReporter
from tests.pocketkube import NAMESPACE, Scene

SLOW = ReporterLimits(
    conditions_per_second=1, events_per_second=1, patience_seconds=0, most_conditions=3, most_events=3
)


class Desk(Scene):
    """A reporter at work, and what it counted."""

    def __init__(self, limits: ReporterLimits | None = None) -> None:
        super().__init__()
        self.counted: Counter[str] = Counter()
        self.reporter = StatusReporter(
            self.cluster,
            self.clock,
            dice=random.Random(1),
            limits=limits or ReporterLimits(patience_seconds=0),
            count=lambda what, outcome: self.counted.update([f"{what} {outcome}"]),
        )

    def write_all(self) -> int:
        """Steps until nothing is to be done; how many did something."""
        steps = 0
        while self.reporter.step():
            steps += 1
        return steps

    def shown(self, name: str = "pod", type_: str = "PodScheduled") -> Condition | None:
        """The condition as the API server shows it."""
        return conditions.find(self.seen(name), type_)

    def patches(self) -> int:
        """How often a pod's status was written."""
        return self.line.faults.count(method="PATCH", target="/status")

    def events(self) -> list[str]:
        """The reasons of all events."""
        return [event["reason"] for event in self.kube.list(kinds.EVENTS)]

    def bind(self, name: str = "pod") -> None:
        """The pod is bound."""
        pods.bind(self.kube.objects, NAMESPACE, name, {"metadata": {"name": name}, "target": {"name": "n1"}})

    def waits(self, pod: Pod, message: str = "no room", key: str = "") -> None:
        """Ask for the condition."""
        self.reporter.waiting(pod, "SlurmJobPending", message, key=key)


@pytest.fixture
def desk() -> Desk:
    """A reporter without patience."""
    return Desk()


def test_s3_a_waiting_pod_says_why(desk: Desk) -> None:
    """Slurm's reason reaches the user on the pod itself."""
    desk.waits(desk.pod(), "job 5 waits: Priority")
    assert desk.write_all() == 1
    shown = desk.shown()
    assert shown is not None
    assert (shown.status, shown.reason, shown.message) == ("False", "SlurmJobPending", "job 5 waits: Priority")
    assert shown.last_transition_time == "2023-11-14T22:13:20Z"


def test_conditions_of_others_stay_as_they_are(desk: Desk) -> None:
    """One that came after our look at the pod is kept, with fields that we do not know."""
    pod = desk.pod()
    theirs = {"type": "example.com/gate", "status": "True", "lastProbeTime": "2026-01-01T00:00:00Z"}
    desk.kube.merge(kinds.PODS, pod.key, {"status": {"conditions": [theirs]}}, "status")
    desk.waits(pod)
    desk.write_all()
    stored = desk.kube.get(kinds.PODS, *pod.key)
    assert stored is not None
    assert theirs in stored["status"]["conditions"]
    assert desk.shown() is not None


def test_a_new_text_keeps_the_time_since_when_the_pod_waits(desk: Desk) -> None:
    """The time is that of the last change between waiting and not."""
    desk.waits(desk.pod())
    desk.write_all()
    first = desk.shown()
    desk.clock.advance(60)
    desk.waits(desk.seen(), "still no room")
    desk.write_all()
    second = desk.shown()
    assert first is not None
    assert second is not None
    assert second.message == "still no room"
    assert second.last_transition_time == first.last_transition_time


def test_c5_the_same_words_are_written_once(desk: Desk) -> None:
    """However often they are said."""
    pod = desk.pod()
    for _ in range(3):
        desk.waits(pod)
        desk.write_all()
    assert desk.patches() == 1


def test_the_key_decides_what_is_the_same(desk: Desk) -> None:
    """An estimate that moves by a second is no news; another reason is."""
    pod = desk.pod()
    desk.waits(pod, "starts at 12:00:01", key="priority")
    desk.write_all()
    desk.waits(pod, "starts at 12:00:02", key="priority")
    desk.write_all()
    desk.waits(pod, "starts at 12:00:03", key="resources")
    desk.write_all()
    assert desk.counted == {"condition ok": 2}


def test_a_pod_that_says_it_already_costs_nothing(desk: Desk) -> None:
    """After a restart of the daemon nothing is written again."""
    desk.waits(desk.pod())
    desk.write_all()
    again = StatusReporter(desk.cluster, desk.clock, dice=random.Random(1), limits=ReporterLimits(patience_seconds=0))
    again.waiting(desk.seen(), "SlurmJobPending", "no room")
    assert not again.step()
    again.waiting(desk.seen(), "SlurmJobPending", "other words")
    assert again.step()
    assert desk.patches() == 2


def test_words_that_were_taken_back_in_time_are_not_written(desk: Desk) -> None:
    """What the pod shows at the end is what was said last."""
    desk.waits(desk.pod(), "a")
    desk.write_all()
    desk.waits(desk.seen(), "b")
    desk.waits(desk.seen(), "a")
    desk.write_all()
    assert desk.patches() == 1
    assert desk.counted["condition same"] == 1


def test_the_latest_words_win() -> None:
    """A pod whose reason changed three times meanwhile is written once, when it would have been for the first."""
    desk = Desk(ReporterLimits(patience_seconds=2))
    pod = desk.pod()
    for message in "abc":
        desk.waits(pod, message)
        desk.clock.advance(0.7)
    assert desk.write_all() == 1
    shown = desk.shown()
    assert shown is not None
    assert shown.message == "c"


def test_patience_saves_the_write_of_a_pod_that_is_bound_soon() -> None:
    """Most pods never wait for long."""
    desk = Desk(ReporterLimits(patience_seconds=2))
    desk.waits(desk.pod())
    assert not desk.reporter.step()
    desk.reporter.forget(desk.seen().uid)
    desk.clock.advance(2)
    assert desk.write_all() == 0


def test_a_forgotten_pod_may_wait_anew(desk: Desk) -> None:
    """The same words count again."""
    pod = desk.pod()
    desk.waits(pod)
    desk.reporter.forget(pod.uid)
    desk.waits(pod)
    assert desk.write_all() == 1


@pytest.mark.security("fairness")
def test_a_group_whose_name_holds_the_uid_of_a_pod_takes_no_word_from_it(desk: Desk) -> None:
    """A group called like the uid of another namespace's pod never keeps that pod from hearing why it waits."""
    pod = desk.pod()
    desk.waits(pod)
    desk.reporter.forget(Root(kind="Group", namespace="evil", name=f"x/{pod.uid}", uid=f"Group:evil/x/{pod.uid}").key)
    assert desk.write_all() == 1


def test_a_pod_that_was_bound_meanwhile_is_not_told_that_it_waits(desk: Desk) -> None:
    """Our look at it is older than its binding; the condition that the binding made stays."""
    pod = desk.pod()
    desk.waits(pod)
    desk.bind()
    desk.write_all()
    shown = desk.shown()
    assert shown is not None
    assert shown.status == "True"
    assert desk.counted["condition stale"] == 1


def test_another_pod_of_the_same_name_is_not_told(desk: Desk) -> None:
    """It may not wait at all."""
    pod = desk.pod()
    desk.waits(pod)
    desk.kube.delete(kinds.PODS, pod.key, grace=0)
    desk.pod()
    desk.write_all()
    assert desk.shown() is None
    assert desk.counted["condition stale"] == 1


def test_a_pod_that_is_gone_is_forgotten(desk: Desk) -> None:
    """There is no pod to write to."""
    pod = desk.pod()
    desk.waits(pod)
    desk.kube.delete(kinds.PODS, pod.key, grace=0)
    assert desk.write_all() == 1
    assert desk.reporter.queued == (0, 0)


def test_what_is_known_of_a_pod_now_counts() -> None:
    """With an informer's view, a pod that was bound or has gone costs no call at all."""
    desk = Desk()
    pod = desk.pod()
    silent = StatusReporter(
        desk.cluster,
        desk.clock,
        dice=random.Random(1),
        limits=ReporterLimits(patience_seconds=0),
        sight=Sight(current=lambda _: None),
    )
    silent.waiting(pod, "SlurmJobPending", "no room")
    assert silent.step()
    assert desk.patches() == 0


def test_a_pod_that_keeps_changing_is_tried_again(desk: Desk) -> None:
    """Two writes lost against others are no reason to say nothing."""
    pod = desk.pod()

    def touch() -> None:
        desk.kube.merge(kinds.PODS, pod.key, {"metadata": {"labels": {"at": str(desk.patches())}}})

    desk.line.faults.plan(faults.Meanwhile(touch), method="PATCH", times=2)
    desk.waits(pod)
    desk.write_all()
    assert desk.counted == {"condition failed": 1, "condition ok": 1}


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


def test_events_are_told_once(desk: Desk) -> None:
    """The same words about the same pod are one event, other words another."""
    pod = desk.pod()
    for message in ("job 5", "job 5", "job 6"):
        desk.reporter.event(pod, "SlurmJobSubmitted", message)
        desk.write_all()
    assert desk.events() == ["SlurmJobSubmitted", "SlurmJobSubmitted"]


def test_an_events_key_decides_what_is_the_same(desk: Desk) -> None:
    """An estimate in the text does not make an event every minute."""
    for text in ("in 5 min", "in 4 min"):
        desk.reporter.event(desk.pod() if text == "in 5 min" else desk.seen(), "Pending", text, key="Priority")
        desk.write_all()
    assert desk.events() == ["Pending"]


def test_a_warning_is_a_warning(desk: Desk) -> None:
    """kubectl shows it as one, beside the pod it is about."""
    desk.reporter.event(desk.pod(), "SlurmJobEnded", "time limit", warning=True)
    desk.write_all()
    (event,) = desk.kube.list(kinds.EVENTS)
    assert (event["type"], event["note"], event["regarding"]["uid"]) == ("Warning", "time limit", desk.seen().uid)


def test_events_of_other_objects_are_told_too(desk: Desk) -> None:
    """A configuration that was refused has no pod."""
    note = ports.Note(
        kind="ConfigMap", api_version="v1", namespace="default", name="c", uid="u", reason="R", message=""
    )
    desk.reporter.note(note, key="hash")
    desk.write_all()
    assert desk.events() == ["R"]


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


def test_a_disruption_is_written_at_once(desk: Desk) -> None:
    """Before the pod is deleted, so that podFailurePolicy can tell; a second time it is there already."""
    pod = desk.pod()
    desk.bind()
    desk.reporter.disrupt(pod, "SlurmJobEnded", "time limit")
    desk.reporter.disrupt(desk.seen(), "SlurmJobEnded", "time limit")
    shown = desk.shown(type_="DisruptionTarget")
    assert shown is not None
    assert (shown.status, shown.reason) == ("True", "SlurmJobEnded")
    assert desk.patches() == 1
    scheduled = desk.shown()
    assert scheduled is not None
    assert scheduled.status == "True"


def test_a_disruption_of_another_incarnation_is_refused(desk: Desk) -> None:
    """The caller learns that the pod it meant is gone."""
    pod = desk.pod()
    desk.kube.delete(kinds.PODS, pod.key, grace=0)
    with pytest.raises(errors.NotFound):
        desk.reporter.disrupt(pod, "R", "words")
    desk.pod()
    with pytest.raises(errors.Conflict):
        desk.reporter.disrupt(pod, "R", "words")


def test_long_words_are_shortened(desk: Desk) -> None:
    """Every watcher of the pod carries them."""
    desk.waits(desk.pod(), "x" * 5000)
    desk.write_all()
    shown = desk.shown()
    assert shown is not None
    assert len(shown.message or "") == conditions.MOST_MESSAGE


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
    """A pod whose messages change again and again costs the bridge a few bytes for each of them, however long it is."""
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
