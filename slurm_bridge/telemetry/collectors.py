"""Collects numbers from their owners at each scrape, and filters the page."""

import dataclasses
import threading
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import core, registry

#: Name, type and help text of each metric of an informer, and the field it comes from.
INFORMER_ROWS: Final = (
    ("informer_objects", "gauge", "Objects in the cache.", "objects"),
    ("informer_synced", "gauge", "1 after the first full list.", "synced"),
    ("informer_lists_total", "counter", "Full lists read.", "lists"),
    ("informer_watches_total", "counter", "Watches opened.", "watches"),
    ("informer_events_total", "counter", "Changes followed.", "events"),
    ("informer_failures_total", "counter", "Lists and watches that failed, each followed by a pause.", "failures"),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InformerNumbers:
    """The numbers of one informer."""

    objects: int
    synced: bool
    lists: int
    watches: int
    events: int
    failures: int


class Informers:
    """A collector that reads the numbers of each informer."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._lock = threading.Lock()
        self._readers: dict[str, Callable[[], InformerNumbers]] = {}

    def add(self, kind: str, read: Callable[[], InformerNumbers]) -> None:
        """Add an informer."""
        with self._lock:
            self._readers[kind] = read

    def collect(self) -> Iterator[core.Metric]:
        """One family per row, with one sample per kind."""
        with self._lock:
            readers = dict(self._readers)
        numbers = {kind: read() for kind, read in readers.items()}
        for name, type_, meaning, field in INFORMER_ROWS:
            made = core.CounterMetricFamily if type_ == "counter" else core.GaugeMetricFamily
            family = made(self._prefix + name, meaning, labels=("kind",))
            for kind, row in numbers.items():
                family.add_metric((kind,), float(getattr(row, field)))
            yield family


class Served(registry.Collector):
    """The content of a registry without the creation times of counters, which would nearly double the page."""

    def __init__(self, inner: registry.Collector) -> None:
        self._inner = inner

    def collect(self) -> Iterator[core.Metric]:
        for family in self._inner.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family
