"""One turn: a fresh namespace, one contestant, a few pods to warm up, the measured ones, and everything gone again."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping

import urllib3

from clusterbench import bare, figures, loader, processes, samples
from clusterbench.contestants import Arena, Contestant, Running
from clusterbench.observer import Observer
from clusterbench.testbed import Bed, until
from clusterbench.workload import Load

WARM = 20
_WARM_SECONDS = 60.0
_EMPTY_SECONDS = 300.0
#: A contestant that binds less than one pod per second is given up.
SLOWEST = 1.0

_DELETE = b'{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0}'


class Created:
    """What a loader has made so far."""

    def __init__(self, process: subprocess.Popen[str], told: Callable[[str, str], None]) -> None:
        self.at: dict[str, float] = {}
        self.cpu: float | None = None
        self._process = process
        self._told = told
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self) -> None:
        """Until everything is made; raises when that failed."""
        self._reader.join()
        if self._process.wait() or self.cpu is None:
            raise RuntimeError("the loader failed, its words stand above")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            name, *rest = line.split()
            if name == loader.CPU:
                self.cpu = float(rest[0])
            else:
                self.at[name] = float(rest[1])
                self._told(name, rest[0])


class Stage:
    """A namespace, a contestant and an observer: what one turn, or another measurement, is made of."""

    def __init__(
        self, arena: Arena, running: Running, observer: Observer, scheduler: str, *, together: bool = False
    ) -> None:
        self.arena = arena
        self.running = running
        self.observer = observer
        self._scheduler = scheduler
        self._together = together

    def create(self, pods: int, prefix: str, partition: str = "") -> Created:
        """Begin to create pods: each a workload of its own, or all of them together."""
        load = Load(
            namespace=self.arena.namespace,
            scheduler=self._scheduler,
            pods=pods,
            prefix=prefix,
            partition=partition,
            together=self._together,
        )
        command = [sys.executable, "-m", "clusterbench.loader", self.arena.bed.env["KUBECONFIG"], *load.arguments()]
        return Created(subprocess.Popen(command, stdout=subprocess.PIPE, text=True), self.running.told)

    def await_bound(self, pods: int, prefix: str, seconds: float) -> None:
        """Until so many have their nodes."""
        self._until(lambda: len(self.observer.bound_of(prefix)) >= pods, seconds, f"{pods} pods bound")

    def _until(self, over: Callable[[], bool], seconds: float, what: str) -> None:
        until(over, seconds, f"{self._scheduler}: {what}", self._check)

    def _check(self) -> None:
        self.running.check()
        if self.observer.failure is not None:
            raise RuntimeError("the observer lost its watch") from self.observer.failure

    def _gone(self) -> bool:
        if self.observer.left:
            _delete_pods(self.arena.bed, self.arena.namespace)
        return not self.observer.left

    def clear(self) -> float:
        """Delete the pods and wait until Slurm runs nothing more; the seconds of it."""
        bed, begin = self.arena.bed, time.monotonic()
        self._until(self._gone, _EMPTY_SECONDS, "pods gone")
        if not self.running.cancels:
            bed.cancel_all()
        self._until(lambda: not bed.jobs(), _EMPTY_SECONDS, "Slurm empty")
        return time.monotonic() - begin


@contextlib.contextmanager
def arena(bed: Bed, folder: pathlib.Path) -> Iterator[tuple[Arena, Observer]]:
    """A namespace of its own, and an observer of what happens in it."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    folder.mkdir(parents=True, exist_ok=True)
    with _namespace(bed, name), Observer(pathlib.Path(bed.env["KUBECONFIG"]), name) as observer:
        yield Arena(bed=bed, namespace=name, folder=folder), observer


@contextlib.contextmanager
def staged(bed: Bed, contestant: Contestant, folder: pathlib.Path, *, together: bool = False) -> Iterator[Stage]:
    """One contestant on a namespace of its own, warm."""
    with arena(bed, folder) as (place, observer), contestant.enter(place) as running:
        stage = Stage(place, running, observer, contestant.scheduler, together=together)
        stage.create(WARM, "warm").wait()
        stage.await_bound(WARM, "warm", _WARM_SECONDS)
        yield stage


def play(bed: Bed, contestant: Contestant, pods: int, folder: pathlib.Path) -> figures.Turn:
    """Measure one contestant once."""
    with staged(bed, contestant, folder) as stage:
        count = Count(bed, stage.running)
        starts, meter = bed.starts(), bed.meter({contestant.name: stage.running.pid})
        own, machine = own_cpu(), processes.busy()
        created = stage.create(pods, "pod")
        stage.await_bound(pods, "pod", 60 + pods / SLOWEST)
        created.wait()
        assert created.cpu is not None
        machine = processes.busy() - machine
        cpu = {**meter.read(), "loader": created.cpu, "observer": own_cpu() - own}
        calls = count.read()
        bound, begun = stage.observer.bound_of("pod"), starts.starts()
        running = {name: begun[job].when for name, job in stage.observer.jobs.items() if job in begun}
        _same_nodes(stage.observer, begun)
        return figures.Turn(
            who=contestant.name,
            pods=pods,
            seconds=figures.seconds(created.at, bound),
            created_to_bound=figures.Percentiles.of(figures.between(created.at, bound)),
            running_to_bound=figures.Percentiles.of(figures.between(running, bound)),
            cpu=cpu,
            machine=machine,
            calls=calls,
            emptied_seconds=stage.clear(),
        )


def _same_nodes(observer: Observer, begun: Mapping[int, object]) -> None:
    """A fast wrong answer is worth nothing."""
    for name, job in observer.jobs.items():
        start = begun.get(job)
        node = getattr(start, "node", observer.nodes[name])
        if node != observer.nodes[name]:
            raise RuntimeError(f"{name} runs on {observer.nodes[name]}, but Slurm gave {node} to its job {job}")


class Count:
    """Calls since it was made: what the servers count, and what the contestant counts itself."""

    def __init__(self, bed: Bed, running: Running) -> None:
        self._bed = bed
        self._running = running
        self._begin = self._now()

    def _now(self) -> dict[str, Mapping[str, float]]:
        own = {f"own {side}": calls for side, calls in self._running.calls().items()}
        return {"apiserver": self._bed.apiserver_calls(), "slurmctld": self._bed.slurm_calls(), **own}

    def read(self) -> dict[str, dict[str, float]]:
        """By server, then by kind of call."""
        now = self._now()
        return {side: samples.growth(self._begin.get(side, {}), calls) for side, calls in now.items()}


@contextlib.contextmanager
def _namespace(bed: Bed, name: str) -> Iterator[None]:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    bed.kubernetes.call("POST", "/api/v1/namespaces", json.dumps(body).encode())
    try:
        yield
    finally:
        _delete_pods(bed, name)
        bed.kubernetes.call("DELETE", f"/api/v1/namespaces/{name}")


def _delete_pods(bed: Bed, namespace: str) -> None:
    """As far as one request gets: the API server gives up after a minute, and thousands of pods take longer."""
    with contextlib.suppress(bare.Refused, urllib3.exceptions.HTTPError):
        bed.kubernetes.call("DELETE", f"/api/v1/namespaces/{namespace}/pods", _DELETE)


def own_cpu() -> float:
    """Seconds of this process, which is the observer's."""
    times = os.times()
    return times.user + times.system


def as_json(turn: figures.Turn) -> dict[str, object]:
    """With what is computed from the rest."""
    sides = {side: round(turn.calls_per_pod(side), 2) for side in turn.calls}
    return {
        **dataclasses.asdict(turn),
        "pods_per_second": round(turn.rate, 1),
        "cpu_ms_per_pod": round(turn.cpu_per_pod, 2),
        "calls_per_pod": sides,
    }
