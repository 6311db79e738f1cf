"""What predicates and priorities look at: one pod, the nodes to judge, and all others where rules look beyond a node.

Usually every node of the cluster is judged. To try out what would be if some pods went or came (a nominated pod, a
preemption, the check of an allocation), only those nodes are judged whose pods then differ: `at`.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from slurm_bridge.cluster.columns import Mask, NodeColumns
from slurm_bridge.cluster.facts import NOTHING, Amounts, NodeFacts
from slurm_bridge.cluster.rules import spread, volumes
from slurm_bridge.cluster.rules.affinity import Term
from slurm_bridge.cluster.rules.spread import SpreadConstraint
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler.options import Capacity
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.selectors import Requirement
from slurm_bridge.runtime import frozen_records
from slurm_bridge.translate import resources

Labels = Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AddedAffinity:
    """Node affinity that every pod has beside its own: a node selector, and preferences as pods write them."""

    required: Term | None = None
    preferred: tuple[Mapping[str, Any], ...] = ()


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Where to find objects that rules speak of; a hook gives what its needs let it see, and what is configured.

    `namespace_labels`: None for an unknown namespace. `service_selectors`: those of a namespace.
    `volume_limits`: how many volumes of a driver nodes can attach, for those of which it is known.
    `controller_selectors`: those of the replica sets and stateful sets of a namespace. `default_spread`: the topology
    spread constraints of a pod that has none itself.
    """

    storage: volumes.Storage = volumes.NO_STORAGE
    volume_limits: Callable[[str], Mapping[str, int]] = lambda _driver: {}
    namespace_labels: Callable[[str], Labels | None] = lambda _namespace: None
    service_selectors: Callable[[str], Sequence[Labels]] = lambda _namespace: ()
    controller_selectors: Callable[[str], Sequence[tuple[Requirement, ...]]] = lambda _namespace: ()
    default_spread: Callable[[Pod], Sequence[SpreadConstraint]] = lambda _pod: ()
    added_affinity: AddedAffinity = AddedAffinity()


NOWHERE = Lookup()


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scene:
    """One pod in one pass. `columns` are the nodes that are judged.

    `parts` are all nodes, each once: columns with the rows of them that count. What differs from the cluster stands in
    columns of its own.
    """

    pod: Pod
    columns: NodeColumns
    parts: tuple[tuple[NodeColumns, Mask], ...]
    capacity: Capacity = "free"
    lookup: Lookup = NOWHERE

    def at(self, nodes: Mapping[str, NodeFacts], beside: Mapping[str, NodeFacts] | None = None) -> "Scene":
        """Judge only these nodes of the cluster, with these facts; `beside` are others that differ from it too."""
        changed = [NodeColumns.of(nodes), *([NodeColumns.of(beside)] if beside else [])]
        names = nodes.keys() | (beside or {}).keys()
        parts = [(part, mask & ~part.mask(names)) for part, mask in self.parts]
        parts += [(part, part.present) for part in changed]
        return dataclasses.replace(self, columns=changed[0], parts=tuple(parts))

    def spread(self, *, hard: bool) -> tuple[SpreadConstraint, ...]:
        """The constraints of the pod, or those that pods without any have: the ones that must hold, or the wishes."""
        if self.pod.spec.topology_spread_constraints:
            return spread.constraints(self.pod, hard=hard)
        return tuple(one for one in self.lookup.default_spread(self.pod) if one.hard is hard)

    def of(self, pod: Pod) -> "Scene":
        """The same for another pod."""
        return dataclasses.replace(self, pod=pod)


def scene(snapshot: ClusterSnapshot, pod: Pod, *, capacity: Capacity = "free", lookup: Lookup = NOWHERE) -> Scene:
    """All nodes of the cluster are judged, as they are."""
    columns = snapshot.columns
    return Scene(pod=pod, columns=columns, parts=((columns, columns.present),), capacity=capacity, lookup=lookup)


def with_pods(facts: NodeFacts, pods: Iterable[Pod]) -> NodeFacts:
    """The node as if exactly these pods were on it."""
    now = tuple(pods)
    before, after = {pod.uid: pod for pod in facts.pods}, {pod.uid: pod for pod in now}
    gone = [(-1, pod) for uid, pod in before.items() if uid not in after]
    came = [(1, pod) for uid, pod in after.items() if uid not in before]
    used = dict(facts.used)
    for sign, pod in (*gone, *came):
        for name, amount in _requests_of(pod).items():
            used[name] = used.get(name, NOTHING) + sign * amount
    return dataclasses.replace(facts, pods=now, used=used)


def _requests_of(pod: Pod) -> Amounts:
    """Amounts that cannot be read count as 0, here as in what is used already."""
    try:
        return resources.requests_of(pod)
    except ValueError:
        return {}
