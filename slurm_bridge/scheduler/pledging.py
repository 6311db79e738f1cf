"""Promises as they are written on pods (nominatedNodeName): to all of a workload or none, and taken back for certain.

What is written and of no preemption would have others leave room for these pods until they have a node.
"""

from collections.abc import Iterable, Mapping

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.tools import Tools


class Pledges:
    """Used by one thread at a time."""

    def __init__(self, tools: Tools, census: Census) -> None:
        self._tools, self._census = tools, census
        self._owed: dict[str, Pod] = {}

    def write(self, pods: Iterable[Pod], places: Mapping[str, str]) -> None:
        """Promise each its node; what was written before one fails, or may have been, is taken back by `settle`."""
        promised = tuple(pods)
        for pod in promised:
            self._owed[pod.uid] = pod
            self._write(pod, places[pod.uid])
        for pod in promised:
            del self._owed[pod.uid]

    def take_back(self, pods: Iterable[Pod]) -> None:
        """They are promised nothing any more, as soon as the API server can be told so."""
        self._owed |= {pod.uid: pod for pod in pods}
        self.settle()

    def settle(self) -> None:
        """Take back what is left; the first failure ends it for this time."""
        for uid, pod in tuple(self._owed.items()):
            try:
                self._clear(pod)
            except errors.Disagreement as refused:
                logger.bind(workload="/".join(pod.key)).info("preemption: its promise stays on it: {}", refused)
            except errors.BridgeError as problem:
                logger.bind(workload="/".join(pod.key)).info("preemption: its promise is taken back later: {}", problem)
                return
            del self._owed[uid]

    def forget(self) -> None:
        """Another life begins, which reads the promises anew."""
        self._owed.clear()

    def _clear(self, pod: Pod) -> None:
        """Of one that is there and still waits: who has a node has used it."""
        seen = self._census.get(pod.uid)
        if seen is not None and not seen.bound and not seen.terminal:
            self._write(pod, None)

    def _write(self, pod: Pod, node: str | None) -> None:
        self._tools.cluster.patch(kinds.PODS, pod, {"status": {"nominatedNodeName": node}}, "status")
