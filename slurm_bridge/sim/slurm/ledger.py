"""The free resources of every node: taken when a job starts, returned when it ends.

GPUs that Slurm loses count of (`hidden` shares on nodes with typed GPUs) are not returned: only `recount`, which is
what a reconfiguration does, finds them again.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Self

from slurm_bridge.sim.slurm import state

GresKey = tuple[str, str]


@dataclasses.dataclass(slots=True, kw_only=True)
class Free:
    """The free resources of one node. `cores` has a bit for every core that is taken."""

    cpus: int
    memory_mib: int
    gres: dict[GresKey, int]
    lost: dict[GresKey, int] = dataclasses.field(default_factory=dict)
    #: The free indices of each kind, the lowest first; none where the node gives no indices.
    indices: dict[GresKey, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    cores: int = 0
    jobs: int = 0

    def copy(self) -> Self:
        """A copy, to try something on."""
        return dataclasses.replace(self, gres=dict(self.gres), indices=dict(self.indices))

    def count(self, wanted: state.Gres) -> int:
        """The free devices of this name and type; no type means any."""
        return sum(
            left
            for (name, kind), left in self.gres.items()
            if name == wanted.name and (not wanted.type or kind == wanted.type)
        )


def everything(node: state.Node) -> Free:
    """A node without jobs."""
    gres: dict[GresKey, int] = {}
    for pool in node.gres:
        gres[pool.name, pool.type] = gres.get((pool.name, pool.type), 0) + pool.count
    return Free(cpus=node.cpus, memory_mib=node.memory_mib, gres=gres, indices=indices(node))


def indices(node: state.Node) -> dict[GresKey, tuple[int, ...]]:
    """Of all devices of one name together, whatever their types are."""
    found: dict[GresKey, tuple[int, ...]] = {}
    next_of: dict[str, int] = {}
    for pool in node.gres if node.indexed else ():
        first = next_of.get(pool.name, 0)
        next_of[pool.name] = first + pool.count
        found[pool.name, pool.type] = (*found.get((pool.name, pool.type), ()), *range(first, first + pool.count))
    return found


class FreeResources:
    """The free resources of all nodes."""

    def __init__(self, nodes: Iterable[state.Node]) -> None:
        self._free = {node.name: everything(node) for node in nodes}

    def __getitem__(self, node: str) -> Free:
        return self._free[node]

    def copy(self) -> "FreeResources":
        """An independent copy, for looking ahead."""
        other = FreeResources(())
        other._free = {name: free.copy() for name, free in self._free.items()}
        return other

    def add(self, node: state.Node) -> None:
        """Add a node without jobs."""
        self._free[node.name] = everything(node)

    def remove(self, name: str) -> None:
        """Remove a node."""
        self._free.pop(name, None)

    def take(self, grant: state.Grant) -> None:
        """A job starts."""
        for share in grant.shares:
            free = self._free[share.node]
            free.cpus -= share.cpus
            free.memory_mib -= share.memory_mib
            free.cores |= _bits(share.cores)
            free.jobs += 1
            for part in share.gres:
                free.gres[part.name, part.type] -= part.count
                _keep(free, part, lambda one, taken: one - taken)
                if share.hidden:
                    free.lost[part.name, part.type] = free.lost.get((part.name, part.type), 0) + part.count

    def give(self, shares: Sequence[state.Share]) -> None:
        """A job ends, or releases some nodes."""
        for share in shares:
            free = self._free.get(share.node)
            if free is None:
                continue  # the node was removed
            free.cpus += share.cpus
            free.memory_mib += share.memory_mib
            free.cores &= ~_bits(share.cores)
            free.jobs -= 1
            if not share.hidden:
                for part in share.gres:
                    free.gres[part.name, part.type] += part.count
                    _keep(free, part, lambda one, given: one | given)

    def recount(self, nodes: Mapping[str, state.Node], grants: Iterable[state.Grant]) -> None:
        """Count everything again from the running jobs: lost GPUs are found."""
        self._free = {name: everything(node) for name, node in nodes.items()}
        for grant in grants:
            self.take(grant)


def _keep(free: Free, part: state.Gres, left: Callable[[set[int], set[int]], set[int]]) -> None:
    if part.indices:
        key = (part.name, part.type)
        free.indices[key] = tuple(sorted(left(set(free.indices.get(key, ())), set(part.indices))))


def free_cores(taken: int) -> Iterator[int]:
    """The free cores, lowest first, without end."""
    core = 0
    while True:
        if not taken >> core & 1:
            yield core
        core += 1


def _bits(cores: Iterable[int]) -> int:
    return sum(1 << core for core in cores)
