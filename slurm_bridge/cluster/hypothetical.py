"""The cluster as it would be without some pods: what filters say of that is what preemption could come to."""

import dataclasses
import itertools
from collections.abc import Iterable

from slurm_bridge.cluster.overlaid import Overlaid
from slurm_bridge.cluster.snapshot import NOTHING, Amounts, ClusterSnapshot
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import resources

#: Versions of clusters that never were: answers that hooks remember for them are never taken for those of a real one.
_versions = itertools.count(-2, -1)


def without(snapshot: ClusterSnapshot, pods: Iterable[Pod]) -> ClusterSnapshot:
    """The same moment, if these had left."""
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.spec.node_name in snapshot.nodes:
            by_node.setdefault(pod.spec.node_name, []).append(pod)
    left = {}
    for name, gone in by_node.items():
        facts, leaving = snapshot.nodes[name], {pod.uid: pod for pod in gone}
        asked = [resources.requests_of(pod) for pod in leaving.values()]
        staying = tuple(pod for pod in facts.pods if pod.uid not in leaving)
        used, placed = _less(facts.used, asked), _less(facts.placed, asked)
        left[name] = dataclasses.replace(facts, used=used, placed=placed, pods=staying)
    version, nodes = next(_versions), snapshot.nodes
    return dataclasses.replace(
        snapshot,
        version=version,
        use_version=version,
        company_version=version,
        nodes=nodes.over(left) if isinstance(nodes, Overlaid) else {**nodes, **left},
    )


def _less(amounts: Amounts, taken: Iterable[Amounts]) -> Amounts:
    left = dict(amounts)
    for one in taken:
        for name, amount in one.items():
            left[name] = max(NOTHING, left.get(name, NOTHING) - amount)
    return left
