"""Where job ids may not be chosen: a submit that was not answered is searched for by scans that all lost ones share.

    remember ──first scan──► not found ──gap──► second scan ──► not found: it was never created, go on without it
                   └──────────── found: the table has it ───────────┘

slurmrestd gives up on slurmctld after 10 s while slurmctld may still create the job; the gap is longer than that.
"""

import threading

from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.queue import AT_ONCE, Filed
from slurm_bridge.scheduler.state import Search
from slurm_bridge.scheduler.tools import Tools

#: Scans without a trace before a lost submit counts as never done.
SCANS = 2


class Lost:
    """Submits without an answer and without an id, by workload."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._lock = threading.Lock()
        self._scanned = float("-inf")

    def remember(self, owner: Owner) -> None:
        """This submit may have made a job."""
        self._tools.states.of(owner.key).search = Search(self._tools.clock.now())

    def search(self, uid: WorkloadKey) -> Filed:
        """Until it is certain whether there is a job; whatever became of the pods meanwhile, that comes first.

        A job that nobody knows of uses up what its queue has, and would outlive its pods until the next sweep.
        """
        search, limits = self._tools.states.of(uid).search, self._tools.limits
        if search is None or self._tools.table.lives(uid):
            return self._settled(uid)
        if self._tools.mirror.failing:
            return Filed(after=limits.lookup_gap)
        self._scan(search)
        if search.scans >= SCANS or self._tools.table.lives(uid):
            return self._settled(uid)
        return Filed(after=max(0.1, search.not_before - self._tools.clock.now()))

    def _settled(self, uid: WorkloadKey) -> Filed:
        self._tools.states.of(uid).search = None
        return AT_ONCE

    def _scan(self, search: Search) -> None:
        """A scan that began late enough counts for everybody who waits for one."""
        with self._lock:
            now = self._tools.clock.now()
            if now < search.not_before:
                return
            if self._scanned < search.not_before:
                self._tools.mirror.sweep()
                self._scanned = now
            search.scans += 1
            search.not_before = now + self._tools.limits.lookup_gap
