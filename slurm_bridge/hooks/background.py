"""Answers that take time: what a hook may use to get them beside the passes, which never wait for anybody.

    pass: the hook has no answer yet ─► Wait ─┐                 ┌─► next pass: here it is
                                              └─► desk ─► work ─┘ wake

Only hooks that ship with the bridge are given a backstage: one whose class has the attribute `backstage = True` is
built with (options, backstage).
"""

import dataclasses
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from slurm_bridge import ports
from slurm_bridge.cluster.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.hooks.base import Log
from slurm_bridge.model.names import WorkloadKey

#: An answer that is longer than this is not read to its end.
MOST_BYTES = 16 * 1024 * 1024

#: How long `close` waits for work that is under way; it ends by its own deadlines soon after.
CLOSE_SECONDS = 5.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to ask: the service, the file with the token for it, and who may sign its certificate."""

    url: str
    token_file: str = ""
    ca_file: str = ""
    most_bytes: int = MOST_BYTES


class NotAnswered(Exception):
    """No usable answer; `status` is that of HTTP where there was one. The message names the service, never a token."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Post(Protocol):
    """JSON for JSON over HTTP."""

    def __call__(self, target: Target, path: str, body: Mapping[str, Any], *, seconds: float) -> Any:
        """The decoded answer of a 200; raises NotAnswered for everything else, and after so many seconds."""


#: Takes lines that hardly anybody reads: what makes them is called only when somebody does.
Finest = Callable[[Callable[[], Iterator[str]]], None]


def unheard(_: Callable[[], Iterator[str]]) -> None:
    """Nobody reads them."""


class HookCounters(Protocol):
    """Counters of the families: what happened beside the passes, by a fixed word."""

    def happened(self, hook: str, what: str, amount: int = 1) -> None: ...


class Untold:
    """Nobody counts."""

    def happened(self, hook: str, what: str, amount: int = 1) -> None:
        """Nothing to do."""


class Silent:
    """A logger for nobody."""

    def trace(self, message: object, /) -> None:
        """Not kept."""

    debug = info = warning = trace


def nowhere(target: Target, path: str, body: Mapping[str, Any], *, seconds: float) -> Any:  # noqa: ARG001 - a Post
    """The Post of a process that is not connected to anything, as `explain --offline` is."""
    raise NotAnswered(f"{target.url}{path}: this process asks nobody")


class Heirloom:
    """What a hook hands on to the one that takes its place when the configuration is read again; it begins empty."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: object = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Backstage:
    """What is there beside the passes. `threads` False: everything is done where it is asked for, at once."""

    clock: ports.Clock
    dice: random.Random = dataclasses.field(default_factory=random.Random)
    log: Log = dataclasses.field(default_factory=Silent)
    #: Look again at the workload whose root has this key.
    wake: Callable[[WorkloadKey], None] = lambda _: None
    #: The cluster now.
    snapshot: Callable[[], ClusterSnapshot] = lambda: EMPTY
    post: Post = nowhere
    tally: HookCounters = dataclasses.field(default_factory=Untold)
    finest: Finest = unheard
    threads: bool = True
    heirloom: Heirloom = dataclasses.field(default_factory=Heirloom)


class Desk:
    """Work for a few threads, in order, at most one piece for each key. Work keeps its own result and its failures."""

    def __init__(self, name: str, backstage: Backstage, *, workers: int, most: int) -> None:
        self._name = name
        self._backstage = backstage
        self._workers = workers
        self._most = most
        self._changed = threading.Condition()
        self._waiting: deque[tuple[str, Callable[[], object]]] = deque()
        self._keys: set[str] = set()
        self._threads: list[threading.Thread] = []
        #: Pieces that are worked on, whoever does it.
        self._busy = 0
        self._closed = False

    def __len__(self) -> int:
        """Pieces that wait or are worked on."""
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def submit(self, key: str, work: Callable[[], object]) -> bool:
        """Take it in; False when the desk is full or closed, or there is no thread to be had.

        What has this key already is not asked for twice.
        """
        with self._changed:
            if self._closed:
                return False
            if key in self._keys:
                return True
            if len(self._keys) >= self._most:
                return False
            self._keys.add(key)
            if self._backstage.threads:
                if not self._started():
                    self._keys.discard(key)
                    return False
                self._waiting.append((key, work))
                self._changed.notify()
                return True
            self._busy += 1
        self._do(key, work)
        return True

    def lend(self, key: str, work: Callable[[], object]) -> bool:
        """Do it here and now in the place of a thread that has nothing to do; False where all of them have.

        Who has just made the work is the fastest to do it: another thread would only wait for this one to step aside.
        """
        with self._changed:
            if self._closed or key in self._keys or len(self._keys) >= min(self._workers, self._most):
                return False
            self._keys.add(key)
            self._busy += 1
        self._do(key, work)
        return True

    def close(self) -> None:
        """Drop what waits, and let the threads end; those in the middle of something are not waited for very long."""
        with self._changed:
            self._closed = True
            for key, _ in self._waiting:
                self._keys.discard(key)
            self._waiting.clear()
            self._changed.notify_all()
        until = self._backstage.clock.now() + CLOSE_SECONDS
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - self._backstage.clock.now()))

    def _started(self) -> bool:
        """One more thread while there is work for it; whether there is any. Called with the lock held."""
        if len(self._threads) < min(self._workers, len(self._keys)):
            name = f"{self._name}-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._backstage.log.warning(f"{self._name}: no further thread: {error}")
            else:
                self._threads.append(thread)
        return bool(self._threads)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (not self._waiting or self._busy >= self._workers):
                    self._changed.wait()
                if not self._waiting:
                    return
                key, work = self._waiting.popleft()
                self._busy += 1
            self._do(key, work)

    def _do(self, key: str, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a defect of one piece of work must not end the thread of all others
            self._backstage.log.warning(f"{self._name}: {key}: {type(error).__name__}: {error}")
        finally:
            with self._changed:
                self._busy -= 1
                self._keys.discard(key)
                if self._waiting:
                    self._changed.notify()
