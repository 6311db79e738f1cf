"""Which workload is next. Keyed by workload, never by pod; a workload is in exactly one place.

    activate ──► urgent (react: bind, end, withdraw; namespaces take turns, and the first that came is the first)
             ──► ordered (submit: in the order that the order hook wants, namespaces taking turns)
    pop ──► in flight ──done──► waiting (until woken, or until a time) ──► …      or forgotten

Urgent workloads come first, but at most URGENT_IN_A_ROW of them while an ordered one may be served.

What wakes a workload while it is in flight is remembered, and brings it back as soon as it lands.
"""

import dataclasses
import heapq
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slurm_bridge import ports
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.runtime.turns import Turns
from slurm_bridge.scheduler.lines import Entry, Lines

#: Anything that sorts among its own kind: an order hook makes its own.
Key = Any

#: So many urgent workloads are looked at in a row while one that wants to be submitted could be.
URGENT_IN_A_ROW = 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Filed:
    """What becomes of a workload that was looked at: wait until woken (or at most so long), line up, or forget it.

    `moving`: pods that come or go wake it, too.
    """

    after: float | None = None
    moving: bool = False
    forget: bool = False
    line_up: bool = False


WOKEN = Filed()
#: It wants to be submitted, and has to take its turn for that.
LINE_UP = Filed(line_up=True)
FORGET = Filed(forget=True)
AT_ONCE = Filed(after=0.0)


def _one_for_all(_uid: WorkloadKey) -> str:
    """The namespace of a workload, where namespaces are of no importance."""
    return ""


def everybody(_namespace: str) -> bool:
    """Every namespace may submit."""
    return True


class WorkQueue:
    """Thread-safe; `order` is asked for the key of a workload when it joins those that want to be submitted.

    `served` is told the key of each whose turn has come; `namespace` says whose a workload is, from memory.
    """

    def __init__(
        self,
        clock: ports.Clock,
        order: Callable[[WorkloadKey], Key],
        served: Callable[[Key], None] = lambda _key: None,
        *,
        namespace: Callable[[WorkloadKey], str] = _one_for_all,
    ) -> None:
        self._clock, self._order, self._served, self._namespace = clock, order, served, namespace
        self._changed = threading.Condition()
        self._urgent: Turns[WorkloadKey, WorkloadKey] = Turns(self._namespace)
        self._row = 0
        self._arrived: list[tuple[int, WorkloadKey]] = []
        self._ordered = Lines()
        self._wanting: dict[WorkloadKey, tuple[int, str]] = {}
        self._demand: dict[str, int] = {}
        self._flying: set[WorkloadKey] = set()
        self._again: set[WorkloadKey] = set()
        self._waiting: dict[WorkloadKey, float | None] = {}
        self._moving: dict[WorkloadKey, None] = {}
        self._timers: list[tuple[float, WorkloadKey]] = []
        self._numbers = itertools.count()

    def activate(self, key: WorkloadKey, *, urgent: bool = False) -> None:
        """Look at this workload soon."""
        with self._changed:
            self._activate(key, urgent=urgent)
            self._changed.notify()

    def _activate(self, key: WorkloadKey, *, urgent: bool) -> None:
        if key in self._flying:
            self._again.add(key)
            return
        self._waiting.pop(key, None)
        self._moving.pop(key, None)
        if urgent:
            self._leave(key)
            self._urgent.put(key, key)
        elif key not in self._urgent and key not in self._wanting:
            number, namespace = next(self._numbers), self._namespace(key)
            self._wanting[key] = number, namespace
            self._demand[namespace] = self._demand.get(namespace, 0) + 1
            self._arrived.append((number, key))

    def _leave(self, key: WorkloadKey) -> None:
        """It does not line up any more; what is left of it in its line is dropped when it is met."""
        stood = self._wanting.pop(key, None)
        if stood is not None:
            left = self._demand[stood[1]] - 1
            self._demand[stood[1]] = left
            if not left:
                del self._demand[stood[1]]

    def pop(self, *, room: bool, admits: Callable[[str], bool] = everybody) -> tuple[WorkloadKey, bool] | None:
        """The next one, now in flight, and whether its turn to submit has come.

        A turn needs room in Slurm's queue, and a namespace that `admits` lets in.
        """
        # The thread that pops asks for keys outside the lock: an order hook may be slow.
        with self._changed:
            arrived, self._arrived = self._arrived, []
        keyed = [(self._order(uid), number, uid) for number, uid in arrived]
        with self._changed:
            for entry in keyed:
                if self._stands(entry):
                    self._ordered.push(self._wanting[entry[2]][1], entry)
        with self._changed:
            self._wake_due()
            popped = self._pop_urgent() if self._row < URGENT_IN_A_ROW else None
            if popped is None and room:
                popped = self._pop_ordered(admits)
            popped = popped or self._pop_urgent()
            if popped is None:
                return None
            self._row = self._row + 1 if room and self._wanting and not popped[1] else 0
            self._flying.add(popped[0])
            return popped

    def _stands(self, entry: Entry) -> bool:
        """It has not left its line since."""
        return self._wanting.get(entry[2], (-1, ""))[0] == entry[1]

    def _pop_urgent(self) -> tuple[WorkloadKey, bool] | None:
        uid = self._urgent.pop()
        return None if uid is None else (uid, False)

    def _pop_ordered(self, admits: Callable[[str], bool]) -> tuple[WorkloadKey, bool] | None:
        entry = self._ordered.pop(admits, self._stands)
        if entry is None:
            return None
        self._leave(entry[2])
        self._served(entry[0])
        return entry[2], True

    def _wake_due(self) -> None:
        now = self._clock.now()
        while self._timers and self._timers[0][0] <= now:
            when, uid = heapq.heappop(self._timers)
            if self._waiting.get(uid) == when:
                self._activate(uid, urgent=True)

    def done(self, key: WorkloadKey, filed: Filed) -> None:
        """It has been looked at."""
        with self._changed:
            self._flying.discard(key)
            if key in self._again:
                self._again.discard(key)
                self._activate(key, urgent=True)
            elif filed.line_up:
                self._activate(key, urgent=False)
            elif not filed.forget:
                after = filed.after
                when = None if after is None else self._clock.now() + after
                self._waiting[key] = when
                if when is not None:
                    heapq.heappush(self._timers, (when, key))
                self._moving.update({key: None} if filed.moving else {})
            self._changed.notify()

    def stir(self) -> int:
        """Pods have come or gone: activate the workloads that wait for that. The answer is their number."""
        with self._changed:
            stirred = list(self._moving)
            for uid in stirred:
                self._activate(uid, urgent=False)
            self._changed.notify()
            return len(stirred)

    def wait(self, seconds: float, *, room: bool) -> None:
        """Sleep until there may be something to pop; `seconds` is real time."""
        with self._changed:
            if not self._urgent and not (room and self._wanting):
                self._changed.wait(seconds)

    @property
    def next_due(self) -> float | None:
        """When the first timer ends; None when no workload waits for a time."""
        with self._changed:
            return self._timers[0][0] if self._timers else None

    def backing_off(self) -> tuple[WorkloadKey, ...]:
        """Those that wait for a time."""
        with self._changed:
            return tuple(uid for uid, when in self._waiting.items() if when is not None)

    def lined_up(self) -> tuple[WorkloadKey, ...]:
        """Those that want to be submitted, in no order."""
        with self._changed:
            return tuple(self._wanting)

    @property
    def lining_up(self) -> int:
        """How many want to be submitted."""
        return len(self._wanting)

    def demand(self) -> Mapping[str, int]:
        """How many want to be submitted, by namespace."""
        with self._changed:
            return dict(self._demand)

    def idle(self, uids: Iterable[WorkloadKey]) -> bool:
        """None of these is to be looked at before others, or being looked at: what they know has had its effect."""
        with self._changed:
            return not any(uid in self._urgent or uid in self._flying for uid in uids)

    def flying(self) -> frozenset[WorkloadKey]:
        """Those that are being looked at."""
        with self._changed:
            return frozenset(self._flying)

    def reorder(self) -> None:
        """The order hook has changed: every key is asked for anew."""
        with self._changed:
            wanting, self._wanting, self._demand, self._arrived = list(self._wanting), {}, {}, []
            self._ordered.clear()
            for uid in wanting:
                self._activate(uid, urgent=False)

    def counts(self) -> dict[str, int]:
        """How many workloads are where."""
        with self._changed:
            backoff = sum(when is not None for when in self._waiting.values())
            return {
                "active": len(self._urgent) + len(self._wanting),
                "inflight": len(self._flying),
                "backoff": backoff,
                "waiting": len(self._waiting) - backoff,
            }
