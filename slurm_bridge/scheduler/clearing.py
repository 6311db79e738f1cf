"""The nodes that workloads leave for another one: others of ours keep away from them until it has nodes.

Slurm gives what comes free to whoever is first in its queue. So nodes are promised before anybody is told to go, and
no longer than a while after the last one has gone: whoever asked may have got others, or wait for something else.
"""

import dataclasses
from collections.abc import Iterable

from slurm_bridge.cluster.parties import priority_of
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.members import Crew, Standing
from slurm_bridge.scheduler.promised import HIGHEST, WHY, Promise
from slurm_bridge.scheduler.queue import Queue
from slurm_bridge.scheduler.tools import Tools

#: Those who are told to keep away are waited for at most so long.
HOLD_SECONDS = 30.0


@dataclasses.dataclass(slots=True, kw_only=True)
class _Kept:
    """`others` are told to keep away since then."""

    nodes: frozenset[str]
    until: float
    since: float = 0.0
    others: tuple[WorkloadKey, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """`by` names who promises, `why` is what others are told.

    `outranked`: one of a higher priority goes there all the same. What a queue is entitled to has nothing to do with
    the priority of whoever is next in another one.
    """

    by: str
    why: str = WHY
    outranked: bool = False


class Clearing:
    """Used by one thread at a time. Promises of other workloads, and by others, are left alone."""

    def __init__(self, tools: Tools, census: Census, queue: Queue, terms: Terms) -> None:
        self._tools, self._census, self._queue, self._terms = tools, census, queue, terms
        self._kept: dict[WorkloadKey, _Kept] = {}

    def begin(self) -> None:
        """A leadership begins, and nothing is promised."""
        self._kept.clear()
        self._tools.promised.clear(self._terms.by)

    def nodes(self, uid: WorkloadKey) -> frozenset[str]:
        """What is promised to this workload."""
        kept = self._kept.get(uid)
        return kept.nodes if kept is not None else frozenset()

    def keep(self, uid: WorkloadKey, nodes: Iterable[str], until: float) -> None:
        """These, and what was promised to it before, until then at most."""
        before = self.nodes(uid)
        every = before.union(nodes)
        crew = self._census.crew(uid)
        if not every or crew is None or not crew.count(Standing.WANTING):
            return
        kept = self._kept.setdefault(uid, _Kept(nodes=every, until=until))
        kept.until = until
        if every != before:
            self._tools.promised.make(self._promise(uid, crew, every))
            kept.nodes, kept.since, kept.others = every, self._tools.clock.now(), self._look_again(uid)

    def holds(self, uid: WorkloadKey) -> bool:
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

    def end(self, uid: WorkloadKey) -> None:
        """Its nodes are free to all."""
        if self._kept.pop(uid, None) is not None:
            self._tools.promised.end(uid, self._terms.by)
            self._look_again(uid)

    def _promise(self, uid: WorkloadKey, crew: Crew, nodes: frozenset[str]) -> Promise:
        terms = self._terms
        priority = max(map(priority_of, crew.pods(Standing.WANTING))) if terms.outranked else HIGHEST
        return Promise(uid=uid, priority=priority, nodes=nodes, by=terms.by, why=terms.why)

    def _look_again(self, but: WorkloadKey) -> tuple[WorkloadKey, ...]:
        """Those whose jobs wait tell Slurm what they keep away from; the others learn of it in their turn."""
        asking = {uid for uid in self._tools.states.waiting() if self._tools.table.of(uid)} | self._queue.flying()
        asking |= self._tools.promised.returning()
        others = tuple(uid for uid in sorted(asking - {but}) if self._census.crew(uid) is not None)
        for uid in others:
            self._queue.activate(uid, urgent=True)
        return others
