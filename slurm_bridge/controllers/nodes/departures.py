"""A brake: many nodes that leave at once are more likely a mistake than a decision.

An API server that was restored without its objects, or another cluster behind the same address, looks as if every
node had been deleted.
"""

from typing import Final

from loguru import logger

from slurm_bridge import ports

#: So many may leave at once, and so large a part of the nodes that the bridge has added.
FEW: Final = 20
PART: Final = 4
#: More than that wait so long.
PAUSE_SECONDS: Final = 300.0


class DepartureBrake:
    """Of one daemon."""

    def __init__(self, clock: ports.Clock) -> None:
        self._clock = clock
        self._since: float | None = None

    def holds(self, leaving: int, added: int) -> bool:
        """Nothing is done yet for the nodes that leave, of those that the bridge has added."""
        if leaving <= max(FEW, added // PART):
            self._since = None
            return False
        now = self._clock.now()
        if self._since is None:
            self._since = now
            logger.error(
                "{} of the {} nodes that this bridge added to Slurm are no longer registered in Kubernetes: they are "
                "drained and deleted in {:g} s, unless they come back; nodes.register_external: false keeps them",
                leaving,
                added,
                PAUSE_SECONDS,
            )
        return now < self._since + PAUSE_SECONDS
