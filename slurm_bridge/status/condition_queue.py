"""Conditions that are still to be written: one for each pod, the latest wins; namespaces take turns."""

import dataclasses
import threading
from collections import OrderedDict

from slurm_bridge.model.meta import Condition
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.turns import Turns


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PendingCondition:
    """What a pod is to say from `due` on; `key` decides whether two of them mean the same."""

    pod: Pod
    condition: Condition
    key: str
    due: float


@dataclasses.dataclass(slots=True)
class _Asked:
    """What was last asked for, and what was last written by us."""

    key: str
    shown: Condition | None = None


class ConditionQueue:
    """Filled from any thread, emptied by one."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._queue: Turns[str, PendingCondition] = Turns(lambda waiting: waiting.pod.metadata.namespace)
        self._told: OrderedDict[str, _Asked] = OrderedDict()

    def __len__(self) -> int:
        with self._lock:
            return len(self._queue)

    def put(self, waiting: PendingCondition) -> int:
        """Want this written; how many others had to make room for it. What is wanted already is not queued again."""
        uid = waiting.pod.uid
        with self._lock:
            told = self._told.setdefault(uid, _Asked(key=""))
            if told.key == waiting.key:
                return 0
            told.key = waiting.key
            queued = self._queue.get(uid)
            # A newer text does not have to wait longer than the one it replaces.
            self._queue.put(uid, waiting if queued is None else dataclasses.replace(waiting, due=queued.due))
            return self._make_room()

    def known(self, uid: str) -> bool:
        """Something was asked for, and not forgotten since."""
        with self._lock:
            return uid in self._told

    def settle(self, uid: str, key: str) -> None:
        """The pod says this already, without us."""
        with self._lock:
            self._told[uid] = _Asked(key=key)
            self._make_room()

    def due(self) -> float | None:
        """When the next is to be written, None when there is none."""
        with self._lock:
            return min((one.due for one in self._queue.heads()), default=None)

    def pop(self, now: float) -> PendingCondition | None:
        """The next one, if its time has come."""
        with self._lock:
            return self._queue.pop(lambda one: one.due <= now)

    def shown(self, uid: str) -> Condition | None:
        """What we last wrote on this pod."""
        with self._lock:
            told = self._told.get(uid)
            return told.shown if told is not None else None

    def written(self, waiting: PendingCondition) -> None:
        """The pod says it now."""
        with self._lock:
            told = self._told.get(waiting.pod.uid)
            if told is not None:
                told.shown = waiting.condition

    def again(self, waiting: PendingCondition) -> None:
        """It could not be written: last in the queue, unless it was forgotten or something newer is wanted."""
        uid = waiting.pod.uid
        with self._lock:
            told = self._told.get(uid)
            if told is not None and told.key == waiting.key and uid not in self._queue:
                self._queue.put(uid, waiting)

    def forget(self, uid: str) -> None:
        """This pod waits no more."""
        with self._lock:
            self._queue.discard(uid)
            self._told.pop(uid, None)

    def _make_room(self) -> int:
        dropped = 0
        while len(self._queue) > self._most:
            uid, _ = self._queue.drop()
            # Forgotten, so that the same words are queued when they are said again.
            self._told.pop(uid, None)
            dropped += 1
        while len(self._told) > 2 * self._most:
            self._told.popitem(last=False)
        return dropped
