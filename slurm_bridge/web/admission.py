"""The endpoints of the admission webhook, which the API server calls.

    POST /admission/mutate      an AdmissionReview with changes of the object
    POST /admission/validate    an AdmissionReview that allows or refuses it

Both answer 200 with an AdmissionReview for every review that can be answered, 400 for any other body, and 503 for a
large one that has waited too long for others. No caller is authenticated: an answer tells nothing that is not in the
question, and changes nothing.
"""

import dataclasses
import http
from collections.abc import Callable, Mapping
from typing import Any, Final

from loguru import logger

from slurm_bridge.web import refusals
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, Routes, bounded

MUTATE: Final = "/admission/mutate"
VALIDATE: Final = "/admission/validate"

#: As much as the API server itself accepts of an object.
MOST_BYTES: Final = 3 << 20
#: Bodies of more than `server.SMALL` bytes at the same time, which hardly any review has.
MOST_LARGE: Final = 8
#: An idle connection is kept this long: the API server closes its own after 90 s, and must be the first to close one.
KEPT_SECONDS: Final = 120.0
#: Connections, so many of one API server too: it opens one for each request that it makes at the same time.
CONNECTIONS: Final = 256


class UnanswerableReview(Exception):
    """The body is no review; the message says what is wrong with it."""


class BusyWebhook(Exception):
    """There is no time for this review; the message says why."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedObject:
    """The answer as JSON, and for the log: what was reviewed, for which user, and with which outcome.

    `outcome` is allowed, changed, refused or failed; `surprise` is the error behind a failed one.
    """

    body: Mapping[str, Any]
    about: str
    user: str
    outcome: str
    message: str = ""
    surprise: Exception | None = None


#: Answers a body. Raises UnanswerableReview, BusyWebhook.
Review = Callable[[bytes], ReviewedObject]


def routes(mutate: Review, validate: Review) -> Routes:
    """The routes of both webhooks, with the bound of their bodies."""
    every: Routes = {
        ("POST", MUTATE): lambda request: _answer("mutate", mutate, request),
        ("POST", VALIDATE): lambda request: _answer("validate", validate, request),
    }
    return bounded(every, MOST_BYTES)


def _answer(webhook: str, review: Review, request: Request) -> Reply:
    try:
        found = review(request.body)
    except UnanswerableReview as problem:
        return refusals.refused(http.HTTPStatus.BAD_REQUEST, "BadRequest", str(problem))
    except BusyWebhook as problem:
        logger.bind(webhook=webhook).warning("admission: a review is given up: {}", problem)
        return refusals.refused(http.HTTPStatus.SERVICE_UNAVAILABLE, "TooManyRequests", str(problem))
    journal = logger.bind(webhook=webhook, user=found.user)
    if found.surprise is not None:
        journal.opt(exception=found.surprise).error("admission: {} could not be reviewed", found.about)
    elif found.outcome == "refused":
        journal.info("admission: {} is refused: {}", found.about, found.message)
    else:
        journal.debug("admission: {} is {}", found.about, found.outcome)
    return Reply.json(found.body)
