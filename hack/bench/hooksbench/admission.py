"""Workloads that go through the queue core as through the daemon: submitted, given room in their queue, over."""

import collections
import dataclasses
import functools
import gc
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hooksbench.queues import APPLICATIONS, PARTITION, QUEUES
from slurm_bridge.families.yunikorn.queues import records
from slurm_bridge.families.yunikorn.queues.config import validation
from slurm_bridge.families.yunikorn.queues.config.documents import Document
from slurm_bridge.families.yunikorn.queues.core import QueueCore
from slurm_bridge.families.yunikorn.queues.records import (
    Allocation,
    AllocationAsk,
    AllocationRelease,
    AskId,
    FitQuestion,
    Named,
    News,
    NodeMode,
    Registration,
    Update,
)

_RM = "bench"
_KEY = "ask"
_UNIT = {"vcore": 1000, "memory": 4 << 30, "pods": 1}
#: So many applications run in a queue at most.
_RUNNING = 4
_PARENTS = 20


class Broken(Exception):
    """The core refused something, or gave less than there was room for; the message says what."""


@dataclasses.dataclass(frozen=True, slots=True)
class Admitted:
    """So many workloads, in seconds by the clock and of processor time; so many others waited in the same queues."""

    what: str
    nodes: int
    workloads: int
    behind: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        """Workloads per second."""
        return self.workloads / self.seconds

    @property
    def cpu_rate(self) -> float:
        """Workloads per second of processor time."""
        return self.workloads / self.cpu_seconds


class Manager:
    """Hears what the core gives, and takes every node for good; anything that is refused breaks the run."""

    def __init__(self) -> None:
        self.new: collections.deque[Allocation] = collections.deque()

    def update(self, news: News) -> None:
        for one in news.rejected:
            raise Broken(f"{one.subject}: {one.reason}")
        self.new.extend(news.new)

    def predicate(self, _question: FitQuestion) -> str:
        return ""


class _Clock:
    def wall(self) -> float:
        return time.time()

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        return stop.wait(seconds)


def _failed(name: str, error: Exception) -> None:
    raise Broken(name) from error


class Gate:
    """A core with one manager, as the daemon has it: only what is configured limits the queues."""

    def __init__(self, nodes: int, queues: int = QUEUES, behind: int = APPLICATIONS) -> None:
        self.behind = behind
        self._core = QueueCore(_Clock(), _failed)
        self.manager = Manager()
        self.queues = [f"root.p{place % _PARENTS}.q{place}" for place in range(queues)]
        registration = Registration(rm=_RM, configuration=_document(queues), mode=NodeMode.ALLOCATABLE, predicates=True)
        self._core.register_resource_manager(registration, self.manager)
        capacity = {"vcore": 64_000, "memory": 256 << 30, "pods": 110}
        names = (f"node-{number:05}" for number in range(nodes))
        self.told(nodes=tuple(records.NodeReport(name=name, partition=PARTITION, capacity=capacity) for name in names))

    def told(self, **fields: Any) -> None:
        """Send an update and let it come to rest."""
        self._core.update(Update(rm=_RM, **fields))
        self._core.settle()

    def submit(self, numbers: Sequence[int]) -> None:
        """Applications with one ask each, all at once."""
        applications = tuple(
            records.Application(
                name=f"application-{number:06}",
                partition=PARTITION,
                queue=self.queues[number % len(self.queues)],
                user="ann",
                submitted=float(number),
            )
            for number in numbers
        )
        now = time.time()
        asks = tuple(
            AllocationAsk(key=_KEY, application=one.name, partition=PARTITION, resource=_UNIT, created=now, shape="one")
            for one in applications
        )
        self.told(applications=applications, asks=asks)

    def end(self, over: Sequence[Allocation]) -> None:
        """Their applications are over."""
        ids = [AskId(partition=PARTITION, application=one.ask.application, key=_KEY) for one in over]
        named = tuple(Named(partition=PARTITION, name=one.application) for one in ids)
        self.told(releases=tuple(AllocationRelease(id=one) for one in ids), removed_applications=named)


def _document(queues: int) -> Document:
    limit = {"max": {"vcore": str(_RUNNING), "memory": f"{4 * _RUNNING}Gi"}}
    leaves: dict[int, list[Mapping[str, Any]]] = collections.defaultdict(list)
    for place in range(queues):
        leaves[place % _PARENTS].append({"name": f"q{place}", "resources": limit})
    parents = [{"name": f"p{place}", "queues": below} for place, below in leaves.items()]
    root = {"name": "root", "submitacl": "*", "queues": parents}
    return validation.load({"partitions": [{"name": PARTITION, "queues": [root]}]})


def measure(nodes: int, workloads: int, gate: Gate | None = None) -> list[Admitted]:
    """One by one in empty queues; as many at once as can run and wait; one by one beside those that wait."""
    gate = gate or Gate(nodes)
    room = _RUNNING * len(gate.queues)
    crowd = range(workloads, workloads + room + gate.behind)
    later = range(crowd.stop, crowd.stop + workloads)
    played: tuple[tuple[str, int, int, Callable[[], None]], ...] = (
        ("one by one", workloads, 0, functools.partial(_one_by_one, gate, range(workloads))),
        ("all at once", len(crowd), 0, functools.partial(gate.submit, crowd)),
        ("one by one", workloads, gate.behind, functools.partial(_one_by_one, gate, later)),
    )
    found = [Admitted(what, nodes, count, behind, *_timed(act)) for what, count, behind, act in played]
    if len(gate.manager.new) != room:
        raise Broken(f"{len(gate.manager.new)} applications run; there is room for {room}")
    return found


def _timed(act: Callable[[], None]) -> tuple[float, float]:
    """Seconds by the clock, and of processor time."""
    gc.collect()
    began, cpu = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - began, time.process_time() - cpu


def _one_by_one(gate: Gate, numbers: Iterable[int]) -> None:
    """Each comes, and the oldest that runs is over: the new one itself where the queues are empty."""
    for number in numbers:
        gate.submit([number])
        gate.end([gate.manager.new.popleft()])
