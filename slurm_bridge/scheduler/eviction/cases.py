"""What the record of a workload says of evictions: its cases, for it and of itself, and the nodes held for it."""

import dataclasses
import enum

from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root

#: Why others keep away, after a number of nodes.
WHY = "node(s) were cleared for another pod"


class PreemptionStage(enum.Enum):
    """How far a preemption has come."""

    HOLDING = "others learn to keep away from the nodes"
    EVICTING = "the victims are being evicted"
    LEAVING = "the victims are on their way out"
    CLEARED = "the nodes are free for the workload they were cleared for"


@dataclasses.dataclass(slots=True, kw_only=True)
class PreemptionCase:
    """Pods leave for a workload of a higher priority, as a hook has proposed.

        HOLDING    the nodes are held; workloads whose jobs wait in Slurm learn to keep away from them
        EVICTING   the API server is asked to evict the victims, which lets budgets speak; a refusal is asked again
        LEAVING    the pods run to their end; a job ends with its pod, that of a group is ended when all are gone
        CLEARED    Slurm gives the nodes to any job that may have them: of ours only to the one they were cleared for

        proposal ──► HOLDING ──► EVICTING ──► LEAVING ──► CLEARED ──► over: it has nodes, or does not wait any more
                        │           │  ▲ newcomers │         │
        restart ────────┼───────────┼──┴───────────┼────► CLEARED
                        ▼           ▼              ▼         ▼
                     given up: the time is over, the right to evict is missing, it wants no job, or another one

    The nominated nodes are on its pods, so that a restart keeps them; which pods were evicted shows by their leaving.
    `intent`: what the workload asked for when the nodes were chosen; "" after a restart, which does not know it.
    """

    root: Root
    pods: tuple[Pod, ...]
    victims: dict[str, Pod]
    began: float
    intent: str = ""
    stage: PreemptionStage = PreemptionStage.HOLDING

    @property
    def name(self) -> str:
        """As users see it."""
        return f"{self.root.namespace}/{self.root.name}"


@dataclasses.dataclass(slots=True, kw_only=True)
class QueueEvictionCase:
    """A workload leaves because a hook that counts workloads says so: for another workload, or to keep a quota.

        marked     its pods say which workload they leave for
        waiting    others that leave for the same workload were refused: this one stays meanwhile
        evicting   the API server is asked to evict its pods; a refusal is asked again
        leaving    the pods run to their end; the job of a group is ended when all of them have gone
        gone       it has no job and no pod on a node any more: the hook hears of it

        recall ──► marked ──► evicting ──► leaving ──► gone
                    │   ▲         │ refused for too long, or the right to evict is missing
                    ▼   │         ▼
                   waiting ──► spared: it stays, and its pods do not say any more that they leave

    A workload that has not started is not evicted: the cycle gives its job back, and it waits in its queue again.
    `pods` are as they were before their eviction; `refused`: since when one of them is refused.
    """

    pods: dict[str, Pod] = dataclasses.field(default_factory=dict)
    refused: float | None = None
    announced: bool = False


@dataclasses.dataclass(slots=True, kw_only=True)
class EvictionsUnderWay:
    """Of one leadership; the next one reads it anew from the pods."""

    #: Pods leave for it, by its priority.
    preemption: PreemptionCase | None = None
    #: The victims that its users were told of; None: its pods do not say that workloads leave for it.
    noted: frozenset[WorkloadKey] | None = None
    #: It leaves, because its queue says so.
    eviction: QueueEvictionCase | None = None


@dataclasses.dataclass(slots=True, kw_only=True)
class EvictionState:
    """All that the controller knows of one workload; `number`: in the roll of those that it knows."""

    number: int
    under_way: EvictionsUnderWay = dataclasses.field(default_factory=EvictionsUnderWay)
    #: So often it has tried to preempt, and when it may try again.
    tries: int = 0
    not_before: float = float("-inf")
    #: One of its evictions was refused.
    was_refused: bool = False


@dataclasses.dataclass(slots=True, kw_only=True)
class NodeHold:
    """`nodes` are free for this workload only; a workload of a priority above `priority` ignores that.

    `by` names the part of the scheduler that has made the hold and ends it, `why` is what others are told.
    `others`: the workloads that were looked at, since then, so that Slurm knows that they keep away; `until` when the
    hold lasts at most.
    """

    workload: WorkloadKey
    priority: int
    nodes: frozenset[str]
    by: str
    why: str = WHY
    until: float = float("inf")
    since: float = 0.0
    others: tuple[WorkloadKey, ...] = ()
    #: In the order of all holds.
    number: int = -1
