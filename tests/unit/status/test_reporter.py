"""What users see on their pods: on change only, within a rate, never over what others wrote, never in the way."""

import random

import pytest

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds
from slurm_bridge.model.workload import Root
from slurm_bridge.sim import faults
from slurm_bridge.status import conditions
from slurm_bridge.status.reporter import ReporterLimits, Sight, StatusReporter
from tests.unit.status.reporter_desk import Desk


@pytest.fixture
def desk() -> Desk:
    """A reporter without patience."""
    return Desk()


def _since(desk: Desk) -> str:
    """Since when the pod waits, as it is stored."""
    stored = desk.kube.get(kinds.PODS, *desk.seen().key)
    assert stored is not None
    lines = stored["status"]["conditions"]
    return next(str(line["lastTransitionTime"]) for line in lines if line["type"] == conditions.SCHEDULED)


def test_s3_a_waiting_pod_says_why(desk: Desk) -> None:
    """Slurm's reason reaches the user on the pod itself."""
    desk.waits(desk.pod(), "job 5 waits: Priority")
    assert desk.write_all() == 1
    shown = desk.shown()
    assert shown is not None
    assert (shown.status, shown.reason, shown.message) == ("False", "SlurmJobPending", "job 5 waits: Priority")
    assert _since(desk) == "2023-11-14T22:13:20Z"


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
    first = _since(desk)
    desk.clock.advance(60)
    desk.waits(desk.seen(), "still no room")
    desk.write_all()
    second = desk.shown()
    assert second is not None
    assert second.message == "still no room"
    assert _since(desk) == first


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
    """A group named like the uid of another namespace's pod does not suppress that pod's condition."""
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
