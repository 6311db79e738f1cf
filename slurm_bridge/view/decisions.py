"""What workloads are told while there are viewers: the latest decisions, and the last reason of each workload.

A decorator of the reporter that writes on pods. Without viewers it is not in the way of any call.
"""

import collections
import threading
from collections.abc import Callable, MutableMapping
from typing import Final

from slurm_bridge.model import texts
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.runtime import caches
from slurm_bridge.scheduler.context import Crowd, StatusReporter
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.view import rows
from slurm_bridge.view.rows import LiveDecision

#: So many decisions are kept for viewers that come later, and so many last reasons.
MOST_DECISIONS: Final = 400
_MOST_TOLD: Final = 50_000
_MOST_REASON: Final = 64


class DecisionLog:
    """Implements scheduler.context.StatusReporter: passes every call on. Thread-safe.

    `changed` is called with the key of a workload that was told something new.
    """

    def __init__(
        self,
        inner: StatusReporter,
        pod_index: PodIndex,
        wall: Callable[[], float],
        changed: Callable[[WorkloadKey], None],
    ) -> None:
        self.inner = inner
        self._pod_index, self._wall, self._changed = pod_index, wall, changed
        self._lock = threading.Lock()
        self._told: MutableMapping[WorkloadKey, tuple[str, str]] = caches.bounded(most=_MOST_TOLD)
        self._last: MutableMapping[WorkloadKey, tuple[str, str]] = caches.bounded(most=_MOST_TOLD)
        self._rows: collections.deque[tuple[int, LiveDecision]] = collections.deque(maxlen=MOST_DECISIONS)
        self._count = 0

    def told(self, key: WorkloadKey) -> tuple[str, str] | None:
        """The reason and the message that its pods were told last."""
        with self._lock:
            return self._told.get(key)

    def since(self, number: int) -> tuple[int, list[LiveDecision]]:
        """The number of the last decision, and those that came after `number`, as far as they are kept."""
        with self._lock:
            return self._count, [row for place, row in self._rows if place > number]

    def waiting(self, pod: Pod, reason: str, message: str, *, key: str = "") -> None:
        self.inner.waiting(pod, reason, message, key=key)
        root = self._root(pod)
        if root is not None:
            self._note(root, reason, message, waits=True)

    def waiting_together(self, root: Root, crowd: Crowd, reason: str, message: str, *, key: str = "") -> None:
        self.inner.waiting_together(root, crowd, reason, message, key=key)
        self._note(root, reason, message, waits=True)

    def event(self, pod: Pod, reason: str, message: str, *, warning: bool = False) -> None:
        self.inner.event(pod, reason, message, warning=warning)
        root = self._root(pod)
        if root is not None:
            self._note(root, reason, message, warning=warning)

    def group(self, workload: Workload, reason: str, message: str, *, warning: bool = False) -> None:
        self.inner.group(workload, reason, message, warning=warning)
        self._note(workload.root, reason, message, warning=warning)

    def scheduled(self, workload: Workload) -> None:
        self.inner.scheduled(workload)

    def disrupt(self, pod: Pod, reason: str, message: str) -> None:
        self.inner.disrupt(pod, reason, message)

    def forget(self, uid: str) -> None:
        self.inner.forget(uid)

    def _root(self, pod: Pod) -> Root | None:
        key = self._pod_index.root_of(pod.uid)
        members = self._pod_index.workload(key) if key is not None else None
        return members.root if members is not None else None

    def _note(self, root: Root, reason: str, message: str, *, waits: bool = False, warning: bool = False) -> None:
        key, said = root.key, (texts.bounded(reason, _MOST_REASON), texts.bounded(message))
        with self._lock:
            if waits:
                self._told[key] = said
            if self._last.get(key) == said:
                return
            self._last[key] = said
            self._count += 1
            row = LiveDecision(
                at=int(self._wall()),
                kind=root.kind,
                namespace=root.namespace,
                name=texts.bounded(root.name),
                reason=said[0],
                message=texts.bounded(said[1], rows.MOST_TEXT),
                warning=warning,
            )
            self._rows.append((self._count, row))
        self._changed(key)
