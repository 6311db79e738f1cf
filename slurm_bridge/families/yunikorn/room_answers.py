"""What the core is told when it asks which workloads would have to leave so that nodes have room for another one."""

import threading
from collections.abc import Iterator, Mapping, Sequence

from slurm_bridge.families.yunikorn import rooms
from slurm_bridge.families.yunikorn.engine import Engine
from slurm_bridge.families.yunikorn.evictions import Evictions
from slurm_bridge.families.yunikorn.members import QueueMember
from slurm_bridge.families.yunikorn.queues.records import RoomQuestion, Ways
from slurm_bridge.hooks.evictions import QueueSituation
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model.names import WorkloadKey

#: Within this time what was found is ordered, or was refused.
ORDERED_SECONDS = 1.0
NO_NODE = "no node would have room for it then"


class RoomAnswers:
    """Called by the core, about members of one manager, whose lock guards them."""

    def __init__(
        self,
        services: HookServices,
        engine: Engine,
        evictions: Evictions,
        members: Mapping[WorkloadKey, QueueMember],
        by_name: Mapping[str, QueueMember],
        lock: threading.RLock,
    ) -> None:
        self._services, self._engine, self._evictions = services, engine, evictions
        self._members, self._by_name, self._lock = members, by_name, lock

    def answer(self, question: RoomQuestion) -> Ways:
        """Which workloads would have to leave; None where that cannot be said now."""
        asker, situation_of = self._by_name.get(question.ask.key), self._services.situation
        if asker is None or situation_of is None or not self._engine.may_take_time:
            return None
        situation = situation_of(asker.demand.uid)
        if situation is None:
            return None
        names = ([self._by_name.get(one.key) for one in unit] for unit in question.victims)
        victims = [[member.demand.uid for member in unit if member is not None] for unit in names]
        return self._told(asker, situation, victims, question.may)

    def _told(
        self, asker: QueueMember, situation: QueueSituation, victims: Sequence[Sequence[WorkloadKey]], may: rooms.May
    ) -> Iterator[rooms.Way]:
        """Its user and operators are told where no eviction would help."""
        effort, found, asker.room = rooms.Effort(taken=self._taken(asker)), False, frozenset()
        for way in rooms.ways(situation, victims, may, effort):
            found, asker.roomless, asker.room = True, "", effort.nodes
            asker.room_until = self._services.clock.wall() + ORDERED_SECONDS
            yield way
        why = "the search for nodes with room for it came to its limit" if effort.is_spent else NO_NODE
        if not found and asker.roomless != why:
            asker.roomless = why
            self._services.counters.happened("yunikorn", "no room")
            self._services.log.info(f"{asker.demand.title}: no workload is evicted for it, because {why}")
            self._services.wake(asker.demand.uid)

    def _taken(self, asker: QueueMember) -> frozenset[str]:
        """Nodes with room for others, for which workloads go, or that were let in just now and have not started."""
        now = self._services.clock.wall()
        with self._lock:
            found = [one for one in self._members.values() if one.room and one is not asker and not one.started]
        kept = (one.room for one in found if now < one.room_until or self._evictions.has_room(one.demand.uid))
        return frozenset[str]().union(*kept)
