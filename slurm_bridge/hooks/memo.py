"""A small memory for answers that many workloads share."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
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
