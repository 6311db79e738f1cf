"""What a hook that counts workloads says of those who are to make room for others; the scheduler has them leave.

    hook                                              scheduler
    recalls   who is to go, and for whom        ─►    writes that on their pods, evicts these, ends the jobs of groups
    rooms     for whom others go or have gone   ─►    writes that on the pods of whoever waits, before that
    gone, spared                                ◄─    it keeps nothing any more; or it could not be evicted

What is written on pods is what a restart knows of it: it comes back with `Held`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from slurm_bridge.cluster.parties import Party
from slurm_bridge.cluster.snapshot import Amounts
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """This workload is to go. `asker` is the key of the one it makes room for, "" for none; `whom` is for people."""

    victim: WorkloadKey
    asker: WorkloadKey
    whom: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """For a workload that waits: the names of those that make room for it by their keys, gone ones among them."""

    where: str
    victims: Mapping[WorkloadKey, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A node that could be cleared: what it has for those of whom we may dispose, and who of them is there.

    Who is not among the parties stays in any case, and what he takes is not part of what it `has`.
    """

    node: str
    has: Amounts
    parties: tuple[Party, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A node for each pod (by uid); without victims there is room already."""

    places: Mapping[str, str]
    victims: tuple[Pod, ...]

    @property
    def nodes(self) -> frozenset[str]:
        """The different ones."""
        return frozenset(self.places.values())


@runtime_checkable
class Evicts(Protocol):
    """A hook with a say in who has to go; called by any thread."""

    #: A victim that the API server does not let go stays after so many seconds.
    evict_seconds: float

    def recalls(self) -> Mapping[WorkloadKey, Recall]:
        """Who is to go, by key; until it has gone, or is spared."""

    def recalled(self, workload: WorkloadKey) -> Recall | None:
        """The same of one workload."""

    def rooms(self) -> Mapping[WorkloadKey, Room]:
        """For whom, by key; until it has a job, or waits no longer."""

    def gone(self, workload: WorkloadKey) -> None:
        """The victim keeps nothing any more."""

    def spared(self, workload: WorkloadKey, *, refused: bool) -> None:
        """It cannot be evicted just now, or need not be."""

    def count(self, what: str, amount: int = 1) -> None:
        """Something happened to an eviction."""
