"""The answers of the submission API for pods that were not created, or may have been created.

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
from slurm_bridge.web import callers
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
        return callers.unknown("the Kubernetes cluster does not accept this token any more")
    about = {"namespace": namespace, "name": name}
    for made, status, reason in _SAID:
        if isinstance(error, made):
            # The API server may have given a reason of its own.
            given = error.reason if isinstance(error, errors.Disagreement) else ""
            return _reply(status, given or reason, str(error), about)
    if may_have_happened(error):
        words = f"pod {namespace}/{name} may have been created: look for it before you submit it again ({error})"
        return _reply(_S.GATEWAY_TIMEOUT, "Unknown", words, about)
    return later(f"pod {namespace}/{name} was not created: {error}", _wish(error))


def may_have_happened(error: errors.BridgeError) -> bool:
    """The request was sent, and its result is unknown."""
    return isinstance(error, errors.Unanswered | errors.BadAnswer | errors.Expired)


def unacceptable(words: str) -> Reply:
    """The answer for a manifest that cannot be created as it is."""
    return _reply(_S.BAD_REQUEST, "Invalid", words)


def full(most: int) -> Reply:
    """The answer when the buffer is full."""
    return crowded(f"too many pods are being submitted: at most {most} may wait until the scheduler has seen them")


def crowded(words: str, seconds: float = _SOON) -> Reply:
    """The answer when there are too many requests."""
    return _reply(_S.TOO_MANY_REQUESTS, "TooManyRequests", words, seconds=seconds)


def later(words: str, seconds: float = _SOON) -> Reply:
    """The answer when nothing was done."""
    return _reply(_S.SERVICE_UNAVAILABLE, "Unavailable", words, seconds=seconds)


def unreviewed(error: errors.BridgeError, component: str) -> Reply:
    """The answer when the caller cannot be identified. The cause is logged and not shown to callers."""
    if isinstance(error, errors.NotAuthorized):
        words = f"the bridge may not review tokens: its administrator has to apply {component}"
        return _reply(_S.INTERNAL_SERVER_ERROR, "Misconfigured", words)
    return later("the token could not be reviewed; nothing was done", _wish(error))


def _wish(error: errors.BridgeError) -> float:
    wish = error.retry_after if isinstance(error, errors.TryLater) else None
    return wish or _SOON


def _reply(
    status: http.HTTPStatus,
    reason: str,
    message: str,
    about: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> Reply:
    given = {"reason": reason, "message": message, **(about or {})}
    if seconds is None:
        return Reply.json(given, status)
    return Reply.json(given, status, retry_after=str(math.ceil(seconds)))
