"""When a queue that has more than its maximum gives something back: so long after that was lowered.

A queue's `quota.preemption.delay` of 0, the default, and a partition without quota preemption evict nothing.
After a restart it is not known when a maximum was lowered: the time begins when what stands turns out to be too much.
"""

from collections.abc import Iterator

from slurm_bridge.families.yunikorn.queues import amounts, tree
from slurm_bridge.families.yunikorn.queues.partition import QueuePartition
from slurm_bridge.families.yunikorn.queues.plans import PreemptionPlan
from slurm_bridge.families.yunikorn.queues.preemptors import attempts, quota
from slurm_bridge.families.yunikorn.queues.records import AskId
from slurm_bridge.families.yunikorn.queues.tree import Queue


class Quotas:
    """The clocks of one partition's queues. The root has none: its maximum is the size of the cluster."""

    def __init__(self) -> None:
        self._due: dict[Queue, float] = {}

    def __bool__(self) -> bool:
        return bool(self._due)

    def lowered(self, queue: Queue, now: float) -> None:
        """Its maximum is smaller from now on: the time begins, once more if it had begun."""
        self._due.pop(queue, None)
        self._start(queue, now)

    def noticed(self, leaf: Queue, now: float) -> None:
        """More stands in the leaf, whatever was allowed."""
        for queue in leaf.lineage:
            if queue not in self._due:
                self._start(queue, now)

    def _start(self, queue: Queue, now: float) -> None:
        if _has_clock(queue) and _is_over(queue):
            self._due[queue] = now + queue.quota_preemption_delay

    def plans(self, partition: QueuePartition, now: float) -> Iterator[PreemptionPlan]:
        """The victims of now; what is left over, or could not be evicted, is looked at again later."""
        for queue in tuple(self._due):
            if not _has_clock(queue) or not _is_over(queue) or tree.find(partition.root, queue.path) is not queue:
                del self._due[queue]
            elif now >= self._due[queue]:
                self._due[queue] = now + attempts.CHECK_EVERY
                for planned in quota.plan(queue, lambda leaf: partition.standing.of(leaf, now)):
                    victims = tuple(one.key for one in planned.victims if isinstance(one.key, AskId))
                    yield PreemptionPlan(victims=victims, message=planned.message)


def _has_clock(queue: Queue) -> bool:
    return queue.parent is not None and queue.quota_preemption_delay > 0


def _is_over(queue: Queue) -> bool:
    return not amounts.fit_in_max_undefined(queue.allocated, queue.max)
