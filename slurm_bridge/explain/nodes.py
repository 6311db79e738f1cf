"""The nodes that are left for a workload, and why the others are excluded."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks import emitter
from slurm_bridge.hooks.base import Audience, Denied, Nodes
from slurm_bridge.model import texts
from slurm_bridge.model.job import JobRequest

#: Replaces a reason that only operators see.
WITHHELD = "ruled out by this cluster's rules (operators see why)"

#: Of an administrator's words about a node.
_MOST_REASON = 100


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeReasons:
    """Nodes by their names in Kubernetes; `hidden` are the reasons that only operators see.

    `closed` are those eligible nodes on which Slurm starts no job now, by its state and reason. `members` names the
    pods, if other pods have other nodes.
    """

    eligible: Nodes
    excluded: Mapping[str, Nodes]
    closed: Mapping[str, Nodes]
    hidden: frozenset[str] = frozenset()
    members: str = ""

    def shown(self, *, operator: bool) -> Mapping[str, Nodes]:
        """The excluded nodes by the reason that this reader may see."""
        found: dict[str, Nodes] = {}
        for reason, nodes in self.excluded.items():
            words = reason if operator or reason not in self.hidden else WITHHELD
            found[words] = found.get(words, frozenset()) | nodes
        return found


def reasons(seen: ClusterSnapshot, eligible: Nodes, layers: Iterable[Denied], members: str = "") -> NodeReasons:
    """Each node counts with all reasons of the first layer that excluded it."""
    left, excluded = seen.names, collections.defaultdict[str, set[str]](set)
    hidden: set[str] = set()
    for layer in layers:
        for name in left & layer.nodes.keys():
            reason = ", ".join(layer.nodes[name])
            excluded[reason].add(name)
            hidden |= {reason} if layer.audience is Audience.OPERATOR else set()
        left = left - layer.nodes.keys()
    return NodeReasons(
        eligible=eligible,
        excluded={reason: frozenset(names) for reason, names in excluded.items()},
        closed=_closed(seen, eligible),
        hidden=frozenset(hidden),
        members=members,
    )


def _closed(seen: ClusterSnapshot, eligible: Nodes) -> Mapping[str, Nodes]:
    """By Slurm's words. A job may still get such a node: it waits until the node is back."""
    found = collections.defaultdict[str, set[str]](set)
    for name in eligible:
        node = seen.nodes[name].slurm
        if node is not None and (node.out_of_service or node.poisoned):
            states = "+".join(sorted(node.states))
            found[f"{states}, {texts.bounded(node.reason, _MOST_REASON)}" if node.reason else states].add(name)
    return {said: frozenset(names) for said, names in found.items()}


def within(found: NodeReasons, seen: ClusterSnapshot, request: JobRequest) -> NodeReasons:
    """Exclude the nodes outside of the request's partitions."""
    members = emitter.members(seen, request.partition or "")
    inside = frozenset(name for name in found.eligible if seen.nodes[name].slurm_name in members)
    outside = found.eligible - inside
    if not outside:
        return found
    where = emitter.partition_words(seen, request.partition or "")
    excluded = {**found.excluded, f"node(s) are not in {where}": outside}
    return dataclasses.replace(found, eligible=inside, excluded=excluded, closed=_closed(seen, inside))
