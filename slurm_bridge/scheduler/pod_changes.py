"""Which changes of pods and nodes are worth a look. Pure."""

from collections.abc import Mapping

from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod

#: Reasons with which a kubelet refuses a pod that was bound to it.
REFUSALS = frozenset({"NodeAffinity", "NodeSelector", "NodePorts", "TaintToleration", "UnexpectedAdmissionError"})


def regrouped(old: Pod, new: Pod) -> bool:
    """What a pod says of itself has changed: perhaps its workload has, too."""
    before, now = old.metadata, new.metadata
    return not new.bound and (
        (before.labels, before.annotations, before.owner_references)
        != (now.labels, now.annotations, now.owner_references)
    )


def matters(old: Pod | None, new: Pod) -> bool:
    """Whether a change of a pod can change what follows for it; what kubelets report of a running pod cannot."""
    if old is None or old.bound != new.bound or old.terminal != new.terminal or old.terminating != new.terminating:
        return True
    if new.bound:
        return False
    promised = old.status.nominated_node_name != new.status.nominated_node_name
    before, now = old.status, new.status
    claimed = (before.resource_claim_statuses, before.extended_resource_claim_status) != (
        now.resource_claim_statuses,
        now.extended_resource_claim_status,
    )
    return old.spec != new.spec or old.gated != new.gated or promised or claimed or regrouped(old, new)


def refused(pod: Pod) -> bool:
    """Its kubelet did not take it: the node is to blame, not the pod."""
    reason = pod.status.reason or ""
    return pod.bound and pod.status.phase == "Failed" and (reason in REFUSALS or reason.startswith("OutOf"))


def stirs(old: Pod | None, new: Pod | None) -> bool:
    """Whether a pod has come to a node, has left it, or differs for pods that look at their neighbours."""
    return _there(old) != _there(new)


def _there(pod: Pod | None) -> tuple[str, Mapping[str, str]] | None:
    return None if pod is None or not pod.bound or pod.terminal else (pod.spec.node_name, pod.metadata.labels)


def ails(old: Node | None, new: Node | None) -> bool:
    """Whether a node says of itself that it feels otherwise; when it said so is of no interest."""
    return _health(old) != _health(new)


def _health(node: Node | None) -> frozenset[tuple[str, str]]:
    return frozenset((one.type, one.status) for one in node.status.conditions) if node is not None else frozenset()
