"""Predicates in their order: what they say of every node, or of one.

Without `always_check_all` a node is out with the first predicate that fails on it, and has all reasons of that one. A
node to which pods are nominated has to take the pod twice, with them there and without, because they may not come.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from slurm_bridge.cluster.columns import Codes, Mask, Reasons
from slurm_bridge.cluster.nominations import NOBODY, ByNode
from slurm_bridge.families.kube_scheduler.predicates.base import Failures, Predicate
from slurm_bridge.families.kube_scheduler.scene import Scene, with_pods
from slurm_bridge.model.pod import Pod

Said = tuple[str, ...]

#: Pods by the node that they were promised.
Nominated = ByNode

#: Predicates by name, in the order in which they are asked.
Predicates = Mapping[str, Predicate]

_NOTHING_SAID: Mapping[str, Failures] = {}


def evaluate(
    scene: Scene,
    predicates: Predicates,
    *,
    always_check_all: bool = False,
    nominated: Nominated | None = None,
    said: Mapping[str, Failures] = _NOTHING_SAID,
) -> Reasons:
    """Why nodes cannot take the pod, by node. `said`: what some predicates are known to say of all of them."""
    codes, table = _run(scene, predicates, always_check_all=always_check_all, known=said)
    for name, pods in rivals(scene, nominated or NOBODY).items():
        row = scene.columns.row(name)
        alone = crowded(scene, name, pods)
        why = reasons_at(alone, name, predicates, always_check_all=always_check_all) if alone else ()
        if row is not None and why:
            table.append(why)
            codes[row] = len(table) - 1
    return Reasons(scene.columns, codes, tuple(table))


def reasons_at(scene: Scene, node: str, predicates: Predicates, *, always_check_all: bool = False) -> Said:
    """Why one of the nodes that are judged cannot take the pod; nothing when it can."""
    row = scene.columns.row(node)
    if row is None:
        return ()
    codes, table = _run(scene, predicates, always_check_all=always_check_all)
    return table[int(codes[row])]


def _run(
    scene: Scene, predicates: Predicates, *, always_check_all: bool, known: Mapping[str, Failures] = _NOTHING_SAID
) -> tuple[Codes, list[Said]]:
    """For each row a place in a table of what was said."""
    codes = np.zeros(len(scene.columns), np.int32)
    table: list[Said] = [()]
    left = scene.columns.present
    for name, predicate in predicates.items():
        failures = known[name] if name in known else predicate(scene)
        for mask, reason in failures:
            _say(codes, table, mask & left, reason)
        if failures and not always_check_all:
            left = left & (codes == 0)
            if not left.any():
                break
    return codes, table


def _say(codes: Codes, table: list[Said], mask: Mask, reason: str) -> None:
    """One more reason for these rows: rows that had the same reasons before have the same ones after."""
    rows = codes[mask]
    if not rows.size:
        return
    step = np.arange(len(table), dtype=np.int32)
    for code in np.flatnonzero(np.bincount(rows)).tolist():
        step[code] = len(table)
        table.append((*table[code], reason))
    codes[mask] = step[rows]


def rivals(scene: Scene, nominated: ByNode) -> ByNode:
    """Nominated pods that go before this one, or with it: those of lower priority have to look elsewhere."""
    priority, uid = scene.pod.spec.priority or 0, scene.pod.uid
    chosen = {
        node: [pod for pod in pods if pod.uid != uid and (pod.spec.priority or 0) >= priority]
        for node, pods in nominated.items()
    }
    return {node: pods for node, pods in chosen.items() if pods}


def promised(pod: Pod, nominated: ByNode) -> str:
    """The uid of a pod that is nominated itself, and so has other rivals than its equals; "" for all others."""
    return next((one.uid for pods in nominated.values() for one in pods if one.uid == pod.uid), "")


def crowded(scene: Scene, node: str, pods: Sequence[Pod]) -> Scene | None:
    """The node alone, with these pods on it beside those that are there."""
    row = scene.columns.row(node)
    facts = scene.columns.facts[row] if row is not None else None
    return scene.at({node: with_pods(facts, (*facts.pods, *pods))}) if facts is not None else None
