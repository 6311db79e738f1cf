"""The taint of the nodes that the controller looks after, where one is configured.

The annotation `scheduler.slinky.slurm.net/managed-taint` says which taint this bridge has set, so that exactly that
one is taken away again when it is configured otherwise. A taint that an administrator has set stays, be it the same.
"""

from typing import Any

from slurm_bridge.model import names
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.node import Node, Taint


def changes(node: Node, wanted: Taint | None, cluster_id: str) -> Manifest | None:
    """The patch that gives the node this taint, or none; None where nothing is to change."""
    owner, _, text = node.metadata.annotations.get(names.ANNOTATION_MANAGED_TAINT, "").partition(" ")
    if owner not in ("", cluster_id):
        return None
    others = [one for one in node.spec.taints if not text or str(one) != text]
    kept = [one for one in others if wanted is not None and (one.key, one.effect) == (wanted.key, wanted.effect)]
    if wanted is None or kept:
        # Kubernetes knows one taint of a key and an effect: an administrator's stays.
        return None if not owner else _patch(node, others, None)
    if text == str(wanted) and len(others) < len(node.spec.taints):
        return None
    return _patch(node, [*others, wanted], f"{cluster_id} {wanted}")


def _patch(node: Node, taints: list[Taint], mark: str | None) -> Manifest:
    """A list is replaced as a whole: it has to be the one that was read."""
    return {
        "metadata": {
            "resourceVersion": node.metadata.resource_version,
            "annotations": {names.ANNOTATION_MANAGED_TAINT: mark},
        },
        "spec": {"taints": [_written(one) for one in taints] or None},
    }


def _written(taint: Taint) -> dict[str, Any]:
    written = {"key": taint.key, "value": taint.value, "effect": taint.effect, "timeAdded": taint.time_added}
    return {field: value for field, value in written.items() if value}
