"""Groups for cases about trouble: their members, and what is left of them."""

from slurm_bridge.sim.slurm import state
from tests.component.scheduler.whole_core import Bridge


def living(bridge: Bridge) -> list[state.SlurmJob]:
    """All our jobs that are not over."""
    return [job for job in bridge.jobs() if not job.over]
