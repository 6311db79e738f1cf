"""The same recorded bytes through both decoders: what an event, and what a listed object, costs.

Live numbers contain TLS, waiting and each other's use of the interpreter lock. A recording does not: one watch of real
traffic, as its pieces arrived, is fed to each informer's own code without a network in between.
"""

import json
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import contestants
import kubernetes.client
import msgspec
import traffic

from slurm_bridge.informers.store import Store
from slurm_bridge.kube import codec, config, transport, watch
from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.runtime.http import messages

_PODS = "/api/v1/pods"
_SELECTOR = {"fieldSelector": f"spec.schedulerName={traffic.SCHEDULER}"}


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """How much work was done in how much processor time."""

    what: str
    who: str
    count: int
    seconds: float

    @property
    def micros(self) -> float:
        return self.seconds / self.count * 1e6

    @property
    def per_second(self) -> float:
        return self.count / self.seconds


class Recording:
    """The bytes of one watch, in the pieces in which they came, and of one list."""

    def __init__(self, pieces: list[bytes], page: bytes) -> None:
        self.pieces = pieces
        self.page = page
        self.events = sum(piece.count(b"\n") for piece in pieces)
        self.size = sum(map(len, pieces))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)

    def close(self) -> None:
        """A stream of its own has nothing to close."""


def record(access: config.Access, pods: traffic.Traffic, *, count: int) -> Recording:
    """Let so many pods come and go, and keep what a watch and a list said of them."""
    line = transport.Transport(access, clock=SystemClock(), limits=messages.Limits(silence=3))
    start = line.call(messages.Request(method="GET", path=_PODS, query={**_SELECTOR, "limit": "1"}))
    version = codec.codec(kinds.PODS).page(bytes(start.body)).metadata.resource_version
    query = {**_SELECTOR, "watch": "1", "resourceVersion": version, "timeoutSeconds": "60"}
    stream = line.stream(messages.Request(method="GET", path=_PODS, query=query))
    pieces: list[bytes] = []
    reader = threading.Thread(target=lambda: pieces.extend(stream), daemon=True)
    reader.start()
    made = pods.churn([f"record-{number}" for number in range(count)], keep=True)
    page = line.call(messages.Request(method="GET", path=_PODS, query=_SELECTOR))
    pods.clear(made)
    contestants.wait_until(lambda: b"".join(pieces[-50:]).count(b'"DELETED"') > 0, seconds=10, over=threading.Event())
    # Before the end: what arrives while a connection is torn down under its reader is no recording.
    heard = _whole(list(pieces))
    stream.close()
    reader.join(10)
    line.close()
    return Recording(heard, bytes(page.body))


def _whole(pieces: list[bytes]) -> list[bytes]:
    """Without the half line at the end."""
    while pieces and b"\n" not in pieces[-1]:
        pieces.pop()
    return [*pieces[:-1], pieces[-1][: pieces[-1].rfind(b"\n") + 1]]


def rates(recording: Recording) -> list[Rate]:
    """Both decoders, events and lists."""
    return [
        _ours(recording, rounds=10),
        _package(recording),
        _our_page(recording, rounds=10),
        _package_page(recording),
    ]


def _ours(recording: Recording, *, rounds: int) -> Rate:
    began = time.thread_time()
    for _ in range(rounds):
        store: Store[Pod] = Store()
        stream: Any = recording
        for change in watch.Watch(stream, codec.codec(kinds.PODS)):
            store.take(change)
    seconds = time.thread_time() - began
    return Rate(what="watch events", who=contestants.Ours.name, count=rounds * recording.events, seconds=seconds)


def _package(recording: Recording) -> Rate:
    """Its informer as it is, on a list function that plays the recording once."""
    played, released = threading.Event(), threading.Event()
    answers = [_Response(recording.pieces)]

    def list_pods(*, watch: bool = False, **_: object) -> Any:
        """:rtype: V1PodList"""
        if not watch:
            return SimpleNamespace(items=[], metadata=SimpleNamespace(resource_version="1"))
        if answers:
            return answers.pop()
        played.set()
        released.wait()
        return _Response([])

    shared = contestants.Package(list_pods)
    shared.start()
    played.wait()
    seconds = shared.cpu()
    released.set()
    shared.stop()
    return Rate(what="watch events", who=contestants.Package.name, count=shared.events, seconds=seconds)


def _our_page(recording: Recording, *, rounds: int) -> Rate:
    began = time.thread_time()
    count = sum(len(codec.codec(kinds.PODS).page(recording.page).items or ()) for _ in range(rounds))
    return Rate(what="listed objects", who=contestants.Ours.name, count=count, seconds=time.thread_time() - began)


def _package_page(recording: Recording) -> Rate:
    api = kubernetes.client.ApiClient()
    began = time.thread_time()
    made = api.deserialize(recording.page.decode(), "V1PodList", "application/json")
    seconds = time.thread_time() - began
    return Rate(what="listed objects", who=contestants.Package.name, count=len(made.items), seconds=seconds)


class _Response:
    """What the package's watch asks of a urllib3 response."""

    status = 200

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    def stream(self, **_: object) -> Iterator[bytes]:
        return iter(self._pieces)

    def close(self) -> None:
        """Nothing is open."""

    def release_conn(self) -> None:
        """Nothing is borrowed."""


def sizes(recording: Recording) -> dict[str, float]:
    """How large the recording is."""
    listed = len(json.loads(recording.page)["items"])
    return {
        "events": recording.events,
        "bytes_per_event": recording.size / max(1, recording.events),
        "bytes_per_listed_object": len(recording.page) / max(1, listed),
    }
