"""Which workload is next. Keyed by workload, never by pod; a workload is in exactly one place.

    activate ──► urgent (react: bind, end, withdraw; namespaces take turns, and the first that came is the first)
             ──► ordered (submit: in the order that the order hook wants, namespaces taking turns)
    pop ──► in flight ──done──► waiting (until woken, or until a time) ──► …      or forgotten

Urgent workloads come first, but at most URGENT_IN_A_ROW of them while an ordered one may be served.

What wakes a workload while it is in flight is remembered, and brings it back as soon as it lands.

Where a workload is says its entry, which is a part of its record. The queue has the orders: entries by number.
"""

import dataclasses
import heapq
import itertools
import operator
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slurm_bridge import ports
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.runtime.turns import Turns
from slurm_bridge.scheduler.lines import Lines
from slurm_bridge.scheduler.state import Place, QueueEntry, WorkloadStore

#: Anything that sorts among its own kind: an order hook makes its own.
Key = Any

#: So many urgent workloads are looked at in a row while one that wants to be submitted could be.
URGENT_IN_A_ROW = 16


#: An attribute of an enumeration takes longer to read than that of any other class.
_NONE, _URGENT, _WANTING, _FLYING, _WAITING = Place


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


def _one_for_all(_key: WorkloadKey) -> str:
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
        states: WorkloadStore,
        clock: ports.Clock,
        order: Callable[[WorkloadKey], Key],
        served: Callable[[Key], None] = lambda _key: None,
        *,
        namespace: Callable[[WorkloadKey], str] = _one_for_all,
    ) -> None:
        self._states, self._clock, self._order, self._served, self._namespace = states, clock, order, served, namespace
        self._changed = threading.Condition(states.lock)
        self._urgent: Turns[int, QueueEntry] = Turns(operator.attrgetter("namespace"))
        self._row = 0
        self._arrived: list[tuple[int, WorkloadKey]] = []
        self._ordered = Lines()
        self._wanting: dict[int, QueueEntry] = {}
        #: Whether it lines up, of each workload that has begun or ceased to since the last question.
        self._news: dict[WorkloadKey, bool] = {}
        self._demand: dict[str, int] = {}
        self._flying: dict[int, QueueEntry] = {}
        self._waiting: dict[int, QueueEntry] = {}
        self._moving: dict[int, QueueEntry] = {}
        self._timers: list[tuple[float, WorkloadKey, int]] = []
        self._numbers = itertools.count()

    def activate(self, key: WorkloadKey, *, urgent: bool = False) -> None:
        """Look at this workload soon."""
        with self._changed:
            state = self._states.find(key) or self._states.open(key)
            entry = state.queued
            if entry is None:
                entry = state.queued = QueueEntry(key, self._namespace(key))
            self._activate(entry, urgent=urgent)
            self._changed.notify()

    def _activate(self, entry: QueueEntry, *, urgent: bool) -> None:
        place = entry.place
        if place is _FLYING:
            entry.again = True
        elif urgent and place is not _URGENT:
            self._leave(entry)
            entry.place, entry.number = _URGENT, next(self._numbers)
            self._urgent.put(entry.number, entry)
        elif not urgent and place is not _URGENT and place is not _WANTING:
            self._leave(entry)
            entry.place, entry.number = _WANTING, next(self._numbers)
            self._wanting[entry.number] = entry
            self._news[entry.key] = True
            self._demand[entry.namespace] = self._demand.get(entry.namespace, 0) + 1
            self._arrived.append((entry.number, entry.key))

    def _leave(self, entry: QueueEntry) -> None:
        """It waits or lines up no more; what is left of it in its line, or of its timer, is dropped when it is met."""
        if entry.place is _WAITING:
            del self._waiting[entry.number]
            self._moving.pop(entry.number, None)
        elif entry.place is _WANTING:
            del self._wanting[entry.number]
            self._news[entry.key] = False
            left = self._demand[entry.namespace] - 1
            self._demand[entry.namespace] = left
            if not left:
                del self._demand[entry.namespace]

    def pop(self, *, room: bool, admits: Callable[[str], bool] = everybody) -> tuple[WorkloadKey, bool] | None:
        """The next one, now in flight, and whether its turn to submit has come.

        A turn needs room in Slurm's queue, and a namespace that `admits` lets in.
        """
        # The thread that pops asks for keys outside the lock: an order hook may be slow.
        with self._changed:
            arrived, self._arrived = self._arrived, []
        keyed = [(self._order(key), number, key) for number, key in arrived]
        with self._changed:
            for one in keyed:
                if (entry := self._wanting.get(one[1])) is not None:
                    self._ordered.push(entry.namespace, one)
        with self._changed:
            self._wake_due()
            popped = self._urgent.pop() if self._row < URGENT_IN_A_ROW else None
            turn = False
            if popped is None and room:
                popped = self._pop_ordered(admits)
                turn = popped is not None
            popped = popped or self._urgent.pop()
            if popped is None:
                return None
            self._row = self._row + 1 if room and self._wanting and not turn else 0
            popped.place = _FLYING
            self._flying[popped.number] = popped
            return popped.key, turn

    def _pop_ordered(self, admits: Callable[[str], bool]) -> QueueEntry | None:
        head = self._ordered.pop(admits, lambda one: one[1] in self._wanting)
        if head is None:
            return None
        entry = self._wanting[head[1]]
        self._leave(entry)
        self._served(head[0])
        return entry

    def _wake_due(self) -> None:
        now = self._clock.now()
        while self._timers and self._timers[0][0] <= now:
            entry = self._waiting.get(heapq.heappop(self._timers)[2])
            if entry is not None:
                self._activate(entry, urgent=True)

    def done(self, key: WorkloadKey, filed: Filed) -> None:
        """It has been looked at, and was in flight until now."""
        with self._changed:
            state = self._states.find(key)
            entry = state.queued if state is not None else None
            assert state is not None, f"workload {key} is not in the queue"
            assert entry is not None, f"workload {key} is not in the queue"
            del self._flying[entry.number]
            entry.place = _NONE
            if entry.again:
                entry.again = False
                self._activate(entry, urgent=True)
            elif filed.line_up:
                self._activate(entry, urgent=False)
            elif filed.forget:
                state.queued = None
                self._states.close(key)
            else:
                self._wait(entry, filed)
            self._changed.notify()

    def let_go(self, key: WorkloadKey) -> None:
        """Another daemon serves this workload. One that is to be looked at before others is forgotten when popped."""
        with self._changed:
            state = self._states.find(key)
            entry = state.queued if state is not None else None
            if state is None or entry is None or entry.place is _URGENT or entry.place is _FLYING:
                return
            self._leave(entry)
            entry.place = _NONE
            state.queued = None
            self._states.close(key)

    def clear(self) -> None:
        """This replica does not lead: the next leadership begins with all workloads. Those in flight land first."""
        with self._changed:
            entries = (*self._urgent.clear(), *self._wanting.values(), *self._waiting.values())
            for orders in (self._wanting, self._demand, self._waiting, self._moving, self._arrived, self._timers):
                orders.clear()
            self._ordered.clear()
            self._news.clear()
            for entry in entries:
                entry.place = _NONE
                state = self._states.open(entry.key)
                state.queued = state.notice = None
                self._states.close(entry.key)

    def _wait(self, entry: QueueEntry, filed: Filed) -> None:
        number = next(self._numbers)
        entry.place, entry.number = _WAITING, number
        entry.until = None if filed.after is None else self._clock.now() + filed.after
        self._waiting[number] = entry
        if entry.until is not None:
            heapq.heappush(self._timers, (entry.until, entry.key, number))
        if filed.moving:
            self._moving[number] = entry

    def stir(self) -> int:
        """Pods have come or gone: activate the workloads that wait for that. The answer is their number."""
        with self._changed:
            stirred = list(self._moving.values())
            for entry in stirred:
                self._activate(entry, urgent=False)
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
            return tuple(entry.key for entry in self._waiting.values() if entry.until is not None)

    def line_news(self) -> Mapping[WorkloadKey, bool]:
        """Of each workload that has begun or ceased to line up since the last question: whether it does."""
        with self._changed:
            news, self._news = self._news, {}
            return news

    @property
    def lining_up(self) -> int:
        """How many want to be submitted."""
        return len(self._wanting)

    def demand(self) -> Mapping[str, int]:
        """How many want to be submitted, by namespace."""
        with self._changed:
            return dict(self._demand)

    def idle(self, keys: Iterable[WorkloadKey]) -> bool:
        """None of these is to be looked at before others, or being looked at: what they know has had its effect."""
        with self._changed:
            for state in map(self._states.find, keys):
                entry = state.queued if state is not None else None
                if entry is not None and (entry.place is _URGENT or entry.place is _FLYING):
                    return False
            return True

    def flying(self) -> frozenset[WorkloadKey]:
        """Those that are being looked at."""
        with self._changed:
            return frozenset(entry.key for entry in self._flying.values())

    def reorder(self) -> None:
        """The order hook has changed: every key is asked for anew."""
        with self._changed:
            wanting, self._wanting, self._demand, self._arrived = self._wanting, {}, {}, []
            self._ordered.clear()
            for entry in wanting.values():
                entry.place = _NONE
                self._activate(entry, urgent=False)
