"""The checks of `slurm-bridge check`, run once by the replica that leads."""

from collections.abc import Callable, Sequence

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.checks.findings import Finding, Level
from slurm_bridge.telemetry.metrics import Metrics


def look(check: Callable[[], Sequence[Finding]], metrics: Metrics) -> None:
    """Log and count the findings. None of them stops the daemon: most concern some pods only."""
    try:
        found = check()
    except errors.BridgeError as problem:
        logger.warning("the servers could not be checked: {}", problem)
        return
    for one in found:
        if one.level in (Level.WARNING, Level.FAILURE):
            loud = "ERROR" if one.level is Level.FAILURE else "WARNING"
            logger.bind(check=one.check).log(loud, "{} (what to do: {})", one.message, one.fix)
    for level in Level:
        metrics.check_findings.labels(level.value).set(sum(one.level is level for one in found))
