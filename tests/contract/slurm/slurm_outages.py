"""slurmctld dead or frozen for the length of a block, and well afterwards."""

import contextlib
from collections.abc import Iterator

from slurm_desk import Desk


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
