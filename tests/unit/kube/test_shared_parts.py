"""Equal parts of pods are kept once, and a pod with shared parts is what the API server wrote."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.kube import codec, shared_parts
from slurm_bridge.kube.kept import KeptFields
from slurm_bridge.kube.shared_parts import SharedParts
from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod

AMOUNT = st.sampled_from(["1", 1, 1.0, "1000m", "2Gi"])
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), AMOUNT)
WORD = st.sampled_from(["", "a", "b"])


def container(requests: dict[str, Any], limits: dict[str, Any], name: str, policy: str | None) -> dict[str, Any]:
    """One container of a manifest."""
    more = {"restartPolicy": policy} if policy else {}
    return {"name": name, "image": f"registry/{name}", "resources": {"requests": requests, "limits": limits}, **more}


def manifest(
    containers: list[dict[str, Any]], words: tuple[str, str], labels: dict[str, str], status: str
) -> dict[str, Any]:
    """A pod of the API server."""
    tolerations = [{"key": word, "operator": "Exists"} for word in words if word]
    conditions = [{"type": "Ready", "status": status}, {"type": "PodScheduled", "status": status, "message": status}]
    return {
        "metadata": {"name": "p", "namespace": words[0], "uid": "u", "labels": labels},
        "spec": {"containers": containers, "tolerations": tolerations, "schedulerName": words[1], "nodeName": words[0]},
        "status": {"conditions": conditions},
    }


CONTAINERS = st.lists(st.builds(container, AMOUNTS, AMOUNTS, WORD, st.sampled_from([None, "Always"])), max_size=2)
MANIFESTS = st.builds(
    manifest, CONTAINERS, st.tuples(WORD, WORD), st.dictionaries(WORD, WORD), st.sampled_from(["True", "False"])
)


@given(st.lists(MANIFESTS, max_size=8))
def test_each_pod_is_what_was_written_whatever_pods_came_before(manifests: list[dict[str, Any]]) -> None:
    """No part of another pod takes the place of one that differs."""
    reader = codec.codec(kinds.PODS, KeptFields())
    for one in manifests:
        written = json.dumps(one).encode()
        assert reader.one(written) == msgspec.json.decode(written, type=Pod)


def taken(parts: SharedParts, **spec: Any) -> Pod:
    """A pod with these fields, with shared parts."""
    given_ = manifest([container({"cpu": "1"}, {}, "main", None)], ("ns", "sched"), {"app": "web"}, "True")
    made = msgspec.convert({**given_, "spec": {**given_["spec"], **spec}}, type=Pod)
    parts.take(made)
    return made


def test_equal_pods_share_their_parts() -> None:
    """All but what is the pod's own."""
    parts = SharedParts()
    first, second = taken(parts), taken(parts)
    assert first.spec.containers is second.spec.containers
    assert first.spec.tolerations is second.spec.tolerations
    assert first.metadata.labels is second.metadata.labels
    assert first.status.conditions[0] is second.status.conditions[0]
    assert first.status.conditions[1] is not second.status.conditions[1]


@pytest.mark.security("fairness")
def test_what_is_remembered_for_all_pods_is_bounded() -> None:
    """Users write it: a large part is kept for its own pod alone, and many different parts are forgotten together."""
    parts = SharedParts()
    large = [{"key": "k" * 5000, "operator": "Exists"}]
    first, second = taken(parts, tolerations=large), taken(parts, tolerations=large)
    assert first.spec.tolerations is not second.spec.tolerations
    for number in range(2 * shared_parts.MOST):
        taken(parts, nodeName=f"n{number}")
    assert len(parts) <= shared_parts.MOST + 20
