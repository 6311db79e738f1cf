"""The bounded buffer of the submission API: one slot for each pod that the scheduler has not seen yet.

    take ──► accepted ──► seen by the scheduler, or not seen for too long: free
       └──► refused: free at once

It holds no pods; those are in the API server. It bounds how far submissions can run ahead of the watch.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator

from slurm_bridge import ports

#: Namespace and name.
Key = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BufferLimits:
    """`most`: slots in all. `inside`: requests in progress. `unseen`: seconds until an unseen slot is freed."""

    most: int = 256
    inside: int = 16
    unseen: float = 30.0


@dataclasses.dataclass(slots=True, eq=False)
class BufferSlot:
    """The slot of one pod, used by the request that took it."""

    key: Key | None = None
    inside: bool = True
    accepted: bool = False
    heard: bool = False
    until: float = 0.0


class SubmissionBuffer:
    """Thread-safe."""

    def __init__(self, limits: BufferLimits, clock: ports.Clock) -> None:
        self._limits, self._clock = limits, clock
        self._lock = threading.Lock()
        self._taken: set[BufferSlot] = set()
        self._named: dict[Key, list[BufferSlot]] = {}

    def __len__(self) -> int:
        with self._lock:
            self._give_up()
            return len(self._taken)

    @contextlib.contextmanager
    def take(self) -> Iterator[BufferSlot | None]:
        """Take a slot for one request; None if the buffer is full. It is kept afterwards only if `accepted` was set."""
        place = self._enter()
        try:
            yield place
        finally:
            if place is not None:
                self._leave(place)

    def name(self, place: BufferSlot, key: Key) -> None:
        """Set the pod of a slot; to be called before the pod is created."""
        with self._lock:
            self._unname(place)
            place.key, place.heard = key, False
            self._named.setdefault(key, []).append(place)

    def hear(self, key: Key) -> None:
        """Free the slot of a pod that the scheduler has seen."""
        # Called for every change of every pod, without the lock: a slot gets its name before its pod exists.
        if key not in self._named:
            return
        with self._lock:
            for place in list(self._named.get(key, ())):
                place.heard = True
                if not place.inside:
                    self._free(place)

    def _enter(self) -> BufferSlot | None:
        with self._lock:
            self._give_up()
            inside = sum(place.inside for place in self._taken)
            if inside >= self._limits.inside or len(self._taken) >= self._limits.most:
                return None
            place = BufferSlot()
            self._taken.add(place)
            return place

    def _leave(self, place: BufferSlot) -> None:
        with self._lock:
            place.inside = False
            place.until = self._clock.now() + self._limits.unseen
            if place.heard or not place.accepted:
                self._free(place)

    def _give_up(self) -> None:
        """Free slots of pods that were accepted and never seen, for example because they were deleted at once."""
        now = self._clock.now()
        for place in [one for one in self._taken if not one.inside and one.until <= now]:
            self._free(place)

    def _free(self, place: BufferSlot) -> None:
        self._taken.discard(place)
        self._unname(place)

    def _unname(self, place: BufferSlot) -> None:
        if place.key is None:
            return
        named = self._named[place.key]
        named.remove(place)
        if not named:
            del self._named[place.key]
        place.key = None
