"""HTTP to the API server: kept connections, bounded time and size, and every failure told as an error of ours.

What matters to callers is whether a write may have happened. A request that never left is Unavailable, one that left
and was not answered is Unanswered. Nothing is repeated here, save one request after a 401, which did nothing.
"""

import contextlib
import dataclasses
import ssl
import threading
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import NoReturn, Protocol
from urllib.parse import urlencode

import urllib3
from urllib3 import exceptions

from slurm_bridge import errors, ports
from slurm_bridge.kube import status
from slurm_bridge.runtime import pools

_PIECE = 1 << 20
_NEVER = urllib3.Retry(total=False, redirect=False)
_JSON = "application/json"

#: Failures before the first byte of a request was sent; a closed pool is our own end.
_NEVER_LEFT = (
    exceptions.NewConnectionError,
    exceptions.ConnectTimeoutError,
    exceptions.ProxyError,
    exceptions.ClosedPoolError,
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long and how much we listen.

    `silence`: API servers send a bookmark about every minute, of quiet kinds less often; a watch that says nothing for
    much longer is half open.
    """

    connect: float = 5.0
    answer: float = 30.0
    whole_answer: float = 120.0
    silence: float = 150.0
    most_bytes: int = 256 << 20
    connections: int = 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, before addresses and our credentials are added; its repr shows no token that it carries."""

    method: str
    path: str
    query: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes | None = dataclasses.field(default=None, repr=False)
    content_type: str = _JSON
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One whole answer."""

    number: int
    body: bytes
    retry_after: str = ""

    @property
    def ok(self) -> bool:
        """The server did as asked."""
        return HTTPStatus.OK <= self.number < HTTPStatus.MULTIPLE_CHOICES


class Response(Protocol):
    """What is read of an answer of `urllib3`."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def read(self, amt: int, /) -> bytes: ...

    def read1(self, amt: int, /) -> bytes: ...

    def close(self) -> None: ...

    def shutdown(self) -> None: ...


#: The connections of this adapter.
Pool = pools.Pool[Response]


class Access(Protocol):
    """Where the server is and who we are there (`config.Access`)."""

    @property
    def prefix(self) -> str: ...

    def headers(self) -> Mapping[str, str]: ...

    def renew(self) -> None: ...

    def pool(self, connections: int, /) -> Pool: ...

    def nobodys_pool(self, connections: int, /) -> Pool:
        """Connections on which nothing says who we are."""


class Transport:
    """The connections to one API server; safe to use from any thread."""

    def __init__(self, access: Access, *, clock: ports.Clock, limits: Limits) -> None:
        self._access = access
        self._clock = clock
        self._limits = limits
        self._calls = access.pool(limits.connections)
        # Of its own, so that a watch which comes to its end does not push out a connection that calls use.
        self._watches = access.pool(limits.connections)

    def call(self, request: Request) -> Answer:
        """Ask and read the whole answer, whatever it says."""
        answer = self._once(request)
        if answer.number == HTTPStatus.UNAUTHORIZED:
            self._access.renew()
            answer = self._once(request)
        return answer

    def stream(self, request: Request) -> "Stream":
        """Ask for an answer that goes on for minutes; one that is no success is raised."""
        response = self._stream_once(request)
        if response.status == HTTPStatus.UNAUTHORIZED:
            response.close()
            self._access.renew()
            response = self._stream_once(request)
        if response.status != HTTPStatus.OK:
            answer = self._read(request, response)
            raise status.refusal(str(request), answer.number, answer.body, answer.retry_after)
        return Stream(request, response)

    def close(self) -> None:
        """Give up idle connections; those in use end with their requests."""
        self._calls.close()
        self._watches.close()

    def _once(self, request: Request) -> Answer:
        timeout = urllib3.Timeout(connect=self._limits.connect, read=self._limits.answer)
        return self._read(request, self._send(self._calls, request, timeout))

    def _stream_once(self, request: Request) -> Response:
        timeout = urllib3.Timeout(connect=self._limits.connect, read=self._limits.silence)
        return self._send(self._watches, request, timeout)

    def _send(self, pool: Pool, request: Request, timeout: urllib3.Timeout) -> Response:
        query = "?" + urlencode(request.query) if request.query else ""
        headers = {"accept": _JSON, "user-agent": "slurm-bridge", **self._access.headers(), **request.headers}
        if request.body is not None:
            headers["content-type"] = request.content_type
        try:
            return pool.urlopen(
                request.method,
                f"{self._access.prefix}{request.path}{query}",
                body=request.body,
                headers=headers,
                timeout=timeout,
                retries=_NEVER,
                redirect=False,
                preload_content=False,
            )
        except exceptions.HTTPError as error:
            _not_answered(request, error)

    def _read(self, request: Request, response: Response) -> Answer:
        """The whole body, in bounded time and size; the connection goes back only when all of it was read."""
        until = self._clock.now() + self._limits.whole_answer
        body = bytearray()
        with contextlib.closing(response), _reading(request):
            while piece := response.read(_PIECE):
                body += piece
                if len(body) > self._limits.most_bytes:
                    raise errors.BadAnswer(f"{request}: more than {self._limits.most_bytes} bytes")
                if self._clock.now() > until:
                    raise errors.Unanswered(f"{request}: still answering after {self._limits.whole_answer} s")
        return Answer(number=response.status, body=bytes(body), retry_after=response.headers.get("retry-after", ""))


class Stream:
    """The body of a watch as it arrives; `close` may come from any thread and ends the iteration."""

    def __init__(self, request: Request, response: Response) -> None:
        self._request = request
        self._response = response
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._reading = False

    def __iter__(self) -> Iterator[bytes]:
        with self._lock:
            if self._closed.is_set():
                return
            self._reading = True
        try:
            yield from self._pieces()
        except errors.TryLater:
            # Whatever a closed connection looks like from inside, we closed it.
            if not self._closed.is_set():
                raise
        finally:
            with self._lock:
                self._reading = False
                self._closed.set()
                self._response.close()

    def _pieces(self) -> Iterator[bytes]:
        with _reading(self._request):
            while piece := self._response.read1(_PIECE):
                yield piece

    def close(self) -> None:
        """Wake the reader: its socket is shut for reading, and the reader closes it; without one, close it here."""
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
            if not self._reading:
                self._response.close()
                return
            # The stream may come to its end at this very moment; then there is nothing left to shut.
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                self._response.shutdown()


def _not_answered(request: Request, error: exceptions.HTTPError) -> NoReturn:
    """Tell a request that never left from one whose answer is missing."""
    if isinstance(error, exceptions.SSLError) and isinstance(error.args[0], ssl.SSLCertVerificationError):
        raise errors.BadConfiguration(f"{request}: the server's certificate is not trusted: {error}") from error
    if isinstance(error, _NEVER_LEFT):
        raise errors.Unavailable(f"{request}: {_words(error)}") from error
    raise errors.Unanswered(f"{request}: {_words(error)}") from error


@contextlib.contextmanager
def _reading(request: Request) -> Iterator[None]:
    """Failures while the body arrives."""
    try:
        yield
    except exceptions.ReadTimeoutError as error:
        raise errors.Unanswered(f"{request}: silent for too long") from error
    except (exceptions.HTTPError, OSError, ValueError) as error:
        raise errors.BadAnswer(f"{request}: the answer broke off: {_words(error)}") from error


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
