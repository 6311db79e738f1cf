"""Turns of reviews: they need the processor only, and each may hold many times the memory of its body.

Small bodies have turns of their own, so that the large objects of one user delay the reviews of no other. A large one
waits for a while and is given up then: the API server does not wait much longer.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from slurm_bridge.web.admission import BusyWebhook
from slurm_bridge.web.server import SMALL

#: At the same time.
SMALL_ONES: Final = 4
LARGE_ONES: Final = 2
#: Less than `timeoutSeconds` in `deploy/webhook`.
LONGEST_WAIT: Final = 3.0


class ReviewTurns:
    """Thread-safe."""

    def __init__(self, longest_wait: float = LONGEST_WAIT) -> None:
        self._longest_wait = longest_wait
        self._small, self._large = threading.BoundedSemaphore(SMALL_ONES), threading.BoundedSemaphore(LARGE_ONES)

    @contextlib.contextmanager
    def of(self, size: int) -> Iterator[None]:
        """The turn of a body of so many bytes. Raises BusyWebhook."""
        if size <= SMALL:
            with self._small:
                yield
            return
        if not self._large.acquire(timeout=self._longest_wait):
            raise BusyWebhook(f"{LARGE_ONES} reviews of more than {SMALL >> 10} KiB are in progress; try again")
        try:
            yield
        finally:
            self._large.release()
