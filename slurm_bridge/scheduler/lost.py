"""Where job ids may not be chosen: a submit that was not answered is searched for by scans that all lost ones share.

    remember ──first scan──► not found ──gap──► second scan ──► not found: it was never created, submit again
                   └──────────── found: the table has it ───────────┘

slurmrestd gives up on slurmctld after 10 s while slurmctld may still create the job; the gap is longer than that.
"""

import dataclasses
import threading

from slurm_bridge.model.marks import Owner
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler.queue import AT_ONCE, Filed
from slurm_bridge.scheduler.tools import Tools

#: Scans without a trace before a lost submit counts as never done.
SCANS = 2


@dataclasses.dataclass(slots=True)
class _Search:
    owner: Owner
    not_before: float
    scans: int = 0


class Lost:
    """Submits without an answer and without an id, by workload."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._searches: dict[str, _Search] = {}
        self._lock = threading.Lock()
        self._scanned = float("-inf")

    def remember(self, owner: Owner) -> None:
        """This submit may have made a job."""
        self._searches[owner.uid] = _Search(owner, self._tools.clock.now())

    def forget(self, uid: str) -> None:
        """Nobody needs to know any more; a job that shows up late is found by the sweep."""
        self._searches.pop(uid, None)

    def search(self, root: Root) -> Filed | None:
        """None when nothing is lost, or when it is certain that there is no job."""
        search = self._searches.get(root.uid)
        if search is None:
            return None
        self._scan(search)
        if self._tools.table.lives(root.uid):
            self.forget(root.uid)
            return AT_ONCE
        if search.scans < SCANS:
            return Filed(after=max(0.1, search.not_before - self._tools.clock.now()))
        self.forget(root.uid)
        return None

    def _scan(self, search: _Search) -> None:
        """A scan that began late enough counts for everybody who waits for one."""
        with self._lock:
            now = self._tools.clock.now()
            if now < search.not_before:
                return
            if self._scanned < search.not_before:
                self._scanned = now
                self._tools.mirror.sweep()
            search.scans += 1
            search.not_before = now + self._tools.limits.lookup_gap
