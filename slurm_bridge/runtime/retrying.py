"""The only door to tenacity: idempotent reads are tried again, a few times, with jitter, and nothing else ever is."""

import random
from collections.abc import Callable
from typing import TypeVar

import tenacity

from slurm_bridge import errors

T = TypeVar("T")

#: A read that was not answered did nothing: reading again is safe.
_WORTH_ANOTHER_TRY = (errors.Unavailable, errors.Unanswered, errors.BadAnswer)


def read(
    call: Callable[[], T],
    *,
    pause: Callable[[float], object],
    tries: int = 3,
    first_wait: float = 0.1,
    most_wait: float = 2.0,
) -> T:
    """Call an idempotent read until it answers; the last error is raised as it is.

    `pause` waits between tries; it is the caller's, so that a stop interrupts it.
    """
    try:
        return call()
    except _WORTH_ANOTHER_TRY:
        if tries == 1:
            raise
    # Nearly every read is answered at once: what organises the others is only made for them.
    policy = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(_WORTH_ANOTHER_TRY),
        stop=tenacity.stop_after_attempt(tries - 1),
        wait=tenacity.wait_random_exponential(multiplier=first_wait, max=most_wait),
        sleep=lambda seconds: _discard(pause(seconds)),
        reraise=True,
    )
    pause(random.uniform(0, first_wait))  # noqa: S311 - jitter is no secret
    return policy(call)


def _discard(_: object) -> None:
    """Tenacity wants a function that returns nothing; an event's wait returns whether it was set."""
