"""Workloads that are passed over: they wait in Slurm, while smaller ones that were let in later have started."""

from collections.abc import Sequence

from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.model.names import WorkloadKey


class Passed:
    """Remembers since when each workload waits; used by one thread."""

    def __init__(self, after: float) -> None:
        self._after = after
        self._since: dict[str, float] = {}

    def now(self, manager: Manager, now: float) -> Sequence[WorkloadKey]:
        """By uid, the most important first, and of equal ones those that the queues let in first."""
        with manager.lock:
            ahead = frozenset(manager.ahead.names)
            waiting = [one for one in manager.members.values() if one.placed and one.name in ahead]
            # A workload for which others are evicted gets their nodes.
            mine = [one for one in waiting if one.passed and not manager.evictions.has_room(one.demand.uid)]
        self._since = {one.name: self._since.get(one.name, now) for one in waiting}
        found = [one for one in mine if now - self._since[one.name] >= self._after]
        return [one.demand.uid for one in sorted(found, key=lambda one: (-one.demand.priority, one.turn))]
