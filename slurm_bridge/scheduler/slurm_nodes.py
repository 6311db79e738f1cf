"""Slurm's nodes and partitions, read now and then and when somebody wants to know."""

from collections.abc import Callable

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.scheduler.tools import Tools

#: How often Slurm is asked while nothing calls for it.
FACTS_PERIOD = 30.0
#: After they could not be read.
FACTS_AGAIN = 2.0


class SlurmNodes:
    """`moved` hears that something changed on which it depends where pods can be placed."""

    def __init__(self, tools: Tools, moved: Callable[[], None]) -> None:
        self._tools, self._moved = tools, moved

    def step(self) -> None:
        """Ask when it is time."""
        if self._tools.clock.now() < self._tools.facts_due:
            return
        try:
            self.read()
        except errors.BridgeError as problem:
            self._tools.facts_due = self._tools.clock.now() + FACTS_AGAIN
            logger.warning("Slurm's nodes cannot be read: {}", problem)

    def read(self) -> None:
        """Ask now; raises BridgeError when there is no answer."""
        tools, now = self._tools, self._tools.clock.now()
        tools.facts_due = now + FACTS_PERIOD
        before = tools.keeper.version
        slurm = tools.slurm
        tools.keeper.set_slurm(slurm.nodes(), slurm.partitions(), heterogeneous=slurm.heterogeneous())
        tools.facts_at = now
        if tools.keeper.version != before:
            self._moved()
