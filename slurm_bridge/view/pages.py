"""The pages of the live view, all of them read-only.

    GET /ui              the page, with its script and its style: no data, so that no token is needed
    GET /ui/stream       all rows, then their changes, as server-sent events
    GET /ui/snapshot     all rows once, as one JSON object
    GET /ui/workload     members, jobs and timeline of one workload (kind, namespace, name, uid)
    GET /ui/node         the pods on one node (name)
    GET /ui/explain      how a pod would be scheduled now, and why (namespace, pod)

    1 this process leads, or 503                    3 not too many requests, or 429
    2 on loopback only: to this machine, or 403     4 the API server accepts the token, or 401
      else: there is a bearer token, or 401         5 the rights of its owner, for each namespace and for the totals

A stream ends when the process no longer leads, when the token is no good any more, after the time and the bytes that
one stream has, and when the viewer is too slow. The last event says why; the viewer may connect again.
"""

import contextlib
import dataclasses
import functools
import http
import pathlib
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, Protocol

import msgspec
from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.model import texts
from slurm_bridge.model.callers import Token
from slurm_bridge.settings import kinds
from slurm_bridge.view import feed, rows
from slurm_bridge.view.feed import Feed, Viewer
from slurm_bridge.view.live_model import EVERYTHING, ViewScope
from slurm_bridge.view.rights import LocalRights, Rights, TokenRights
from slurm_bridge.web import callers, refusals
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, Routes

HOME: Final = "/ui"
STREAM: Final = "/ui/stream"
SNAPSHOT: Final = "/ui/snapshot"
WORKLOAD: Final = "/ui/workload"
NODE: Final = "/ui/node"
EXPLAIN: Final = "/ui/explain"

_ASSETS: Final = pathlib.Path(__file__).parent / "assets"
_FILES: Final = {
    HOME: ("index.html", "text/html; charset=utf-8"),
    "/ui/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/ui/rows.js": ("rows.js", "text/javascript; charset=utf-8"),
    "/ui/style.css": ("style.css", "text/css; charset=utf-8"),
    "/ui/icon.svg": ("icon.svg", "image/svg+xml"),
}
#: The page loads nothing from elsewhere, runs no inline script, is framed by no other page and makes no HTML of texts.
_STRICT: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

#: A stream looks so often whether it has to end, and says so often that it is alive.
_LOOK: Final = 0.25
_ALIVE: Final = 10.0
_QUIET: Final = b": \n\n"

_S = http.HTTPStatus

#: Explains a pod by namespace and name: plain values, with details of nodes and of other pods or not.
Explain = Callable[[str, str, bool], Mapping[str, Any]]


class DetailSource(Protocol):
    """What is shown beside the rows. None: there is no such workload or node."""

    def workload(self, kind: str, namespace: str, name: str, uid: str) -> Mapping[str, Any] | None: ...

    def node(self, name: str, may_see: Callable[[str], bool]) -> Mapping[str, Any] | None: ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """Of one stream."""

    seconds: float = 3600.0
    most_bytes: int = 256 << 20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ViewBackend:
    """What the daemon provides.

    `callers`: None where the daemon listens on loopback only, so that no token is needed. `about`: what a viewer is
    told first. `leads`: "" if this process leads, else the reason why not. `busy`: seconds until the next request is
    allowed, 0 for now. `explain`: None without a configuration file; `slow` are the seconds until the next one is
    allowed. `count` is called with the page and the status, `sent` with bytes, `ended` with why a stream ended.
    """

    feed: Feed
    details: DetailSource
    clock: ports.Clock
    callers: ports.Callers | None
    about: Callable[[], Mapping[str, Any]]
    leads: Callable[[], str]
    closing: Callable[[], bool]
    busy: Callable[[], float]
    slow: Callable[[], float]
    explain: Explain | None
    count: Callable[[str, http.HTTPStatus], None]
    sent: Callable[[int], None]
    ended: Callable[[str], None]
    limits: StreamLimits = StreamLimits()


class LivePages:
    """The routes. Thread-safe."""

    def __init__(self, backend: ViewBackend) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._explaining = threading.Lock()

    def routes(self) -> Routes:
        """The routes for the web server."""
        answers = {
            STREAM: self._stream,
            SNAPSHOT: self._snapshot,
            WORKLOAD: self._workload,
            NODE: self._node,
            EXPLAIN: self._explain,
        }
        return {
            **{("GET", path): _file(name, type_) for path, (name, type_) in _FILES.items()},
            **{("GET", path): self._counted(path, answer) for path, answer in answers.items()},
        }

    def _counted(self, path: str, answer: Callable[[Request, Rights], Reply]) -> Callable[[Request], Reply]:
        def counted(request: Request) -> Reply:
            reply = self._asked(request, answer)
            self._backend.count(path.rpartition("/")[2], reply.status)
            return dataclasses.replace(reply, headers={**_STRICT, **reply.headers})

        return counted

    def _asked(self, request: Request, answer: Callable[[Request, Rights], Reply]) -> Reply:
        away = self._backend.leads()
        if away:
            return refusals.later(f"there is no live view here: {away}", 2.0)
        # What costs nothing is looked at first, so that it takes nothing of the pace of callers that may look.
        token = self._token(request)
        if isinstance(token, Reply):
            return token
        found = self._rights(token)
        if isinstance(found, Reply):
            return found
        try:
            return answer(request, found)
        except errors.NotAuthenticated:
            return refusals.unknown("the Kubernetes cluster does not accept this token any more")
        except errors.BridgeError as problem:
            logger.warning("the rights of a viewer could not be reviewed: {}", problem)
            return refusals.later("the rights could not be reviewed")

    def _token(self, request: Request) -> Token | Reply | None:
        """On loopback the request has to name this machine: a page of elsewhere may have its own name lead here."""
        if self._backend.callers is None:
            elsewhere = request.headers.get("sec-fetch-site") == "cross-site"
            if _local(request.headers.get("host", "")) and not elsewhere:
                return None
            words = "this address is served on this machine only: use http://127.0.0.1 or http://localhost"
            return refusals.refused(_S.FORBIDDEN, "Forbidden", words)
        required = "a bearer token of the Kubernetes cluster is required"
        return callers.bearer(request) or refusals.unknown(required)

    def _rights(self, token: Token | None) -> Rights | Reply:
        with self._lock:
            seconds = self._backend.busy()
        if seconds:
            return refusals.crowded("too many requests for the live view", seconds)
        if self._backend.callers is None or token is None:
            return LocalRights()
        caller = callers.reviewed(self._backend.callers, token)
        if isinstance(caller, Reply):
            return caller
        return TokenRights(self._backend.callers, token, self._backend.clock, caller.name)

    def _scope(self, request: Request, given: Rights) -> ViewScope:
        """Of the namespace that the request names, or of all that the caller may see."""
        only = request.query.get("namespace", "")
        scope = given.scope((only,) if only else self._backend.feed.namespaces())
        return ViewScope(frozenset((only,)) if scope.sees(only) else frozenset(), scope.totals) if only else scope

    def _stream(self, request: Request, given: Rights) -> Reply:
        # Before the answer begins: a caller without rights is told so by its status, and takes no place.
        if not self._scope(request, given):
            return _no_rights()
        with contextlib.ExitStack() as stack:
            try:
                viewer = stack.enter_context(self._backend.feed.viewer(given.caller))
            except feed.TooManyViewers:
                words = "there are as many viewers as web.live_view.viewers allows, or as one caller may have"
                return refusals.later(words, 10.0)
            events = self._events(request, given, viewer, stack.pop_all())
            # Begun, so that its end gives the place back, whatever becomes of the answer.
            next(events)
            # A proxy that gathers an answer before it passes it on would show nothing.
            return Reply(content_type="text/event-stream", headers={"X-Accel-Buffering": "no"}, stream=events)

    def _events(
        self, request: Request, given: Rights, viewer: Viewer, stack: contextlib.ExitStack
    ) -> Generator[bytes, None, None]:
        """The events of one stream, until it has to end."""
        size, why = 0, "left"
        with stack:
            try:
                yield b""
                events = _Events(self._backend, lambda: self._scope(request, given), given, viewer)
                for piece in events.pieces():
                    size += len(piece)
                    self._backend.sent(len(piece))
                    yield piece
                    if size > self._backend.limits.most_bytes:
                        events.why = "size"
                        break
                why = events.why
                yield _event("end", {"why": why})
            finally:
                self._backend.ended(why)

    def _snapshot(self, request: Request, given: Rights) -> Reply:
        scope = self._scope(request, given)
        if not scope:
            return _no_rights()
        pieces = [msgspec.json.decode(one) for one in self._backend.feed.all(scope) if one]
        whole: dict[str, Any] = {"workloads": [], **_about(self._backend, scope)}
        for piece in pieces:
            whole = {**piece, **whole, "workloads": [*whole["workloads"], *piece.get("workloads", ())]}
        return Reply(body=msgspec.json.encode(whole) + b"\n", content_type="application/json")

    def _workload(self, request: Request, given: Rights) -> Reply:
        kind, namespace, name, uid = (request.query.get(key, "") for key in ("kind", "namespace", "name", "uid"))
        found = None
        if namespace and given.scope((namespace,)).sees(namespace):
            found = self._backend.details.workload(kind, namespace, name, uid)
        if found is None:
            # The same words for one that is not there and for one that the caller may not see.
            return refusals.refused(_S.NOT_FOUND, "NotFound", "there is no such workload, or you may not list its pods")
        return Reply.json(found)

    def _node(self, request: Request, given: Rights) -> Reply:
        name = request.query.get("name", "")
        may_see = functools.partial(_sees, given)
        found = self._backend.details.node(name, may_see) if given.scope(()).totals else None
        if found is None:
            return refusals.refused(_S.NOT_FOUND, "NotFound", "there is no such node, or you may not list nodes")
        return Reply.json(found)

    def _explain(self, request: Request, given: Rights) -> Reply:
        """One at a time: an explanation lists nodes and pods."""
        namespace, pod = request.query.get("namespace", ""), request.query.get("pod", "")
        scope = given.scope((namespace,))
        if not namespace or not pod or not scope.sees(namespace):
            return refusals.refused(_S.NOT_FOUND, "NotFound", "there is no such pod, or you may not list pods there")
        if self._backend.explain is None:
            return refusals.refused(_S.CONFLICT, "NoConfiguration", "this process has no configuration to explain by")
        if not self._explaining.acquire(blocking=False):
            return refusals.crowded("another pod is being explained", 1.0)
        try:
            seconds = self._backend.slow()
            if seconds:
                return refusals.crowded("too many explanations", seconds)
            return _explained(self._backend.explain, namespace, pod, whole=scope == EVERYTHING)
        finally:
            self._explaining.release()


class _Events:
    """One stream."""

    def __init__(self, backend: ViewBackend, scope: Callable[[], ViewScope], given: Rights, viewer: Viewer) -> None:
        self._backend, self._scope, self._rights, self._viewer = backend, scope, given, viewer
        self._stop = threading.Event()
        self.why = "time"

    def pieces(self) -> Generator[bytes, None, None]:
        """Until the stream has to end; `why` says why."""
        clock = self._backend.clock
        end, alive = clock.now() + self._backend.limits.seconds, clock.now()
        known: ViewScope | None = None
        while clock.now() < end and not self._ends():
            try:
                scope = self._scope()
                events = self._of(scope, known)
            except feed.ViewerTooSlow:
                self.why = "slow"
                return
            except errors.BridgeError as problem:
                logger.warning("the rights of a viewer could not be reviewed: {}", problem)
                self.why = "rights"
                return
            known = scope
            if not events and clock.now() - alive >= _ALIVE:
                events = [_QUIET]
            alive = clock.now() if events else alive
            yield from events
            if clock.wait(self._stop, _LOOK):
                return
            yield b""

    def _of(self, scope: ViewScope, known: ViewScope | None) -> list[bytes]:
        """What is new; everything where the viewer may see more or less than before."""
        if scope == known:
            return [_event_of(text) for text in self._backend.feed.more(self._viewer, scope)]
        full = [_event_of(text) for text in self._backend.feed.full(self._viewer, scope) if text]
        return [_event("begin", _about(self._backend, scope)), *full, _event("ready", {})]

    def _ends(self) -> bool:
        if self._backend.closing() or self._backend.leads():
            self.why = "leader"
            return True
        try:
            if self._rights.expired():
                self.why = "token"
                return True
        except errors.BridgeError as problem:
            logger.warning("the token of a viewer could not be reviewed again: {}", problem)
            self.why = "rights"
            return True
        return False


def _no_rights() -> Reply:
    words = "you may list neither nodes nor pods where there are workloads; name a namespace whose pods you may list"
    return refusals.refused(_S.FORBIDDEN, "Forbidden", words)


def _sees(given: Rights, namespace: str) -> bool:
    return given.scope((namespace,)).sees(namespace)


def _explained(explain: Explain, namespace: str, pod: str, *, whole: bool) -> Reply:
    try:
        return Reply.json(explain(namespace, pod, whole))
    except errors.NotFound:
        return refusals.refused(_S.NOT_FOUND, "NotFound", f"there is no pod {texts.shown(f'{namespace}/{pod}')}")
    except errors.BridgeError as problem:
        logger.warning("a pod cannot be explained for a viewer: {}", problem)
        return refusals.later("the pod cannot be explained now")


def _about(backend: ViewBackend, scope: ViewScope) -> Mapping[str, Any]:
    """What a viewer needs to read the rows, and what it may see."""
    return {
        **backend.about(),
        "now": backend.clock.wall(),
        "fields": {
            "workload": rows.names(rows.LiveWorkload),
            "node": rows.names(rows.LiveNode),
            "decision": rows.names(rows.LiveDecision),
        },
        "all_namespaces": scope.namespaces is None,
        "totals": scope.totals,
    }


def _event_of(text: bytes) -> bytes:
    return b"data: %b\n\n" % text


def _event(name: str, value: Mapping[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(value))


def _file(name: str, content_type: str) -> Callable[[Request], Reply]:
    body = (_ASSETS / name).read_bytes()
    return lambda _request: Reply(body=body, content_type=content_type, headers=_STRICT)


def _local(host: str) -> bool:
    """Whether the header `Host` names this machine."""
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    return kinds.loopback(name.strip("[]"))
