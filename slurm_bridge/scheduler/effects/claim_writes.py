"""How claims of pods that hold nodes are written, those to volumes and those to devices.

the write                                              what follows
─────────────────────────────────────────────────────  ──────────────────────────────────────────────────────────
is done, and so are all others                         the watch tells of them, and wakes the workload
met another version, or none: it is looked at again    the workload is, in a second
is refused                                             the nodes are given back, in the words of the server
was not served, or its answer was lost                 the workload is looked at again after a pause
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.placement.misfit import ClaimsPending, Misfit

#: So many claims are written for one workload before others have their turn.
MOST_WRITES: Final = 100
#: After so many seconds it goes on, likewise with an object that changed under our hands.
LOOK_AGAIN: Final = 1.0
#: The same where the API server, or a webhook of it, did not serve the write: it may be out of order for all.
UNSERVED: Final = 10.0

Write = TypeVar("Write")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWait:
    """What the pods on these nodes wait for; `waits` and `failed` are the reasons of this kind of claim."""

    ctx: SchedulerContext
    waits: str
    failed: str
    nodes: Iterable[str]
    message: str

    def pending(self, after: float | None, more: str = "") -> ClaimsPending:
        """Until a watch tells, or for so many seconds."""
        return ClaimsPending.at(
            self.nodes,
            waits=self.waits,
            failed=self.failed,
            message=self.message + more,
            retry_after=after,
            patience=self.ctx.limits.volume_seconds,
        )

    def write(
        self, writes: Sequence[Write], write: Callable[[Write], Misfit | bool], *, soon: bool = False
    ) -> Misfit | ClaimsPending:
        """What could not be written is looked at again, and so is what is left, or where that is to be `soon`."""
        try:
            results = self.ctx.each(write, writes[:MOST_WRITES])
        except errors.NotLeading:
            raise
        except errors.TryLater as problem:
            logger.info("claims are written later: {}", problem)
            pause = max(UNSERVED, problem.retry_after or 0.0)
            return self.pending(pause, f"; not written yet: {problem}")
        misfit = next((one for one in results if isinstance(one, Misfit)), None)
        again = soon or not all(results) or len(writes) > MOST_WRITES
        return misfit or self.pending(LOOK_AGAIN if again else None)


def attempt(called: str, failed: str, write: Callable[[], Misfit | bool]) -> Misfit | bool:
    """Whether it is written; `called` is the object in messages."""
    try:
        return write()
    except (errors.Conflict, errors.NotFound) as problem:
        logger.info("{} is looked at again: {}", called, problem)
        return False
    except (errors.OperatorMustAct, errors.Disagreement) as problem:
        logger.warning("{} cannot be written: {}", called, problem)
        return Misfit(reason=failed, message=f"{called} cannot be written: {problem}")
