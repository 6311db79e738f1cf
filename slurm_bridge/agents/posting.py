"""JSON over HTTP for hooks: implements `hooks.services.JsonClient`.

Connections are kept for each service. A question has one deadline for everything, an answer so many bytes; redirects
are never followed, because the token would travel with them. Every failure is a NotAnswered that names the service and
what went wrong, and never the token.
"""

import collections
import dataclasses
import http
import pathlib
import threading
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import msgspec
import urllib3
from urllib3 import exceptions

from slurm_bridge import errors, ports
from slurm_bridge.agents import sockets
from slurm_bridge.agents.bearer import TokenFile
from slurm_bridge.hooks.services import NotAnswered, Target

_NEVER: Final = urllib3.Retry(total=False, redirect=False)
_PIECE: Final = 1 << 16

#: How much of a refusal is repeated to people.
_REASON: Final = 200

#: Services whose connections are kept at most: configuration that changes often must not pile them up.
_SERVICES: Final = 64

#: An identity encoding keeps a compressed answer from growing past the limit unseen.
_ALWAYS: Final = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "slurm-bridge",
}

_decoder: Final = msgspec.json.Decoder()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One request, without credentials."""

    target: Target
    path: str
    body: bytes
    until: float

    def __str__(self) -> str:
        return f"{_address(self.target)}{self.path}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Answer:
    """What came back, whole if it was a success."""

    status: int
    body: bytes


class Posting:
    """The connections of one process; may be called from any thread."""

    def __init__(self, clock: ports.Clock, *, connections: int = 64) -> None:
        self._clock = clock
        self._connections = connections
        self._lock = threading.Lock()
        self._pools: collections.OrderedDict[sockets.Address, urllib3.HTTPConnectionPool] = collections.OrderedDict()
        self._files: dict[str, TokenFile] = {}

    def __call__(self, target: Target, path: str, body: Mapping[str, Any], *, seconds: float) -> Any:
        """The decoded answer of a 200; NotAnswered for everything else, and when so many seconds are over."""
        until = self._clock.now() + seconds
        question = _Question(target=target, path=path, body=msgspec.json.encode(body), until=until)
        token = self._token(question)
        answer = self._ask(question, token)
        if answer.status == http.HTTPStatus.UNAUTHORIZED and (renewed := self._token(question, refused=token)):
            token, answer = renewed, self._ask(question, renewed)
        if answer.status != http.HTTPStatus.OK:
            raise NotAnswered(f"{question}: {_refusal(answer, token)}", answer.status)
        try:
            return _decoder.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise NotAnswered(f"{question}: the answer is not JSON: {problem}", answer.status) from None
        except RecursionError:
            raise NotAnswered(f"{question}: the answer is nested too deeply", answer.status) from None

    def close(self) -> None:
        """Drop all kept connections."""
        with self._lock:
            pools, self._pools = self._pools, collections.OrderedDict()
        for pool in pools.values():
            pool.close()

    def _token(self, question: _Question, *, refused: str = "") -> str:
        """The token for this service; empty where none is configured, or none but the refused one is there."""
        path = question.target.token_file
        if not path:
            return ""
        with self._lock:
            file = self._files.setdefault(path, TokenFile(pathlib.Path(path)))
        try:
            token = file.again() if refused else file.first()
        except errors.BadConfiguration as problem:
            raise NotAnswered(f"{question}: {problem}") from None
        return "" if token == refused else token

    def _ask(self, question: _Question, token: str) -> _Answer:
        """Once; and once more when a connection had been kept too long, which the service closed without a word."""
        try:
            return self._once(question, token)
        except exceptions.ProtocolError as problem:
            if not _closed_unread(problem):
                _fail(question, problem)
        try:
            return self._once(question, token)
        except exceptions.HTTPError as problem:
            _fail(question, problem)

    def _once(self, question: _Question, token: str) -> _Answer:
        seconds = max(0.001, question.until - self._clock.now())
        try:
            response = self._pool(question).urlopen(
                "POST",
                f"{sockets.base(_address(question.target))}{question.path}",
                body=question.body,
                headers={**_ALWAYS, **({"authorization": f"Bearer {token}"} if token else {})},
                timeout=urllib3.Timeout(total=seconds, connect=seconds),
                retries=_NEVER,
                redirect=False,
                preload_content=False,
                # Asked for or not: a few packed bytes become more than the limit before anybody counts them.
                decode_content=False,
            )
        except exceptions.ProtocolError:
            raise
        except (exceptions.HTTPError, OSError) as problem:
            _fail(question, problem)
        try:
            return self._read(question, response)
        finally:
            response.close()

    def _pool(self, question: _Question) -> urllib3.HTTPConnectionPool:
        address, dropped = _address(question.target), None
        with self._lock:
            pool = self._pools.get(address)
            if pool is None:
                try:
                    pool = sockets.pool(address, self._clock.now, connections=self._connections)
                except ValueError as problem:
                    raise NotAnswered(f"{address}: the address {problem}") from None
                self._pools[address] = pool
            self._pools.move_to_end(address)
            if len(self._pools) > _SERVICES:
                _, dropped = self._pools.popitem(last=False)
        if dropped is not None:
            dropped.close()
        return pool

    def _read(self, question: _Question, response: urllib3.BaseHTTPResponse) -> _Answer:
        """Of a refusal only the beginning."""
        good = response.status == http.HTTPStatus.OK
        most = question.target.most_bytes if good else _PIECE
        body = bytearray()
        try:
            while len(body) <= most and (piece := response.read(_PIECE)):
                body += piece
        except (exceptions.HTTPError, OSError) as problem:
            _fail(question, problem)
        if good and len(body) > most:
            raise NotAnswered(f"{question}: the answer exceeds {most} bytes", response.status)
        return _Answer(status=response.status, body=bytes(body))


def _address(target: Target) -> sockets.Address:
    return sockets.Address(url=target.url, ca_file=target.ca_file)


def _closed_unread(problem: exceptions.ProtocolError) -> bool:
    """Nobody read the request: the other side closed an idle connection at the same moment."""
    return any(isinstance(cause, ConnectionResetError | BrokenPipeError) for cause in problem.args)


def _fail(question: _Question, problem: Exception) -> NoReturn:
    # Not chained: what is in between quotes headers.
    raise NotAnswered(f"{question}: {_words(problem)}") from None


def _words(problem: Exception) -> str:
    """Plainly; urllib3 hides causes in arguments, and its own words quote object addresses."""
    root: BaseException = problem
    while inner := _inner(root):
        root = inner
    if isinstance(root, TimeoutError | exceptions.TimeoutError):
        return "no whole answer in time"
    said = getattr(root, "strerror", None) or str(root)
    return f"not reached: {said}" if isinstance(problem, exceptions.NewConnectionError) else f"broken off: {said}"


def _inner(problem: BaseException) -> BaseException | None:
    wrapped = (*problem.args, problem.__cause__)
    return next((one for one in wrapped if isinstance(one, BaseException) and one is not problem), None)


def _refusal(answer: _Answer, token: str) -> str:
    """Status and reason; a service that repeats the token must not bring it into a log."""
    status = answer.status
    phrase = http.HTTPStatus(status).phrase if status in set(http.HTTPStatus) else ""
    text = answer.body.decode("utf-8", errors="replace")
    text = " ".join((text.replace(token, "***") if token else text).split())
    said = "".join(letter for letter in text if letter.isprintable())[:_REASON]
    return f"{status} {phrase}{': ' if said else ''}{said}"
