"""The answers of the submission API and the admin API to requests that are not carried out.

For pods that were not created, or may have been created:

the API server says          the answer is
Forbidden                    403   with its message: the rights are the caller's
Unauthorized                 401   the token has expired since it was reviewed
AlreadyExists, Conflict      409
NotFound                     404   the namespace does not exist
BadRequest, Invalid          400   with its message, which names the field
not reached, overloaded      503   nothing was done: submit the pod again
no answer, or an unreadable  504   the pod may exist: look for the name in the answer
"""

import http
import math
from collections.abc import Mapping
from typing import Final

from slurm_bridge import errors
from slurm_bridge.web.replies import Reply

_S = http.HTTPStatus

#: Seconds; used if the server suggests no time.
_SOON: Final = 1.0

#: The first row that matches; each with its machine-readable reason.
_SAID: Final[tuple[tuple[type[errors.BridgeError], http.HTTPStatus, str], ...]] = (
    (errors.NotAuthorized, _S.FORBIDDEN, "Forbidden"),
    (errors.Conflict, _S.CONFLICT, "AlreadyExists"),
    (errors.NotFound, _S.NOT_FOUND, "NotFound"),
    (errors.Invalid, _S.BAD_REQUEST, "Invalid"),
)


def of(error: errors.BridgeError, namespace: str, name: str) -> Reply:
    """The answer for an error of the request that creates this pod."""
    if isinstance(error, errors.NotAuthenticated):
        return unknown("the Kubernetes cluster does not accept this token any more")
    about = {"namespace": namespace, "name": name}
    for made, status, reason in _SAID:
        if isinstance(error, made):
            # The API server may have given a reason of its own.
            given = error.reason if isinstance(error, errors.Disagreement) else ""
            return refused(status, given or reason, str(error), about)
    if may_have_happened(error):
        words = f"pod {namespace}/{name} may have been created: look for it before you submit it again ({error})"
        return refused(_S.GATEWAY_TIMEOUT, "Unknown", words, about)
    return later(f"pod {namespace}/{name} was not created: {error}", _wish(error))


def may_have_happened(error: errors.BridgeError) -> bool:
    """The request was sent, and its result is unknown."""
    return isinstance(error, errors.Unanswered | errors.BadAnswer | errors.Expired)


def unknown(words: str) -> Reply:
    """The answer to a request without a valid token."""
    given = {"reason": "Unauthorized", "message": words}
    return Reply.json(given, _S.UNAUTHORIZED, www_authenticate="Bearer")


def crowded(words: str, seconds: float = _SOON) -> Reply:
    """The answer when there are too many requests."""
    return refused(_S.TOO_MANY_REQUESTS, "TooManyRequests", words, seconds=seconds)


def later(words: str, seconds: float = _SOON) -> Reply:
    """The answer when nothing was done."""
    return refused(_S.SERVICE_UNAVAILABLE, "Unavailable", words, seconds=seconds)


def unreviewed(error: errors.BridgeError, component: str) -> Reply:
    """The answer when the caller cannot be identified. The cause is logged and not shown to callers."""
    if isinstance(error, errors.NotAuthorized):
        words = f"the bridge may not review tokens: its administrator has to apply {component}"
        return refused(_S.INTERNAL_SERVER_ERROR, "Misconfigured", words)
    return later("the token could not be reviewed; nothing was done", _wish(error))


def _wish(error: errors.BridgeError) -> float:
    wish = error.retry_after if isinstance(error, errors.TryLater) else None
    return wish or _SOON


def refused(
    status: http.HTTPStatus,
    reason: str,
    message: str,
    more: Mapping[str, object] | None = None,
    seconds: float | None = None,
) -> Reply:
    """A machine-readable reason, a message for people and `more`; `seconds` after which the client may try again."""
    given = {"reason": reason, "message": message, **(more or {})}
    if seconds is None:
        return Reply.json(given, status)
    return Reply.json(given, status, retry_after=str(math.ceil(seconds)))
