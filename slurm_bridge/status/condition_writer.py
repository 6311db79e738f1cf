"""Writes on pods why they wait, one condition at a time.

A condition is written only on the pod as it was seen (its resource version is a precondition): "it waits" must not
land on a pod that was bound a moment ago.
"""

import dataclasses
from collections.abc import Callable

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds
from slurm_bridge.model.meta import Condition
from slurm_bridge.model.pod import Pod
from slurm_bridge.status import conditions
from slurm_bridge.status.condition_queue import ConditionQueue, PendingCondition
from slurm_bridge.status.write_backoff import WriteBackoff


class ConditionWriter:
    """`current` finds the pod as it is known now, None when it is gone; `patience` is how long a failure rests."""

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        pace: WriteBackoff,
        waits: ConditionQueue,
        current: Callable[[Pod], Pod | None],
    ) -> None:
        self._cluster, self._clock, self._pace = cluster, clock, pace
        self._waits, self._current = waits, current

    def write(self, waiting: PendingCondition, *, patience: float) -> bool:
        """Write it, unless there is no need any more; True when the server was asked."""
        pod = self._current(waiting.pod)
        if pod is None or not _waits_still(pod, waiting):
            self._waits.forget(waiting.pod.uid)
            self._pace.saved("condition", "stale")
            return False
        if conditions.same(self._shown(pod, waiting.condition.type), waiting.condition):
            self._pace.saved("condition", "same")
            return False
        self._write(dataclasses.replace(waiting, pod=pod), patience)
        return True

    def _shown(self, pod: Pod, type_: str) -> Condition | None:
        return self._waits.shown(pod.uid) or conditions.find(pod, type_)

    def _write(self, waiting: PendingCondition, patience: float) -> None:
        later = dataclasses.replace(waiting, due=self._clock.now() + patience)
        try:
            self._put(waiting)
        except errors.NotFound:
            self._waits.forget(waiting.pod.uid)
            self._pace.worked("condition", "stale")
        except errors.Conflict:
            # Somebody changed it again between our look and our write: it is busy, and has time.
            self._waits.again(later)
            self._pace.worked("condition", "failed")
        except errors.Invalid as error:
            # The same words would be refused again.
            self._pace.failed("condition", waiting.pod.key, error)
        except errors.BridgeError as error:
            self._waits.again(later)
            self._pace.failed("condition", waiting.pod.key, error)

    def _put(self, waiting: PendingCondition) -> None:
        """Write it on the pod as we know it; where that is out of date, look once and write it on what is there."""
        pod = waiting.pod
        try:
            conditions.write(self._cluster, pod, waiting.condition, wall=self._clock.wall(), pinned=True)
        except errors.Conflict:
            fresh = self._cluster.get(kinds.PODS, *pod.key)
            if fresh is None or not _waits_still(fresh, waiting):
                self._waits.forget(pod.uid)
                self._pace.worked("condition", "stale")
                return
            conditions.write(self._cluster, fresh, waiting.condition, wall=self._clock.wall(), pinned=True)
        self._waits.written(waiting)
        self._pace.worked("condition", "ok")


def _waits_still(pod: Pod, waiting: PendingCondition) -> bool:
    return pod.uid == waiting.pod.uid and not (pod.bound or pod.terminal or pod.terminating)
