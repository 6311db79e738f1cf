"""The admin service of the queues: who administers them may read their configuration, try another, and have it loaded.

    GET  /queues/config    the one in force: text, version, since when, and why the last one was not taken over
    POST /queues/validate  a dry run of the YAML in the body: 200, or 422 with all that is wrong, or 400 for no YAML
    POST /queues/reload    read its storage again: 200, or 422 with all that is wrong, and the last good one stays

    1 a bearer token, or 401                                4 whose token it is, by a review of the API server:
    2 this process leads, or 503; it has queues, or 409       401 nobody's, 500 or 503 where nobody knows
    3 not too many ask, or 429                              5 its owner administers the root of the queues, or 403

A configuration is never taken from a request: it comes from its storage alone. What nobody knows is refused.
"""

import contextlib
import dataclasses
import datetime as dt
import http
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.model.callers import Caller, Token
from slurm_bridge.web import callers, refusals
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, Routes

CONFIG: Final = "/queues/config"
VALIDATE: Final = "/queues/validate"
RELOAD: Final = "/queues/reload"

_S = http.HTTPStatus


class NotReadable(Exception):
    """What was sent is no configuration at all."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What is stored is not in force: since when, and why, each reason for itself."""

    at: float
    problems: Sequence[str]


class Queues(Protocol):
    """The queues at work here."""

    def may(self, name: str, groups: Sequence[str]) -> bool:
        """Whether this user, as the API server knows it, administers them."""

    def in_force(self) -> Mapping[str, Any]:
        """Their configuration, with its `version`, and `since` as seconds since 1970."""

    def problems(self, body: bytes) -> Sequence[str]:
        """All that keeps this from taking the place of theirs; NotReadable where it says nothing about queues."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What is needed to administer queues.

    `leads`: "" where this process does, else why not. `queues`: None where no hook at work keeps any. `refusal`: of the
    last attempt to load; `reload` makes one. `count`: called with what was asked for and each status. `busy`: seconds
    until one more may ask, 0 for now; it is called under a lock.
    """

    callers: ports.Callers
    leads: Callable[[], str]
    queues: Callable[[], Queues | None]
    refusal: Callable[[], Refusal | None]
    reload: Callable[[], Refusal | None]
    count: Callable[[str, http.HTTPStatus], None]
    busy: Callable[[], float]
    most_at_once: int = 4


class QueueAdministration:
    """Answers whoever administers the queues; from any thread."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._lock = threading.Lock()
        self._inside = 0

    def routes(self) -> Routes:
        """For the door."""
        return {
            ("GET", CONFIG): lambda request: self._counted("config", request, self._config),
            ("POST", VALIDATE): lambda request: self._counted("validate", request, self._validate),
            ("POST", RELOAD): lambda request: self._counted("reload", request, self._reload),
        }

    def _counted(self, what: str, request: Request, answer: Callable[[Request, Queues], Reply]) -> Reply:
        reply = self._asked(what, request, answer)
        self._desk.count(what, reply.status)
        return reply

    def _asked(self, what: str, request: Request, answer: Callable[[Request, Queues], Reply]) -> Reply:
        token = callers.bearer(request)
        if token is None:
            return callers.unknown("a bearer token of the Kubernetes cluster is required")
        away = self._desk.leads()
        if away:
            return refusals.later(f"the queues are not here: {away}")
        queues = self._desk.queues()
        if queues is None:
            return _said(_S.CONFLICT, "NoQueues", "there are no queues: no hook that keeps some is at work here")
        with self._place() as seconds:
            if seconds:
                return refusals.crowded("too many ask for the queues' configuration at once", seconds)
            caller = self._caller(token)
            if isinstance(caller, Reply):
                return caller
            reply = self._allowed(caller, queues) or answer(request, queues)
        told = logger.bind(caller=caller.name, client=request.client)
        told.info("queues, {}: {} {}", what, reply.status.value, reply.status.phrase)
        return reply

    @contextlib.contextmanager
    def _place(self) -> Iterator[float]:
        """0, or the seconds after which to come back: each asks something of the API server."""
        with self._lock:
            seconds = self._desk.busy() if self._inside < self._desk.most_at_once else 1.0
            self._inside += not seconds
        try:
            yield seconds
        finally:
            with self._lock:
                self._inside -= not seconds

    def _caller(self, token: Token) -> Caller | Reply:
        """Asked each time: a token that was taken back, or a group that somebody has left, counts at once."""
        try:
            caller = self._desk.callers.who(token)
        except errors.BridgeError as error:
            logger.warning("the token of a caller could not be reviewed: {}", error)
            return refusals.unreviewed(error, "deploy/submission")
        return caller or callers.unknown("the Kubernetes cluster does not accept this token")

    def _allowed(self, caller: Caller, queues: Queues) -> Reply | None:
        """None where it is. The names in the list are not for strangers."""
        if queues.may(caller.name, caller.groups):
            return None
        words = (
            f"{caller.name} does not administer the queues: adminacl of root names neither this user nor a group of it"
        )
        return _said(_S.FORBIDDEN, "Forbidden", words)

    def _config(self, _: Request, queues: Queues) -> Reply:
        refusal = self._desk.refusal()
        last = {"at": _moment(refusal.at), "problems": list(refusal.problems)} if refusal else None
        return Reply.json({**_shown(queues), "error": last})

    def _validate(self, request: Request, queues: Queues) -> Reply:
        try:
            found = queues.problems(request.body)
        except NotReadable as problem:
            return _said(_S.BAD_REQUEST, "Unreadable", str(problem))
        if found:
            words = "this cannot take the place of the configuration in force"
            return _said(_S.UNPROCESSABLE_ENTITY, "Invalid", words, problems=list(found))
        return Reply.json({"message": "nothing is wrong", "problems": []})

    def _reload(self, _: Request, queues: Queues) -> Reply:
        before = queues.in_force()["version"]
        refusal = self._desk.reload()
        if refusal:
            words = "the stored configuration is not used, the last good one stays"
            more = {"version": before, "problems": list(refusal.problems)}
            return _said(_S.UNPROCESSABLE_ENTITY, "Invalid", words, **more)
        after = self._desk.queues()
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


def _said(status: http.HTTPStatus, reason: str, message: str, **more: object) -> Reply:
    return Reply.json({"reason": reason, "message": message, **more}, status)
