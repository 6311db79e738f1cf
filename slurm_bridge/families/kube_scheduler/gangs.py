"""What rules about neighbours mean for a gang, of which no pod runs yet when its nodes are filtered.

gang                                        filter                                     subset
equal pods, as many nodes as they like      rules in which what runs has no say        pod by pod (`placements`)
any other                                   all rules, but not the affinity of a pod   domain by domain, where pods
                                            that a member is to meet                   want to be near members
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from slurm_bridge.cluster import room
from slurm_bridge.cluster.columns import NodeColumns
from slurm_bridge.cluster.columns.coded import HOLE
from slurm_bridge.cluster.rules import neighbours
from slurm_bridge.cluster.rules.neighbours import NamespaceLabels, Term
from slurm_bridge.families.kube_scheduler import classes, placements
from slurm_bridge.families.kube_scheduler.predicates import topology
from slurm_bridge.hooks.base import Ask, Nodes, NodeSet
from slurm_bridge.model.pod import Pod

#: So many kinds of members, and terms of each, are compared with each other: users may write any number of them.
MOST_KINDS = 16

#: So many domains are tried. As a rule there are ten attempts, of which the last one is at the first of them again.
MOST_DOMAINS = 9


def places(ask: Ask) -> bool:
    """Whether a gang can be asked for as its pods are placed: as equal tasks, on as many nodes as that takes.

    Of any other gang Slurm chooses the nodes, and the allocation is looked at.
    """
    pods, request = ask.every_pod, ask.request
    counted = request.minimum_nodes is request.maximum_nodes is None and not request.gres
    known = not (request.constraints or request.reservation)
    return counted and known and len(pods) <= placements.MOST_PODS and classes.exchangeable(pods)


def among_strangers(ask: Ask, labels_of: NamespaceLabels) -> Callable[[Pod], Pod]:
    """Gives a pod without the affinity that a member of its gang is to meet: no node does while no member runs."""
    members = classes.kinds(ask.every_pod, MOST_KINDS)

    def without(pod: Pod) -> Pod:
        if not _near(pod, members, labels_of):
            return pod
        affinity = {kind: written for kind, written in (pod.spec.affinity or {}).items() if kind != "podAffinity"}
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=affinity))

    return without


def keys(ask: Ask, labels_of: NamespaceLabels) -> Sequence[str]:
    """The topology keys by which pods of a gang want to be near a member."""
    members = classes.kinds(ask.every_pod, MOST_KINDS)
    firsts = classes.kinds(ask.workload.pods, MOST_KINDS)
    return sorted({term.topology_key for pod in firsts for term in _near(pod, members, labels_of)})


def domains(ask: Ask, columns: NodeColumns, nodes: Nodes, keys: Sequence[str]) -> list[NodeSet]:
    """The parts of these nodes in which all pods are near each other by these keys, those with the most room first.

    A node without one of the labels is in none.
    """
    codes = np.stack([columns.label(key).codes for key in keys])
    inside = np.logical_and.reduce([columns.mask(nodes), *(topology.placed(columns, key) for key in keys)])
    inside &= (codes != HOLE).all(axis=0)
    if not inside.any():
        return []
    domain = np.full(len(columns), HOLE)
    domain[inside] = np.unique(codes[:, inside], axis=1, return_inverse=True)[1].reshape(-1)
    free = np.bincount(domain[inside], room.slots(columns, ask.workload.pods[0], ask.request)[inside])
    # In a part with too few nodes the job never starts: such a one takes the place of no other.
    small = np.bincount(domain[inside]) < (ask.request.minimum_nodes or 1)
    ordered = np.lexsort((-free, small))[:MOST_DOMAINS]
    return [
        NodeSet(nodes=columns.nodes(domain == one), name=f"near each other ({number})", required=True)
        for number, one in enumerate(ordered, 1)
    ]


def _near(pod: Pod, members: Sequence[Pod], labels_of: NamespaceLabels) -> Sequence[Term]:
    """The terms of a pod, where a member meets all of them: as in kube-scheduler, one that does not counts for none."""
    terms = neighbours.required(pod)[:MOST_KINDS]
    meets = any(all(term.selects(member, labels_of) for term in terms) for member in members)
    return terms if meets else ()
