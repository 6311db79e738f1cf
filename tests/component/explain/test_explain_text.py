"""How an explanation reads, as text and as JSON, and which part users and operators see."""

import json
from typing import Any

import pytest

from slurm_bridge import errors
from slurm_bridge.explain import nodes, subjects, text
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.explain.subjects import ExplainSubject
from slurm_bridge.hooks.base import Audience, Denied, HookPhase
from slurm_bridge.hooks.explain import Line
from slurm_bridge.model.verdict import Obstacle, Reject, Wait
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.workloads.known import NOTHING, Options
from tests.component.explain import explained
from tests.unit.hooks import builders

LINES = (
    Line(hook="policy", phase=HookPhase.ADMIT, nodes_in=0, nodes_out=0, reason="a word to users"),
    Line(hook="site", phase=HookPhase.SCORE, nodes_in=3, nodes_out=3, reason="secret", audience=Audience.OPERATOR),
)
EVERY = builders.cluster([builders.node(name) for name in ("n1", "n2", "n3", "n4")])
EYES = subjects.OwnerLookup(clock=VirtualClock(), known=NOTHING, server=None, options=Options())


def subject(*manifests: dict[str, Any]) -> ExplainSubject:
    """Of a pod, unless other manifests are given: offline."""
    (found,) = subjects.of_objects(manifests or (explained.pod(),), EYES)
    return found


def explanation(obstacle: Obstacle | None = None) -> Explanation:
    """With a line for all users and one for operators."""
    denied = [
        Denied.because("node(s) were unschedulable", {"n1", "n2"}),
        Denied(nodes={"n3": ("site secret",)}, audience=Audience.OPERATOR),
    ]
    return Explanation(
        subject=subject(),
        notes=("a note",),
        obstacle=obstacle,
        lines=LINES,
        reasons=(nodes.reasons(EVERY, frozenset({"n4"}), denied),),
        body={"job": {"name": "a"}} if obstacle is None else None,
        jobs=(),
    )


def test_users_are_not_shown_what_is_for_operators() -> None:
    """Neither lines nor reasons; `--verbose` shows both."""
    plain, verbose = (text.render(explanation(), verbose=wanted) for wanted in (False, True))
    assert ("a word to users" in plain, "secret" in plain) == (True, False)
    assert "1 ruled out by this cluster's rules" in plain
    assert "1 site secret: n3" in verbose


@pytest.mark.parametrize(
    ("obstacle", "status", "words"),
    [
        (None, 0, "would be submitted"),
        (Wait(reason="Gated", message="held"), 3, "would wait: Gated: held"),
        (Reject(reason="NotAllowed", message="no"), 4, "would be refused: NotAllowed: no"),
    ],
)
def test_the_verdict_comes_first_and_decides_on_the_status(obstacle: Obstacle | None, status: int, words: str) -> None:
    """For readers and for scripts."""
    found = explanation(obstacle)
    assert text.render(found, verbose=False).splitlines()[:2] == ["Pod default/a", f"  {words}"]
    assert found.status == status


def test_machines_get_every_key_as_json() -> None:
    """Whatever is empty."""
    told = json.loads(json.dumps(text.document(explanation(Wait(reason="R", message="m")), verbose=False)))
    assert (told["verdict"], told["reason"], told["submission"], told["jobs"]) == ("wait", "R", None, [])
    assert told["nodes"][0]["eligible"] == ["n4"]
    assert (told["members"][0]["name"], told["gang"], told["slots"], told["form"]) == ("a", [], [], "")
    assert [line["hook"] for line in told["hooks"]] == ["policy"]


def test_a_node_counts_with_the_first_layer_that_denied_it() -> None:
    """Later layers were not asked about it."""
    layers = [Denied.because("first", {"n1"}), Denied.because("second", {"n1", "n2"})]
    found = nodes.reasons(EVERY, frozenset({"n3", "n4"}), layers)
    assert dict(found.excluded) == {"first": {"n1"}, "second": {"n2"}}


@pytest.mark.parametrize("kind", ["Job", "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"])
def test_everything_with_a_template_is_explained_through_a_pod_of_it(kind: str) -> None:
    """Its controller is the object, whose annotations speak."""
    group = "batch/v1" if kind == "Job" else "apps/v1"
    made = subject({**explained.job(annotations={"partition": "batch"}), "kind": kind, "apiVersion": group})
    assert made.workload is not None
    assert made.workload.controller is not None
    assert made.workload.controller.kind == {"Deployment": "ReplicaSet"}.get(kind, kind)
    assert [source.kind for source in made.workload.sources] == ["Pod", kind]


def test_a_kind_of_the_same_name_in_another_group_is_none_of_them() -> None:
    """A `Job` of a custom definition."""
    other = {**explained.job(), "apiVersion": "example.org/v1"}
    with pytest.raises(errors.BadConfiguration, match="nothing to explain in Job"):
        subject(other)


def test_a_suspended_job_is_explained_with_a_note() -> None:
    """It makes no pods for now."""
    assert any("suspended" in note for note in subject(explained.job(suspend=True)).notes)


def test_what_the_api_server_would_refuse_is_refused_by_name_and_place() -> None:
    """An annotation that YAML reads as a number."""
    with pytest.raises(errors.BadConfiguration, match=r"Pod a: .*annotations"):
        subject(explained.pod(annotations={"timelimit": 5}))


def test_owners_that_could_not_be_read_are_a_note() -> None:
    """Their annotations might win."""
    manifest = explained.pod()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    manifest["metadata"]["ownerReferences"] = [owner]
    (note,) = (one for one in subject(manifest).notes if one.startswith("owners: "))
    assert "owner Job train (batch/v1) could not be read: it was not read offline" in note


def test_a_pod_without_namespace_is_in_the_default_one() -> None:
    """As kubectl would create it."""
    manifest = explained.pod()
    del manifest["metadata"]["namespace"]
    assert subject(manifest).root.namespace == "default"
