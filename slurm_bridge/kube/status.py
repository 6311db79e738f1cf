"""What a refusal of the API server means to us: Status objects and HTTP numbers become errors of ours.

"Unknown is not gone": a number counts as the API server's own word only where a Status object says the same. A
proxy's 404 page is a bad answer, never the absence of an object; nor is the API server's own 404 for a resource or
version that it does not serve, which names no object.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus

import msgspec

from slurm_bridge import errors
from slurm_bridge.runtime.http.messages import LONGEST_RETRY_AFTER, HttpAnswer

#: Enough of a message to act on; a proxy's page is not worth more.
_MOST_TEXT = 500


class Cause(msgspec.Struct, frozen=True):
    """One reason among several."""

    reason: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """What the message speaks of."""

    name: str = ""
    causes: tuple[Cause, ...] | None = None
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """The API server's own account of a failure."""

    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None

    @property
    def causes(self) -> frozenset[str]:
        """Reasons and fields named in the details."""
        lines = (self.details and self.details.causes) or ()
        return frozenset(word for line in lines for word in (line.reason, line.field) if word)


_decoder = msgspec.json.Decoder(Status)

#: Numbers that mean something only in a Status of the API server.
_REFUSALS: Mapping[int, type[errors.Disagreement]] = {
    HTTPStatus.BAD_REQUEST: errors.Invalid,
    HTTPStatus.NOT_FOUND: errors.NotFound,
    HTTPStatus.METHOD_NOT_ALLOWED: errors.Invalid,
    HTTPStatus.NOT_ACCEPTABLE: errors.Invalid,
    HTTPStatus.CONFLICT: errors.Conflict,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: errors.Invalid,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: errors.Invalid,
    HTTPStatus.UNPROCESSABLE_ENTITY: errors.Invalid,
}

#: Numbers that mean the same from the API server and from a proxy.
_BY_NUMBER: Mapping[int, type[errors.BridgeError]] = {
    HTTPStatus.UNAUTHORIZED: errors.NotAuthenticated,
    HTTPStatus.FORBIDDEN: errors.NotAuthorized,
    HTTPStatus.GONE: errors.Expired,
    HTTPStatus.TOO_MANY_REQUESTS: errors.Unavailable,
    HTTPStatus.SERVICE_UNAVAILABLE: errors.Unavailable,
}

#: Words in a Status that tell more than its number.
_BY_CAUSE: tuple[tuple[str, Callable[[str, Status], errors.BridgeError]], ...] = (
    # A watch or list "from the future": the server lost state, what we remember is worth nothing.
    ("ResourceVersionTooLarge", lambda text, _: errors.Expired(text)),
    # Our rights need no change: the namespace is on its way out.
    ("NamespaceTerminating", lambda text, status: _disagree(errors.Conflict, text, status)),
    # The uid sent as a precondition is not the object's: another incarnation stands there.
    ("metadata.uid", lambda text, status: _disagree(errors.Conflict, text, status)),
)


def read(body: bytes | bytearray) -> Status | None:
    """The Status in this body, None when it holds none."""
    try:
        status = _decoder.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return status if status.kind == "Status" else None


def unserved(answer: HttpAnswer) -> bool:
    """The API server itself says that it has no such path: in a Status, or in the words of its router."""
    body = answer.body
    return answer.status == HTTPStatus.NOT_FOUND and (body == b"404 page not found\n" or read(body) is not None)


def refusal(what: object, answer: HttpAnswer) -> errors.BridgeError:
    """The error to raise for an answer that is not a success."""
    status, number = read(answer.body), answer.status
    if status is None:
        return _unsigned(what, answer)
    wish = answer.retry_after
    if not wish and status.details and status.details.retry_after_seconds:
        wish = min(float(status.details.retry_after_seconds), LONGEST_RETRY_AFTER)
    text = f"{what}: {status.message[:_MOST_TEXT] or status.reason} ({number} {status.reason})"
    for word, make in _BY_CAUSE:
        if word in status.causes:
            return make(text, status)
    if number == HTTPStatus.NOT_FOUND and not (status.details and status.details.name):
        return errors.BadAnswer(text)
    if number in _REFUSALS:
        return _disagree(_REFUSALS[number], text, status)
    return _by_number(number, text, wish or None)


def _unsigned(what: object, answer: HttpAnswer) -> errors.BridgeError:
    """A proxy in between has answered, or the server before it knew what was asked."""
    number, wish = answer.status, answer.retry_after
    text = f"{what}: HTTP {number} without a Status: {bytes(answer.body[:80])!r}"
    if number in _BY_NUMBER and number != HTTPStatus.GONE:
        return _by_number(number, text, wish)
    if number >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return errors.Unanswered(text, retry_after=wish)
    return errors.BadAnswer(text)


def _by_number(number: int, text: str, wish: float | None) -> errors.BridgeError:
    made = _BY_NUMBER.get(number, errors.Unanswered)
    return made(text, retry_after=wish) if issubclass(made, errors.TryLater) else made(text)


def _disagree(made: type[errors.Disagreement], text: str, status: Status) -> errors.Disagreement:
    return made(text, code=status.code, reason=status.reason)
