"""Topologies, what a workload asks of them, and which of their levels and domains that concerns."""

import dataclasses
from collections.abc import Iterable, Mapping

#: Amounts by type: counted in whole units, processors in thousandths and memory in bytes.
Amounts = Mapping[str, int]

#: Label values from the top level down; () is the root, the whole cluster.
Domain = tuple[str, ...]

CPU = "cpu_milli"
MEMORY = "memory"
GPU = "gpu"

#: What stands above all levels.
ROOT = "root"

#: The subgroup of a workload that has none.
WHOLE = "default"


class InvalidConstraint(ValueError):
    """A workload asks for a level that its topology does not have, or for none; the message is for operators."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Levels are names of node labels, from the top (coarse) to the bottom (fine)."""

    name: str
    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.levels or len({ROOT, *self.levels}) <= len(self.levels):
            said = ", ".join(self.levels) or "none"
            raise ValueError(f"topology {self.name}: levels {said}: at least one, none of them twice or called {ROOT}")

    def domain(self, labels: Mapping[str, str]) -> Domain | None:
        """Where a node with these labels is; None when it lacks a level, and so is nowhere in this topology."""
        found = tuple(labels[level] for level in self.levels if level in labels)
        return found if len(found) == len(self.levels) else None

    def depth(self, level: str) -> int:
        """How many values name a domain of this level; 0 for the root. ValueError for an unknown level."""
        return 0 if level == ROOT else self.levels.index(level) + 1

    def level(self, domain: Domain) -> str:
        """The level that a domain is of."""
        return self.levels[len(domain) - 1] if domain else ROOT

    def above(self, depth: int) -> tuple[str, ...]:
        """The levels down to this depth, the root first."""
        return (ROOT, *self.levels[:depth])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TopologyConstraint:
    """One domain of the `required` level takes all tasks; one of the `preferred` level, where that can be had."""

    topology: str | None = None
    required: str | None = None
    preferred: str | None = None

    @property
    def finest(self) -> str | None:
        """The level below which nothing is told apart: the preferred one is never above the required one."""
        return self.preferred or self.required


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskOwner:
    """Whose tasks they are, for messages."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"<{self.namespace}/{self.name}>"


def relevant_levels(topology: Topology, constraint: TopologyConstraint, subgroup: str) -> tuple[str, ...]:
    """The levels in whose domains the tasks are tried, finest first; InvalidConstraint where there are none."""
    required, preferred, levels = constraint.required, constraint.preferred, topology.levels
    if not (required or preferred):
        raise InvalidConstraint(
            f"no topology constraints were found for subgroup {subgroup}, with topology name {topology.name}"
        )
    if required and required not in levels:
        raise _missing(topology, subgroup, required, "required")
    top = topology.depth(required) if required else 0
    if preferred and (preferred not in levels or topology.depth(preferred) < top):
        raise _missing(topology, subgroup, preferred, "preferred")
    bottom = topology.depth(preferred) if preferred else top
    return tuple(((ROOT, *levels)[top : bottom + 1])[::-1])


def lowest_common_domain(topology: Topology, domains: Iterable[Domain], constraint: TopologyConstraint) -> Domain:
    """The smallest domain around all of these, though none below the finest level that is asked for."""
    every = tuple(domains)
    if not every:
        return ()
    # Whatever the first and the last in order share, all between them share.
    first, last = min(every), max(every)
    finest = constraint.finest
    deepest = topology.depth(finest) if finest in topology.levels else len(topology.levels)
    shared = 0
    while shared < deepest and first[shared] == last[shared]:
        shared += 1
    return first[:shared]


def spelled(domain: Domain) -> str:
    """As messages have it: `zone1.rack1`. Two domains may be spelled alike; nothing is looked up by it."""
    return ".".join(domain) or ROOT


def _missing(topology: Topology, subgroup: str, level: str, kind: str) -> InvalidConstraint:
    who = "workload" if subgroup == WHOLE else f"sub-group {subgroup}"
    return InvalidConstraint(
        f"topology constraint error: {who} specified '{level}' as the {kind} topology constraint level, but the"
        f" topology tree '{topology.name}' does not contain a level with this name"
    )
