"""What every step of the scheduler works with: both sides, time, what is known, and what is configured."""

import dataclasses
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from slurm_bridge import ports
from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.snapshot import NodeFacts
from slurm_bridge.hooks import chain
from slurm_bridge.mirror.breaker import Breaker
from slurm_bridge.mirror.jobs import Mirror
from slurm_bridge.mirror.served import Serves, everywhere
from slurm_bridge.mirror.table import Table
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Obstacle
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.runtime import backoff, hands
from slurm_bridge.scheduler.avoid import Avoided, Holds
from slurm_bridge.scheduler.device_writes import DeviceWrites
from slurm_bridge.scheduler.eviction.hold_table import HoldTable
from slurm_bridge.scheduler.guard import Guard
from slurm_bridge.scheduler.ids import IdRange
from slurm_bridge.scheduler.joint_cancels import JointCancels
from slurm_bridge.scheduler.keyed_waiters import KeyedWaiters
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.queue import Filed
from slurm_bridge.scheduler.state import Bad, Scans, ToldReason, WorkloadStore
from slurm_bridge.scheduler.workload_pods import PickedPods, PodState, WorkloadPods
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.templates import TranslationCache
from slurm_bridge.workloads.base import Moved


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What follows when a time limit ended a pod, by the kind of its controller ("" for bare pods)."""

    hold_after_timeout: frozenset[str] = frozenset()
    stuck_seconds: float = 600.0
    settle_seconds: float = 10.0
    breaker: Breaker = dataclasses.field(default_factory=Breaker)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The part of the configuration that can change while the program runs, swapped as a whole."""

    rules: Rules
    chain: chain.Chain
    ends: Ends = Ends()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much at once, how often, and which job ids; fixed for the life of the process."""

    ids: IdRange | None = None
    window: int = 4000
    bind_tries: int = 5
    backoff_first: float = 1.0
    backoff_most: float = 300.0
    lookup_gap: float = 15.0
    attempt_period: float = 5.0
    #: Of gangs: how long more members are waited for, how long a job is kept while some are missing, and how long a
    #: start may take.
    settle_seconds: float = 1.0
    incomplete_seconds: float = 30.0
    bind_seconds: float = 300.0
    #: How long an allocation is kept while claims of its pods are bound.
    volume_seconds: float = 300.0


class Crowd(Protocol):
    """Members that wait, whenever they are asked for."""

    def __len__(self) -> int: ...

    def all(self) -> Sequence[Pod]: ...


@dataclasses.dataclass(frozen=True, slots=True)
class LookedAtMembers:
    """The members of one workload, as they were when it was looked at."""

    pods: tuple[Pod, ...]

    def __len__(self) -> int:
        return len(self.pods)

    def all(self) -> Sequence[Pod]:
        """Those of them that had no node."""
        return tuple(pod for pod in self.pods if not pod.bound)


class StatusReporter(Protocol):
    """Writes conditions and events. A write may come late; one that is dropped is counted; no call blocks."""

    def waiting(self, pod: Pod, reason: str, message: str, *, key: str = "") -> None: ...

    def waiting_together(self, root: Root, crowd: Crowd, reason: str, message: str, *, key: str = "") -> None: ...

    def event(self, pod: Pod, reason: str, message: str, *, warning: bool = False) -> None: ...

    def group(self, workload: Workload, reason: str, message: str, *, warning: bool = False) -> None: ...

    def scheduled(self, workload: Workload) -> None: ...

    def disrupt(self, pod: Pod, reason: str, message: str) -> None: ...

    def forget(self, uid: str) -> None: ...


class Counters(Protocol):
    """What is counted."""

    def looked(self, seconds: float) -> None: ...

    def attempt(self, result: str) -> None: ...

    def surprise(self, where: str) -> None: ...

    def bound(self, pod: Pod, by: Placeholder) -> None: ...

    def ended(self, reason: str) -> None: ...

    def resized(self) -> None: ...


class Gather(Protocol):
    """The workload of those members of a crew that are in these states. None: no member is.

    `one`: a workload of any one of them, for what holds for all alike.
    """

    def __call__(
        self, members: WorkloadPods, /, *stands: PodState, one: bool = False
    ) -> Workload | Obstacle | Moved | None: ...


@dataclasses.dataclass(slots=True, kw_only=True)
class SchedulerContext:
    """One of each. `config` is replaced as a whole when the configuration is read again."""

    cluster: ports.Cluster
    slurm: ports.Slurm
    clock: ports.Clock
    table: Table
    mirror: Mirror
    keeper: cluster_cache.ClusterCache
    pod_index: PodIndex
    status: StatusReporter
    counters: Counters
    gather: Gather
    config: Config
    limits: Limits
    #: What is known of each workload beside its pods and its placeholders.
    states: WorkloadStore
    avoided: Avoided
    held: Holds
    #: Workloads of other namespaces are another daemon's.
    serves: Serves = everywhere
    #: How many calls for one workload are made: several at once, or one after the other.
    each: hands.Each = hands.in_turn
    #: Workloads that wait for other pods to leave nodes.
    node_waiters: KeyedWaiters = dataclasses.field(default_factory=KeyedWaiters)
    #: Workloads that wait for claims to be bound, by namespace and name of the claim; ResourceClaims behind their kind.
    claim_waiters: KeyedWaiters = dataclasses.field(default_factory=KeyedWaiters)
    #: Devices that claims are about to get.
    device_writes: DeviceWrites = dataclasses.field(default_factory=DeviceWrites)
    #: One at a time: of two allocations that are placed at the same moment the second has to see the first.
    placing: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    scans: Scans = dataclasses.field(default_factory=Scans)
    translations: TranslationCache = dataclasses.field(default_factory=TranslationCache)
    #: Slurm's nodes and partitions are read again when this time has come.
    facts_due: float = 0.0
    #: When they were read last.
    facts_at: float = float("-inf")
    #: Nodes that are held for some workload.
    promised: HoldTable = dataclasses.field(init=False)
    #: Around every loop over workloads.
    guard: Guard = dataclasses.field(init=False)
    cancels: JointCancels = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.promised = HoldTable(self.states)
        self.guard = Guard(self.clock, self.counters)
        self.cancels = JointCancels(self.slurm, self.clock, chosen_ids=self.limits.ids is not None)

    def refresh_facts(self) -> None:
        """What we know of Slurm's nodes has shown itself out of date."""
        self.facts_due = 0.0

    def may_have_job(self, key: WorkloadKey) -> bool:
        """Slurm has a living job for this workload, or may have one."""
        return self.table.lives(key) or self.unanswered(key)

    def unanswered(self, key: WorkloadKey) -> bool:
        """A submit for this workload was not answered: Slurm may have a job that no table knows."""
        state = self.states.get(key)
        return state is not None and state.search is not None

    def settle(self, key: WorkloadKey) -> None:
        """Drop what is known of a workload of which no pod waits any more."""
        self.states.settle(key)
        for hook in self.config.chain.hooks:
            hook.forget(key)

    def ended(self, key: WorkloadKey) -> None:
        """The workload keeps nothing on either side: it is over, or may not have a job now."""
        for hook in self.config.chain.hooks:
            hook.ended(key)

    def say(self, workload: Workload, reason: str, message: str, *, key: str = "", parked: bool = False) -> None:
        """Every member learns why it waits; `parked`: until a user or an administrator changes something."""
        self.states.of(workload.root.key).told = ToldReason(reason, parked)
        if workload.gang is None:
            self.status.waiting(workload.lead, reason, message, key=key)
        else:
            self.status.waiting_together(
                workload.root, LookedAtMembers(workload.pods), reason, message, key=key or message
            )

    def say_to_members(
        self, members: WorkloadPods, reason: str, message: str, *, key: str = "", parked: bool = False
    ) -> None:
        """The same for pods whose workload is not known."""
        self.states.of(members.root.key).told = ToldReason(reason, parked)
        waiting = PickedPods(members, PodState.WANTING)
        self.status.waiting_together(members.root, waiting, reason, message, key=key)

    def back_off(self, key: WorkloadKey) -> Filed:
        """Look at this workload again later, and later each time in a row that something goes wrong with it."""
        return Filed(after=self.pause(key))

    def pause(self, key: WorkloadKey) -> float:
        """How long to wait after something went wrong with this workload: longer each time in a row."""
        tries = self.avoided.stumble(key)
        return backoff.pause(tries, first=self.limits.backoff_first, most=self.limits.backoff_most)

    def still_ours(self, placeholder: Placeholder) -> Placeholder | None:
        """Before an order: is the id still that job's? Ids that Slurm counts come back for others after a crash."""
        if self.limits.ids is not None:
            return placeholder
        return self.mirror.look(placeholder.job_id, placeholder.owner, tell=False)

    def avoid(self, workload: Workload) -> Mapping[str, str]:
        """Nodes that this workload, or a sibling of it, had bad luck with, or that are cleared for another."""
        return {**self.shunned(workload), **self.cleared(workload)}

    def shunned(self, workload: Workload) -> Mapping[str, str]:
        """Nodes that this workload, or a sibling of it, had bad luck with."""
        return {node: bad.why for node, bad in self._bad(workload).items()}

    def shunned_for(self, workload: Workload) -> float | None:
        """After how many seconds the first of these nodes is good again, whatever is seen of it; None without any."""
        ends = [bad.until for bad in self._bad(workload).values() if bad.until < math.inf]
        return min(ends) - self.clock.now() if ends else None

    def node(self, name: str) -> NodeFacts | None:
        """A node as it is now, by its name in Kubernetes or in Slurm."""
        snapshot = self.keeper.snapshot()
        return snapshot.nodes.get(name) or snapshot.by_slurm_name(name)

    def _bad(self, workload: Workload) -> Mapping[str, Bad]:
        keys = [workload.root.key, workload.root.object_key]
        keys += [workload.controller.key] if workload.controller else []
        return self.avoided.nodes(tuple(dict.fromkeys(keys)), self.clock.now(), self.node)

    def cleared(self, workload: Workload) -> Mapping[str, str]:
        """Nodes that are cleared for another one."""
        return self.promised.away(workload.root.key, workload.priority)
