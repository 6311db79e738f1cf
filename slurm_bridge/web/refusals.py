"""What whoever hands in a pod is told when it was not created, or when nobody knows.

the API server says          we say
Forbidden                    403   its own words: the rights are the caller's
Unauthorized                 401   the token has ended since it was reviewed
AlreadyExists, Conflict      409
NotFound                     404   the namespace
BadRequest, Invalid          400   its own words name the field
not reached, overloaded      503   nothing was done: hand it in again
no answer, or an unreadable  504   it may have been created: look for it under the name in the answer
"""

import http
import math
from collections.abc import Mapping
from typing import Final

from slurm_bridge import errors
from slurm_bridge.web import callers
from slurm_bridge.web.replies import Reply

_S = http.HTTPStatus

#: In seconds, where nobody says better.
_SOON: Final = 1.0

#: The first that fits; each with its reason for programs.
_SAID: Final[tuple[tuple[type[errors.BridgeError], http.HTTPStatus, str], ...]] = (
    (errors.NotAuthorized, _S.FORBIDDEN, "Forbidden"),
    (errors.Conflict, _S.CONFLICT, "AlreadyExists"),
    (errors.NotFound, _S.NOT_FOUND, "NotFound"),
    (errors.Invalid, _S.BAD_REQUEST, "Invalid"),
)


def of(error: errors.BridgeError, namespace: str, name: str) -> Reply:
    """For an error of the request that would have created this pod."""
    if isinstance(error, errors.NotAuthenticated):
        return callers.unknown("the Kubernetes cluster does not accept this token any more")
    about = {"namespace": namespace, "name": name}
    for made, status, reason in _SAID:
        if isinstance(error, made):
            return _reply(status, _reason(error, reason), str(error), about)
    if may_have_happened(error):
        words = f"pod {namespace}/{name} may have been created: look for it before you hand it in again ({error})"
        return _reply(_S.GATEWAY_TIMEOUT, "Unknown", words, about)
    return later(f"pod {namespace}/{name} was not created: {error}", _wish(error))


def may_have_happened(error: errors.BridgeError) -> bool:
    """The request left, and what came of it is not known."""
    return isinstance(error, errors.Unanswered | errors.BadAnswer | errors.Expired)


def unacceptable(words: str) -> Reply:
    """The manifest cannot be created as it is."""
    return _reply(_S.BAD_REQUEST, "Invalid", words)


def full(most: int) -> Reply:
    """No place is free."""
    return crowded(f"too many pods are being handed in: at most {most} may wait until the scheduler has seen them")


def crowded(words: str, seconds: float = _SOON) -> Reply:
    """There are too many at once."""
    return _reply(_S.TOO_MANY_REQUESTS, "TooManyRequests", words, seconds=seconds)


def later(words: str, seconds: float = _SOON) -> Reply:
    """Nothing was done."""
    return _reply(_S.SERVICE_UNAVAILABLE, "Unavailable", words, seconds=seconds)


def unreviewed(error: errors.BridgeError, component: str) -> Reply:
    """Nobody knows who asks. What is wrong between us and the API server is in the log, not for callers."""
    if isinstance(error, errors.NotAuthorized):
        words = f"the bridge may not review tokens: its administrator has to apply {component}"
        return _reply(_S.INTERNAL_SERVER_ERROR, "Misconfigured", words)
    return later("the token could not be reviewed; nothing was done", _wish(error))


def _reason(error: errors.BridgeError, otherwise: str) -> str:
    """The API server's own, where it gave one."""
    return (error.reason if isinstance(error, errors.Disagreement) else "") or otherwise


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
