import random

from slurm_bridge.runtime import backoff
from tests.unit.informers.conftest import HighDice


def test_grows_and_forgets() -> None:
    """Each failure doubles the pause up to the limit; success forgets them."""
    waits = backoff.Backoff(HighDice(), first=1, most=5)
    assert [waits.next() for _ in range(4)] == [1, 2, 4, 5]
    waits.reset()
    assert waits.next() == 1


def test_never_in_step() -> None:
    """The dice take away at most half, and not the same each time."""
    waits = [backoff.Backoff(random.Random(seed), first=10).next() for seed in range(20)]
    assert all(5 <= wait <= 10 for wait in waits)
    assert len(set(waits)) > 10


def test_the_servers_wish() -> None:
    """What the server asks for is not undercut, within reason."""
    waits = backoff.Backoff(HighDice(), first=1)
    assert waits.next(at_least=7) == 7
    assert waits.next(at_least=0.5) == 2
    assert waits.next(at_least=86400) == backoff.LONGEST_WISH


def test_many_failures() -> None:
    """A thousand failures are no larger number than a dozen."""
    waits = backoff.Backoff(HighDice())
    assert [waits.next() for _ in range(1000)][-1] == backoff.MOST
