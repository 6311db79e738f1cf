"""What a call through our adapters costs beside a bare call of the same kind.

Ours and the bare call take turns within one run, so that a noisy machine slows both; the figure that counts is the
ratio of one turn, and its median over all turns.
"""

import dataclasses
import json
import pathlib
import random
import statistics
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from kubernetes import client as official
from kubernetes import config as official_config

from clusterbench import bare, raw
from clusterbench.workload import Load
from slurm_bridge import ports
from slurm_bridge.kube import client as kube_client
from slurm_bridge.kube import config
from slurm_bridge.model import job, kinds, meta
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.slurm import calls, fields, settings
from slurm_bridge.slurm import client as slurm_client

Answer = TypeVar("Answer")

TURNS = 7
CALLS = 100
PODS = 1000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of call, measured both ways."""

    what: str
    ours: float
    bare: float
    ratio: float

    @classmethod
    def of(cls, what: str, turns: Sequence[tuple[float, float]]) -> "Row":
        """Seconds per call of ours and of the bare one, turn by turn."""
        return cls(
            what=what,
            ours=statistics.median(ours for ours, _ in turns),
            bare=statistics.median(bare for _, bare in turns),
            ratio=statistics.median(ours / bare for ours, bare in turns),
        )


class Bench:
    """Both adapters and their bare counterparts, on one cluster."""

    def __init__(self, env: Mapping[str, str]) -> None:
        kubeconfig = pathlib.Path(env["KUBECONFIG"])
        token_file = pathlib.Path(env["SLURM_TOKEN_FILE"])
        chosen = settings.SlurmSettings(url=env["SLURMRESTD_URL"], token_file=token_file, cache_ttl=0)
        clock, stop = SystemClock(), threading.Event()
        self.slurm = slurm_client.SlurmClient(chosen, clock=clock, stop=stop)
        self.kube = kube_client.KubeClient(config.from_kubeconfig(kubeconfig), clock=clock, dice=random.Random())
        self.namespace = f"bench-{uuid.uuid4().hex[:8]}"
        self._bare = bare.slurm(env["SLURMRESTD_URL"], token_file, self.slurm.version, 1)
        logged_in = official_config.new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]
        self._core = official.CoreV1Api(logged_in)

    def rows(self) -> Iterator[Row]:
        """Every kind of call."""
        yield Row.of("submit a placeholder", [self._submits() for _ in range(TURNS)])
        yield Row.of("states of 100 jobs", [self._states() for _ in range(TURNS)])
        with _Namespace(self.kube, self.namespace):
            yield Row.of(f"list and decode {PODS} pods", self._lists())

    def _submits(self) -> tuple[float, float]:
        request = raw.request("bench", "bench", str(uuid.uuid4()))
        same = calls.submit([fields.submit(request)])
        ours, made = _timed(lambda: self.slurm.submit(request), CALLS)
        plain, also = _timed(lambda: json.loads(self._bare.call(same.method, same.path, same.body)), CALLS)
        for job_id in [*(one.job_id for one in made if isinstance(one, job.Done)), *(one["job_id"] for one in also)]:
            self.slurm.cancel(job_id)
        return ours, plain

    def _states(self) -> tuple[float, float]:
        request = raw.request("bench", "bench", str(uuid.uuid4()))
        ids = [one.job_id for one in (self.slurm.submit(request) for _ in range(100)) if isinstance(one, job.Done)]
        same = calls.states(ids)
        ours, _ = _timed(lambda: self.slurm.states(ids), 20)
        plain, _ = _timed(lambda: json.loads(self._bare.call(same.method, same.path)), 20)
        for job_id in ids:
            self.slurm.cancel(job_id)
        return ours, plain

    def _lists(self) -> list[tuple[float, float]]:
        scope = ports.Scope(namespace=self.namespace)
        load = Load(namespace=self.namespace, scheduler="nobody", pods=PODS)
        for name in load.names():
            self.kube.create(kinds.PODS, self.namespace, load.pod(name))
        return [
            (_timed(lambda: self.kube.list(kinds.PODS, scope), 1)[0], _timed(self._official_list, 1)[0])
            for _ in range(TURNS)
        ]

    def _official_list(self) -> object:
        return self._core.list_namespaced_pod(self.namespace)


class _Namespace:
    """A namespace for the length of a measurement."""

    def __init__(self, kube: kube_client.KubeClient, name: str) -> None:
        self._kube = kube
        self._manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self._made: meta.Object | None = None

    def __enter__(self) -> None:
        self._made = self._kube.create(kinds.NAMESPACES, "", self._manifest)

    def __exit__(self, *_: object) -> None:
        if self._made is not None:
            self._kube.delete(kinds.NAMESPACES, self._made)


def table(rows: Sequence[Row]) -> str:
    """For people."""
    lines = [f"{'call':<28} {'ours ms':>9} {'bare ms':>9} {'ours/bare':>10}"]
    lines += [f"{row.what:<28} {row.ours * 1000:>9.2f} {row.bare * 1000:>9.2f} {row.ratio:>10.2f}" for row in rows]
    return "\n".join(lines)


def document(rows: Sequence[Row]) -> dict[str, object]:
    """For programs."""
    return {"adapters": {"turns": TURNS, "rows": [dataclasses.asdict(row) for row in rows]}}


def _timed(call: Callable[[], Answer], times: int) -> tuple[float, list[Answer]]:
    """Seconds per call, and what the calls answered."""
    begin = time.perf_counter()
    answers = [call() for _ in range(times)]
    return (time.perf_counter() - begin) / times, answers
