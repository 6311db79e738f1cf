"""Every reason that a user can see says what to do about it."""

import pathlib
import re

import msgspec
import pytest

from slurm_bridge.model import names
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler import words
from slurm_bridge.view import makers, next_steps

PROJECT = pathlib.Path(__file__).resolve().parents[3]


def documented() -> set[str]:
    """The reasons in the table of docs/operating.md."""
    page = (PROJECT / "docs" / "operating.md").read_text()
    section = page.split("## What users see")[1].split("\n## ")[0]
    firsts = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {reason for first in firsts for reason in re.findall(r"`([A-Z]\w+)`", first)}


def test_every_documented_reason_has_a_next_step() -> None:
    """A reason that is new in the table needs a sentence here."""
    found = documented()
    assert len(found) > 30
    assert found - next_steps.OF_BRIDGE.keys() == set()


def test_every_reason_of_slurm_that_has_words_has_a_next_step() -> None:
    """Both tables are of the same reasons."""
    assert next_steps.OF_SLURM.keys() == words.REASONS.keys()


def test_a_step_names_the_job() -> None:
    """So that the command can be copied."""
    assert next_steps.step("Priority", 17).count("sprio -j 17") == 1
    assert all("JOB" not in next_steps.step(reason, 17) for reason in next_steps.OF_SLURM)


def test_an_unknown_reason_leads_to_the_explanation() -> None:
    """Reasons of a site's own hooks are not known here; without a reason there is nothing to do."""
    assert next_steps.step("OurOwn", 0) == next_steps.FOLLOW
    assert next_steps.step("", 0) == ""


@pytest.mark.parametrize(
    ("maker", "said"),
    [
        ("Pod", "names: an annotation can be changed on the pod, for other fields create the pod again."),
        ("Job", "names in the Job: an annotation can be changed there, for other fields delete the Job and create"),
        ("JobSet", "names in the JobSet: an annotation can be changed there"),
        ("Deployment", "names in the Deployment: it replaces its pods."),
    ],
)
def test_a_wrong_value_is_corrected_where_it_comes_from(maker: str, said: str) -> None:
    """The pod of a controller is not created by its user."""
    for reason in ("InvalidAnnotation", "InvalidResources", "UnknownPartition", "UnknownGres", "TooManyTerms"):
        assert said in next_steps.step(reason, 0, maker)


def test_no_step_has_a_gap_left_in_it() -> None:
    """Whatever makes the pod."""
    for reason in next_steps.OF_BRIDGE:
        assert "{" not in next_steps.step(reason, 0) + next_steps.step(reason, 0, "Job")


def owner(kind: str, name: str = "web") -> dict[str, object]:
    """The reference to a controller."""
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": True}


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ({}, "Pod"),
        ({"ownerReferences": [owner("Job")]}, "Job"),
        ({"ownerReferences": [{**owner("Job"), "controller": False}]}, "Pod"),
        ({"ownerReferences": [owner("Job")], "labels": {names.LABEL_JOBSET_NAME: "sim"}}, "JobSet"),
        ({"ownerReferences": [owner("StatefulSet")], "labels": {names.LABEL_LWS_NAME: "llm"}}, "LeaderWorkerSet"),
        ({"ownerReferences": [owner("ReplicaSet", "web-7d9")], "labels": {"pod-template-hash": "7d9"}}, "Deployment"),
        ({"ownerReferences": [owner("ReplicaSet", "web")], "labels": {"pod-template-hash": "7d9"}}, "ReplicaSet"),
        ({"ownerReferences": [owner("Job\nrm -rf ~")]}, "Pod"),
        ({"ownerReferences": [owner("J" * 5000)]}, "Pod"),
    ],
    ids=["none", "job", "not the controller", "jobset", "lws", "deployment", "replicaset", "words", "long"],
)
def test_what_makes_a_pod_is_read_from_the_pod(metadata: dict[str, object], kind: str) -> None:
    """By its controller and by the labels of sets; what is no name of a kind is not shown."""
    assert makers.kind_of(msgspec.convert({"metadata": metadata}, Pod)) == kind
