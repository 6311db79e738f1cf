"""The only place that configures loguru: text or JSON lines, and never a secret.

`diagnose` stays off: it would print the values of local variables, tokens among them, into tracebacks.
"""

import sys
import time
from collections.abc import Mapping
from typing import TextIO

from loguru import logger

from slurm_bridge.telemetry.throttle import Throttle

_HUMAN = "{time:HH:mm:ss.SSS} {level: <8} {message} {extra}"

#: Below trace: lines about every node.
FINEST = 3

#: The verbosities of Kubernetes components, and the level of lines that each shows.
LEVELS: Mapping[int, str | int] = {0: "INFO", 4: "DEBUG", 7: "TRACE", 10: FINEST}


class _Reached:
    """The verbosity that was configured last."""

    verbosity = 0


def every_node() -> bool:
    """Whether lines about every node are shown."""
    return LEVELS[_Reached.verbosity] == FINEST


def configure(*, verbosity: int = 0, as_json: bool = False, sink: TextIO = sys.stderr) -> None:
    """Send all lines to one sink from now on; a second call replaces the first."""
    reached = max(step for step in LEVELS if step <= max(0, verbosity))
    _Reached.verbosity = reached
    # Nothing is throttled if more verbosity was requested.
    kept = Throttle(time.monotonic) if reached == 0 else None
    logger.remove()
    logger.add(
        sink, level=LEVELS[reached], format=_HUMAN, filter=kept, serialize=as_json, diagnose=False, backtrace=False
    )
