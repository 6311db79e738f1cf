"""What columns are made of: one function for each name under which a column is kept, and which pods a term means."""

from collections.abc import Callable

import numpy as np

from slurm_bridge.cluster import selection
from slurm_bridge.cluster.columns import Coded, Mask, NodeColumns, PodColumns
from slurm_bridge.cluster.rules import attachments, disks, neighbours, ports
from slurm_bridge.cluster.rules.neighbours import NamespaceLabels, Term
from slurm_bridge.families.kube_scheduler import neighbour_terms
from slurm_bridge.model.node import Node, Taint
from slurm_bridge.model.pod import Pod

#: Conditions that predicates look at, with the status that is no trouble.
_FINE = {
    "Ready": "True",
    "NetworkUnavailable": "False",
    "MemoryPressure": "False",
    "DiskPressure": "False",
    "PIDPressure": "False",
}

_FORBIDDEN = (("podAntiAffinity", neighbours.REQUIRED),)

Conditions = tuple[tuple[str, str], ...]


def taints(columns: NodeColumns) -> Coded[tuple[Taint, ...]]:
    """All taints of each node."""
    return columns.of_node("kube taints", lambda node: node.spec.taints)


def unschedulable(columns: NodeColumns) -> Coded[bool]:
    """Which nodes are cordoned."""
    return columns.of_node("kube unschedulable", lambda node: node.spec.unschedulable)


def troubles(columns: NodeColumns) -> Coded[Conditions]:
    """Conditions that are not as they should be; the few distinct values make every question about them cheap."""
    return columns.of_node("kube troubles", _troubles)


def namespaces(pods: PodColumns) -> Coded[str]:
    """Whose pods they are."""
    return pods.attribute("kube namespace", lambda pod: pod.metadata.namespace)


def terminating(pods: PodColumns) -> Coded[bool]:
    """Which pods are on their way out."""
    return pods.attribute("kube terminating", lambda pod: pod.terminating)


def host_ports(pods: PodColumns) -> Coded[frozenset[ports.HostPort]]:
    """What pods claim of their hosts."""
    return pods.attribute("kube host ports", ports.of)


def named_disks(pods: PodColumns) -> Coded[frozenset[disks.Disk]]:
    """The disks that pods name without a claim."""
    return pods.attribute("kube disks", disks.of)


def claims(pods: PodColumns) -> Coded[frozenset[attachments.ClaimKey]]:
    """The claims that pods use."""
    return pods.attribute("kube claims", attachments.claims)


def shunning(columns: NodeColumns) -> Coded[bool]:
    """On which nodes is any pod that does not want others near: where there is none, pods cost nothing."""
    return columns.of_pods("kube shunning", lambda there: neighbour_terms.speaks(there, _FORBIDDEN))


def shunned(pods: PodColumns) -> Coded[neighbour_terms.Said | None]:
    """The anti-affinity terms of the pods on a node."""
    return pods.attribute("kube shunned", _shunned)


def _shunned(pod: Pod) -> neighbour_terms.Said | None:
    return neighbour_terms.said(pod, _FORBIDDEN)


def meant(pods: PodColumns, term: Term, labels_of: NamespaceLabels) -> Mask:
    """The pods that an affinity term means."""
    if term.selector is None:
        return np.zeros(len(pods), np.bool_)
    here = in_namespaces(pods, lambda namespace: term.covers(namespace, labels_of))
    return here & selection.all_met(pods, term.selector)


def in_namespaces(pods: PodColumns, holds: Callable[[str], bool]) -> Mask:
    """The pods of namespaces that pass."""
    return namespaces(pods).where(holds)


def _troubles(node: Node) -> Conditions:
    found = ((line.type, line.status) for line in node.status.conditions)
    return tuple(sorted((name, status) for name, status in found if _FINE.get(name, status) != status))
