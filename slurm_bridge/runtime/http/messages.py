"""What is asked and answered, and the pool that a client asks: of kept connections, or a stand-in without sockets."""

import dataclasses
from collections.abc import Mapping
from typing import Final, Protocol
from urllib.parse import urlencode

from slurm_bridge import errors

JSON: Final = "application/json"

#: A wish of a server or a proxy in Retry-After counts up to so many seconds.
LONGEST_RETRY_AFTER: Final = 120.0
_DIGITS: Final = 9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """How long and how much is listened, in seconds and bytes.

    `answer` and `silence` are the longest silence of a call and of a stream. API servers send a bookmark about every
    minute, of quiet kinds less often: a watch that says nothing for much longer is half open. `whole_answer` is the
    deadline of a whole answer to a call, from its request on; it is never shorter than the longest silence.
    """

    connect: float = 5.0
    answer: float = 30.0
    whole_answer: float = 120.0
    silence: float = 150.0
    most_bytes: int = 256 << 20
    connections: int = 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request, before addresses and credentials are added; its repr shows no token that it carries.

    `seconds`, where given, is the deadline for everything: connecting, asking, and the whole answer. `about` is what
    messages call the request; left out, its method and path.
    """

    method: str
    path: str
    query: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes | None = dataclasses.field(default=None, repr=False)
    content_type: str = JSON
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    seconds: float | None = None
    about: str = ""

    def __str__(self) -> str:
        return self.about or f"{self.method} {self.path}"

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """One whole answer; of one that is no success and too long, the beginning."""

    status: int
    body: bytes | bytearray
    content_type: str = ""
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        """The status claims success; the body may still disagree."""
        return 200 <= self.status < 300  # noqa: PLR2004 - the class of HTTP statuses

    @property
    def json(self) -> bool:
        """The body is said to be JSON; a page of a proxy in between is not."""
        return self.content_type.startswith(JSON)


class HttpResponse(Protocol):
    """An answer whose head is there."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def read(self) -> bytes:
        """The next piece as it comes; none at the end. Raises Unanswered or BadAnswer."""

    def close(self) -> None: ...

    def shutdown(self) -> None:
        """Wake the thread that reads."""


class HttpPool(Protocol):
    """Kept connections to one server, shared by all threads."""

    def send(self, request: HttpRequest, target: str, headers: Mapping[str, str], silence: float) -> HttpResponse:
        """Ask once; `silence` is how long the answer may say nothing."""

    def close(self) -> None:
        """Drop idle connections; those in use end with their requests."""


class ConnectionDropped(errors.Unanswered):
    """The server closed the connection without a word: on a kept connection it has not read the request."""


def seconds(retry_after: str) -> float | None:
    """The number form of Retry-After, bounded; API servers and slurmrestd do not send its date form."""
    if not (retry_after.isascii() and retry_after.isdigit()):
        return None
    return min(float(retry_after[:_DIGITS]), LONGEST_RETRY_AFTER)
