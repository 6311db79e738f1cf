"""Events on Kubernetes nodes."""

from slurm_bridge import ports
from slurm_bridge.model.node import Node


def about(node: Node, reason: str, message: str, *, action: str, warning: bool) -> ports.Note:
    """An event on this node."""
    return ports.Note(
        kind="Node",
        api_version="v1",
        namespace="",
        name=node.metadata.name,
        uid=node.uid,
        reason=reason,
        message=message,
        action=action,
        warning=warning,
    )
