"""The streams of viewers: one model and one serialisation for all, bounded in number, age and size.

The thread of the viewer that first finds a step due makes it; there is no thread of our own. The model is kept for some
seconds after its last use, so that one question after another does not make it anew each time: then the first change
that it is told of closes it. A viewer that is more than KEPT steps behind is too slow, and is dropped: it may connect
again, and gets everything anew.
"""

import collections
import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator
from typing import Final

from slurm_bridge import ports
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.view.live_model import LiveModel, ViewDelta, ViewScope

#: So many steps with changes are kept for viewers that are still being sent an earlier one.
KEPT: Final = 16
#: So many seconds after its last use the model is closed.
RESTS: Final = 10.0
#: One caller has at most this part of all places.
_SHARE: Final = 4


class TooManyViewers(Exception):
    """There is no room for one more, or not for one more of this caller."""


class ViewerTooSlow(Exception):
    """It has missed steps."""


@dataclasses.dataclass(slots=True)
class Viewer:
    """What one viewer has got: all steps up to this number."""

    step: int


class Feed:
    """Thread-safe. `make` makes the model when it is needed; `period` is the time between two steps.

    The model calls what `make` is given whenever it is told of a change, by any thread.
    """

    def __init__(
        self, make: Callable[[Callable[[], None]], LiveModel], clock: ports.Clock, *, most: int, period: float
    ) -> None:
        self._make, self._clock, self._most, self._period = make, clock, most, period
        self._lock = threading.Lock()
        self._model: LiveModel | None = None
        self._viewers = 0
        self._by_caller: collections.Counter[str] = collections.Counter()
        self._rests = float("inf")
        self._steps: collections.deque[tuple[int, ViewDelta]] = collections.deque(maxlen=KEPT)
        self._number = 0
        self._due = float("-inf")

    @property
    def viewers(self) -> int:
        """How many there are."""
        return self._viewers

    @contextlib.contextmanager
    def viewer(self, caller: str) -> Iterator[Viewer]:
        """Join the viewers; TooManyViewers if there is no room. `caller` is "" where callers are not told apart."""
        with self._lock:
            if self._viewers >= self._most or (caller and self._by_caller[caller] >= max(1, self._most // _SHARE)):
                raise TooManyViewers
            self._viewers += 1
            self._by_caller[caller] += 1
        try:
            yield Viewer(self._number)
        finally:
            with self._lock:
                self._viewers -= 1
                self._by_caller -= collections.Counter((caller,))
                self._used()

    def _used(self) -> None:
        self._rests = float("inf") if self._viewers else self._clock.now() + RESTS

    def _changed(self) -> None:
        """Close the model if it is used no more. Not waited for: a thread that has the lock is using it."""
        if self._clock.now() < self._rests or not self._lock.acquire(blocking=False):
            return
        try:
            if self._model is not None and self._clock.now() >= self._rests:
                self._model.close()
                self._model = None
                self._steps.clear()
                self._due = float("-inf")
        finally:
            self._lock.release()

    def told(self, key: WorkloadKey) -> tuple[str, str] | None:
        """What the pods of this workload were told last, as far as there were viewers then."""
        model = self._model
        return model.told(key) if model is not None else None

    def namespaces(self) -> frozenset[str]:
        """Those of the workloads that there are, as of now."""
        with self._lock:
            return self._current().namespaces

    def all(self, scope: ViewScope) -> list[bytes]:
        """All there is, in pieces, for one that does not stay."""
        with self._lock:
            return list(self._current().full(scope))

    def full(self, viewer: Viewer, scope: ViewScope) -> list[bytes]:
        """All there is, in pieces; steps that are taken later follow."""
        with self._lock:
            model = self._current()
            viewer.step = self._number
            return list(model.full(scope))

    def more(self, viewer: Viewer, scope: ViewScope) -> list[bytes]:
        """What has changed since the viewer was given something last; ViewerTooSlow if it has missed steps."""
        with self._lock:
            self._current()
            if self._steps and viewer.step < self._steps[0][0] - 1:
                raise ViewerTooSlow
            news = [delta for number, delta in self._steps if number > viewer.step]
            viewer.step = self._number
        # Beside the lock: a scope that two threads write at the same time is written twice, and alike.
        return [text for delta in news if (text := delta.text(scope))]

    def _current(self) -> LiveModel:
        """The model, after a step if one is due."""
        self._model = self._model or self._make(self._changed)
        self._used()
        now = self._clock.now()
        if now >= self._due:
            self._due = now + self._period
            delta = self._model.step()
            if delta:
                self._number += 1
                self._steps.append((self._number, delta))
        return self._model
