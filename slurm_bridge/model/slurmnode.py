"""Slurm's nodes and partitions, as far as the bridge asks for them."""

import dataclasses

from slurm_bridge.model.job import Gres


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """One node as Slurm knows it. `used` is what all jobs had of it when it was read.

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

    @property
    def external(self) -> bool:
        """No slurmd runs there: Slurm allocates, and the kubelet runs pods."""
        return "EXTERNAL" in self.states

    @property
    def poisoned(self) -> bool:
        """An external node can answer nothing, so Slurm gives it no more jobs until an administrator reconfigures."""
        return self.external and "NOT_RESPONDING" in self.states


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """What slurmrestd says of its controllers. It may be wrong: readiness follows the last good read instead."""

    responding: bool
    version: str = ""
    problem: str = ""
