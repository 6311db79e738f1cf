"""The cases of the eviction controller: one record for each workload that has pods evicted, or is evicted."""

import dataclasses
import enum
from collections.abc import Callable

from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root


class Stage(enum.Enum):
    """How far a preemption has come."""

    HOLDING = "others learn to keep away from the nodes"
    EVICTING = "the victims are being evicted"
    LEAVING = "the victims are on their way out"
    CLEARED = "the nodes are free for the workload they were cleared for"


@dataclasses.dataclass(slots=True, kw_only=True)
class Preemption:
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
    stage: Stage = Stage.HOLDING

    @property
    def name(self) -> str:
        """As users see it."""
        return f"{self.root.namespace}/{self.root.name}"


@dataclasses.dataclass(slots=True, kw_only=True)
class QueueEviction:
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
class EvictionState:
    """All that the controller knows of one workload. A leadership begins without what is marked (L)."""

    #: Pods leave for it, by its priority. (L)
    preemption: Preemption | None = None
    #: So often it has tried to preempt, and when it may try again.
    tries: int = 0
    not_before: float = float("-inf")
    #: The victims that its users were told of; None: its pods do not say that workloads leave for it. (L)
    noted: frozenset[WorkloadKey] | None = None
    #: It leaves, because its queue says so. (L)
    eviction: QueueEviction | None = None
    #: One of its evictions was refused.
    was_refused: bool = False


class EvictionStore:
    """The records by workload; written by one thread at a time."""

    def __init__(self) -> None:
        self._states: dict[WorkloadKey, EvictionState] = {}

    def get(self, key: WorkloadKey) -> EvictionState | None:
        """The record of this workload, None where nothing is known of it."""
        return self._states.get(key)

    def of(self, key: WorkloadKey) -> EvictionState:
        """To write in."""
        return self._states.setdefault(key, EvictionState())

    def preemptions(self) -> dict[WorkloadKey, Preemption]:
        """All that are under way."""
        found = tuple(self._states.items())
        return {key: state.preemption for key, state in found if state.preemption is not None}

    def evictions(self) -> dict[WorkloadKey, QueueEviction]:
        """All that are under way."""
        return {key: state.eviction for key, state in tuple(self._states.items()) if state.eviction is not None}

    def was_refused(self, key: WorkloadKey) -> bool:
        """One of the evictions of this workload was refused at some time."""
        state = self._states.get(key)
        return state is not None and state.was_refused

    def noted(self) -> tuple[WorkloadKey, ...]:
        """Workloads whose pods say that others leave for them."""
        return tuple(key for key, state in self._states.items() if state.noted is not None)

    def begin(self) -> None:
        """A leadership begins."""
        for state in self._states.values():
            state.preemption = state.noted = state.eviction = None

    def drop_ended(self, exists: Callable[[WorkloadKey], bool]) -> None:
        """Forget workloads that do not exist any more; what is under way for them is ended by its own steps."""
        for key in [key for key in self._states if not exists(key)]:
            state = self._states[key]
            state.was_refused = False
            if state.preemption is None and state.noted is None and state.eviction is None:
                del self._states[key]
