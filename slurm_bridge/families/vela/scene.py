"""What filter and score plugins look at: one pod, the nodes as columns, and the time."""

import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster import columns, room
from slurm_bridge.cluster.columns import Mask, NodeColumns, Whole
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.memo import ByPod
from slurm_bridge.model import quantity
from slurm_bridge.model.pod import Pod

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Places in the columns of nodes; the order is that in which the nodes were found.
Rows = NDArray[np.intp]

#: Answers for so many kinds of pods are remembered while the cluster stands still.
MOST_KNOWN = 256


class UnreadablePod(ValueError):
    """A plugin cannot read what the pod asks for: its user has to correct it, and no other pod is concerned."""


class SamplingScene:
    """One question. `now` is Unix time, `inside` are the nodes of the partitions of its job, None: it may be any."""

    def __init__(self, pod: Pod, nodes: NodeColumns, now: float, inside: Mask | None = None) -> None:
        self.inside = inside
        self.pod = pod
        self.nodes = nodes
        self.now = now
        self._limits: Mapping[str, int] | None = None

    @property
    def limits(self) -> Mapping[str, int]:
        """What the containers may use at most, together; what has no limit is not in it."""
        if self._limits is None:
            self._limits = _limits_of(self.pod)
        return self._limits

    @property
    def requests(self) -> Mapping[str, int]:
        """What the pod asks for, as the kubelet counts it: a limit where nothing is requested."""
        return room.requested(self.pod)


#: Of so many kinds of pods it is remembered what they may use.
_MOST_LIMITS = 1024


@functools.lru_cache(maxsize=_MOST_LIMITS)
def _limits(containers: tuple[tuple[tuple[str, str | int | float], ...], ...]) -> Mapping[str, int]:
    total: dict[str, Fraction] = {}
    for name, written in itertools.chain.from_iterable(containers):
        total[name] = total.get(name, Fraction()) + quantity.parse(written)
    return MappingProxyType({name: columns.units(name, amount) for name, amount in total.items()})


_limits_of: ByPod[Mapping[str, int]] = ByPod(
    lambda pod: _limits(tuple(tuple(one.resources.limits.items()) for one in pod.spec.containers))
)


def inside(nodes: NodeColumns, partitions: Iterable[str]) -> Mask:
    """The nodes that one of these partitions of Slurm has."""

    def partitions_of(facts: NodeFacts) -> tuple[str, ...]:
        """A node that Slurm does not know is in none."""
        return facts.slurm.partitions if facts.slurm is not None else ()

    wanted = frozenset(partitions)
    every = nodes.attribute("vela partitions", partitions_of)
    return every.among([names for names in every.values if not wanted.isdisjoint(names)])


class FilterPlugin(Protocol):
    """Which of these nodes can take the pod? `rejects` is what is told of the others, after their number."""

    @property
    def rejects(self) -> str: ...

    def fits(self, scene: SamplingScene, rows: Rows, /) -> Mask: ...


@runtime_checkable
class WideFilter(Protocol):
    """A filter that knows it of all nodes at once: it is asked only once for each question."""

    def every(self, scene: SamplingScene, /) -> Mask: ...


class ScorePlugin(Protocol):
    """How good is each of these nodes, from 0 to 100?"""

    def score(self, scene: SamplingScene, rows: Rows, /) -> Whole: ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scorer:
    """A score plugin, and how much it counts."""

    name: str
    weight: int
    plugin: ScorePlugin


#: Whether two records of a node are the same for cached answers.
Alike = Callable[[NodeFacts, NodeFacts], bool]


def never(_: NodeFacts, __: NodeFacts) -> bool:
    """Whatever changed about a node matters."""
    return False


def same_node(one: NodeFacts, other: NodeFacts) -> bool:
    """Kubernetes' node is the same object; what runs there may have changed."""
    return one.node is other.node


class SceneCache(Generic[K, V]):
    """Answers about all nodes that many pods share, for as long as no node changed in a way that matters."""

    def __init__(self, alike: Alike = never) -> None:
        self._alike = alike
        self._follows = alike is not never
        self._lock = threading.Lock()
        self._last: tuple[NodeColumns | None, dict[K, V]] = None, {}

    def get(self, nodes: NodeColumns, key: K, work_out: Callable[[], V]) -> V:
        """The answer for this key, worked out once for these columns (at worst twice, by two threads at once)."""
        before, known = self._last
        if before is not nodes or len(known) >= MOST_KNOWN:
            with self._lock:
                before, known = self._last
                if not self._stands(nodes, before) or len(known) >= MOST_KNOWN:
                    known = {}
                self._last = nodes, known
        try:
            return known[key]
        except KeyError:
            return known.setdefault(key, work_out())

    def _stands(self, nodes: NodeColumns, before: NodeColumns | None) -> bool:
        if before is nodes or (before is not None and self._follows and nodes.unmoved(before)):
            return True
        if before is None or before.members is not nodes.members or (rows := nodes.since(before)) is None:
            return False
        pairs = ((before.facts[row], nodes.facts[row]) for row in rows.tolist())
        return all(one is other or (one and other and self._alike(one, other)) for one, other in pairs)
