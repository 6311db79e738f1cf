"""Workloads that are evicted for others, from the core's order to the end.

A recall ends when its workload has left its queue, or is spared. A room is kept on record until its asker has a
job: until then a restart has to know that what has become free is not for all.
"""

import threading
from collections.abc import Mapping

from slurm_bridge.families.yunikorn.members import QueueMember
from slurm_bridge.hooks.evictions import Clearance, Recall
from slurm_bridge.model.names import NO_WORKLOAD, WorkloadKey


class Evictions:
    """All of one manager, changed under its lock, a plan at a time; what is shown are copies."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._recalls: dict[WorkloadKey, Recall] = {}
        self._rooms: dict[WorkloadKey, Clearance] = {}
        #: Since when, as far as this process knows: by asker, and by victim where there is no asker.
        self._since: dict[WorkloadKey, float] = {}

    def order(self, victim: QueueMember, asker: QueueMember | None, message: str, now: float) -> None:
        """The core wants it gone; without an asker its queue is over a maximum, as the message says."""
        uid = victim.demand.uid
        if asker is None:
            self._since.setdefault(uid, now)
            self._recalls[uid] = Recall(victim=uid, asker=NO_WORKLOAD, cause=message.removeprefix("preempted by "))
            return
        # The asker first: a victim without a waiting asker would be spared by a look at this moment.
        self.add(asker, {uid: victim.demand.title}, now)
        self._recalls[uid] = Recall(victim=uid, asker=asker.demand.uid, cause=asker.demand.title)

    def add(self, asker: QueueMember, victims: Mapping[WorkloadKey, str], now: float) -> None:
        """These go, or have gone, for it."""
        self._since.setdefault(asker.demand.uid, now)
        known = self._rooms.get(asker.demand.uid)
        already = known.victims if known is not None else {}
        self._rooms[asker.demand.uid] = Clearance(where=asker.queue, victims={**already, **victims})

    def call_off(self) -> None:
        """No workload is to be evicted any more; the scheduler finishes evictions that have begun."""
        for uid in tuple(self._rooms):
            self.served(uid)

    def spared(self, key: WorkloadKey) -> bool:
        """The victim stays, and makes no room; whether there was one."""
        recall = self._recalls.get(key)
        room = self._rooms.get(recall.asker) if recall is not None else None
        if recall is not None and room is not None:
            rest = {one: name for one, name in room.victims.items() if one != key}
            if rest:
                self._rooms[recall.asker] = Clearance(where=room.where, victims=rest)
            else:
                self.served(recall.asker)
        return self.over(key)

    def over(self, key: WorkloadKey) -> bool:
        """The victim has gone; whether there was one."""
        recall = self._recalls.pop(key, None)
        if recall is not None and not recall.asker:
            self._since.pop(key, None)
        return recall is not None

    def served(self, key: WorkloadKey) -> None:
        """The asker has a job, or does not wait any more."""
        if self._rooms.pop(key, None) is not None:
            self._since.pop(key, None)

    def recall(self, key: WorkloadKey) -> Recall | None:
        """The victims, and the workloads for which they are evicted."""
        return self._recalls.get(key)

    def has_room(self, key: WorkloadKey) -> bool:
        """Others go, or have gone, for it."""
        return key in self._rooms

    def recalls(self) -> Mapping[WorkloadKey, Recall]:
        """All that are under way, plan by plan: a restart would forget the rest of a plan that is half done."""
        with self._lock:
            return dict(self._recalls)

    def rooms(self) -> Mapping[WorkloadKey, Clearance]:
        """All that have an asker."""
        return dict(self._rooms)

    def since(self) -> Mapping[WorkloadKey, float]:
        """Since when victims are evicted for a workload, by its uid, or by that of the victim without an asker."""
        return dict(self._since)
