"""JSON over HTTP for hooks: implements `hooks.background.Post`.

Connections are kept for each service. A question has one deadline for everything, an answer so many bytes; redirects
are never followed, because the token would travel with them. Every failure is a NotAnswered that names the service and
what went wrong, and never the token.
"""

import collections
import dataclasses
import http
import pathlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from slurm_bridge import errors, ports
from slurm_bridge.agents.bearer import AcceptedTokens
from slurm_bridge.hooks.services import NotAnswered, Target
from slurm_bridge.runtime.caches import LruCache
from slurm_bridge.runtime.http.client import Client
from slurm_bridge.runtime.http.connections import Endpoint, KeptConnections
from slurm_bridge.runtime.http.messages import ConnectionDropped, HttpAnswer, HttpLimits, HttpRequest

#: How much of a refusal is repeated to people.
_REASON: Final = 200

#: What is left of a deadline that has passed: time limits have to be positive.
_LEAST: Final = 0.001

#: Tokens that are kept out of messages: those in use while one is renewed.
_TOKENS: Final = 4

#: Services whose connections are kept at most: configuration that changes often must not pile them up.
_SERVICES: Final = 64

_decoder: Final = msgspec.json.Decoder()


class JsonClient:
    """The connections of one process; may be called from any thread."""

    def __init__(self, clock: ports.Clock, *, connections: int = 64) -> None:
        def made(target: Target) -> _Service:
            return _Service(target, clock, connections)

        self._services: LruCache[Target, _Service] = LruCache(made, most=_SERVICES, drop=_Service.close)

    def __call__(self, target: Target, path: str, body: Mapping[str, Any], *, seconds: float) -> Any:
        """The decoded answer of a 200; NotAnswered for everything else, and when so many seconds are over."""
        return self._services.get(target).ask(path, msgspec.json.encode(body), seconds)

    def close(self) -> None:
        """Drop all kept connections."""
        self._services.clear()


class _Service:
    """One service that is asked."""

    def __init__(self, target: Target, clock: ports.Clock, connections: int) -> None:
        self._server = Endpoint(url=target.url, ca_file=target.ca_file)
        try:
            self._server.check()
        except ValueError as problem:
            raise NotAnswered(f"{self._server}: the address {problem}") from None
        # No limit but the deadline of each question.
        endless = float("inf")
        limits = HttpLimits(connect=endless, whole_answer=0.0, most_bytes=target.most_bytes, connections=connections)
        self._clock = clock
        self._prefix = self._server.prefix
        self._bearer = _Bearer(target.token_file)
        self._client = Client(KeptConnections(self._server, limits, clock.now), limits, clock.now, self._bearer)

    def ask(self, path: str, body: bytes, seconds: float) -> Any:
        about = f"{self._server}{path}"
        request = HttpRequest(method="POST", path=path, body=body, seconds=seconds, about=about)
        try:
            answer = self._asked(request, seconds)
        except errors.BridgeError as problem:
            said = str(problem)
            # Not chained: what is in between quotes headers.
            raise NotAnswered(said if said.startswith(about) else f"{about}: {said}") from None
        if answer.status != http.HTTPStatus.OK:
            raise NotAnswered(f"{about}: {_refusal(answer, self._bearer)}", answer.status)
        try:
            return _decoder.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise NotAnswered(f"{about}: the answer is not JSON: {problem}", answer.status) from None
        except RecursionError:
            raise NotAnswered(f"{about}: the answer is nested too deeply", answer.status) from None

    def _asked(self, request: HttpRequest, seconds: float) -> HttpAnswer:
        """Once; and once more where the service had closed a kept connection without reading the question."""
        until = self._clock.now() + seconds
        try:
            return self._client.ask(request, self._prefix)
        except ConnectionDropped:
            left = max(_LEAST, until - self._clock.now())
            return self._client.ask(dataclasses.replace(request, seconds=left), self._prefix)

    def close(self) -> None:
        self._client.close()


class _Bearer:
    """The first token of a file, or none."""

    def __init__(self, path: str) -> None:
        self._file = AcceptedTokens(pathlib.Path(path)) if path else None
        self._sent: collections.deque[str] = collections.deque(maxlen=_TOKENS)

    def headers(self) -> Mapping[str, str]:
        if self._file is None:
            return {}
        token = self._file.first()
        if token not in self._sent:
            self._sent.append(token)
        return {"authorization": f"Bearer {token}"}

    def renewed(self, answer: HttpAnswer, sent: Mapping[str, str]) -> bool:
        """Whether the token was refused, and the file begins with another one now."""
        if answer.status != http.HTTPStatus.UNAUTHORIZED or self._file is None:
            return False
        return sent["authorization"] != f"Bearer {self._file.again()}"

    def hidden(self, text: str) -> str:
        """The text without any token that was sent; a service may repeat it."""
        for token in tuple(self._sent):
            text = text.replace(token, "***")
        return text


def _refusal(answer: HttpAnswer, bearer: _Bearer) -> str:
    """Status and reason."""
    status = answer.status
    phrase = http.HTTPStatus(status).phrase if status in set(http.HTTPStatus) else ""
    text = answer.body.decode("utf-8", errors="replace")
    text = " ".join(bearer.hidden(text).split())
    said = "".join(letter for letter in text if letter.isprintable())[:_REASON]
    return f"{status} {phrase}{': ' if said else ''}{said}"
