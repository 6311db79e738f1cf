"""The bounded buffer of the submission API: pods that were handed in and that the scheduler has not heard of yet.

    take ──► accepted ──► heard of, or nobody has heard of it for too long: free
       └──► refused: free at once

It holds no pod: those are the API server's. It bounds how far those who hand in pods may run ahead of the watch.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator

from slurm_bridge import ports

#: Namespace and name.
Key = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`most`: places in all. `inside`: requests that may be under way. `unseen`: seconds until a place is given up."""

    most: int = 256
    inside: int = 16
    unseen: float = 30.0


@dataclasses.dataclass(slots=True, eq=False)
class Place:
    """One pod's; used by the request that took it."""

    key: Key | None = None
    inside: bool = True
    accepted: bool = False
    heard: bool = False
    until: float = 0.0


class Places:
    """Safe to use from any thread."""

    def __init__(self, limits: Limits, clock: ports.Clock) -> None:
        self._limits, self._clock = limits, clock
        self._lock = threading.Lock()
        self._taken: set[Place] = set()
        self._named: dict[Key, list[Place]] = {}

    def __len__(self) -> int:
        with self._lock:
            self._give_up()
            return len(self._taken)

    @contextlib.contextmanager
    def take(self) -> Iterator[Place | None]:
        """A place for one request, None when there is none. Kept after it only where the request says `accepted`."""
        place = self._enter()
        try:
            yield place
        finally:
            if place is not None:
                self._leave(place)

    def name(self, place: Place, key: Key) -> None:
        """Which pod it is for; to be said before anybody can hear of the pod."""
        with self._lock:
            self._unname(place)
            place.key, place.heard = key, False
            self._named.setdefault(key, []).append(place)

    def hear(self, key: Key) -> None:
        """The scheduler knows this pod."""
        # Called for every change of every pod: without the lock, because a place is named before its pod exists.
        if key not in self._named:
            return
        with self._lock:
            for place in list(self._named.get(key, ())):
                place.heard = True
                if not place.inside:
                    self._free(place)

    def _enter(self) -> Place | None:
        with self._lock:
            self._give_up()
            inside = sum(place.inside for place in self._taken)
            if inside >= self._limits.inside or len(self._taken) >= self._limits.most:
                return None
            place = Place()
            self._taken.add(place)
            return place

    def _leave(self, place: Place) -> None:
        with self._lock:
            place.inside = False
            place.until = self._clock.now() + self._limits.unseen
            if place.heard or not place.accepted:
                self._free(place)

    def _give_up(self) -> None:
        """Whatever was accepted and never shown (deleted at once, say) must not fill the buffer for ever."""
        now = self._clock.now()
        for place in [one for one in self._taken if not one.inside and one.until <= now]:
            self._free(place)

    def _free(self, place: Place) -> None:
        self._taken.discard(place)
        self._unname(place)

    def _unname(self, place: Place) -> None:
        if place.key is None:
            return
        named = self._named[place.key]
        named.remove(place)
        if not named:
            del self._named[place.key]
        place.key = None
