"""The one controller that evicts: it carries out what hooks say, by priority or for queues, and recovers from notes.

    hold     nodes for the workload that room is made for, and wait until all others know        hold_manager
    note     on its pods and on the victims what is under way: a restart reads it from there     nominations, notes
    evict    the victims, after a second look at each; end the jobs of groups after them         evictor
    release  what is held and noted when the workload has nodes, waits no longer, or is too late

Which pods these are, and how long a case may last, is told by hooks: `preemption` and `queue_eviction` ask them.
"""

import threading
from collections.abc import Callable, Collection, Mapping

from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.eviction.cases import PreemptionCase, QueueEvictionCase
from slurm_bridge.scheduler.eviction.evictor import Evictor
from slurm_bridge.scheduler.eviction.preemption import Preemptions
from slurm_bridge.scheduler.eviction.queue_eviction import QueueEvictions
from slurm_bridge.scheduler.eviction.store import EvictionStore
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.queue import WorkQueue


class EvictionController:
    """Stepped by one thread; `begin` and `take_up` may be called by another."""

    def __init__(self, context: SchedulerContext, pod_index: PodIndex, queue: WorkQueue) -> None:
        self._pod_index, self._lock, self._store = pod_index, threading.Lock(), EvictionStore(context.states)
        self._evictor = Evictor(context, pod_index)
        self._preemptions = Preemptions(context, pod_index, queue, self._store, self._evictor)
        self._queue_evictions = QueueEvictions(context, pod_index, queue, self._store, self._evictor)

    @property
    def preemptions(self) -> Mapping[WorkloadKey, PreemptionCase]:
        """The preemptions that are under way, by the workload that room is made for."""
        return self._store.preemptions()

    @property
    def queue_evictions(self) -> Mapping[WorkloadKey, QueueEvictionCase]:
        """The evictions for queues that are under way, by the workload that leaves."""
        return self._store.evictions()

    def begin(self) -> None:
        """A leadership begins: what is under way is read anew from the pods, before any workload is looked at."""
        with self._lock:
            self._store.begin()
            self._preemptions.begin()
            self._queue_evictions.begin()

    def take_up(self, namespaces: Collection[str]) -> None:
        """Further namespaces are served. What is under way in others goes on; hooks that evict for queues have none."""
        with self._lock:
            self._preemptions.take_up(namespaces)

    def queue_step(self) -> None:
        """Take every eviction for a queue as far as it goes."""
        self._step(self._queue_evictions.step)

    def priority_step(self) -> None:
        """Take every preemption as far as it goes, and begin at most one."""
        self._step(self._preemptions.step)

    def _step(self, step: Callable[[], None]) -> None:
        with self._lock:
            self._store.drop_ended(lambda key: self._pod_index.workload(key) is not None)
            step()
