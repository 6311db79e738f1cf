"""Every review gets a well-formed answer."""

import base64
import dataclasses
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_bridge.admission import gate, review
from slurm_bridge.admission.gate import Webhook
from slurm_bridge.model import names
from slurm_bridge.translate import resources
from tests.bad_manifests import job, pod
from tests.unit.admission.reviews import ASKED, MANAGED, OURS, RULES, Json, body

BROKEN = dataclasses.replace(RULES, managed=None)


def answered(given: bytes, webhook: Webhook = Webhook.VALIDATE, rules: Any = RULES) -> Json:
    """The response to a body, as the API server reads it."""
    _, answer = gate.answer(given, webhook, rules)
    written: Json = json.loads(json.dumps(review.write(answer)))
    assert (written["apiVersion"], written["kind"]) == (review.API_VERSION, review.KIND)
    response: Json = written["response"]
    return response


def test_a_patch_is_json_in_base64() -> None:
    """As the API server wants it."""
    response = answered(body(pod("web", ""), asked=dataclasses.replace(ASKED, namespace=MANAGED)), Webhook.MUTATE)
    assert (response["uid"], response["allowed"], response["patchType"]) == ("u-1", True, "JSONPatch")
    first = json.loads(base64.b64decode(response["patch"]))[0]
    assert first == {"op": "add", "path": "/spec/schedulerName", "value": OURS}


def test_a_refusal_has_a_status() -> None:
    """Its message is what kubectl shows."""
    response = answered(body(pod("web", OURS, {names.JOB_PREFIX + "qos": "a b"})))
    assert not response["allowed"]
    assert (response["status"]["code"], response["status"]["reason"]) == (422, "Invalid")


@pytest.mark.parametrize("given", [b"", b"{", b"[]", b"null", b"\xff", b'{"kind":"AdmissionReview"}', b"[" * 100_000])
def test_a_body_that_is_no_review_is_not_answered(given: bytes) -> None:
    """The endpoint says 400, and the failure policy decides."""
    with pytest.raises(review.NotAReview):
        gate.answer(given, Webhook.VALIDATE, RULES)


def test_another_version_is_not_answered() -> None:
    """The message says which one is."""
    with pytest.raises(review.NotAReview, match=r"not AdmissionReview of admission.k8s.io/v1"):
        gate.answer(body(pod("web", OURS)).replace(b"k8s.io/v1", b"k8s.io/v2"), Webhook.VALIDATE, RULES)


@pytest.mark.parametrize("webhook", Webhook)
def test_an_error_refuses_objects_of_the_bridge_only(webhook: Webhook) -> None:
    """A defect in the webhook stops no pod of another scheduler."""
    surprising = dataclasses.replace(RULES, translation=None, toleration=7)
    ours, theirs = body(pod("web", OURS)), body(pod("web", "volcano"))
    response = answered(ours, webhook, surprising)
    assert not response["allowed"]
    assert "could not review it" in response["status"]["message"]
    assert answered(theirs, webhook, surprising)["allowed"]
    assert answered(ours, webhook, dataclasses.replace(surprising, lenient=True))["allowed"]


def test_an_error_lets_no_record_through() -> None:
    """An object of another scheduler with a record of its creator is refused when the record cannot be reviewed."""
    recorded = body(pod("web", "volcano", {names.ANNOTATION_CREATED_BY: "{}"}))
    assert not answered(recorded, rules=dataclasses.replace(RULES, accounts=7))["allowed"]


def test_an_error_about_the_namespace_leaves_others_alone() -> None:
    """Whether a namespace is managed is not known when its labels cannot be read."""

    def unknown(_: str) -> bool:
        raise ValueError("no answer")

    rules = dataclasses.replace(RULES, managed=unknown)
    assert answered(body(pod("web", "")), Webhook.MUTATE, rules)["allowed"]
    assert answered(body(pod("web", OURS)), Webhook.VALIDATE, rules)["allowed"]


def test_a_request_that_cannot_be_read_is_refused_in_managed_namespaces() -> None:
    """Its namespace is all that is known of it."""
    for namespace, allowed in ((MANAGED, False), ("team", True)):
        request = {"uid": "u", "namespace": namespace, "object": [1]}
        given = json.dumps({"apiVersion": review.API_VERSION, "kind": review.KIND, "request": request}).encode()
        assert answered(given)["allowed"] is allowed


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
_PATHS = st.sampled_from(
    [
        ("metadata",),
        ("metadata", "annotations"),
        ("metadata", "labels"),
        ("metadata", "ownerReferences"),
        ("metadata", "name"),
        ("metadata", "annotations", names.JOB_PREFIX + "gres"),
        ("spec",),
        ("spec", "schedulerName"),
        ("spec", "nodeName"),
        ("spec", "containers"),
        ("spec", "tolerations"),
        ("spec", "affinity"),
        ("spec", "volumes"),
        ("spec", "topologySpreadConstraints"),
        ("spec", "template"),
        ("spec", "template", "spec"),
        ("spec", "template", "metadata"),
        ("spec", "parallelism"),
    ]
)


@pytest.mark.security("input")
@given(path=_PATHS, value=_JSON, kind=st.sampled_from([pod, job]), namespace=st.sampled_from(["team", MANAGED]))
@settings(max_examples=100, deadline=None)
def test_hostile_objects_get_an_answer(path: tuple[str, ...], value: Any, kind: Any, namespace: str) -> None:
    """Whatever is in an object, the webhook answers; an object of another scheduler is allowed."""
    manifest = kind("web", OURS)
    below = manifest
    for step in path[:-1]:
        below = below.setdefault(step, {})
    below[path[-1]] = value
    manifest["metadata"] = manifest["metadata"] if isinstance(manifest["metadata"], dict) else {}
    asked = dataclasses.replace(ASKED, namespace=namespace)
    for webhook in Webhook:
        for before in (None, kind("web", OURS)):
            assert answered(body(manifest, before, asked), webhook)["uid"] == "u-1"


@pytest.mark.security("input")
@given(given=st.binary(max_size=200) | _JSON.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=100, deadline=None)
def test_hostile_bodies_get_an_answer_or_none(given: bytes) -> None:
    """No body stops the webhook."""
    for webhook in Webhook:
        try:
            gate.answer(given, webhook, RULES)
        except review.NotAReview:
            continue


@pytest.mark.security("fairness")
def test_nothing_of_a_reviewed_pod_is_kept() -> None:
    """The memory of the webhook does not grow with the objects that it reviews."""
    before = len(resources._known)
    for number in range(3):
        assert answered(body(pod(f"web-{number}", OURS)))["allowed"]
    assert len(resources._known) == before


@pytest.mark.security("input")
def test_huge_objects_are_answered_in_time() -> None:
    """An object as large as the API server accepts is reviewed in less than two seconds."""
    key = names.JOB_PREFIX
    many = pod("web", OURS, {f"{key}{number:06}": "x" for number in range(8_000)})
    terms = [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"] * 1000}]}] * 300
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    wide = pod("web", OURS, affinity={"nodeAffinity": required})
    containers = [{"name": f"c{number}", "resources": {"requests": {"cpu": "1" * 50}}} for number in range(10_000)]
    parts = [{"name": f"p{number}", "template": {"spec": job("x", OURS)["spec"]}} for number in range(3000)]
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "web"},
        "spec": {"replicatedJobs": parts},
    }
    for manifest in (many, wide, pod("web", OURS, containers=containers), jobset):
        began = time.process_time()
        for webhook in Webhook:
            response = answered(body(manifest), webhook)
            assert len(response.get("status", {}).get("message", "")) <= gate.MOST_OF_MESSAGE
        assert time.process_time() - began < 2, manifest["kind"]
