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
        with self._lock:
            self._give_up()
            inside = sum(slot.inside for slot in self._taken)
            full = inside >= self._limits.inside or len(self._taken) >= self._limits.most
            slot = None if full else BufferSlot()
            if slot is not None:
                self._taken.add(slot)
        try:
            yield slot
        finally:
            if slot is not None:
                with self._lock:
                    slot.inside = False
                    slot.until = self._clock.now() + self._limits.unseen
                    if slot.heard or not slot.accepted:
                        self._free(slot)

    def name(self, slot: BufferSlot, key: Key) -> None:
        """Set the pod of a slot; to be called before the pod is created."""
        with self._lock:
            self._unname(slot)
            slot.key, slot.heard = key, False
            self._named.setdefault(key, []).append(slot)

    def hear(self, key: Key) -> None:
        """Free the slot of a pod that the scheduler has seen."""
        # Called for every change of every pod, without the lock: a slot gets its name before its pod exists.
        if key not in self._named:
            return
        with self._lock:
            for slot in list(self._named.get(key, ())):
                slot.heard = True
                if not slot.inside:
                    self._free(slot)

    def _give_up(self) -> None:
        """Free slots of pods that were accepted and never seen, for example because they were deleted at once."""
        now = self._clock.now()
        for slot in [one for one in self._taken if not one.inside and one.until <= now]:
            self._free(slot)

    def _free(self, slot: BufferSlot) -> None:
        self._taken.discard(slot)
        self._unname(slot)

    def _unname(self, slot: BufferSlot) -> None:
        if slot.key is None:
            return
        named = self._named[slot.key]
        named.remove(slot)
        if not named:
            del self._named[slot.key]
        slot.key = None
