"""Conditions that are still to be written: the latest for each pod; namespaces take turns."""

import dataclasses
import threading
from collections import OrderedDict

from slurm_bridge.model.meta import Condition
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.turns import Turns


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PendingCondition:
    """The condition that a pod is to show from `due` on; two with the same `key` mean the same."""

    pod: Pod
    condition: Condition
    key: str
    due: float


@dataclasses.dataclass(slots=True)
class _ConditionWrite:
    """The key of the condition that was last asked for, and the condition that we last wrote."""

    key: str
    shown: Condition | None = None


class ConditionQueue:
    """Filled from any thread, emptied by one thread."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._queue: Turns[str, PendingCondition] = Turns(lambda waiting: waiting.pod.metadata.namespace)
        self._asked: OrderedDict[str, _ConditionWrite] = OrderedDict()

    def __len__(self) -> int:
        with self._lock:
            return len(self._queue)

    def put(self, waiting: PendingCondition) -> int:
        """Queues a condition, unless it was asked for already; returns how many others were dropped for it."""
        uid = waiting.pod.uid
        with self._lock:
            asked = self._asked.setdefault(uid, _ConditionWrite(key=""))
            if asked.key == waiting.key:
                return 0
            asked.key = waiting.key
            queued = self._queue.get(uid)
            # A newer text does not wait longer than the one that it replaces.
            self._queue.put(uid, waiting if queued is None else dataclasses.replace(waiting, due=queued.due))
            return self._make_room()

    def known(self, uid: str) -> bool:
        """A condition was asked for, and not forgotten since."""
        with self._lock:
            return uid in self._asked

    def settle(self, uid: str, key: str) -> None:
        """The pod shows this condition already, and nothing has to be written."""
        with self._lock:
            self._asked[uid] = _ConditionWrite(key=key)
            self._make_room()

    def due(self) -> float | None:
        """When the next condition is due, None when there is none."""
        with self._lock:
            return min((one.due for one in self._queue.heads()), default=None)

    def pop(self, now: float) -> PendingCondition | None:
        """The next condition that is due."""
        with self._lock:
            return self._queue.pop(lambda one: one.due <= now)

    def shown(self, uid: str) -> Condition | None:
        """The condition that we last wrote on this pod."""
        with self._lock:
            asked = self._asked.get(uid)
            return asked.shown if asked is not None else None

    def written(self, waiting: PendingCondition) -> None:
        """The condition was written on the pod."""
        with self._lock:
            asked = self._asked.get(waiting.pod.uid)
            if asked is not None:
                asked.shown = waiting.condition

    def again(self, waiting: PendingCondition) -> None:
        """Puts a condition that could not be written to the end, unless it was forgotten or replaced."""
        uid = waiting.pod.uid
        with self._lock:
            asked = self._asked.get(uid)
            if asked is not None and asked.key == waiting.key and uid not in self._queue:
                self._queue.put(uid, waiting)

    def forget(self, uid: str) -> None:
        """The pod does not wait any more."""
        with self._lock:
            self._queue.discard(uid)
            self._asked.pop(uid, None)

    def _make_room(self) -> int:
        dropped = 0
        while len(self._queue) > self._most:
            uid, _ = self._queue.drop()
            # Forgotten, so that the same condition is queued when it is asked for again.
            self._asked.pop(uid, None)
            dropped += 1
        while len(self._asked) > 2 * self._most:
            self._asked.popitem(last=False)
        return dropped
