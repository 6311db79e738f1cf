"""What hooks say of pods that make room for other workloads; the scheduler evicts them. Two kinds of hooks have a say.

By priority (`Preempts`): the scheduler asks for a workload that waits, the hook proposes pods that would have to leave.

    hook                                              scheduler
    supports, propose   which pods, which nodes  ◄─►  holds the nodes, writes them on the pods that wait, evicts

For queues (`Evicts`): the hook counts workloads and says by itself which of them have to leave.

    hook                                              scheduler
    recalls   which workloads leave, and for which ─► writes that on their pods, evicts these, ends the jobs of groups
    rooms     the workloads that room is made for  ─► writes that on their pods, before that
    gone, spared                                   ◄─ it keeps nothing any more; or it could not be evicted

What is written on pods is what a restart knows of an eviction: to queues it comes back with `Held`.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from slurm_bridge.cluster.parties import Party
from slurm_bridge.cluster.snapshot import Amounts, ClusterSnapshot
from slurm_bridge.hooks.base import Ask, Nodes
from slurm_bridge.model.budget import PodDisruptionBudget
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod

# -- by priority ------------------------------------------------------------------------------------------------------


def nominated(pods: Iterable[Pod]) -> Nodes:
    """The nodes that are being cleared for some of these pods, as the pods themselves say."""
    return frozenset(pod.status.nominated_node_name for pod in pods if pod.status.nominated_node_name)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A node that could be cleared: the parties that may be evicted from it, and what it `has` for them in all.

    A pod that is in none of the parties stays in any case, and what it takes is not part of what the node `has`.
    `needs_of` is what a pod takes of this node, one of the workload or of a party: rounding and the like differ.
    """

    node: str
    has: Amounts
    parties: tuple[Party, ...]
    needs_of: Callable[[Pod], Amounts]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A node for each pod (by uid), and the pods that have to leave for that; without victims there is room already."""

    places: Mapping[str, str]
    victims: tuple[Pod, ...]

    @property
    def nodes(self) -> Nodes:
        """The different ones."""
        return frozenset(self.places.values())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What all hooks say of a workload in some state of the cluster; one of `sets` has to be enough for it."""

    request: JobRequest
    nodes: Nodes
    sets: tuple[Nodes, ...]
    budgets: tuple[PodDisruptionBudget, ...]


class Situation(Protocol):
    """What the scheduler knows, for one workload that asks for room; valid during one call of `propose`."""

    @property
    def snapshot(self) -> ClusterSnapshot: ...

    @property
    def submitted(self) -> bool:
        """The workload has a job, which waits in Slurm; without one the hooks leave it no node."""

    @property
    def avoided(self) -> Nodes:
        """Nodes that the workload keeps away from, and nodes that are held for any workload."""

    def answers(self, snapshot: ClusterSnapshot) -> Answers | None:
        """All hooks asked as if the cluster were like this; None where one is against the workload altogether."""

    def evictable(self) -> Mapping[str, Sequence[Pod]]:
        """By node, the running pods of this bridge with a lower priority, those on their way out among them."""

    def on_node(self, node: str) -> Iterable[Pod]:
        """All pods of this bridge that are on a node."""

    def sites(self, request: JobRequest, nodes: Iterable[str]) -> Sequence[Site]:
        """Those of these nodes on which the job could start, in their order."""


class QueueSituation(Situation, Protocol):
    """The same for a workload that waits in a queue of a hook; valid while the hook decides what is to leave for it."""

    @property
    def ask(self) -> Ask:
        """What the workload asks for."""

    def placed(self, workload: WorkloadKey) -> Sequence[Pod]:
        """The pods of a workload that have nodes."""


@runtime_checkable
class Preempts(Protocol):
    """A hook that says which pods leave for a workload of a higher priority; called by one thread at a time."""

    @property
    def after_seconds(self) -> float:
        """A workload waits for so long before it is asked about; after each try without success for longer."""

    @property
    def at_once(self) -> int:
        """So many preemptions are under way at the same time."""

    @property
    def keep_seconds(self) -> float:
        """Nodes are held for the workload for at most so long."""

    def supports(self, ask: Ask) -> bool:
        """Whether it can propose anything for such a workload."""

    def propose(self, ask: Ask, situation: Situation) -> Proposal | None:
        """Where its pods would go, and which pods would have to leave; None where there is nothing to gain.

        Raises background.NotAnswered of a service whose word counts.
        """

    def count(self, what: str, amount: int = 1) -> None:
        """Something happened to a preemption."""


# -- for queues -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """This workload is to leave. `asker` is the key of the one that it makes room for, "" for none.

    `cause` is what users are told: the name of the asker, or what the queue of the workload is over.
    """

    victim: WorkloadKey
    asker: WorkloadKey
    cause: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Clearance:
    """For a workload that waits: the names of those that make room for it by their keys, gone ones among them."""

    where: str
    victims: Mapping[WorkloadKey, str]


@runtime_checkable
class Evicts(Protocol):
    """A hook that says which workloads have to leave; called by any thread."""

    #: A victim that the API server does not let go stays after so many seconds.
    evict_seconds: float

    def recalls(self) -> Mapping[WorkloadKey, Recall]:
        """The workloads that are to leave, by key; each until it has gone, or is spared."""

    def recalled(self, workload: WorkloadKey) -> Recall | None:
        """The same of one workload."""

    def rooms(self) -> Mapping[WorkloadKey, Clearance]:
        """The workloads that room is made for, by key; each until it has a job, or waits no longer."""

    def gone(self, workload: WorkloadKey) -> None:
        """The victim keeps nothing any more."""

    def spared(self, workload: WorkloadKey, *, refused: bool) -> None:
        """It cannot be evicted just now, or need not be."""

    def count(self, what: str, amount: int = 1) -> None:
        """Something happened to an eviction."""
