"""The workloads that want to be submitted: one line per namespace, and the smallest key over all lines is next.

A namespace that may not submit keeps its line. Its workloads cost nothing until it may submit again.
"""

import heapq
from collections.abc import Callable
from typing import Any

from slurm_bridge.model.names import WorkloadKey

#: The key that an order hook gave, the number of the arrival, and the workload.
Entry = tuple[Any, int, WorkloadKey]


class Lines:
    """Not thread-safe: the queue calls it under its lock."""

    def __init__(self) -> None:
        self._lines: dict[str, list[Entry]] = {}
        self._heads: list[tuple[Any, int, str]] = []
        self._aside: dict[str, None] = {}

    def push(self, namespace: str, entry: Entry) -> None:
        """One more workload of this namespace."""
        line = self._lines.setdefault(namespace, [])
        heapq.heappush(line, entry)
        if line[0] is entry and namespace not in self._aside:
            self._lead(namespace)

    def pop(self, admits: Callable[[str], bool], current: Callable[[Entry], bool]) -> Entry | None:
        """The first entry that is `current`, of a namespace that `admits` lets in; other entries are dropped."""
        for namespace in [one for one in self._aside if admits(one)]:
            del self._aside[namespace]
            self._lead(namespace)
        while self._heads:
            _, number, namespace = heapq.heappop(self._heads)
            line = self._lines.get(namespace)
            if not line or line[0][1] != number or namespace in self._aside:
                continue
            if current(line[0]) and not admits(namespace):
                self._aside[namespace] = None
                continue
            entry = heapq.heappop(line)
            self._lead(namespace)
            if current(entry):
                return entry
        return None

    def clear(self) -> None:
        """Remove all workloads."""
        self._lines, self._heads, self._aside = {}, [], {}

    def _lead(self, namespace: str) -> None:
        """Put the head of this line among the heads."""
        line = self._lines.get(namespace)
        if line:
            key, number, _ = line[0]
            heapq.heappush(self._heads, (key, number, namespace))
        else:
            self._lines.pop(namespace, None)
