"""Pods, clusters and agents for the tests of the family."""

import random
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from slurm_bridge.cluster.columns import Whole
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.vela.counts import WORDS
from slurm_bridge.families.vela.hook import Vela
from slurm_bridge.families.vela.options import VelaOptions
from slurm_bridge.families.vela.pipeline import NotSampled
from slurm_bridge.families.vela.samples import SamplingRequest, SamplingResponse
from slurm_bridge.hooks.calls import Hook
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.services import ChainServices, HookServices, NotAnswered, Target
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Container, Pod, PodSpec, ResourceNeeds
from slurm_bridge.runtime.clock import VirtualClock
from tests.unit.hooks.builders import SCHEDULER, cluster, node


def limited(name: str = "p", *, limits: Mapping[str, Any] | None = None, **spec: Any) -> Pod:
    """A pod with limits (and the requests that follow of them)."""
    needs = ResourceNeeds(limits=dict(limits or {}), requests=dict(limits or {}))
    metadata = ObjectMeta(name=name, namespace="team", uid=f"uid-{name}", annotations=spec.pop("annotations", {}))
    containers = (Container(name="c", resources=needs),)
    return Pod(metadata=metadata, spec=PodSpec(scheduler_name=SCHEDULER, containers=containers, **spec))


def farm(number: int, **kinds: Any) -> ClusterSnapshot:
    """Equal nodes n00, n01, and so on."""
    return cluster([node(f"n{place:02}", **kinds) for place in range(number)])


def whole(*numbers: int) -> Whole:
    """An array."""
    return np.array(numbers, np.int64)


def response(
    cluster_name: str, *nodes: str, scores: tuple[int, ...] = (), uids: tuple[str, ...] = ()
) -> SamplingResponse:
    """An answer with one plugin's scores, 0 unless given."""
    return SamplingResponse(
        cluster=cluster_name,
        nodes=nodes,
        uids=uids or ("",) * len(nodes),
        accumulated=whole(*(scores or (0,) * len(nodes))),
        plugins=whole(*(1 for _ in nodes)),
    )


class FakeAgent:
    """An agent that says what a test wrote down, or raises it."""

    def __init__(self, cluster_name: str, *answers: SamplingResponse | NotSampled) -> None:
        self.cluster = cluster_name
        self.answers = list(answers)
        self.asked: list[tuple[SamplingRequest, str]] = []

    def sample(self, request: SamplingRequest, strategy: str) -> SamplingResponse:
        self.asked.append((request, strategy))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, NotSampled):
            raise answer
        return answer


class FakePost:
    """JSON services by URL: each is a value, an exception, or a function of the body. Remembers who was asked."""

    def __init__(self, **services: Any) -> None:
        self.services = {f"http://{name}": answer for name, answer in services.items()}
        self.calls: list[tuple[str, str, Mapping[str, Any], float]] = []
        self._lock = threading.Lock()

    def __call__(self, target: Target, path: str, body: Mapping[str, Any], *, seconds: float) -> Any:
        with self._lock:
            self.calls.append((target.url, path, body, seconds))
        answer = self.services[target.url]
        if isinstance(answer, Exception):
            raise answer
        return answer(body) if callable(answer) else answer

    def asked(self) -> list[str]:
        """Whom, in order."""
        return [url.removeprefix("http://") for url, *_ in self.calls]


def answering(cluster_name: str, *nodes: str, score: int = 50) -> dict[str, Any]:
    """What an agent answers as JSON."""
    return {
        "nodes": [
            {
                "clusterName": cluster_name,
                "node": {"metadata": {"name": name}},
                "samplingScore": {"accumulated": score, "plugins": 1},
            }
            for name in nodes
        ]
    }


DOWN = NotAnswered("http://north: connection refused")


class Counts:
    """Counters that can be read."""

    def __init__(self) -> None:
        self.counted: dict[str, int] = {}

    def happened(self, hook: str, what: str, amount: int = 1) -> None:
        assert (hook, what in WORDS) == ("vela", True)
        self.counted[what] = self.counted.get(what, 0) + amount


class Stage:
    """A services with a clock of its own, whose snapshot a test can replace."""

    def __init__(
        self, snapshot: ClusterSnapshot, *, post: Any = None, threads: bool = False, clock: Any = None
    ) -> None:
        self.now = snapshot
        self.clock = clock or VirtualClock()
        self.counters = Counts()
        self.woken: list[str] = []
        self.awake = threading.Event()
        self._post = post or FakePost()
        self._threads = threads

    def wake(self, workload: str) -> None:
        """Remember it."""
        self.woken.append(workload)
        self.awake.set()

    def services(self) -> HookServices:
        """For a hook."""
        return HookServices(
            clock=self.clock,
            dice=random.Random(7),
            wake=self.wake,
            snapshot=lambda: self.now,
            post=self._post,
            counters=self.counters,
            threads=self._threads,
        )

    def hook(self, **options: Any) -> Vela:
        """The hook with these options."""
        return Vela(VelaOptions.model_validate(options), self.services())

    def chain(self, vela: Vela, *others: Hook) -> Chain:
        """With the hook in front."""
        first = Hook(name="vela", hook=vela, budget_seconds=60)
        return Chain([first, *others], ChainServices(clock=self.clock))


def scripted(*numbers: int) -> Callable[[int, int], list[int]]:
    """Dice that fall so."""
    left = iter(numbers)
    return lambda _below, count: [number for number, _ in zip(left, range(count), strict=False)]
