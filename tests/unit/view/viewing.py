"""Pages of the live view over a made-up model, and callers with rights."""

import http
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from slurm_bridge import errors
from slurm_bridge.model import kinds
from slurm_bridge.model.callers import Caller, Token
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.view.feed import Feed
from slurm_bridge.view.live_model import ViewScope
from slurm_bridge.view.pages import LivePages, StreamLimits, ViewBackend
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, RouteTable


class Callers:
    """Implements ports.Callers: tokens by their owners, and where each may list pods; "*" is everywhere and nodes."""

    def __init__(self, **rights: Collection[str]) -> None:
        self.rights = dict(rights)
        self.asked: list[str] = []
        self.error: errors.BridgeError | None = None

    def who(self, token: Token) -> Caller | None:
        if self.error is not None:
            raise self.error
        return Caller(name=token.words) if token.words in self.rights else None

    def may(self, token: Token, verb: str, kind: kinds.Kind[Any], namespace: str = "") -> bool:
        if self.error is not None:
            raise self.error
        self.asked.append(f"{verb} {kind.plural} {namespace}".rstrip())
        may = self.rights[token.words]
        return "*" in may or (kind is kinds.PODS and namespace in may)

    def create_pod(self, namespace: str, manifest: Manifest, token: Token) -> Pod:
        raise AssertionError(f"a view creates no {manifest} in {namespace} as {token}")


class Delta:
    """A step with one word."""

    def __init__(self, word: str) -> None:
        self.word = word

    def text(self, scope: ViewScope) -> bytes:
        names = "all" if scope.namespaces is None else ",".join(sorted(scope.namespaces))
        return f'{{"{self.word}":"{names}"}}'.encode()


class Model:
    """In the place of a LiveModel."""

    def __init__(self) -> None:
        self.namespaces = frozenset({"a", "b"})
        self.next: list[Delta] = []
        self.steps = 0
        self.closed = False

    def step(self) -> Delta | None:
        self.steps += 1
        return self.next.pop(0) if self.next else None

    def full(self, scope: ViewScope) -> Iterator[bytes]:
        yield Delta("full").text(scope)

    def told(self, _key: object) -> None:
        return None

    def close(self) -> None:
        self.closed = True


class DetailSource:
    """Implements pages.DetailSource: one workload, and one node with a pod in each of two namespaces."""

    def workload(self, kind: str, namespace: str, name: str, uid: str) -> Mapping[str, Any] | None:
        return {"name": name} if (kind, namespace, name, uid) == ("Pod", "a", "train", "u") else None

    def node(self, name: str, may_see: Callable[[str], bool]) -> Mapping[str, Any] | None:
        return {"pods": [one for one in ("a", "b") if may_see(one)]} if name == "n1" else None


class Office:
    """The pages, and what they did."""

    def __init__(self, callers: Callers | None = None, *, most: int = 2, **limits: Any) -> None:
        self.clock, self.model, self.away, self.closing = VirtualClock(), Model(), "", False
        self.counted: list[tuple[str, int]] = []
        self.ended: list[str] = []
        self.bytes = 0
        self.busy = self.slow = 0.0
        self.explained: list[tuple[str, str, bool]] = []
        self.feed = Feed(lambda _heard: self.model, self.clock, most=most, period=1.0)  # type: ignore[arg-type,return-value]
        backend = ViewBackend(
            feed=self.feed,
            details=DetailSource(),
            clock=self.clock,
            callers=callers,
            about=lambda: {"cluster": "here"},
            leads=lambda: self.away,
            closing=lambda: self.closing,
            busy=lambda: self.busy,
            slow=lambda: self.slow,
            explain=self._explain,
            count=lambda what, status: self.counted.append((what, status.value)),
            sent=self._sent,
            ended=self.ended.append,
            limits=StreamLimits(**limits),
        )
        self.table = RouteTable(LivePages(backend).routes())

    def _sent(self, size: int) -> None:
        self.bytes += size

    def _explain(self, namespace: str, pod: str, whole: bool) -> Mapping[str, Any]:
        if pod == "gone":
            raise errors.NotFound("no such pod")
        self.explained.append((namespace, pod, whole))
        return {"title": pod}

    def ask(self, path: str, token: str = "", host: str = "127.0.0.1:8080", **query: str) -> Reply:
        """One request."""
        headers = {"host": host, **({"authorization": f"Bearer {token}"} if token else {})}
        return self.table.answer(Request(method="GET", path=path, headers=headers, query=query))

    def status(self, path: str, token: str = "", **query: str) -> int:
        """What it ends with."""
        return int(self.ask(path, token, **query).status)


def read(reply: Reply, pieces: int) -> list[str]:
    """So many events of a stream, without the empty pieces between them."""
    assert reply.status is http.HTTPStatus.OK
    assert reply.stream is not None
    found: list[str] = []
    while len(found) < pieces:
        piece = next(reply.stream, None)
        if piece is None:
            break
        found += [piece.decode()] if piece else []
    return found
