"""The taint of the nodes that the controller looks after, where one is configured.

The annotation `scheduler.slinky.slurm.net/managed-taint` says which taint this bridge has set, so that exactly that
one is taken away again when it is configured otherwise. A taint that an administrator has set stays, be it the same.
"""

from typing import Any, Final

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.controllers.nodes import desired_nodes
from slurm_bridge.controllers.nodes.options import NodeOptions
from slurm_bridge.controllers.nodes.views import Views
from slurm_bridge.model import kinds, names
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.node import Node, Taint

#: The pause of a node whose taints the API server did not change.
PAUSE_SECONDS: Final = 60.0


class TaintWriter:
    """Of one daemon. What it remembers is bounded by the number of nodes."""

    def __init__(self, options: NodeOptions, cluster: ports.Cluster, clock: ports.Clock) -> None:
        self._options, self._cluster, self._clock = options, cluster, clock
        self._rests: dict[str, float] = {}

    def step(self, seen: Views, until: float) -> None:
        """Write what differs, up to that moment. Raises only where the server is away or another replica leads."""
        self._rests = {name: moment for name, moment in self._rests.items() if name in seen.nodes}
        for node in seen.nodes.values():
            now = self._clock.now()
            if now >= until:
                return
            patch = changes(node, self._wanted(node, seen), self._options.cluster_id)
            if patch is not None and now >= self._rests.get(node.metadata.name, now):
                self._write(node, patch)

    def _wanted(self, node: Node, seen: Views) -> Taint | None:
        """A node that is registered keeps its taint while it is added anew, and while nothing is known of its row."""
        unknown = desired_nodes.registered(node) or seen.doubts(node.slurm_name)
        there = node.slurm_name in seen.slurm or (unknown and owned(node, self._options.cluster_id))
        return self._options.taint if there and seen.looks_after(node, self._options.managed) else None

    def _write(self, node: Node, patch: Manifest) -> None:
        """A node that another client has changed meanwhile comes again with that change."""
        try:
            self._cluster.patch(kinds.NODES, node, patch)
        except (errors.Unavailable, errors.NotLeading):
            raise
        except errors.BridgeError as problem:
            logger.info("taints of node {} are not changed yet: {}", node.metadata.name, problem)
            if not isinstance(problem, errors.Conflict | errors.NotFound):
                self._rests[node.metadata.name] = self._clock.now() + PAUSE_SECONDS


def owned(node: Node, cluster_id: str) -> bool:
    """This bridge has set a taint on it."""
    return node.metadata.annotations.get(names.ANNOTATION_MANAGED_TAINT, "").partition(" ")[0] == cluster_id


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
