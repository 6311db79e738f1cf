"""One look at a leaf during a pass: what is the same for all its applications, and of all asks of one size."""

from collections.abc import Hashable

from slurm_bridge.families.yunikorn.queues import amounts, crowd, tree
from slurm_bridge.families.yunikorn.queues.amounts import Known
from slurm_bridge.families.yunikorn.queues.applications import PendingAsk, Size
from slurm_bridge.families.yunikorn.queues.leaves import Leaf
from slurm_bridge.families.yunikorn.queues.partition import QueuePartition
from slurm_bridge.families.yunikorn.queues.searches import Searches


class Visit:
    """It holds for one step: as long as nothing is allocated."""

    __slots__ = ("_fits", "_kept", "_partition", "backoff", "crowded", "keeps", "leaf", "room", "starts")

    def __init__(self, leaf: Leaf, room: Known, partition: QueuePartition) -> None:
        self.leaf = leaf
        self.starts = tree.can_run(leaf.queue)
        self.backoff = leaf.queue.settings.backoff
        self.room = room
        #: The size of the cluster is known, so that asks may be kept back for it; and one was.
        self.crowded = crowd.size(partition) is not None
        self.keeps = False
        self._partition = partition
        self._fits: dict[Size, bool] = {}
        self._kept: dict[Hashable, bool] = {}

    def stands(self, searches: Searches) -> bool:
        """What the leaf's applications met when they were last looked at would be met again."""
        met, partition = self.leaf.obstacles, self._partition
        if self.leaf.unsettled != partition.unsettled or met.other or (met.start and self.starts):
            return False
        if met.limits not in (None, partition.limits.returned) or any(map(self.fits, met.unfit.values())):
            return False
        return all(searches.are_vain(size, reserving=reserving) for size, reserving in met.vain.items())

    def fits(self, waiting: PendingAsk) -> bool:
        """It fits the headroom; where only the cluster is too full, an ask that can hold nodes until then fits, too."""
        known = self._fits.get(waiting.size)
        if known is None:
            known = amounts.fit_in_max_undefined(waiting.total, self.room)
            self._fits[waiting.size] = known = known or (waiting.ask.members > 1 and self._fits_queues(waiting))
        return known or (bool(waiting.ask.required_node) and self._fits_queues(waiting))

    def keeps_back(self, waiting: PendingAsk, now: float) -> bool:
        """Others are to make room for it first."""
        partition, ask = self._partition, waiting.ask
        if waiting.id in partition.flights:
            kept = crowd.keeps_back(partition, waiting, self.leaf.queue, now)
        else:
            # No eviction may help an ask for its nodes, and not for its size.
            alone = waiting.id if waiting.id in partition.vain else None
            key = (alone, waiting.kind, ask.members, ask.priority, ask.allow_preempt_other, ask.required_node)
            known = self._kept.get(key)
            if known is None:
                known = self._kept[key] = crowd.keeps_back(partition, waiting, self.leaf.queue, now)
            kept = known
        self.keeps = self.keeps or kept
        return kept

    def _fits_queues(self, waiting: PendingAsk) -> bool:
        return amounts.fit_in_max_undefined(waiting.total, tree.max_headroom(self.leaf.queue))
