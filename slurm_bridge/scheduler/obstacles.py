"""What keeps a workload from going on: said to its members, counted, and waited for."""

from loguru import logger

from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler.members import Crew, Picked, Standing
from slurm_bridge.scheduler.queue import Filed
from slurm_bridge.scheduler.tools import Tools


class Obstacles:
    """Says why, and files the workload for whatever can change it."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def of_crew(self, crew: Crew, obstacle: Wait | Reject) -> Filed:
        """For members of which nobody knows yet what they make together."""
        waiting, lead = Picked(crew, Standing.WANTING), crew.first(Standing.WANTING)
        self._tools.voice.waiting_together(crew.root, waiting, obstacle.reason, obstacle.message, key=obstacle.message)
        if isinstance(obstacle, Reject) and lead is not None:
            self._tools.voice.event(lead, obstacle.reason, obstacle.message, warning=True)
        return self._count(str(crew.root), obstacle)

    def of_workload(self, workload: Workload, obstacle: Wait | Reject) -> Filed:
        """Say why, and wait for whatever can change it."""
        self._tools.say(workload, obstacle.reason, obstacle.message)
        if isinstance(obstacle, Reject) or obstacle.warning:
            self._tools.voice.group(workload, obstacle.reason, obstacle.message, warning=True)
        return self._count(str(workload.root), obstacle)

    def _count(self, whose: str, obstacle: Wait | Reject) -> Filed:
        rejected = isinstance(obstacle, Reject)
        if rejected:
            logger.bind(workload=whose).info("{}: {}", obstacle.reason, obstacle.message)
        self._tools.tally.attempt("rejected" if rejected else "unschedulable")
        return Filed() if isinstance(obstacle, Reject) else Filed(after=obstacle.retry_after, moving=obstacle.moving)
