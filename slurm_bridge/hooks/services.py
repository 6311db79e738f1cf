"""What a chain and its hooks are given of the process: clock, dice, logs, limits, and the way to the outside.

A pass never waits. A hook whose answer takes time gets it beside the passes:

    pass: the hook has no answer yet ─► Wait ─┐                        ┌─► next pass: here it is
                                              └─► worker pool ─► work ─┘ wake

Only hooks that ship with the bridge are given services: one whose class has the attribute `services = True` is built
with (options, services).
"""

import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from slurm_bridge import ports
from slurm_bridge.cluster.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.hooks import attempts, calls
from slurm_bridge.hooks.base import Log, Nodes
from slurm_bridge.hooks.evictions import QueueSituation
from slurm_bridge.hooks.pass_context import LogOf
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.translate.translator import Translated

#: An answer that is longer than this is not read to its end.
MOST_BYTES = 16 * 1024 * 1024


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to ask: the service, the file with the token for it, and the authorities that may sign its certificate."""

    url: str
    token_file: str = ""
    ca_file: str = ""
    most_bytes: int = MOST_BYTES


class NotAnswered(Exception):
    """No usable answer; `status` is that of HTTP where there was one. The message names the service, never a token."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class JsonClient(Protocol):
    """JSON for JSON over HTTP."""

    def __call__(self, target: Target, path: str, body: Mapping[str, Any], *, seconds: float) -> Any:
        """The decoded answer of a 200; raises NotAnswered for everything else, and after so many seconds."""


#: Takes lines of the finest log level: the function that makes them is called only when that level is on.
Finest = Callable[[Callable[[], Iterator[str]]], None]


def unheard(_: Callable[[], Iterator[str]]) -> None:
    """The finest log level is off."""


class HookCounters(Protocol):
    """Counters of the families: what happened beside the passes, by a fixed word."""

    def happened(self, hook: str, what: str, amount: int = 1) -> None: ...


class Untold:
    """Counts nothing."""

    def happened(self, hook: str, what: str, amount: int = 1) -> None:
        """Nothing to do."""


class Silent:
    """A logger without output."""

    def trace(self, message: object, /) -> None:
        """Not kept."""

    debug = info = warning = trace


def nowhere(target: Target, path: str, body: Mapping[str, Any], *, seconds: float) -> Any:  # noqa: ARG001 - a Post
    """The Post of a process that is not connected to anything, as `explain --offline` is."""
    raise NotAnswered(f"{target.url}{path}: this process asks no service")


class CarriedState:
    """What a hook hands on to the one that takes its place when the configuration is read again; it begins empty."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: object = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HookServices:
    """What is there beside the passes. `threads` False: everything is done where it is asked for, at once."""

    clock: ports.Clock
    dice: random.Random = dataclasses.field(default_factory=random.Random)
    log: Log = dataclasses.field(default_factory=Silent)
    #: Look again at the workload whose root has this key.
    wake: Callable[[WorkloadKey], None] = lambda _: None
    #: The cluster now.
    snapshot: Callable[[], ClusterSnapshot] = lambda: EMPTY
    #: For a workload that waits for a queue; it returns None while too little is known. None: nodes are not known here.
    situation: Callable[[WorkloadKey], QueueSituation | None] | None = None
    post: JsonClient = nowhere
    counters: HookCounters = dataclasses.field(default_factory=Untold)
    finest: Finest = unheard
    threads: bool = True
    carried: CarriedState = dataclasses.field(default_factory=CarriedState)


#: The request as Slurm's partitions and resources let it be; runs after hooks have had their say about the fields.
#: The third argument are the eligible nodes: for each shape of the translated workload in order, or for all its pods.
Settle = Callable[[Translated, ClusterSnapshot, tuple[Nodes, ...]], Translated | Wait | Reject]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChainServices:
    """What a chain needs beside its hooks; chains of one process share it. `settle` None: requests come settled."""

    clock: ports.Clock
    dice: random.Random = dataclasses.field(default_factory=random.Random)
    observer: calls.Observer = dataclasses.field(default_factory=calls.Unobserved)
    logs: LogOf = lambda _: Silent()
    limits: attempts.AttemptLimits = attempts.DEFAULTS
    settle: Settle | None = None
    #: Whether pods wait that ask for what no hook honours; else that is told, and they go on without it.
    strict: bool = True
    left: calls.Left = dataclasses.field(default_factory=calls.Left)
    #: For hooks whose answers take time: to look at a workload again, the cluster now, JSON over HTTP, counters.
    wake: Callable[[WorkloadKey], None] = lambda _: None
    seen: Callable[[], ClusterSnapshot] = lambda: EMPTY
    situation: Callable[[WorkloadKey], QueueSituation | None] | None = None
    post: JsonClient = nowhere
    counters: HookCounters = dataclasses.field(default_factory=Untold)
    finest: Finest = unheard
    #: How scores came about is shown, also for those from which nothing follows.
    shows_scores: Callable[[], bool] = lambda: True
    #: Plans have a line for each answer of a hook: `explain` shows them, and the daemon has no reader for them.
    keeps_lines: bool = True
    #: False: everything is done where it is asked for, at once.
    threads: bool = True
    #: What hooks hand on when a chain takes the place of another, by their names.
    carried: dict[str, CarriedState] = dataclasses.field(default_factory=dict)

    def services_of(self, hook: str) -> HookServices:
        """What one hook is given of it."""
        return HookServices(
            clock=self.clock,
            dice=self.dice,
            log=self.logs(hook),
            wake=self.wake,
            snapshot=self.seen,
            situation=self.situation,
            post=self.post,
            counters=self.counters,
            finest=self.finest,
            threads=self.threads,
            carried=self.carried.setdefault(hook, CarriedState()),
        )
