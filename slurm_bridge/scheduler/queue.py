"""Which workload is next. Keyed by workload, never by pod; a workload is in exactly one place.

    activate ──► urgent (react: bind, end, withdraw; first come, first served)
             ──► ordered (submit: in the order that the order hook wants, namespaces taking turns)
    pop ──► in flight ──done──► waiting (until woken, or until a time) ──► …      or forgotten

What wakes a workload while it is in flight is remembered, and brings it back as soon as it lands.
"""

import dataclasses
import heapq
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from slurm_bridge import ports
from slurm_bridge.model.names import WorkloadKey

#: Anything that sorts among its own kind: an order hook makes its own.
Key = Any


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


class Queue:
    """Thread-safe; `order` is asked for the key of a workload when it joins those that want to be submitted.

    `served` is told the key of each whose turn has come.
    """

    def __init__(
        self, clock: ports.Clock, order: Callable[[WorkloadKey], Key], served: Callable[[Key], None] = lambda _key: None
    ) -> None:
        self._clock, self._order, self._served = clock, order, served
        self._changed = threading.Condition()
        self._urgent: OrderedDict[WorkloadKey, None] = OrderedDict()
        self._arrived: list[tuple[int, WorkloadKey]] = []
        self._ordered: list[tuple[Key, int, WorkloadKey]] = []
        self._wanting: dict[WorkloadKey, int] = {}
        self._flying: set[WorkloadKey] = set()
        self._again: set[WorkloadKey] = set()
        self._waiting: dict[WorkloadKey, float | None] = {}
        self._moving: dict[WorkloadKey, None] = {}
        self._timers: list[tuple[float, WorkloadKey]] = []
        self._numbers = itertools.count()

    def activate(self, uid: WorkloadKey, *, urgent: bool = False) -> None:
        """Look at this workload soon."""
        with self._changed:
            self._activate(uid, urgent=urgent)
            self._changed.notify()

    def _activate(self, uid: WorkloadKey, *, urgent: bool) -> None:
        if uid in self._flying:
            self._again.add(uid)
            return
        self._waiting.pop(uid, None)
        self._moving.pop(uid, None)
        if urgent:
            self._wanting.pop(uid, None)
            self._urgent[uid] = None
        elif uid not in self._urgent and uid not in self._wanting:
            number = next(self._numbers)
            self._wanting[uid] = number
            self._arrived.append((number, uid))

    def pop(self, *, room: bool) -> tuple[WorkloadKey, bool] | None:
        """The next one, now in flight, and whether its turn to submit has come, which needs room in Slurm's queue."""
        self._line_up()
        with self._changed:
            self._wake_due()
            uid, turn = self._pop_urgent(), False
            if uid is None and room:
                uid, turn = self._pop_ordered(), True
            if uid is None:
                return None
            self._flying.add(uid)
            return uid, turn

    def _line_up(self) -> None:
        """Keys are asked for by the one who pops, and outside the lock: an order hook may take its time over one."""
        with self._changed:
            arrived, self._arrived = self._arrived, []
        keyed = [(self._order(uid), number, uid) for number, uid in arrived]
        with self._changed:
            for entry in keyed:
                heapq.heappush(self._ordered, entry)

    def _pop_urgent(self) -> WorkloadKey | None:
        return self._urgent.popitem(last=False)[0] if self._urgent else None

    def _pop_ordered(self) -> WorkloadKey | None:
        while self._ordered:
            key, number, uid = heapq.heappop(self._ordered)
            if self._wanting.get(uid) == number:
                del self._wanting[uid]
                self._served(key)
                return uid
        return None

    def _wake_due(self) -> None:
        now = self._clock.now()
        while self._timers and self._timers[0][0] <= now:
            when, uid = heapq.heappop(self._timers)
            if self._waiting.get(uid) == when:
                self._activate(uid, urgent=True)

    def done(self, uid: WorkloadKey, filed: Filed) -> None:
        """It has been looked at."""
        with self._changed:
            self._flying.discard(uid)
            if uid in self._again:
                self._again.discard(uid)
                self._activate(uid, urgent=True)
            elif filed.line_up:
                self._activate(uid, urgent=False)
            elif not filed.forget:
                self._wait(uid, filed.after)
                self._moving.update({uid: None} if filed.moving else {})
            self._changed.notify()

    def _wait(self, uid: WorkloadKey, after: float | None) -> None:
        when = None if after is None else self._clock.now() + after
        self._waiting[uid] = when
        if when is not None:
            heapq.heappush(self._timers, (when, uid))

    def stir(self) -> int:
        """Pods have come or gone: look at those for whom that counts. How many they are."""
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
        """When the first timer ends; None when nobody waits for a time."""
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
            wanting, self._wanting, self._ordered, self._arrived = list(self._wanting), {}, [], []
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
