"""Writes on pods why they wait, one condition at a time.

The resource version of the pod is a precondition, so that "it waits" is never written on a pod that was just bound.
"""

import dataclasses
from collections.abc import Callable

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.status import conditions
from slurm_bridge.status.condition_queue import ConditionQueue, PendingCondition
from slurm_bridge.status.write_backoff import WriteBackoff


class ConditionWriter:
    """`current` finds the pod as it is known now, None when it is gone."""

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        backoff: WriteBackoff,
        waits: ConditionQueue,
        current: Callable[[Pod], Pod | None],
    ) -> None:
        self._cluster, self._clock, self._backoff = cluster, clock, backoff
        self._condition_queue, self._current = waits, current

    def write(self, waiting: PendingCondition, *, patience: float) -> bool:
        """Writes it unless the pod shows it, does not wait any more or is gone; True when the server was asked.

        After a failure the condition is queued again, `patience` seconds later.
        """
        pod = self._current(waiting.pod)
        if pod is None or not _waits_still(pod, waiting):
            self._condition_queue.forget(waiting.pod.uid)
            self._backoff.saved("condition", "stale")
            return False
        shown = self._condition_queue.shown(pod.uid) or conditions.find(pod, waiting.condition.type)
        if conditions.same(shown, waiting.condition):
            self._backoff.saved("condition", "same")
            return False
        self._write(dataclasses.replace(waiting, pod=pod), patience)
        return True

    def _write(self, waiting: PendingCondition, patience: float) -> None:
        later = dataclasses.replace(waiting, due=self._clock.now() + patience)
        try:
            self._put(waiting)
        except errors.NotFound:
            self._condition_queue.forget(waiting.pod.uid)
            self._backoff.worked("condition", "stale")
        except errors.Conflict:
            # The pod was changed again between our read and our write: a later condition is soon enough.
            self._condition_queue.again(later)
            self._backoff.worked("condition", "failed")
        except errors.Invalid as error:
            # The same condition would be refused again.
            self._backoff.failed("condition", waiting.pod.key, error)
        except errors.BridgeError as error:
            self._condition_queue.again(later)
            self._backoff.failed("condition", waiting.pod.key, error)

    def _put(self, waiting: PendingCondition) -> None:
        """Writes it on the pod as we know it; where that is out of date, reads the pod once and tries again."""
        pod = waiting.pod
        try:
            conditions.write(self._cluster, pod, waiting.condition, wall=self._clock.wall(), pinned=True)
        except errors.Conflict:
            fresh = self._cluster.get(kinds.PODS, *pod.key)
            if fresh is None or not _waits_still(fresh, waiting):
                self._condition_queue.forget(pod.uid)
                self._backoff.worked("condition", "stale")
                return
            conditions.write(self._cluster, fresh, waiting.condition, wall=self._clock.wall(), pinned=True)
        self._condition_queue.written(waiting)
        self._backoff.worked("condition", "ok")


def _waits_still(pod: Pod, waiting: PendingCondition) -> bool:
    return pod.uid == waiting.pod.uid and not (pod.bound or pod.terminal or pod.terminating)
