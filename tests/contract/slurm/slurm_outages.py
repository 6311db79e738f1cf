"""slurmctld dead or frozen for the length of a block, and well afterwards."""

import contextlib
import time
from collections.abc import Iterator

from slurm_desk import Desk
from slurm_servers import Real

#: slurmctld saves what it knows every five seconds and tells nobody when: what is older than this is saved.
_SAVED_SECONDS = 8.0


@contextlib.contextmanager
def dead(desk: Desk) -> Iterator[None]:
    """slurmctld is killed for as long as the block lasts."""
    desk.servers.kill()
    try:
        yield
    finally:
        desk.servers.start()
        answers_again(desk)


@contextlib.contextmanager
def frozen(desk: Desk) -> Iterator[None]:
    """slurmctld stands still for as long as the block lasts."""
    desk.servers.pause()
    try:
        yield
    finally:
        desk.servers.resume()
        answers_again(desk)


def answers_again(desk: Desk) -> None:
    """Wait until slurmctld does."""
    desk.until(lambda: desk.get("jobs/state/").status == 200, "slurmctld answers", seconds=60)


def saved(desk: Desk) -> None:
    """Wait until a kill forgets nothing of what was before: no ended job of another case comes back."""
    desk.servers.pass_time(_SAVED_SECONDS)
    since = time.monotonic()
    if isinstance(desk.servers, Real):
        desk.until(lambda: time.monotonic() - since > _SAVED_SECONDS, "it is saved")
