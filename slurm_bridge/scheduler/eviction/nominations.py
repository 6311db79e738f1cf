"""Nominated nodes, as they are written on pods (nominatedNodeName): on all pods of a workload or on none.

A nomination that belongs to no preemption would keep room free for its pod until that has a node. So each one is taken
back for certain.
"""

from collections.abc import Iterable, Mapping

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.pod_index import PodIndex


class NominationWriter:
    """Used by one thread at a time."""

    def __init__(self, context: SchedulerContext, pod_index: PodIndex) -> None:
        self._context, self._pod_index = context, pod_index
        #: Pods whose nomination is to be taken back, by uid.
        self._owed: dict[str, Pod] = {}

    def write(self, pods: Iterable[Pod], places: Mapping[str, str]) -> None:
        """Nominate a node for each pod; where one write fails, `settle` takes back those before it and its own."""
        nominated = tuple(pods)
        for pod in nominated:
            self._owed[pod.uid] = pod
            self._write(pod, places[pod.uid])
        for pod in nominated:
            del self._owed[pod.uid]

    def take_back(self, pods: Iterable[Pod]) -> None:
        """Take the nominations of these pods back, as soon as the API server can be told so."""
        self._owed |= {pod.uid: pod for pod in pods}
        self.settle()

    def settle(self) -> None:
        """Take back what is left; the first failure ends it for this time."""
        for uid, pod in tuple(self._owed.items()):
            try:
                # Only of a pod that is there and still waits: one that has a node has used its nomination.
                seen = self._pod_index.get(pod.uid)
                if seen is not None and not seen.bound and not seen.terminal:
                    self._write(pod, None)
            except errors.Disagreement as refused:
                logger.bind(workload="/".join(pod.key)).info("preemption: its nomination stays on it: {}", refused)
            except errors.BridgeError as problem:
                logger.bind(workload="/".join(pod.key)).info(
                    "preemption: its nomination is taken back later: {}", problem
                )
                return
            del self._owed[uid]

    def begin(self) -> None:
        """A leadership begins, which reads the nominations anew."""
        self._owed.clear()

    def _write(self, pod: Pod, node: str | None) -> None:
        self._context.cluster.patch(kinds.PODS, pod, {"status": {"nominatedNodeName": node}}, "status")
