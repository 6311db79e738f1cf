"""Searches for nodes in vain: what was found nowhere is looked for only where something has become free since."""

from collections.abc import Iterable

from slurm_bridge.families.yunikorn.queues import node_search
from slurm_bridge.families.yunikorn.queues.applications import PendingAsk, Size
from slurm_bridge.families.yunikorn.queues.nodes import PartitionNode
from slurm_bridge.families.yunikorn.queues.partition import QueuePartition


class _Search:
    """It found no node, nor one to hold where it was for that, too; on those that are `left` it may find room now."""

    __slots__ = ("left", "like", "reserving")

    def __init__(self, like: PendingAsk, *, reserving: bool) -> None:
        self.like = like
        self.reserving = reserving
        self.left: dict[str, None] = {}


class Searches:
    """Those of one partition. `alike`: nodes are not asked about, so that asks of one size find the same."""

    def __init__(self, partition: QueuePartition, *, alike: bool) -> None:
        self._partition = partition
        self._alike = alike
        self._searches: dict[Size, _Search] = {}
        self._grown = self._unsettled = -1
        self._freed = 0

    def _look_at(self, nodes: Iterable[PartitionNode]) -> None:
        for node in nodes:
            for key, search in tuple(self._searches.items()):
                if not node_search.has_room(search.like, node):
                    continue
                if search.like.ask.members > 1:
                    del self._searches[key]  # its members may share what is free here with what is free elsewhere
                else:
                    search.left[node.name] = None

    def key(self, waiting: PendingAsk) -> Size:
        """What it has in common with those that find the same."""
        return waiting.size if self._alike else waiting.kind

    def is_vain(self, waiting: PendingAsk, *, reserving: bool) -> bool:
        """One like it has found nothing, and nothing has become free for it since."""
        return self.are_vain(self.key(waiting), reserving=reserving)

    def are_vain(self, key: Size, *, reserving: bool) -> bool:
        """As `is_vain`, of all that have this in common."""
        if self._grown != self._partition.grown:
            # Take note of what has grown.
            partition = self._partition
            if self._unsettled != partition.unsettled or not self._alike:
                # What others say of a node may be something else after any change.
                self._searches.clear()
            elif self._freed != partition.nodes.freed:
                self._look_at(partition.nodes.freed_since(self._freed))
            self._grown, self._unsettled, self._freed = partition.grown, partition.unsettled, partition.nodes.freed
        search = self._searches.get(key)
        return search is not None and not search.left and (search.reserving or not reserving)

    def nodes(self, waiting: PendingAsk, sort: str, *, reserving: bool) -> Iterable[PartitionNode]:
        """Where to look for it, in order."""
        search = self._searches.get(self.key(waiting))
        if search is None or reserving:
            return self._partition.nodes.ordered(sort)
        return self._partition.nodes.some_ordered(sort, search.left)

    def failed(self, waiting: PendingAsk, *, reserving: bool) -> None:
        """It has found nothing just now."""
        self._searches[self.key(waiting)] = _Search(waiting, reserving=reserving)
