"""The conditions that the bridge writes on a pod, and whether a pod shows them already."""

from typing import Final

from slurm_bridge import ports
from slurm_bridge.model import kinds, texts
from slurm_bridge.model.meta import Condition, Manifest
from slurm_bridge.model.pod import Pod

SCHEDULED: Final = "PodScheduled"
DISRUPTED: Final = "DisruptionTarget"


def find(pod: Pod, type_: str) -> Condition | None:
    """The pod's condition of this type."""
    return next((line for line in pod.status.conditions if line.type == type_), None)


def says(pod: Pod, wanted: Condition) -> bool:
    """The pod shows this condition already; times do not count."""
    return same(find(pod, wanted.type), wanted)


def same(shown: Condition | None, wanted: Condition) -> bool:
    """Both have the same status, reason and message; times do not count."""
    if shown is None:
        return False
    words = (shown.status, shown.reason or "", shown.message or "")
    return words == (wanted.status, wanted.reason or "", wanted.message or "")


def waiting(reason: str, message: str) -> Condition:
    """The pod has no node yet, and why."""
    return Condition(type=SCHEDULED, status="False", reason=reason, message=texts.bounded(message))


def disrupted(reason: str, message: str) -> Condition:
    """The pod is about to be deleted by us, and why; the podFailurePolicy of a Job can tell this from a failure."""
    return Condition(type=DISRUPTED, status="True", reason=reason, message=texts.bounded(message))


def write(cluster: ports.Cluster, pod: Pod, wanted: Condition, *, wall: float, pinned: bool) -> None:
    """Writes one condition on the pod; `pinned`: only if the pod has still the resource version that we saw.

    The uid is always a precondition, so that another pod of the same name is never changed.
    """
    line: Manifest = {
        "type": wanted.type,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
    }
    shown = find(pod, wanted.type)
    if shown is None or shown.status != wanted.status:
        line["lastTransitionTime"] = texts.timestamp(wall)
    changes: Manifest = {"status": {"conditions": [line]}}
    if pinned and pod.metadata.resource_version:
        changes["metadata"] = {"resourceVersion": pod.metadata.resource_version}
    cluster.patch(kinds.PODS, pod, changes, subresource="status")
