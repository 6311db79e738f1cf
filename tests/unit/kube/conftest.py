"""A server on loopback that answers what a test tells it and remembers what it was asked."""

import dataclasses
import random
from collections.abc import Callable, Iterator

import msgspec
import pytest

from slurm_bridge.kube import client, config
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.runtime.http import messages
from slurm_bridge.sim import http

#: No case comes near the times of these, however busy the machine is.
LIMITS = messages.Limits(connect=10, answer=10, whole_answer=30, silence=10, most_bytes=100_000)

#: For cases that wait for an answer, or for a word on a watch, that does not come.
NO_ANSWER = dataclasses.replace(LIMITS, answer=0.5)
SILENCE = dataclasses.replace(LIMITS, silence=1)


class Script:
    """Answers by method and path; what nobody wrote down is a 404 of Go's router."""

    def __init__(self) -> None:
        self.requests: list[http.Request] = []
        self._answers: dict[tuple[str, str], list[http.Response]] = {}
        self.on("GET", "/api/v1", {"resources": [{"name": "pods"}, {"name": "nodes"}, {"name": "namespaces"}]})
        self.on("GET", "/apis/coordination.k8s.io/v1", {"resources": [{"name": "leases"}]})
        self.on("GET", "/apis/events.k8s.io/v1", {"resources": [{"name": "events"}]})

    def on(self, method: str, path: str, *answers: object) -> None:
        """Answer in this order, the last one for ever; plain values are JSON with status 200."""
        self._answers[method, path] = [_response(answer) for answer in answers]

    def __call__(self, request: http.Request) -> http.Response:
        if "limit" in request.query or "watch" in request.query or request.method != "GET" or "pods/" in request.path:
            self.requests.append(request)
        answers = self._answers.get((request.method, request.path), [http.Response(status=404, body=b"no such page")])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    @property
    def sent(self) -> dict[str, object]:
        """The JSON of the last request."""
        return msgspec.json.decode(self.requests[-1].body)


def _response(answer: object) -> http.Response:
    return answer if isinstance(answer, http.Response) else http.Response(body=msgspec.json.encode(answer))


def refused(code: int, reason: str, *, headers: dict[str, str] | None = None, **details: object) -> http.Response:
    """A Status of the API server."""
    status = {"kind": "Status", "code": code, "reason": reason, "message": f"{reason}!", "details": details}
    return http.Response(status=code, body=msgspec.json.encode(status), headers=headers or {})


def pod(name: str = "a", *, uid: str = "", version: str = "1", **fields: object) -> dict[str, object]:
    """A pod as JSON values."""
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": version}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, **fields}


@pytest.fixture
def script() -> Script:
    """What the server says."""
    return Script()


@pytest.fixture
def server(script: Script) -> Iterator[http.Server]:
    """The server that says it."""
    with http.Server(script) as running:
        yield running


@pytest.fixture
def connect(server: http.Server) -> Iterator[Callable[[], client.KubeClient]]:
    """Makes clients of the server."""
    made: list[client.KubeClient] = []

    def make(limits: messages.Limits = LIMITS) -> client.KubeClient:
        access = config.plain(server.url)
        made.append(client.KubeClient(access, clock=SystemClock(), dice=random.Random(1), limits=limits))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def cluster(connect: Callable[[], client.KubeClient]) -> client.KubeClient:
    """A client of the server."""
    return connect()
