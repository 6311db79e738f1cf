"""What an agent answers: who is let in, what is refused, and samples in the documented shape."""

import json
import pathlib
import threading
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest

from slurm_bridge.agents.bearer import AcceptedTokens
from slurm_bridge.agents.desk import AgentHandler
from slurm_bridge.families.vela.pipeline import Busy, PipelineFailed, PodRefused, UnknownStrategy
from slurm_bridge.families.vela.samples import SamplingRequest, SamplingResponse
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.telemetry.agents import AgentMetrics
from slurm_bridge.web.replies import Reply
from slurm_bridge.web.routes import Request, RouteTable

WAIT = 10.0
TOKEN = "very-secret"
QUESTION = b'{"podInfo": {"pod": {"metadata": {"name": "a"}}}, "nodesToSampleBp": 300}'


class Sampler:
    """Answers with one node, or does what it is told."""

    strategies: Collection[str] = ("random", "round-robin")
    nodes_count = 7

    def __init__(self) -> None:
        self.asked: list[tuple[SamplingRequest, str]] = []
        self.fails: Exception | None = None
        self.entered = threading.Event()
        self.release = threading.Event()
        self.release.set()

    def sample(self, request: SamplingRequest, strategy: str) -> SamplingResponse:
        if strategy not in self.strategies:
            raise UnknownStrategy(f"there are {', '.join(self.strategies)}")
        self.asked.append((request, strategy))
        self.entered.set()
        assert self.release.wait(WAIT)
        if self.fails is not None:
            raise self.fails
        numbers = np.array([70], np.int64), np.array([2], np.int64)
        return SamplingResponse(cluster="east", nodes=["n1"], uids=["u1"], accumulated=numbers[0], plugins=numbers[1])


class Front:
    """A desk, asked without a door."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.file = folder / "token"
        self.file.write_text(f"{TOKEN}\n")
        self.sampler, self.metrics, self.problem = Sampler(), AgentMetrics(), ""
        self.desk = AgentHandler(
            self.sampler, AcceptedTokens(self.file), SystemClock(), self.metrics, lambda: self.problem
        )
        self._table = RouteTable(self.desk.routes())

    def ask(self, path: str, body: bytes = QUESTION, *, token: str | None = f"Bearer {TOKEN}") -> Reply:
        """One question; GET without a body."""
        headers = {} if token is None else {"authorization": token}
        return self._table.answer(Request(method="POST" if body else "GET", path=path, headers=headers, body=body))

    def count(self, strategy: str, status: str) -> float | None:
        """How often that was the answer."""
        name = "slurm_bridge_agent_request_duration_seconds_count"
        return self.metrics.registry.get_sample_value(name, {"strategy": strategy, "status": status})


@pytest.fixture
def front(tmp_path: pathlib.Path) -> Front:
    """Of an agent that knows its nodes."""
    return Front(tmp_path)


def text(reply: Reply) -> str:
    """Whatever is answered to whomever, the token is not in it."""
    assert TOKEN.encode() not in reply.body
    return reply.body.decode()


@pytest.mark.parametrize("path", ["/v1/samples/random", "/samples/random"])
def test_a_sample_is_answered_in_the_shape_of_the_wire(front: Front, path: str) -> None:
    """Under the documented path and its alias."""
    reply = front.ask(path)
    assert (reply.status, reply.content_type) == (200, "application/json")
    node = {"metadata": {"name": "n1", "uid": "u1"}}
    score = {"accumulated": 70, "plugins": 2}
    assert json.loads(reply.body) == {"nodes": [{"clusterName": "east", "node": node, "samplingScore": score}]}
    ((request, strategy),) = front.sampler.asked
    assert (request.pod.metadata.name, request.nodes_bp, strategy) == ("a", 300, "random")
    assert front.count("random", "200") == 1


@pytest.mark.parametrize("path", ["/v1/samples/status", "/samples/status"])
def test_the_status_names_routes_and_nodes(front: Front, path: str) -> None:
    """For people and probes of other systems."""
    said: dict[str, Any] = json.loads(front.ask(path, b"").body)
    routes = ["/v1/samples/random", "/v1/samples/round-robin"]
    assert said == {"status": "ok", "routes": routes, "nodesCount": 7}


@pytest.mark.parametrize("path", ["/v1/samples/random", "/v1/samples/status"])
@pytest.mark.parametrize("token", [None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN])
def test_without_the_token_nobody_is_let_in(front: Front, path: str, token: str | None) -> None:
    """Nor told anything."""
    reply = front.ask(path, QUESTION if path.endswith("random") else b"", token=token)
    assert reply.status == 401
    assert reply.headers["Www-Authenticate"] == "Bearer"
    assert "TOKEN" in text(reply)
    assert not front.sampler.asked


def test_the_word_bearer_may_be_written_in_any_way(front: Front) -> None:
    """As HTTP has it."""
    assert front.ask("/v1/samples/random", token=f"bEARER {TOKEN}").status == 200


def test_a_renewed_token_counts_at_once(front: Front) -> None:
    """The old one does no longer."""
    front.file.write_text("another-one\n")
    assert front.ask("/v1/samples/random").status == 401
    assert front.ask("/v1/samples/random", token="Bearer another-one").status == 200


def test_a_token_file_that_is_gone_lets_nobody_in(front: Front) -> None:
    """It is an error of whoever runs the agent, not of whoever asks."""
    front.file.unlink()
    assert front.ask("/v1/samples/random").status == 503
    assert not front.sampler.asked


def test_an_unknown_strategy_is_refused_with_those_that_there_are(front: Front) -> None:
    """And counted under one name, however many are tried."""
    for name in ("best", "worst"):
        reply = front.ask(f"/v1/samples/{name}")
        assert reply.status == 400
        assert text(reply) == "there are random, round-robin\n"
    assert front.count("unknown", "400") == 2


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"podInfo": {}}',
        QUESTION.replace(b"300", b"-1"),
        QUESTION.replace(b'"a"', b"1"),
        QUESTION.replace(b'"a"}', b'"a", "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    ],
    ids=["cut", "list", "empty", "no pod", "negative", "number", "deep"],
)
def test_what_cannot_be_read_is_refused_with_the_reason(front: Front, body: bytes) -> None:
    """Before anything is done."""
    reply = front.ask("/v1/samples/random", body)
    assert reply.status == 400
    assert "podInfo" in text(reply)
    assert not front.sampler.asked


def test_a_broken_plugin_is_this_questions_failure(front: Front) -> None:
    """The next one is answered."""
    front.sampler.fails = PipelineFailed("filter x: no such thing")
    reply = front.ask("/v1/samples/random")
    assert (reply.status, text(reply)) == (500, "filter x: no such thing\n")
    front.sampler.fails = None
    assert front.ask("/v1/samples/random").status == 200
    assert (front.count("random", "500"), front.count("random", "200")) == (1, 1)


def test_a_pod_that_no_plugin_can_read_is_no_failure_of_the_agent(front: Front) -> None:
    """The status tells the two apart."""
    front.sampler.fails = PodRefused("annotation x: 'y' is not a whole number")
    reply = front.ask("/v1/samples/random")
    assert (reply.status, text(reply)) == (422, "annotation x: 'y' is not a whole number\n")


def test_whoever_finds_no_idle_pipeline_is_asked_to_come_back(front: Front) -> None:
    """Nothing was done."""
    front.sampler.fails = Busy("no pipeline became idle within 5 s")
    reply = front.ask("/v1/samples/random")
    assert (reply.status, reply.headers["Retry-After"]) == (503, "1")


def test_before_it_knows_its_nodes_it_answers_nothing(front: Front) -> None:
    """An empty answer would look like a full cluster."""
    front.problem = "not listed yet: nodes"
    reply = front.ask("/v1/samples/random")
    assert (reply.status, text(reply)) == (503, "this agent does not know its nodes yet: not listed yet: nodes\n")
    assert json.loads(front.ask("/v1/samples/status", b"").body)["status"] == "starting"


def test_an_agent_that_stops_answers_those_inside_and_nobody_else(front: Front) -> None:
    """So that no question is lost in between."""
    front.sampler.release.clear()
    answers: list[int] = []
    asking = threading.Thread(target=lambda: answers.append(front.ask("/v1/samples/random").status))
    asking.start()
    assert front.sampler.entered.wait(WAIT)
    front.desk.close()
    late = front.ask("/v1/samples/random")
    assert (late.status, late.headers["Retry-After"]) == (503, "1")
    assert json.loads(front.ask("/v1/samples/status", b"").body)["status"] == "draining"
    assert not front.desk.drained(0)
    front.sampler.release.set()
    assert front.desk.drained(WAIT, quiet=0.05)
    asking.join(WAIT)
    assert answers == [200]
