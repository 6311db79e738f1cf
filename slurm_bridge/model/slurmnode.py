"""Slurm's nodes and partitions, as far as the bridge asks for them."""

import dataclasses
import enum
from collections.abc import Mapping

from slurm_bridge.model.job import Gres


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """One node as Slurm knows it. `used` is what all jobs had of it when it was read.

    `native`: jobs of Slurm itself run there, by a slurmd; `slurmd` is the version of the one that has registered.
    `topology` is what it was made with, such as `racks:rack4`; of nodes in configuration files Slurm does not tell it.
    """

    name: str
    states: frozenset[str]
    cpus: int
    memory_mib: int
    gres: tuple[Gres, ...] = ()
    features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    threads_per_core: int = 1
    reason: str = ""
    used_cpus: int = 0
    used_memory_mib: int = 0
    used_gres: tuple[Gres, ...] = ()
    topology: str = ""
    comment: str = ""
    native: bool = False
    slurmd: str = ""

    @property
    def external(self) -> bool:
        """No slurmd runs there: Slurm allocates, and the kubelet runs pods."""
        return "EXTERNAL" in self.states

    @property
    def poisoned(self) -> bool:
        """An external node can answer nothing, so Slurm gives it no more jobs until an administrator reconfigures."""
        return self.external and "NOT_RESPONDING" in self.states

    @property
    def dynamic(self) -> bool:
        """A client added it: it is in no configuration file, and comes back after no deletion."""
        return "DYNAMIC_NORM" in self.states

    @property
    def draining(self) -> bool:
        """It takes no new jobs, because it was drained."""
        return "DRAIN" in self.states

    @property
    def out_of_service(self) -> bool:
        """It takes no new jobs, whatever the cause."""
        return not self.states.isdisjoint(_OUT)

    @property
    def vacant(self) -> bool:
        """No job is on it."""
        return not self.used_cpus and self.states.isdisjoint(_BUSY)


#: State words of nodes that take no new jobs, and of nodes that have some.
_OUT = frozenset({"DRAIN", "DOWN", "FAIL"})
_BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeListing:
    """All nodes at one moment. `stamp` is that moment by Slurm's clock.

    `unreadable` are the names of nodes that exist and cannot be read; one that does not even tell its name ("") may be
    any.
    """

    nodes: tuple[SlurmNode, ...]
    stamp: int
    unreadable: frozenset[str] = frozenset()


class NodeOrder(enum.Enum):
    """What Slurm is told to do with a node: no new jobs, or jobs again."""

    DRAIN = "DRAIN"
    UNDRAIN = "UNDRAIN"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """What changes of nodes; None leaves a value as it is."""

    order: NodeOrder | None = None
    reason: str | None = None
    comment: str | None = None
    features: tuple[str, ...] | None = None
    topology: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """What an external node is made with. `partitions` are the features by which partitions take it in."""

    cores: int
    memory_mib: int
    threads_per_core: int = 1
    gres: tuple[Gres, ...] = ()
    partitions: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NewNodes:
    """External nodes that differ in name and address alone. `addresses` has one for each name."""

    addresses: Mapping[str, str]
    shape: NodeShape
    features: tuple[str, ...] = ()
    topology: str = ""
    reason: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition. Limits are minutes; None is no limit (or none set).

    `default` and `root_only` are only told from v0.0.45 on. The operator's token is let into a partition that is
    `root_only`, where no other user is.
    """

    name: str
    states: frozenset[str]
    nodes: tuple[str, ...]
    default_minutes: int | None = None
    maximum_minutes: int | None = None
    preempt_grace_seconds: int = 0
    exclusive: bool = False
    default: bool = False
    minimum_nodes: int = 0
    root_only: bool = False
    node_sets: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """What slurmrestd says of its controllers. It may be wrong: readiness follows the last good read instead."""

    responding: bool
    version: str = ""
    problem: str = ""
