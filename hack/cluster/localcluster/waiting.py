"""Waiting for a condition that no event announces."""

import time
from collections.abc import Callable

from localcluster.part import PartError


def until(complaint: Callable[[], str], seconds: float, every: float = 0.1) -> None:
    """Ask until there is no complaint; the last one is the error."""
    deadline = time.monotonic() + seconds
    while text := complaint():
        if time.monotonic() > deadline:
            raise PartError(f"not within {seconds:.0f} s: {text}")
        time.sleep(every)
