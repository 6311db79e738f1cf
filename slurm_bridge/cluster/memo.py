"""A small memory for answers that many workloads share."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from slurm_bridge.model.pod import Pod

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class VersionCache(Generic[K, V]):
    """Answers for one version of the cluster; bounded by forgetting everything when it is full.

    Used from several threads without a lock: at worst an answer is worked out twice, or kept under a key that names
    nodes of an older version and is asked for no more.
    """

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._version = -1
        self._known: dict[tuple[int, K], V] = {}

    def get(self, version: int, key: K, work_out: Callable[[], V]) -> V:
        """The answer for this key, worked out once in this version."""
        known = self._known
        try:
            return known[version, key]
        except KeyError:
            value = work_out()
        if version != self._version or len(known) >= self._most:
            self._version = version
            self._known = known = {}
        known[version, key] = value
        return value


class ByPod(Generic[V]):
    """What follows from a pod alone, for as many pods as are under way: placing one asks half a dozen times.

    Used from several threads without a lock, likewise.
    """

    def __init__(self, work_out: Callable[[Pod], V], most: int = 4096) -> None:
        self._work_out = work_out
        self._most = most
        self._known: dict[int, tuple[Pod, V]] = {}

    def __call__(self, pod: Pod) -> V:
        """Worked out once for this very pod."""
        known = self._known.get(id(pod))
        # Its number may have been another pod's, which lives as long as it is known: then they are not the same.
        if known is not None and known[0] is pod:
            return known[1]
        made = self._work_out(pod)
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[id(pod)] = (pod, made)
        return made
