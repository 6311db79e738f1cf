"""Jobs whose pods went while no daemon ran: what they count as is unknown, even their queue.

They are withdrawn like every job whose pods are over, which takes a moment. A workload that was submitted before that
might get what its queue does not have. So none is submitted meanwhile, where hooks count.
"""

import threading
from collections.abc import Collection

from loguru import logger

from slurm_bridge.model import texts
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.workloads.kind_table import NAMES

#: Some are left alone although no pod of theirs is seen: they must not hold all workloads for ever.
PATIENCE = 60.0


class Leftovers:
    """Of one leadership; any thread may ask."""

    def __init__(self, context: SchedulerContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._uids: list[WorkloadKey] = []
        self._until = 0.0

    def begin(self, counted: Collection[WorkloadKey] | None) -> None:
        """Hooks have been told of these workloads: of other jobs that live they know nothing. None: no hook counts."""
        living = {one.owner.key for one in self._context.table.alive() if one.owner.kind in NAMES}
        with self._lock:
            self._uids = sorted(living.difference(counted)) if counted is not None else []
            self._until = self._context.clock.now() + PATIENCE

    def left(self) -> int:
        """How many have to go before a workload is submitted. Mostly none, and it is asked often."""
        if not self._uids:
            return 0
        with self._lock:
            # The last one only: as long as it lives, it does not matter how many others do.
            while self._uids and not self._context.table.lives(self._uids[-1]):
                self._uids.pop()
            if self._uids and self._context.clock.now() >= self._until:
                left = texts.counted(len(self._uids), "job")
                logger.warning("{} without pods could not be withdrawn; others go on", left)
                self._uids.clear()
            return len(self._uids)
