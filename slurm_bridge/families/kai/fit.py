"""Whether tasks fit: what they ask for together, how many of them a node takes, and which domains have room."""

import collections
import dataclasses
import functools
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Mask, Whole
from slurm_bridge.families.kai.topology import CPU, GPU, MEMORY, Amounts, Domain, Topology, TopologyConstraint, spelled

Ratios = NDArray[np.float64]

#: The ratio of a type of which nothing is free.
NOTHING_FREE = 1000.0

#: Of more kinds of tasks only the largest ones are looked at.
MOST_KINDS = 32

#: Types that need not be asked for by all tasks or none for nodes to be counted in tasks.
_PLAIN = (CPU, MEMORY)

#: What messages call a type, in the order of messages; others follow by their own names.
_WORDS = {GPU: "GPUs", CPU: "CPU cores", MEMORY: "memory"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind:
    """What has to be there so many times; each takes so many of the pods that a node may have."""

    amounts: tuple[tuple[str, int], ...]
    times: int
    pods: int = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskDemand:
    """What tasks ask for: their number, the sum, and the largest value per type over all of them.

    `by_pods`: they are alike enough to count how many of them fit; else amounts are compared, which says less. `kinds`:
    tasks that differ fit too, though fewer of the largest do, where there is room for each of these, and for the sum.
    """

    count: int
    requested: Amounts
    largest: Amounts = dataclasses.field(default_factory=dict)
    by_pods: bool = True
    kinds: tuple[TaskKind, ...] = ()

    @classmethod
    def of(cls, tasks: Sequence[Amounts], *, apart: bool = False) -> "TaskDemand":
        """Of all of these. `apart`: they may come on different nodes as they are, and not only as the largest one."""
        kinds = sorted({kind for task in tasks for kind, amount in task.items() if amount > 0})
        columns = {kind: [max(0, task.get(kind, 0)) for task in tasks] for kind in kinds}
        return cls(
            count=len(tasks),
            requested={kind: sum(column) for kind, column in columns.items()},
            largest={kind: max(column) for kind, column in columns.items()},
            by_pods=all(all(column) for kind, column in columns.items() if kind not in _PLAIN),
            kinds=_kinds(tasks, kinds, apart=apart),
        )


def _kinds(tasks: Sequence[Amounts], types: Sequence[str], *, apart: bool) -> tuple[TaskKind, ...]:
    """Of different tasks each with the number of those that are as large; else all of them together on one node."""
    counts = collections.Counter(tuple(max(0, task.get(one, 0)) for one in types) for task in tasks)
    if len(counts) <= 1:
        return ()
    if not apart:
        sums = [sum(sizes[place] * number for sizes, number in counts.items()) for place in range(len(types))]
        return (TaskKind(amounts=tuple(zip(types, sums, strict=True)), times=1, pods=len(tasks)),)
    found = [TaskKind(amounts=(), times=len(tasks))]
    for sizes in sorted(counts, reverse=True)[:MOST_KINDS]:
        larger = (number for other, number in counts.items() if all(map(operator.ge, other, sizes)))
        found.append(TaskKind(amounts=tuple(zip(types, sizes, strict=True)), times=sum(larger)))
    return tuple(found)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DomainRoom:
    """What is free in each of so many domains, and how many tasks they take where that is counted.

    `kinds` is how often each of the kinds of different tasks would fit.
    """

    number: int
    free: Mapping[str, Whole]
    pods: Whole | None = None
    kinds: tuple[Whole, ...] = ()

    def of(self, places: Sequence[int]) -> "DomainRoom":
        """The same of some of them, in this order."""
        pods = None if self.pods is None else self.pods[places]
        return DomainRoom(number=len(places), free={kind: free[places] for kind, free in self.free.items()}, pods=pods)

    def ratios(self, requested: Amounts) -> Ratios:
        """The largest part of what is free that is requested of any type; what fits is not above 1."""
        ratios: Ratios = np.zeros(self.number)
        for kind, amount in requested.items():
            if amount > 0:
                free = self.free[kind]
                ratios = np.maximum(ratios, np.where(free > 0, amount / np.maximum(free, 1), NOTHING_FREE))
        return ratios

    def fits(self, demand: TaskDemand) -> Mask:
        """Which of them have room for all tasks."""
        if self.pods is not None and not self.kinds:
            return self.pods >= demand.count
        fits: Mask = self.ratios(demand.requested) <= 1
        if self.pods is not None:
            each = (there >= kind.times for there, kind in zip(self.kinds, demand.kinds, strict=True))
            fits = functools.reduce(operator.and_, each, fits) | (self.pods >= demand.count)
        return fits


def copies(
    amounts: Iterable[tuple[str, int]], most: int, free: Callable[[str], Whole], free_pods: Whole | None, rows: int
) -> Whole:
    """How many copies of such a task each of so many nodes takes; `most` where it asks for nothing."""
    parts = [np.maximum(free(kind), 0) // amount for kind, amount in amounts if amount > 0]
    found: Whole = np.min(parts, axis=0) if parts else np.full(rows, most, np.int64)
    return found if free_pods is None else np.minimum(found, np.maximum(free_pods, 0))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DomainScope:
    """Where candidates are looked for: on the relevant levels, finest first, and inside `held` where that is set."""

    topology: Topology
    levels: tuple[str, ...]
    held: frozenset[Domain] | None = None

    @property
    def top(self) -> int:
        """The depth of the coarsest level."""
        return self.topology.depth(self.levels[-1])

    def covers(self, domain: Domain) -> bool:
        """Whether tasks may be tried there."""
        relevant = self.topology.level(domain) in self.levels
        return relevant and (self.held is None or domain[: self.top] in self.held)


def binding(
    topology: Topology,
    constraint: TopologyConstraint,
    nodes: Iterable[tuple[Domain, Collection[str]]],
    active: Collection[str],
) -> frozenset[Domain] | None:
    """The required domains that hold an active node: what runs already has settled where the rest goes.

    None where nothing runs, or no level is required: then no domain is fixed.
    """
    if not (active and constraint.required):
        return None
    wanted, depth = frozenset(active), topology.depth(constraint.required)
    holding = (domain for domain, names in nodes if len(domain) >= depth and not wanted.isdisjoint(names))
    return frozenset(domain[:depth] for domain in holding)


def candidates(scope: DomainScope, domains: Sequence[Domain], fits: Sequence[bool]) -> tuple[Domain, ...]:
    """The domains that take the tasks, those of the finest level first."""
    found = (domain for domain, fit in zip(domains, fits, strict=True) if fit and scope.covers(domain))
    return tuple(sorted(found, key=lambda domain: (-len(domain), domain)))


def shortages(scope: DomainScope, domains: Sequence[Domain], room: DomainRoom, demand: TaskDemand) -> tuple[str, ...]:
    """What each domain of the coarsest relevant level is short of."""
    top = sorted((domain, place) for place, domain in enumerate(domains) if len(domain) == scope.top)
    return tuple(line for domain, place in top if scope.covers(domain) for line in _short(domain, place, room, demand))


def _short(domain: Domain, place: int, room: DomainRoom, demand: TaskDemand) -> Iterator[str]:
    if room.pods is not None:
        able = int(room.pods[place])
        yield f"node-group {spelled(domain)} can allocate only {able} of {demand.count} required pods"
        return
    kinds = [*_WORDS, *sorted(demand.requested.keys() - _WORDS.keys())]
    for kind in kinds:
        if kind in demand.requested and demand.requested[kind] > room.free[kind][place]:
            yield f"node-group(s) didn't have enough resources: {_WORDS.get(kind, kind)}"
