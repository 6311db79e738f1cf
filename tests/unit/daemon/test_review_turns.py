"""The turns of reviews."""

import contextlib

import pytest

from slurm_bridge.daemon.review_turns import LARGE_ONES, LONGEST_WAIT, ReviewTurns
from slurm_bridge.web.admission import VALIDATE, BusyWebhook, ReviewedObject, routes
from slurm_bridge.web.routes import Request, RouteTable
from slurm_bridge.web.server import SMALL


@pytest.mark.security("fairness")
def test_large_reviews_delay_no_small_one() -> None:
    """While the webhook reviews as many large objects as it may, small ones have turns, and more large ones end."""
    turns = ReviewTurns(longest_wait=0.0)
    with contextlib.ExitStack() as held:
        for _ in range(LARGE_ONES):
            held.enter_context(turns.of(SMALL + 1))
        with pytest.raises(BusyWebhook, match=r"2 reviews of more than 64 KiB are in progress"):
            held.enter_context(turns.of(SMALL + 1))
        with turns.of(SMALL):
            pass
    with turns.of(SMALL + 1):
        pass


def test_a_review_that_fails_gives_its_turn_back() -> None:
    """Of either size."""
    turns = ReviewTurns(longest_wait=0.0)
    for size in (SMALL, SMALL + 1):
        for _ in range(9):
            with pytest.raises(ValueError, match="x"), turns.of(size):
                raise ValueError("x")


def test_a_review_that_is_given_up_is_answered() -> None:
    """The API server takes it for a webhook that cannot answer now, and its failure policy decides."""

    def busy(_: bytes) -> ReviewedObject:
        raise BusyWebhook("2 reviews are in progress; try again")

    request = Request(method="POST", path=VALIDATE, query={}, headers={}, body=b"", client="")
    reply = RouteTable(routes(busy, busy)).answer(request)
    assert (reply.status, b"try again" in reply.body) == (503, True)


def test_a_large_review_is_given_up_before_the_api_server_does() -> None:
    """The API server waits for 5 s."""
    assert LONGEST_WAIT < 5
