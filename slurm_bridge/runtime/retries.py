"""The only door to tenacity: idempotent reads are tried again, a few times, with jitter, and nothing else ever is."""

import dataclasses
import random
from collections.abc import Callable
from typing import TypeVar

import tenacity

from slurm_bridge import errors

T = TypeVar("T")

#: A read that was not answered did nothing: reading again is safe.
UNANSWERED = (errors.Unavailable, errors.Unanswered, errors.BadAnswer)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often one read is tried in all; each pause is a random part of a time that doubles up to the longest."""

    tries: int = 3
    first_pause: float = 0.1
    longest_pause: float = 2.0


def read(
    call: Callable[[], T],
    retries: Retries,
    *,
    pause: Callable[[float], None],
    after: tuple[type[errors.BridgeError], ...] = UNANSWERED,
) -> T:
    """Call an idempotent read until it answers; the last error is raised as it is.

    `pause` waits between tries; it is the caller's, so that a stop interrupts it.
    """
    # Nearly every read is answered at once, and a policy costs 18 times as much as this function without one.
    try:
        return call()
    except after:
        if retries.tries == 1:
            raise
    policy = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(after),
        stop=tenacity.stop_after_attempt(retries.tries - 1),
        wait=tenacity.wait_random_exponential(multiplier=retries.first_pause, max=retries.longest_pause),
        sleep=pause,
        reraise=True,
    )
    pause(random.uniform(0, retries.first_pause))  # noqa: S311 - jitter is no secret
    return policy(call)
