"""Nodes on which tasks are placed to see whether they fit, and taken away again."""

import dataclasses
from collections.abc import Iterable, Mapping

from slurm_bridge.families.kai.stock import StockNode, StockNodes
from slurm_bridge.families.kai.topology import CPU, GPU, Amounts, Topology
from slurm_bridge.families.kai.tree import Tree
from tests.conformance.kai_arithmetic import scores
from tests.conformance.kai_arithmetic.scores import Has


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node before anything is placed."""

    name: str
    total: Amounts
    used: Amounts = dataclasses.field(default_factory=dict)
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """What one pod asks for; `only` are the nodes that it may use, where that is known."""

    name: str
    resources: Amounts
    selector: Mapping[str, str] = dataclasses.field(default_factory=dict)
    only: frozenset[str] | None = None

    @property
    def kind(self) -> str:
        """The type by which nodes are packed for it."""
        return GPU if self.resources.get(GPU, 0) > 0 else CPU

    def allows(self, machine: Machine) -> bool:
        """Whether it may use this node, if that has room."""
        labels = machine.labels.items()
        return (self.only is None or machine.name in self.only) and self.selector.items() <= labels


class Bench:
    """What is free on each node while tasks are tried. Each placement can be undone, the last one first."""

    def __init__(self, machines: Iterable[Machine], topologies: Iterable[Topology] = ()) -> None:
        self._machines = {machine.name: machine for machine in machines}
        self._free = {
            name: {kind: amount - one.used.get(kind, 0) for kind, amount in one.total.items()}
            for name, one in self._machines.items()
        }
        self._placed: list[tuple[TaskRequest, str]] = []
        self._stock = StockNodes.of(map(self._node, self._machines))
        self._moved: set[str] = set()
        self._trees = {topology.name: Tree.of(topology, self._stock) for topology in topologies}

    @property
    def names(self) -> frozenset[str]:
        """All nodes."""
        return self._stock.members.every

    @property
    def placement(self) -> Mapping[str, str]:
        """The node of each task that is placed."""
        return {task.name: node for task, node in self._placed}

    @property
    def mark(self) -> int:
        """How far it has come, to return to."""
        return len(self._placed)

    def free(self, name: str, kind: str) -> int:
        """What is left of this type."""
        return self._free[name].get(kind, 0)

    def trees(self) -> Mapping[str, Tree]:
        """The topologies with what is free now."""
        if self._moved:
            self._stock = self._stock.after(map(self._node, self._moved))
            self._moved = set()
            self._trees = {name: tree.after(self._stock) for name, tree in self._trees.items()}
        return self._trees

    def pack(self, kind: str, nodes: Iterable[str]) -> Mapping[str, float]:
        """How well each of these nodes is packed with one more task."""
        return scores.pack(
            {name: Has(total=self._machines[name].total.get(kind, 0), free=self.free(name, kind)) for name in nodes}
        )

    def seat(self, task: TaskRequest, nodes: Iterable[str], scores: Mapping[str, float]) -> bool:
        """Place it on the best node that takes it, of equal ones on the first by name; False when none does."""
        able = [name for name in nodes if task.allows(self._machines[name]) and self._has_room(task, name)]
        best = min(able, key=lambda name: (-scores.get(name, 0.0), name), default=None)
        if best is None:
            return False
        self._move(task, best, -1)
        self._placed.append((task, best))
        return True

    def undo(self, mark: int) -> None:
        """As it was when it had come so far."""
        while len(self._placed) > mark:
            task, name = self._placed.pop()
            self._move(task, name, 1)

    def _has_room(self, task: TaskRequest, name: str) -> bool:
        return all(amount <= self.free(name, kind) for kind, amount in task.resources.items() if amount > 0)

    def _move(self, task: TaskRequest, name: str, sign: int) -> None:
        free = self._free[name]
        for kind, amount in task.resources.items():
            free[kind] = free.get(kind, 0) + sign * amount
        self._moved.add(name)

    def _node(self, name: str) -> StockNode:
        return StockNode(name=name, labels=self._machines[name].labels, idle=dict(self._free[name]))
