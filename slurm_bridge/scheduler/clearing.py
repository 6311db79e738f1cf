"""The nodes that workloads leave for another one: others of ours keep away from them until it has nodes.

Slurm gives what comes free to whoever is first in its queue. So nodes are promised before anybody is told to go, and
no longer than a while after the last one has gone: whoever asked may have got others, or wait for something else.
"""

import dataclasses
from collections.abc import Iterable

from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.members import Standing
from slurm_bridge.scheduler.promised import HIGHEST, Promise
from slurm_bridge.scheduler.queue import Queue
from slurm_bridge.scheduler.tools import Tools

#: Those who are told to keep away are waited for at most so long.
HOLD_SECONDS = 30.0
#: Who makes these promises.
_BY = "queues"


@dataclasses.dataclass(slots=True, kw_only=True)
class _Kept:
    """`others` are told to keep away since then."""

    nodes: frozenset[str]
    until: float
    since: float = 0.0
    others: tuple[str, ...] = ()


class Clearing:
    """Used by one thread at a time. Promises of other workloads, and by others, are left alone."""

    def __init__(self, tools: Tools, census: Census, queue: Queue) -> None:
        self._tools, self._census, self._queue = tools, census, queue
        self._kept: dict[str, _Kept] = {}

    def begin(self) -> None:
        """A leadership begins, and nothing is promised."""
        self._kept.clear()
        self._tools.promised.clear(_BY)

    def nodes(self, uid: str) -> frozenset[str]:
        """What is promised to this workload."""
        kept = self._kept.get(uid)
        return kept.nodes if kept is not None else frozenset()

    def keep(self, uid: str, nodes: Iterable[str], until: float) -> None:
        """These, and what was promised to it before, until then at most."""
        before = self.nodes(uid)
        every = before.union(nodes)
        crew = self._census.crew(uid)
        if not every or crew is None or not crew.count(Standing.WANTING):
            return
        kept = self._kept.setdefault(uid, _Kept(nodes=every, until=until))
        kept.until = until
        if every != before:
            # What a queue is entitled to has nothing to do with the priority of whoever is next in another one.
            self._tools.promised.make(Promise(uid=uid, priority=HIGHEST, nodes=every, by=_BY))
            kept.nodes, kept.since, kept.others = every, self._tools.clock.now(), self._look_again(uid)

    def holds(self, uid: str) -> bool:
        """Everybody has been looked at since the nodes were promised, and Slurm knows what he keeps away from."""
        kept = self._kept.get(uid)
        late = kept is not None and self._tools.clock.now() - kept.since >= HOLD_SECONDS
        return kept is None or late or self._queue.idle(kept.others)

    def settle(self) -> None:
        """Whoever has nodes, or has had his time, is promised nothing any more."""
        now = self._tools.clock.now()
        for uid, kept in tuple(self._kept.items()):
            crew = self._census.crew(uid)
            if now >= kept.until or crew is None or not crew.count(Standing.WANTING):
                self.end(uid)

    def end(self, uid: str) -> None:
        """Its nodes are free to all."""
        if self._kept.pop(uid, None) is not None:
            self._tools.promised.end(uid, _BY)
            self._look_again(uid)

    def _look_again(self, but: str) -> tuple[str, ...]:
        """Those whose jobs wait tell Slurm what they keep away from; the others learn of it in their turn."""
        asking = {uid for uid in tuple(self._tools.wishes) if self._tools.table.of(uid)} | self._queue.flying()
        asking |= self._tools.promised.returning()
        others = tuple(uid for uid in asking - {but} if self._census.crew(uid) is not None)
        for uid in others:
            self._queue.activate(uid, urgent=True)
        return others
