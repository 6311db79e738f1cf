"""Whole workloads on node sets: one set after the other, completely or not at all.

place(group, nodes)    for each of its sets: its subgroups, each on this set only, then its own tasks
                       one that finds no place: all of this set is undone, and the next one is tried
"""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from slurm_bridge.families.kai import nodesets
from slurm_bridge.families.kai.nodesets import Found, NodeSetQuestion
from slurm_bridge.families.kai.topology import WHOLE, Amounts, InvalidConstraint, TaskOwner, TopologyConstraint
from tests.conformance.kai_arithmetic.bench import Bench, TaskRequest


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskGroup:
    """Tasks that belong together, or groups of them, in the order in which they are placed."""

    name: str = WHOLE
    constraint: TopologyConstraint | None = None
    tasks: tuple[TaskRequest, ...] = ()
    groups: tuple["TaskGroup", ...] = ()

    def every(self) -> Iterator[TaskRequest]:
        """Its own tasks, and those of all groups within."""
        yield from self.tasks
        for one in self.groups:
            yield from one.every()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """How many sets were tried, and which of them took everything (from 0); None when none did."""

    tried: int
    committed: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GroupAllocation:
    """Where a workload went, or why it is pending; without a placement there is none of any task."""

    tried: int
    nodes: Collection[str] | None = None
    placement: Mapping[str, str] = dataclasses.field(default_factory=dict)
    errors: tuple[str, ...] = ()


def attempt(bench: Bench, sets: Sequence[Collection[str]], fill: Callable[[Collection[str]], bool]) -> Tried:
    """The first set that `fill` places everything on; nothing of the others is left behind, and no set is added."""
    for number, nodes in enumerate(sets):
        mark = bench.mark
        if fill(nodes):
            return Tried(tried=number + 1, committed=number)
        bench.undo(mark)
    return Tried(tried=len(sets))


def seat_all(bench: Bench, tasks: Sequence[TaskRequest], nodes: Collection[str]) -> bool:
    """Each task on the first node by name that takes it."""
    return all(bench.seat(task, nodes, {}) for task in tasks)


def allocate(bench: Bench, job: TaskOwner, group: TaskGroup) -> GroupAllocation:
    """Place a workload; what does not work out leaves the bench as it was."""
    allocation = _Allocation(bench, job)
    tried, nodes = allocation.place(group, bench.names, {})
    if nodes is None:
        return GroupAllocation(tried=tried, errors=tuple(allocation.errors))
    return GroupAllocation(tried=tried, nodes=nodes, placement=bench.placement)


class _Allocation:
    """One workload on one bench."""

    def __init__(self, bench: Bench, job: TaskOwner) -> None:
        self._bench = bench
        self._job = job
        #: In the order in which they came up, without repeats.
        self.errors: dict[str, None] = {}

    def place(
        self, group: TaskGroup, nodes: frozenset[str], above: Mapping[str, int]
    ) -> tuple[int, Collection[str] | None]:
        """How many sets were tried, and the one that took the group; `above` are the scores of the group around it."""
        try:
            found = self._sets(group, nodes)
        except InvalidConstraint as invalid:
            self.errors[str(invalid)] = None
            return 0, None
        self.errors |= dict.fromkeys(found.errors)
        preferred = group.constraint.preferred if group.constraint is not None else None
        scores = found.scores(preferred) if preferred else above
        sets = [one.nodes for one in found.sets]
        tried = attempt(self._bench, sets, lambda within: self._fill(group, frozenset(within), scores))
        return tried.tried, None if tried.committed is None else sets[tried.committed]

    def _sets(self, group: TaskGroup, nodes: frozenset[str]) -> Found:
        tasks: tuple[Amounts, ...] = tuple(task.resources for task in group.every())
        question = NodeSetQuestion(job=self._job, tasks=tasks, constraint=group.constraint, subgroup=group.name)
        return nodesets.node_sets(self._bench.trees(), question, nodes)

    def _fill(self, group: TaskGroup, nodes: frozenset[str], scores: Mapping[str, int]) -> bool:
        if any(self.place(one, nodes, scores)[1] is None for one in group.groups):
            return False
        return all(self._seat(task, nodes, scores) for task in group.tasks)

    def _seat(self, task: TaskRequest, nodes: frozenset[str], scores: Mapping[str, int]) -> bool:
        packed = self._bench.pack(task.kind, nodes)
        return self._bench.seat(task, nodes, {name: packed[name] + scores.get(name, 0) for name in nodes})
