"""One server, asked by many threads: whole answers in bounded time and size, and streams."""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from slurm_bridge import errors
from slurm_bridge.runtime.http.messages import HttpAnswer, HttpLimits, HttpPool, HttpRequest, HttpResponse, seconds

#: What is left of a deadline that has passed: time limits have to be positive.
_NOTHING: Final = 0.001

#: An identity encoding keeps a compressed answer from growing past the limit unseen.
_ALWAYS: Final = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "slurm-bridge"}


class Credentials(Protocol):
    """Our identity at the server, as headers of each request."""

    def headers(self) -> Mapping[str, str]: ...

    def renewed(self, answer: HttpAnswer, sent: Mapping[str, str]) -> bool:
        """Whether the server refused these headers and others may be sent now; asked of every answer but a success."""


class Anonymous:
    """No identity: the requests themselves bring what is needed."""

    def headers(self) -> Mapping[str, str]:
        """None."""
        return {}

    def renewed(self, answer: HttpAnswer, sent: Mapping[str, str]) -> bool:  # noqa: ARG002 - there is nothing to renew
        """Never."""
        return False


class Client:
    """Asks one server. A request is sent a second time only after its credentials were refused and renewed."""

    def __init__(self, pool: HttpPool, limits: HttpLimits, now: Callable[[], float], credentials: Credentials) -> None:
        self._pool, self._limits, self._now, self._credentials = pool, limits, now, credentials

    def ask(self, request: HttpRequest, prefix: str = "") -> HttpAnswer:
        """The whole answer, whatever it says; `prefix` stands before the path."""
        until = self._now() + request.seconds if request.seconds is not None else None
        headers = self._credentials.headers()
        answer = self._read(request, self._send(request, prefix, headers, self._limits.answer))
        if not answer.ok and self._credentials.renewed(answer, headers):
            if until is not None:
                request = dataclasses.replace(request, seconds=max(_NOTHING, until - self._now()))
            response = self._send(request, prefix, self._credentials.headers(), self._limits.answer)
            answer = self._read(request, response)
        return answer

    def open(self, request: HttpRequest, prefix: str = "") -> "Stream | HttpAnswer":
        """An answer that goes on for minutes, or the whole answer that refuses it."""
        headers = self._credentials.headers()
        response = self._send(request, prefix, headers, self._limits.silence)
        if response.status == 200:  # noqa: PLR2004 - the only status of a stream
            return Stream(request, response)
        answer = self._read(request, response)
        if not self._credentials.renewed(answer, headers):
            return answer
        response = self._send(request, prefix, self._credentials.headers(), self._limits.silence)
        return Stream(request, response) if response.status == 200 else self._read(request, response)  # noqa: PLR2004

    def close(self) -> None:
        """Drop idle connections; those in use end with their requests."""
        self._pool.close()

    def _send(self, request: HttpRequest, prefix: str, credentials: Mapping[str, str], silence: float) -> HttpResponse:
        headers = {**_ALWAYS, **credentials, **request.headers}
        if request.body is not None:
            headers["content-type"] = request.content_type
        return self._pool.send(request, f"{prefix}{request.target}", headers, silence)

    def _read(self, request: HttpRequest, response: HttpResponse) -> HttpAnswer:
        """The connection goes back only when all of the body was read."""
        good, most = response.status < 300, self._limits.most_bytes  # noqa: PLR2004 - the class of HTTP statuses
        with contextlib.closing(response):
            body: bytes | bytearray = response.read()
            if body:
                # Nearly every answer is one piece, and is not copied; a longer one grows in place.
                while len(body) <= most and (piece := response.read()):
                    body = body if isinstance(body, bytearray) else bytearray(body)
                    body += piece
        if good and len(body) > most:
            raise errors.BadAnswer(f"{request}: the answer exceeds {most} bytes")
        return HttpAnswer(
            status=response.status,
            body=body if len(body) <= most else body[:most],
            content_type=response.headers.get("content-type", ""),
            retry_after=seconds(response.headers.get("retry-after", "")),
        )


class Stream:
    """The body of a watch as it arrives; `close` may come from any thread and ends the iteration."""

    def __init__(self, request: HttpRequest, response: HttpResponse) -> None:
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
            while piece := self._response.read():
                yield piece
        except errors.TryLater:
            # Whatever a closed connection looks like from inside, we closed it.
            if not self._closed.is_set():
                raise
        finally:
            with self._lock:
                self._reading = False
                self._closed.set()
                self._response.close()

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
