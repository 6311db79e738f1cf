"""What a workload wants, told apart by what the user asked for, and what a pod says of its being parked."""

import json
from collections.abc import Mapping

import pytest

from slurm_bridge.model import names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Root, Source, Workload
from slurm_bridge.scheduler import desired_job
from slurm_bridge.scheduler.state import DesiredJob
from tests.component.scheduler.whole_core import Bridge
from tests.unit.mirror.watching import placeholder


def workload(annotations: Mapping[str, str] | None = None) -> Workload:
    """A pod with these annotations."""
    given = dict(annotations or {})
    pod = Pod(metadata=ObjectMeta(name="a", namespace="team", uid="u", annotations=given))
    root = Root(kind="Pod", namespace="team", name="a", uid="u")
    return Workload(root=root, pods=(pod,), sources=(Source(kind="Pod", name="a", annotations=given),), job_name="a")


def desired(bridge: Bridge, annotations: Mapping[str, str] | None = None) -> DesiredJob:
    """What such a pod wants."""
    found = desired_job.read(workload(annotations), bridge.core.context)
    assert isinstance(found, DesiredJob)
    return found


def parked(bridge: Bridge, annotations: Mapping[str, str], note: str) -> bool:
    """Whether a pod with this note is parked."""
    return desired_job.parked(desired(bridge, {**annotations, names.ANNOTATION_PARKED: note}))


def test_the_intent_is_what_the_user_asked_for(bridge: Bridge) -> None:
    """Our own note, and labels that mean nothing, are no part of it; a limit and a retry are."""
    plain = desired(bridge).intent
    assert desired(bridge, {names.ANNOTATION_PARKED: "{}", "colour": "red"}).intent == plain
    assert desired(bridge, {names.JOB_PREFIX + "timelimit": "5"}).intent != plain
    assert desired(bridge, {names.ANNOTATION_RETRY: "1"}).intent != plain


def test_a_pod_is_parked_until_its_intent_changes(bridge: Bridge) -> None:
    """The note holds for exactly the request that somebody cancelled."""
    note = desired_job.park_note(desired(bridge), placeholder(7), "Slurm job 7 was cancelled")
    assert json.loads(note)["job"] == 7
    assert parked(bridge, {}, note)
    assert not parked(bridge, {names.ANNOTATION_RETRY: "again"}, note)
    assert not parked(bridge, {names.JOB_PREFIX + "timelimit": "5"}, note)


def test_the_note_says_why_and_for_which_job(bridge: Bridge) -> None:
    """The next end of another job is another matter."""
    note = desired_job.park_note(desired(bridge), placeholder(7), "because")
    told = desired(bridge, {names.ANNOTATION_PARKED: note, names.ANNOTATION_RETRY: "1"})
    assert desired_job.why_parked(told) == "because"
    assert desired_job.noted(told)
    assert desired_job.answered(told, placeholder(7))
    assert not desired_job.answered(told, placeholder(8))


@pytest.mark.parametrize("note", ["", "null", "[]", "7", '"text"', "{", '{"intent":null}', '{"intent":["x"]}'])
def test_a_note_that_somebody_spoiled_parks_nobody(bridge: Bridge, note: str) -> None:
    """Users can write what they like there."""
    assert not parked(bridge, {}, note)
    assert desired_job.why_parked(desired(bridge, {names.ANNOTATION_PARKED: note})) == ""


def test_what_cannot_be_translated_is_a_refusal(bridge: Bridge) -> None:
    """With the object, the key and the value."""
    found = desired_job.read(workload({names.JOB_PREFIX + "timelimit": "soon"}), bridge.core.context)
    assert isinstance(found, Reject)
    assert "soon" in found.message


@pytest.mark.security("fairness")
def test_a_refusal_is_remembered_like_a_wish(bridge: Bridge) -> None:
    """After a cordon the bridge does not check the invalid annotations of a waiting pod again."""
    wrong = workload({names.JOB_PREFIX + "timelimit": "0"})
    first = desired_job.read(wrong, bridge.core.context)
    assert isinstance(first, Reject)
    assert desired_job.read(wrong, bridge.core.context) is first
    assert isinstance(desired_job.read(workload(), bridge.core.context), DesiredJob)
