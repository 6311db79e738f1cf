"""Annotations in which the bridge remembers something on pods: written before it acts, and taken back for certain.

Marks that are of no use any more would mislead a restarted daemon.
"""

from collections.abc import Iterable

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.pod_index import PodIndex

#: What a pod says whose annotation was written without an answer.
UNSURE = ""


class Marks:
    """Used by one thread at a time."""

    def __init__(self, context: SchedulerContext, pod_index: PodIndex) -> None:
        self._context, self._pod_index = context, pod_index
        #: What is to be taken back, by pod and annotation.
        self._owed: dict[tuple[str, str], Pod] = {}
        #: What was written, until it is seen.
        self._written: dict[tuple[str, str], str] = {}

    def write(self, pods: Iterable[Pod], key: str, text: str) -> bool:
        """All of them say so; errors of the port are the caller's. Whether that is news."""
        news = False
        for pod in pods:
            there = pod.uid, key
            self._owed.pop(there, None)
            if pod.metadata.annotations.get(key) == text:
                self._written.pop(there, None)
            elif self._written.get(there) != text:
                # Whatever becomes of the answer: from now on it may say so.
                self._written[there] = UNSURE
                annotate(self._context, pod, key, text)
                self._written[there] = text
                news = True
        return news

    def take_back(self, pods: Iterable[Pod], key: str) -> None:
        """None of them says so any more, as soon as the API server can be told."""
        for pod in pods:
            there = pod.uid, key
            if key in pod.metadata.annotations or there in self._written:
                self._owed[there] = pod
        self.settle()

    def settle(self) -> None:
        """Take back what is left; the first failure ends it for this time."""
        for there in tuple(self._written):
            if self._pod_index.get(there[0]) is None:
                del self._written[there]
        for there, pod in tuple(self._owed.items()):
            try:
                if self._pod_index.get(pod.uid) is not None:
                    annotate(self._context, pod, there[1], None)
            except errors.Disagreement as gone:
                logger.bind(workload="/".join(pod.key)).info("its annotation {} stays on it: {}", there[1], gone)
            except errors.BridgeError as problem:
                logger.bind(workload="/".join(pod.key)).info("{} is taken back later: {}", there[1], problem)
                return
            del self._owed[there]
            self._written.pop(there, None)

    def begin(self) -> None:
        """Another life begins, which reads them anew."""
        self._owed.clear()
        self._written.clear()


def annotate(context: SchedulerContext, pod: Pod, key: str, text: str | None) -> None:
    """Write an annotation, or remove it.

    The status subresource takes annotations and keeps the spec, so the daemon needs no right to patch whole pods.
    """
    context.cluster.patch(kinds.PODS, pod, {"metadata": {"annotations": {key: text}}}, "status")
