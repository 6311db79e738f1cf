"""Which callers may read the configuration of queues over HTTP, and what others are answered."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model.callers import Caller, Token
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.web.administration import (
    CONFIG,
    RELOAD,
    VALIDATE,
    AdminBackend,
    CheckedConfiguration,
    QueueAdministration,
    RefusedConfiguration,
    UnreadableConfiguration,
)
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, RouteTable, bounded

ADMIN, EVE = "token-of-ann", "token-of-eve"


class Reviews:
    """Implements ports.Callers: two tokens are known."""

    def __init__(self) -> None:
        self.asked = 0
        self.error: errors.BridgeError | None = None

    def who(self, token: Token) -> Caller | None:
        self.asked += 1
        if self.error is not None:
            raise self.error
        names = {ADMIN: "ann", EVE: "eve"}
        return Caller(name=names[token.words], groups=("staff",)) if token.words in names else None

    def create_pod(self, namespace: str, manifest: Manifest, token: Token) -> Pod:
        raise AssertionError(f"nobody creates {manifest} in {namespace} as {token}")


class Queues:
    """Implements administration.Queues: ann administers them."""

    def __init__(self) -> None:
        self.version = "one"

    def may(self, name: str, groups: Sequence[str]) -> bool:
        return name == "ann" and "staff" in groups

    def in_force(self) -> Mapping[str, Any]:
        return {"version": self.version, "since": 1.0, "configuration": "partitions: []"}

    def check(self, body: bytes) -> CheckedConfiguration:
        if body == b"?":
            raise UnreadableConfiguration("is no YAML")
        words = body.decode().split()
        odd = tuple(word for word in words if word.startswith("odd"))
        return CheckedConfiguration(problems=tuple(word for word in words if word not in odd), warnings=odd)


class Scene:
    """A server with queues behind it."""

    def __init__(self) -> None:
        self.reviews = Reviews()
        self.queues: Queues | None = Queues()
        self.away, self.busy = "", 0.0
        self.refusal: RefusedConfiguration | None = None
        self.read = 0
        self.then: Queues | None = self.queues
        self.counted: list[tuple[str, int]] = []
        desk = AdminBackend(
            callers=self.reviews,
            leads=lambda: self.away,
            queues=lambda: self.queues,
            refusal=lambda: self.refusal,
            reload=self.reload,
            count=lambda what, status: self.counted.append((what, status.value)),
            busy=lambda: self.busy,
            most_at_once=1,
        )
        self.table = RouteTable(bounded(QueueAdministration(desk).routes(), 1000))

    def reload(self) -> RefusedConfiguration | None:
        self.read += 1
        if self.refusal is None:
            self.queues = self.then
        return self.refusal

    def ask(self, path: str, token: str = ADMIN, body: bytes = b"") -> Reply:
        """As a client would."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        method = "GET" if path == CONFIG else "POST"
        return self.table.answer(Request(method=method, path=path, headers=headers, body=body))

    def said(self, path: str, token: str = ADMIN, body: bytes = b"") -> tuple[int, Any]:
        """Status, and what the JSON says."""
        reply = self.ask(path, token, body)
        return reply.status.value, json.loads(reply.body)


@pytest.fixture
def scene() -> Scene:
    """Queues that are at work here."""
    return Scene()


@pytest.mark.parametrize("path", [CONFIG, VALIDATE, RELOAD])
@pytest.mark.parametrize(("token", "status"), [("", 401), ("made-up", 401), ("not a token", 401), (EVE, 403)])
def test_nobody_but_an_administrator_gets_anything(scene: Scene, path: str, token: str, status: int) -> None:
    """Not to read it, not to try one, not to have it loaded; what is counted is the status alone."""
    found, said = scene.said(path, token, b"wrong")
    assert found == status
    assert "partitions" not in str(said)
    assert scene.read == 0
    assert scene.counted == [(path.rpartition("/")[2], status)]


def test_without_a_token_the_api_server_is_not_asked(scene: Scene) -> None:
    """And 401 says how to ask."""
    reply = scene.ask(CONFIG, "")
    assert (reply.headers["Www-Authenticate"], scene.reviews.asked) == ("Bearer", 0)


def test_every_request_asks_anew_who_it_is(scene: Scene) -> None:
    """A token that was taken back counts for nothing from then on."""
    scene.said(CONFIG)
    scene.said(CONFIG)
    assert scene.reviews.asked == 2


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (errors.Unavailable("down"), 503, "the token could not be reviewed; nothing was done"),
        (errors.Unanswered("late"), 503, "the token could not be reviewed; nothing was done"),
        (errors.BadAnswer("nonsense"), 503, "the token could not be reviewed; nothing was done"),
        (errors.NotAuthorized("no"), 500, "its administrator has to apply deploy/submission"),
    ],
)
def test_where_nobody_knows_who_asks_nothing_is_done(
    scene: Scene, error: errors.BridgeError, status: int, words: str
) -> None:
    """What is wrong between us and the API server is not for callers, but what to apply is."""
    scene.reviews.error = error
    found, said = scene.said(RELOAD)
    assert (found, words in said["message"], scene.read) == (status, True, 0)
    assert not {"down", "late", "nonsense"} & set(said["message"].split())


def test_a_replica_that_does_not_lead_says_so(scene: Scene) -> None:
    """503, before the API server is asked: come back, or ask another replica."""
    scene.away = "this replica is not the leader"
    reply = scene.ask(CONFIG)
    assert (reply.status, reply.headers["Retry-After"], scene.reviews.asked) == (503, "1", 0)
    assert b"not the leader" in reply.body


def test_without_the_hook_there_is_nothing_to_administer(scene: Scene) -> None:
    """409: the configuration names no hook that keeps queues."""
    scene.queues = None
    status, said = scene.said(VALIDATE)
    assert (status, said["reason"]) == (409, "NoQueues")


def test_many_at_once_are_told_to_come_back(scene: Scene) -> None:
    """429 with the seconds: each of them would have the API server asked."""
    scene.busy = 2.5
    reply = scene.ask(CONFIG)
    assert (reply.status, reply.headers["Retry-After"], scene.reviews.asked) == (429, "3", 0)
    scene.busy = 0.0
    assert scene.ask(CONFIG).status == 200


def test_one_that_is_inside_keeps_the_next_one_out(scene: Scene) -> None:
    """And only as long as it is inside, whatever becomes of it."""
    inside: list[int] = []
    scene.refusal = RefusedConfiguration(at=0.0, problems=())
    ask = scene.reviews.who

    def meanwhile(token: Token) -> Caller | None:
        inside.append(scene.ask(CONFIG).status.value if not inside else 0)
        return ask(token)

    scene.reviews.who = meanwhile  # type: ignore[method-assign]
    assert scene.ask(CONFIG).status == 200
    assert inside == [429]
    scene.reviews.error = errors.Unavailable("down")
    assert [scene.ask(CONFIG).status.value for _ in range(2)] == [503, 503]


def test_what_is_in_force_is_shown_with_the_last_refusal(scene: Scene) -> None:
    """Moments as people write them."""
    status, said = scene.said(CONFIG)
    assert (status, said["since"], said["error"]) == (200, "1970-01-01T00:00:01+00:00", None)
    scene.refusal = RefusedConfiguration(at=60.0, problems=("a: wrong", "b: wrong"))
    _, said = scene.said(CONFIG)
    assert said["error"] == {"at": "1970-01-01T00:01:00+00:00", "problems": ["a: wrong", "b: wrong"]}
    assert (said["version"], said["configuration"]) == ("one", "partitions: []")


@pytest.mark.parametrize(
    ("body", "status", "problems"),
    [(b"", 200, []), (b"first second", 422, ["first", "second"]), (b"?", 400, None)],
)
def test_a_dry_run_answers_all_that_is_wrong(
    scene: Scene, body: bytes, status: int, problems: list[str] | None
) -> None:
    """What is no YAML is told apart from what is wrong with queues; nothing is loaded."""
    found, said = scene.said(VALIDATE, body=body)
    assert (found, said.get("problems"), scene.read) == (status, problems, 0)


@pytest.mark.parametrize(("body", "status"), [(b"odd", 200), (b"odd first", 422)])
def test_a_dry_run_answers_what_would_be_ignored(scene: Scene, body: bytes, status: int) -> None:
    """That alone is no error."""
    found, said = scene.said(VALIDATE, body=body)
    assert (found, said["warnings"]) == (status, ["odd"])


def test_a_body_that_is_too_large_is_not_looked_into(scene: Scene) -> None:
    """413, with what is allowed."""
    status, said = scene.said(VALIDATE, body=b"x" * 1001)
    assert (status, said["message"]) == (413, "the body has 1001 bytes; at most 1000 are allowed")


def test_a_reload_answers_what_is_in_force_afterwards(scene: Scene) -> None:
    """And whether that is something else than before."""
    status, said = scene.said(RELOAD)
    assert (status, said["version"], said["changed"]) == (200, "one", False)
    scene.then = Queues()
    scene.then.version = "two"
    status, said = scene.said(RELOAD)
    assert (status, said["version"], said["changed"]) == (200, "two", True)
    scene.then = None
    status, said = scene.said(RELOAD)
    assert (status, said["version"], said["changed"]) == (200, None, True)


def test_a_refused_reload_keeps_the_last_good_one_and_says_why(scene: Scene) -> None:
    """422 with all reasons, and the version that stays."""
    scene.refusal = RefusedConfiguration(at=0.0, problems=("a: wrong", "b: wrong"))
    status, said = scene.said(RELOAD)
    assert (status, said["problems"], said["version"]) == (422, ["a: wrong", "b: wrong"], "one")
    assert "the last good one stays" in said["message"]


def test_who_asked_for_what_is_in_the_log_and_no_token_is(scene: Scene) -> None:
    """Neither of administrators, nor of others."""
    lines: list[str] = []
    sink = logger.add(lines.append, level=0, format="{message} {extra} {exception}", diagnose=True)
    try:
        answers = [scene.said(RELOAD, token) for token in (ADMIN, EVE, "made-up-words")]
    finally:
        logger.remove(sink)
    told = "".join(lines)
    assert "queues, reload: 200 OK {'caller': 'ann'" in told
    assert "queues, reload: 403 Forbidden {'caller': 'eve'" in told
    assert not [token for token in (ADMIN, EVE, "made-up-words") if token in told + str(answers)]
