"""Where a pod says that it can run: its required node affinity."""

from collections.abc import Mapping
from typing import Any

from slurm_bridge.model.pod import Pod

Term = Mapping[str, Any]

#: The only field of a node that can be selected by, and how.
NAME = "metadata.name"
FIELD_OPERATORS = ("In", "NotIn")


def required(pod: Pod) -> Term | None:
    """The node selector that the pod's required node affinity is, None when it has none."""
    node_affinity = (pod.spec.affinity or {}).get("nodeAffinity")
    if not isinstance(node_affinity, Mapping):
        return None
    found = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return found if isinstance(found, Mapping) else None
