"""A histogram for what happens dozens of times for each workload: counted with one lock and one look at the bounds."""

import bisect
import threading
from collections.abc import Iterator

from prometheus_client import core, registry, utils


class Counts:
    """Those of one set of labels."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._lock = threading.Lock()
        #: By bucket, the last one for all that is above every bound.
        self._counts = [0] * (len(bounds) + 1)
        self._seconds = 0.0

    def observe(self, seconds: float) -> None:
        """It happened once more, and took so long."""
        bucket = bisect.bisect_left(self._bounds, seconds)
        with self._lock:
            self._counts[bucket] += 1
            self._seconds += seconds

    def read(self) -> tuple[tuple[int, ...], float]:
        """How often in each bucket alone, and all seconds."""
        with self._lock:
            return tuple(self._counts), self._seconds


class Durations(registry.Collector):
    """A collector that knows each set of labels since it was first asked for."""

    def __init__(self, name: str, meaning: str, bounds: tuple[float, ...], labels: tuple[str, ...]) -> None:
        self._name, self._meaning, self._labels = name, meaning, labels
        self._bounds = bounds
        self._words = (*map(utils.floatToGoString, bounds), "+Inf")
        self._lock = threading.Lock()
        self._known: dict[tuple[str, ...], Counts] = {}

    def labels(self, *labels: str) -> Counts:
        """Those with these values of the labels."""
        known = self._known.get(labels)
        if known is not None:
            return known
        with self._lock:
            return self._known.setdefault(labels, Counts(self._bounds))

    def collect(self) -> Iterator[core.Metric]:
        """One family."""
        family = core.HistogramMetricFamily(self._name, self._meaning, labels=self._labels)
        with self._lock:
            known = dict(self._known)
        for labels, one in known.items():
            counts, seconds = one.read()
            added = [sum(counts[: place + 1]) for place in range(len(counts))]
            family.add_metric(labels, list(zip(self._words, map(float, added), strict=True)), seconds)
        yield family
