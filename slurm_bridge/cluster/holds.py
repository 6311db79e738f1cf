"""What pods keep of nodes: each pod on one node at most, and for each node what all of its pods ask for together."""

import dataclasses
import functools
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from slurm_bridge.cluster.facts import NOTHING, Amounts, NodeFacts
from slurm_bridge.model.pod import Pod

#: So many sums are written once: pods of one kind come and go on nodes of one kind.
MOST_SUMS = 4096

#: What is asked for in all on each node.
_Sums = dict[str, dict[str, Fraction]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What one pod keeps on a node; assumed: we have decided so, and the cluster has not said so yet.

    `placed`: it has the node from Slurm. `pod` is the pod itself, None when the binding gave only its amounts.
    """

    node: str
    requests: Amounts
    assumed: bool
    placed: bool
    pod: Pod | None = None

    def keeps_as(self, other: "Hold") -> bool:
        """Just as much, of the same node."""
        same = self.node == other.node and self.placed is other.placed
        return same and (self.requests is other.requests or self.requests == other.requests)


@dataclasses.dataclass(frozen=True, slots=True)
class There:
    """What there is on one node."""

    used: Amounts
    placed: Amounts
    pods: tuple[Pod, ...]

    def noted(self, facts: NodeFacts) -> NodeFacts:
        """The node with this; for every pod that comes or goes, and `dataclasses.replace` takes twice as long."""
        return NodeFacts(
            name=facts.name,
            slurm_name=facts.slurm_name,
            node=facts.node,
            slurm=facts.slurm,
            allocatable=facts.allocatable,
            used=self.used,
            placed=self.placed,
            pods=self.pods,
        )


class Holding:
    """All holds by the pod's uid. What changes a node's sums or pods says so by the node's name."""

    def __init__(self) -> None:
        self._holds: dict[str, Hold] = {}
        self._used: _Sums = {}
        self._placed: _Sums = {}
        self._pods: dict[str, dict[str, Pod]] = {}

    def get(self, uid: str) -> Hold | None:
        """What this pod keeps."""
        return self._holds.get(uid)

    def there(self, node: str) -> There:
        """What all pods keep of this node."""
        pods = self._pods.get(node, {})
        return There(_frozen(self._used.get(node)), _frozen(self._placed.get(node)), tuple(pods.values()))

    def hold(self, uid: str, hold: Hold) -> frozenset[str]:
        """In the place of what it kept before; gives the nodes that differ now."""
        held = self._holds.get(uid)
        if held is not None and _alike(held.pod, hold.pod):
            # The pod that was given out stays: to take over each heartbeat of it would change a node for nothing.
            hold = dataclasses.replace(hold, pod=held.pod)
        self._holds[uid] = hold
        if held is not None and held.keeps_as(hold):
            # The sums stand: most of what is heard of a pod is how it goes.
            # The pod as it is now, in its place among those of the node.
            if held.pod is hold.pod:
                return frozenset()
            if hold.pod is not None:
                self._pods.setdefault(hold.node, {})[uid] = hold.pod
            else:
                self._unshow(uid, held)
            return frozenset({hold.node})
        left = self._drop(uid, held) if held is not None else frozenset()
        self._count(hold, 1)
        if hold.pod is not None:
            self._pods.setdefault(hold.node, {})[uid] = hold.pod
        return left | {hold.node}

    def release(self, uid: str) -> frozenset[str]:
        """It keeps nothing any more; gives the nodes that differ now."""
        held = self._holds.pop(uid, None)
        return self._drop(uid, held) if held is not None else frozenset()

    def _unshow(self, uid: str, held: Hold) -> None:
        pods = self._pods.get(held.node, {})
        pods.pop(uid, None)
        if not pods:
            self._pods.pop(held.node, None)

    def _drop(self, uid: str, held: Hold) -> frozenset[str]:
        self._count(held, -1)
        self._unshow(uid, held)
        return frozenset({held.node})

    def _count(self, hold: Hold, sign: int) -> None:
        _add(self._used, hold, sign)
        if hold.placed:
            _add(self._placed, hold, sign)


def _alike(one: Pod | None, other: Pod | None) -> bool:
    """Nothing differs that a rule about pods on nodes looks at; what a kubelet reports changes little of it."""
    if one is None or other is None or one is other:
        return one is other
    here, there = one.metadata, other.metadata
    return (
        here.labels == there.labels
        and here.annotations == there.annotations
        and here.deletion_timestamp == there.deletion_timestamp
        and here.owner_references == there.owner_references
        and one.spec == other.spec
        and one.status.phase == other.status.phase
        and one.status.start_time == other.status.start_time
    )


def _add(sums: _Sums, hold: Hold, sign: int) -> None:
    used = sums.setdefault(hold.node, {})
    for name, amount in hold.requests.items():
        (top, bottom), (more, parts) = used.get(name, NOTHING).as_integer_ratio(), amount.as_integer_ratio()
        # Nearly all amounts are whole, and are added several times as fast as fractions are.
        whole = bottom == parts == 1
        number = top + sign * more if whole else top * parts + sign * more * bottom
        if number:
            used[name] = _whole(number) if whole else Fraction(number, bottom * parts)
        else:
            used.pop(name, None)
    if not used:
        del sums[hold.node]


@functools.lru_cache(maxsize=MOST_SUMS)
def _whole(number: int) -> Fraction:
    return Fraction(number)


def _frozen(used: Mapping[str, Fraction] | None) -> Amounts:
    return MappingProxyType(dict(used or {}))
