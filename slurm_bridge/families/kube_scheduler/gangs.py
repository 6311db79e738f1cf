"""What rules about neighbours mean for a gang, of which no pod runs yet when its nodes are filtered.

gang                                        filter                                     subset
equal pods, as many nodes as they like      rules in which what runs has no say        pod by pod (`placements`)
any other                                   all rules; a pod that wants to be near a   domain by domain, where pods
                                            member may go wherever the member may      want to be near members
"""

from collections.abc import Iterator, Mapping

import numpy as np

from slurm_bridge.cluster import room
from slurm_bridge.cluster.columns import Mask, NodeColumns
from slurm_bridge.cluster.columns.coded import HOLE
from slurm_bridge.cluster.rules import neighbours
from slurm_bridge.cluster.rules.neighbours import NamespaceLabels
from slurm_bridge.families.kube_scheduler import classes, placements
from slurm_bridge.families.kube_scheduler.predicates.base import PredicateRule
from slurm_bridge.hooks.base import Ask, Nodes, NodeSet
from slurm_bridge.model.features import Feature
from slurm_bridge.model.pod import Pod

#: So many kinds of members, and terms of each, are compared with each other: users may write any number of them.
MOST_KINDS = 16


def places(ask: Ask) -> bool:
    """Whether a gang can be asked for as its pods are placed: as equal tasks, on as many nodes as that takes.

    Of any other gang Slurm chooses the nodes, and the allocation is looked at.
    """
    pods, request = ask.every_pod, ask.request
    counted = request.minimum_nodes is request.maximum_nodes is None and not request.gres
    known = not (request.constraints or request.reservation)
    return counted and known and len(pods) <= placements.MOST_PODS and classes.exchangeable(pods)


def later(ask: Ask, rules: Mapping[str, PredicateRule], labels_of: NamespaceLabels) -> frozenset[str]:
    """The rules that are asked about a gang when its pods have their places, as far as what runs has a say in them."""
    if ask.workload.gang is None:
        return frozenset()
    if places(ask):
        return frozenset(rules)
    if not any(_near_members(ask, ask.workload.pods[0], labels_of)):
        return frozenset()
    return frozenset(name for name, rule in rules.items() if Feature.POD_AFFINITY in rule.honours)


def domains(
    ask: Ask, columns: NodeColumns, nodes: Nodes, labels_of: NamespaceLabels, attempt: int = 0
) -> list[NodeSet]:
    """The parts of these nodes in which all pods are near each other, those with the most room first.

    None where no pod wants to be near a member. Once each was tried, every further attempt, and so the last one that
    stays, is at the part with the most room by then.
    """
    firsts = classes.kinds(ask.workload.pods, MOST_KINDS)
    keys = sorted({key for pod in firsts for key in _near_members(ask, pod, labels_of)})
    if not keys:
        return []
    mask = columns.mask(nodes)
    codes = [columns.label(key).codes for key in keys]
    for one in codes:
        mask = mask & (one != HOLE)
    free = room.slots(columns, ask.workload.pods[0], ask.request)
    found: list[tuple[int, int, Mask]] = []
    for domain in np.unique(np.stack([one[mask] for one in codes]), axis=1).T:
        there = mask & np.logical_and.reduce([one == code for one, code in zip(codes, domain, strict=True)])
        found.append((-int(free[there].sum()), len(found), there))
    ordered = [there for _, _, there in sorted(found, key=lambda one: one[:2])]
    place = attempt % len(ordered) if ordered and attempt >= len(ordered) else 0
    ordered = ordered[len(ordered) - place :] + ordered[: len(ordered) - place]
    return [
        NodeSet(nodes=columns.nodes(there), name=f"near each other ({number})", required=True)
        for number, there in enumerate(ordered, 1)
    ]


def _near_members(ask: Ask, pod: Pod, labels_of: NamespaceLabels) -> Iterator[str]:
    """The keys of the terms by which a pod wants to be near a member of its gang."""
    members = classes.kinds(ask.every_pod, MOST_KINDS)
    for term in neighbours.required(pod)[:MOST_KINDS]:
        if any(term.selects(member, labels_of) for member in members):
            yield term.topology_key
