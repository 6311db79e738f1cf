"""The admin API of the queues: an administrator reads, validates and reloads their configuration.

    GET  /queues/config    the configuration in force: text, version, since when; why a newer one was refused
    POST /queues/validate  a dry run of the YAML in the body: 200; 422 with all errors; 400 if it is no YAML
    POST /queues/reload    read the stored configuration again: 200; 422 with all errors, the last good one stays

    1 a bearer token, or 401                                4 a TokenReview of the API server names the user:
    2 this process leads, or 503; it has queues, or 409       401 for no user, 500 or 503 without an answer
    3 not too many requests, or 429                         5 the user administers the root queue, or 403

A configuration is never taken from a request, only from its storage. A caller that cannot be identified is refused.
"""

import contextlib
import dataclasses
import datetime as dt
import http
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from loguru import logger

from slurm_bridge import ports
from slurm_bridge.web import callers, refusals
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, Routes

CONFIG: Final = "/queues/config"
VALIDATE: Final = "/queues/validate"
RELOAD: Final = "/queues/reload"

_S = http.HTTPStatus


class UnreadableConfiguration(Exception):
    """The body is no configuration of queues."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RefusedConfiguration:
    """The stored configuration is not in force: since when, and all reasons."""

    at: float
    problems: Sequence[str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckedConfiguration:
    """All errors in a configuration of queues, and what of it is ignored."""

    problems: Sequence[str]
    warnings: Sequence[str] = ()


class Queues(Protocol):
    """The queues of this process."""

    def may(self, name: str, groups: Sequence[str]) -> bool:
        """Whether this user, as the API server knows the name and groups, administers the queues."""

    def in_force(self) -> Mapping[str, Any]:
        """The configuration, with its `version`, and `since` as seconds since 1970."""

    def check(self, body: bytes) -> CheckedConfiguration:
        """Tests this configuration. Raises UnreadableConfiguration if it says nothing about queues."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdminBackend:
    """What the daemon provides.

    `leads`: "" if this process leads, else the reason why not. `queues`: None without a hook that has queues.
    `refusal`: why the stored configuration is not in force; `reload` reads it again. `count`: called with the operation
    and the status of each answer. `busy`: seconds until the next request is allowed, 0 for now; called under a lock.
    """

    callers: ports.Callers
    leads: Callable[[], str]
    queues: Callable[[], Queues | None]
    refusal: Callable[[], RefusedConfiguration | None]
    reload: Callable[[], RefusedConfiguration | None]
    count: Callable[[str, http.HTTPStatus], None]
    busy: Callable[[], float]
    most_at_once: int = 4


class QueueAdministration:
    """The routes of the admin API. Thread-safe."""

    def __init__(self, backend: AdminBackend) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._inside = 0

    def routes(self) -> Routes:
        """The routes for the web server."""
        return {
            ("GET", CONFIG): lambda request: self._counted("config", request, self._config),
            ("POST", VALIDATE): lambda request: self._counted("validate", request, self._validate),
            ("POST", RELOAD): lambda request: self._counted("reload", request, self._reload),
        }

    def _counted(self, what: str, request: Request, answer: Callable[[Request, Queues], Reply]) -> Reply:
        reply = self._asked(what, request, answer)
        self._backend.count(what, reply.status)
        return reply

    def _asked(self, what: str, request: Request, answer: Callable[[Request, Queues], Reply]) -> Reply:
        token = callers.bearer(request)
        if token is None:
            return refusals.unknown("a bearer token of the Kubernetes cluster is required")
        away = self._backend.leads()
        if away:
            return refusals.later(f"the queues are not available: {away}")
        queues = self._backend.queues()
        if queues is None:
            return refusals.refused(
                _S.CONFLICT, "NoQueues", "there are no queues: this process runs no hook with queues"
            )
        with self._place() as seconds:
            if seconds:
                return refusals.crowded("too many requests for the queues' configuration", seconds)
            caller = callers.reviewed(self._backend.callers, token)
            if isinstance(caller, Reply):
                return caller
            if queues.may(caller.name, caller.groups):
                reply = answer(request, queues)
            else:
                # The answer does not show the list of administrators.
                words = (
                    f"{caller.name} does not administer the queues: "
                    f"adminacl of root names neither this user nor one of its groups"
                )
                reply = refusals.refused(_S.FORBIDDEN, "Forbidden", words)
        told = logger.bind(caller=caller.name, client=request.client)
        told.info("queues, {}: {} {}", what, reply.status.value, reply.status.phrase)
        return reply

    @contextlib.contextmanager
    def _place(self) -> Iterator[float]:
        """Yields 0, or the seconds after which the client may retry: each request costs a call to the API server."""
        with self._lock:
            seconds = self._backend.busy() if self._inside < self._backend.most_at_once else 1.0
            self._inside += not seconds
        try:
            yield seconds
        finally:
            with self._lock:
                self._inside -= not seconds

    def _config(self, _: Request, queues: Queues) -> Reply:
        refusal = self._backend.refusal()
        last = {"at": _moment(refusal.at), "problems": list(refusal.problems)} if refusal else None
        return Reply.json({**_shown(queues), "error": last})

    def _validate(self, request: Request, queues: Queues) -> Reply:
        try:
            found = queues.check(request.body)
        except UnreadableConfiguration as problem:
            return refusals.refused(_S.BAD_REQUEST, "Unreadable", str(problem))
        more = {"problems": list(found.problems), "warnings": list(found.warnings)}
        if found.problems:
            words = "this cannot replace the configuration in force"
            return refusals.refused(_S.UNPROCESSABLE_ENTITY, "Invalid", words, more)
        return Reply.json({"message": "nothing is wrong", **more})

    def _reload(self, _: Request, queues: Queues) -> Reply:
        before = queues.in_force()["version"]
        refusal = self._backend.reload()
        if refusal:
            words = "the stored configuration is not used, the last good one stays in force"
            more = {"version": before, "problems": list(refusal.problems)}
            return refusals.refused(_S.UNPROCESSABLE_ENTITY, "Invalid", words, more)
        after = self._backend.queues()
        if after is None:
            return Reply.json({"message": "the configuration has no queues any more", "version": None, "changed": True})
        shown = _shown(after)
        changed = shown["version"] != before
        words = "the stored configuration is in force" if changed else "nothing has changed"
        return Reply.json({"message": words, **{key: shown[key] for key in ("version", "since")}, "changed": changed})


def _shown(queues: Queues) -> dict[str, Any]:
    found = queues.in_force()
    return {**found, "since": _moment(found["since"])}


def _moment(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds")
