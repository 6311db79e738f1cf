"""The submission API by itself: all answers of the API server, the buffer, and which subscribers hear of pods."""

import dataclasses
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from slurm_bridge import errors
from slurm_bridge.informers.source import Changed
from slurm_bridge.model.callers import Caller, Token
from slurm_bridge.model.meta import Manifest, ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.web import buffer
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request
from slurm_bridge.web.submission import PODS, PodSubmissionApi, SubmissionBackend

GOOD = "good-token"


class Watched:
    """The source beneath: shows what it is told to show."""

    def __init__(self) -> None:
        self.told: list[Changed] = []
        self.trouble = ""

    def subscribe(self, changed: Changed) -> None:
        self.told.append(changed)

    def problem(self) -> str:
        return self.trouble

    def show(self, pod: Pod, old: Pod | None = None) -> None:
        """A pod as the API server has it."""
        for changed in self.told:
            changed(old, pod)


class Callers:
    """An API server that knows one token, and refuses what it is told to refuse."""

    def __init__(self) -> None:
        self.refuse: list[errors.BridgeError | None] = []
        self.unable: errors.BridgeError | None = None
        self.made: list[tuple[str, Manifest, Token]] = []
        self.before: Callable[[Pod], None] = lambda _: None

    def who(self, token: Token) -> Caller | None:
        if self.unable is not None:
            raise self.unable
        return Caller(name="ann") if token.words == GOOD else None

    def create_pod(self, namespace: str, manifest: Manifest, token: Token) -> Pod:
        self.made.append((namespace, manifest, token))
        refused = self.refuse.pop(0) if self.refuse else None
        if refused is not None:
            raise refused
        name = manifest["metadata"]["name"]
        pod = Pod(metadata=ObjectMeta(namespace=namespace, name=name, uid=f"uid-{name}"))
        self.before(pod)
        return pod


@dataclasses.dataclass
class Scene:
    """All of it."""

    api: PodSubmissionApi
    watched: Watched
    callers: Callers
    clock: VirtualClock
    statuses: list[int]
    closing: bool = False

    def send(self, manifest: Mapping[str, Any] | None = None, token: str = GOOD) -> Reply:
        """Hand a pod in."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        body = json.dumps(manifest or pod()).encode()
        return self.api.routes()[PODS](Request(method="POST", path="/pods", headers=headers, body=body))


@pytest.fixture
def scene() -> Scene:
    """Two places, and a translator that finds everything good but pods called `bad`."""
    watched, callers, clock, statuses = Watched(), Callers(), VirtualClock(), list[int]()
    holder: list[Scene] = []
    desk = SubmissionBackend(
        callers=callers,
        read=json.loads,
        judge=lambda pod: "it is bad" if pod.metadata.name == "bad" else "",
        closing=lambda: holder[0].closing,
        count=lambda status: statuses.append(status.value),
        clock=clock,
        dice=random.Random(1),
        scheduler_names=("ours", "ours-too"),
        limits=buffer.BufferLimits(most=2, unseen=30.0),
    )
    holder.append(Scene(PodSubmissionApi(watched, desk), watched, callers, clock, statuses))
    return holder[0]


def pod(name: str = "a", **spec: Any) -> dict[str, Any]:
    """Of the namespace team."""
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "team"}, "spec": {"containers": [], **spec}}


def said(reply: Reply) -> dict[str, Any]:
    """What the answer says."""
    found: dict[str, Any] = json.loads(reply.body)
    return found


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (errors.NotAuthorized("no"), 403, "Forbidden"),
        (errors.NotAuthenticated("ended"), 401, "Unauthorized"),
        (errors.Conflict("exists", code=409, reason="AlreadyExists"), 409, "AlreadyExists"),
        (errors.Conflict("the namespace goes", code=403, reason="Forbidden"), 409, "Forbidden"),
        (errors.NotFound("no namespace", code=404, reason="NotFound"), 404, "NotFound"),
        (errors.Invalid("spec.x", code=422, reason="Invalid"), 400, "Invalid"),
        (errors.Invalid("unknown field", code=400, reason="BadRequest"), 400, "BadRequest"),
        (errors.Unavailable("not reached"), 503, "Unavailable"),
        (errors.BadConfiguration("not trusted"), 503, "Unavailable"),
        (errors.Unanswered("silence"), 504, "Unknown"),
        (errors.BadAnswer("half an answer"), 504, "Unknown"),
    ],
)
def test_every_word_of_the_api_server_has_its_answer(
    scene: Scene, error: errors.BridgeError, status: int, reason: str
) -> None:
    """In its own words; only if the result is unknown the slot stays taken, for a while."""
    scene.callers.refuse = [error]
    reply = scene.send()
    assert (reply.status, said(reply)["reason"], scene.statuses) == (status, reason, [status])
    assert str(error) in said(reply)["message"] or status == 401
    assert scene.api.pending == (status == 504)
    assert ("Retry-After" in reply.headers) == (status == 503)


def test_the_wish_of_the_api_server_is_passed_on(scene: Scene) -> None:
    """In whole seconds."""
    scene.callers.refuse = [errors.Unavailable("busy", retry_after=6.5)]
    assert scene.send().headers["Retry-After"] == "7"


def test_the_pod_is_asked_for_with_the_callers_token(scene: Scene) -> None:
    """For our scheduler, in the namespace that it names."""
    reply = scene.send()
    assert (reply.status, said(reply)) == (201, {"namespace": "team", "name": "a", "uid": "uid-a"})
    ((namespace, manifest, token),) = scene.callers.made
    assert (namespace, manifest["spec"]["schedulerName"], token.words) == ("team", "ours", GOOD)
    assert GOOD not in repr(token)


def test_any_of_our_names_may_be_asked_for(scene: Scene) -> None:
    """Several schedulers may be one bridge."""
    scene.send(pod(schedulerName="ours-too"))
    assert scene.callers.made[0][1]["spec"]["schedulerName"] == "ours-too"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.NotAuthorized("we may not"), 500),
        (errors.NotAuthenticated("we are nobody"), 503),
        (errors.Unanswered("silence"), 503),
    ],
)
def test_who_cannot_be_asked_about_a_token_creates_nothing(
    scene: Scene, error: errors.BridgeError, status: int
) -> None:
    """What is wrong between us and the API server is for our log, not for callers."""
    scene.callers.unable = error
    reply = scene.send()
    assert (reply.status, scene.callers.made, scene.api.pending) == (status, [], 0)
    assert str(error) not in said(reply)["message"]


def test_the_translator_is_heard_before_the_api_server(scene: Scene) -> None:
    """Nothing is created that could never be scheduled."""
    reply = scene.send(pod("bad"))
    assert (reply.status, said(reply)["message"], scene.callers.made) == (400, "it is bad", [])


def test_strangers_learn_nothing_of_the_manifest(scene: Scene) -> None:
    """A caller without a valid token is not told what is wrong with a pod."""
    assert scene.send({"kind": "Job"}, token="bad").status == 401
    assert scene.send({"kind": "Job"}, token="").status == 401
    assert scene.send({"kind": "Job"}).status == 400


def test_the_buffer_is_full_until_the_scheduler_has_seen_the_pods(scene: Scene) -> None:
    """429 says when to come back; the watch frees the place."""
    assert [scene.send(pod(name)).status for name in "abc"] == [201, 201, 429]
    assert scene.send(pod("c")).headers["Retry-After"] == "1"
    seen: list[str] = []
    scene.api.subscribe(lambda _, new: seen.append(new.metadata.name if new else ""))
    scene.watched.show(Pod(metadata=ObjectMeta(namespace="team", name="b")))
    assert (seen, scene.api.pending, scene.send(pod("c")).status) == (["b"], 1, 201)


def test_pods_that_are_never_seen_do_not_fill_it_for_ever(scene: Scene) -> None:
    """After a while their places are free."""
    assert [scene.send(pod(name)).status for name in "abc"] == [201, 201, 429]
    scene.clock.advance(30)
    assert scene.send(pod("c")).status == 201


def test_every_pod_of_the_watch_is_told_whoever_made_it(scene: Scene) -> None:
    """It is a source like the one beneath it, with one more way in."""
    told: list[tuple[Pod | None, Pod | None]] = []
    scene.api.subscribe(lambda old, new: told.append((old, new)))
    first = Pod(metadata=ObjectMeta(namespace="team", name="other"))
    scene.watched.show(first)
    for changed in scene.watched.told:
        changed(first, None)
    assert told == [(None, first), (first, None)]


def test_a_generated_name_that_is_taken_is_given_up_for_another(scene: Scene) -> None:
    """Not one that the caller chose; and not for ever."""
    stem = {"kind": "Pod", "metadata": {"generateName": "made-"}, "spec": {}}
    taken = errors.Conflict("exists", code=409, reason="AlreadyExists")
    scene.callers.refuse = [taken, taken]
    assert scene.send(stem).status == 201
    names = [manifest["metadata"]["name"] for _, manifest, _ in scene.callers.made]
    assert len(set(names)) == 3
    scene.callers.refuse = [taken] * 9
    assert (scene.send(stem).status, len(scene.callers.made)) == (409, 7)


def test_a_lost_answer_names_the_pod_even_where_the_name_was_made_up(scene: Scene) -> None:
    """So that it can be looked for."""
    scene.callers.refuse = [errors.Unanswered("silence")]
    reply = scene.send({"kind": "Pod", "metadata": {"generateName": "made-"}, "spec": {}})
    assert (reply.status, said(reply)["name"]) == (504, scene.callers.made[0][1]["metadata"]["name"])


def test_nothing_is_taken_in_by_who_ends_or_has_not_begun(scene: Scene) -> None:
    """Another replica does it."""
    scene.watched.trouble = "the pods are not listed yet"
    assert scene.send().status == 503
    scene.watched.trouble, scene.closing = "", True
    reply = scene.send()
    assert (reply.status, reply.headers["Retry-After"], scene.callers.made) == (503, "1", [])
    assert "stopping" in said(reply)["message"]
