"""Calls to a pocket server without sockets and threads: the handler is asked in the caller's own thread.

    adapter ── direct_pool (the HTTP library's face) ── Line ── handler ── pocket world

Faults strike as they do in `sim.http`, and time that a fault takes passes on the clock that is given. A handler may
itself raise `NotReached`, `NotAnswered` or `Silent`: that is how a simulation puts its own weather before a world.
"""

import contextlib
import dataclasses
import threading
import urllib.parse
from collections.abc import Generator, Iterator, Mapping

from slurm_bridge import ports
from slurm_bridge.sim import faults as faults_
from slurm_bridge.sim import wire


class NotReached(Exception):
    """Nothing was sent."""


class NotAnswered(Exception):
    """Something was sent, and the connection broke."""


class Silent(NotAnswered):
    """Something was sent, and patience ended."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What arrives: whole, or `broken` off behind the last piece."""

    status: int
    headers: Mapping[str, str]
    pieces: Iterator[bytes]
    broken: bool = False

    def __iter__(self) -> Iterator[bytes]:
        yield from self.pieces
        if self.broken:
            raise NotAnswered("the answer is cut off")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request as an HTTP library is told it, and how long it would wait for the answer."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    patience: float = 0.0


class Line:
    """One way to one handler."""

    def __init__(self, handler: wire.Handler, *, clock: ports.Clock, faults: faults_.Faults | None = None) -> None:
        self.faults = faults if faults is not None else faults_.Faults()
        self._handler = handler
        self._clock = clock
        self._never = threading.Event()

    def ask(self, question: Question) -> Answer:
        """The answer, or one of the exceptions above."""
        request = _request(question)
        fault = self.faults.strike(request.method, request.target)
        try:
            response = self._respond(request, fault, question.patience)
        except BaseException:
            self._note(request, 0)
            raise
        self._note(request, response.status)
        return _answer(response, fault)

    def _respond(self, request: wire.Request, fault: faults_.Fault | None, patience: float) -> wire.Response:
        self._before(fault, patience)
        if isinstance(fault, faults_.Answer):
            headers = dict(fault.headers)
            return wire.Response(status=fault.status, body=fault.body, content_type=fault.content_type, headers=headers)
        return self._after(fault, self._handler(request), patience)

    def _before(self, fault: faults_.Fault | None, patience: float) -> None:
        match fault:
            case faults_.Delay(seconds):
                self._clock.wait(self._never, seconds)
            case faults_.Meanwhile(action):
                action()
            case faults_.Hang(acted=False):
                self._fall_silent(patience)
            case faults_.Reset(acted=False):
                raise NotAnswered("connection reset")

    def _after(self, fault: faults_.Fault | None, response: wire.Response, patience: float) -> wire.Response:
        match fault:
            case faults_.Hang():
                self._fall_silent(patience)
            case faults_.Reset() | faults_.Drop():
                raise NotAnswered("connection closed without an answer")
            case faults_.Garble(_, content_type, status):
                body = fault.sent(response.body)
                return wire.Response(status=status or response.status, body=body, content_type=content_type)
        return response

    def _fall_silent(self, patience: float) -> None:
        self._clock.wait(self._never, patience)
        raise Silent(f"no answer for {patience:g} s")

    def _note(self, request: wire.Request, status: int) -> None:
        self.faults.note(faults_.Call(method=request.method, target=request.target, status=status))


def _request(question: Question) -> wire.Request:
    """What a server would have read."""
    _, _, rest = question.url.partition("://")
    target = "/" + (rest.partition("/")[2] if rest else question.url.lstrip("/"))
    path, _, query = target.partition("?")
    return wire.Request(
        method=question.method,
        path=urllib.parse.unquote(path),
        query=wire.parse_query(query),
        headers={name.lower(): value for name, value in question.headers.items()},
        body=question.body or b"",
        target=target,
        patient=False,
    )


def _answer(response: wire.Response, fault: faults_.Fault | None) -> Answer:
    headers = {"content-type": response.content_type}
    headers |= {name.lower(): value for name, value in response.headers.items()}
    if isinstance(response.body, bytes):
        broken = isinstance(fault, faults_.Truncate)
        body = response.body[: fault.after] if isinstance(fault, faults_.Truncate) else response.body
        return Answer(status=response.status, headers=headers, pieces=iter((body,) if body else ()), broken=broken)
    most = fault.after if isinstance(fault, faults_.Cut) else None
    pieces = _counted(response.body, most)
    return Answer(status=response.status, headers=headers, pieces=pieces, broken=most is not None)


def _counted(stream: Iterator[bytes], most: int | None) -> Iterator[bytes]:
    """The pieces that say something, at most so many."""
    with contextlib.closing(_closable(stream)) as pieces:
        for number, piece in enumerate(piece for piece in pieces if piece):
            if number == most:
                return
            yield piece


def _closable(stream: Iterator[bytes]) -> Generator[bytes, None, None]:
    yield from stream
