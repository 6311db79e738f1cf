"""Slurm's nodes and partitions, read periodically and when a workload needs them."""

from collections.abc import Callable

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.scheduler.context import SchedulerContext

#: How often Slurm is asked while nothing calls for it.
FACTS_PERIOD = 30.0
#: After they could not be read.
FACTS_AGAIN = 2.0


class SlurmNodes:
    """`moved` hears that something changed on which it depends where pods can be placed."""

    def __init__(self, context: SchedulerContext, moved: Callable[[], None]) -> None:
        self._context, self._moved = context, moved

    def step(self) -> None:
        """Ask when it is time."""
        if self._context.clock.now() < self._context.facts_due:
            return
        try:
            self.read()
        except errors.BridgeError as problem:
            self._context.facts_due = self._context.clock.now() + FACTS_AGAIN
            logger.warning("Slurm's nodes cannot be read: {}", problem)

    def read(self) -> None:
        """Ask now; raises BridgeError when there is no answer."""
        context, now = self._context, self._context.clock.now()
        context.facts_due = now + FACTS_PERIOD
        before = context.keeper.version
        slurm = context.slurm
        context.keeper.set_slurm(slurm.nodes(), slurm.partitions(), heterogeneous=slurm.heterogeneous())
        context.facts_at = now
        if context.keeper.version != before:
            self._moved()
