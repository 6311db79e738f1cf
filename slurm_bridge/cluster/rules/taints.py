"""Taints on nodes, and the tolerations of pods."""

from collections.abc import Collection, Iterable

from slurm_bridge.cluster.rules import selectors
from slurm_bridge.model.node import Taint
from slurm_bridge.model.pod import Toleration

#: The effects that keep a pod from being placed; PreferNoSchedule is a wish.
HARD = ("NoSchedule", "NoExecute")

#: What Kubernetes puts on a cordoned node; a pod that tolerates it may run there all the same.
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """No effect means every effect, no key means every key."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    if toleration.operator in ("Gt", "Lt"):
        return selectors.compare(taint.value, (toleration.value,), greater=toleration.operator == "Gt")
    return False


def untolerated(
    taints: Iterable[Taint], tolerations: tuple[Toleration, ...], effects: Collection[str] = HARD
) -> Taint | None:
    """The first taint of these effects that keeps the pod away."""
    for taint in taints:
        if taint.effect in effects and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None
