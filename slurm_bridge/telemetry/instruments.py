"""What every process has in common: its metrics are created, described and served here."""

import dataclasses
from collections.abc import Callable
from typing import Final

import prometheus_client as prometheus
from prometheus_client import exposition

from slurm_bridge.telemetry import collectors, durations

PREFIX: Final = "slurm_bridge_"

_REVIEWS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One metric as users see it."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str


class Instruments:
    """The metrics of one process; each kind of process has its own subclass. Served by `page`."""

    def __init__(self) -> None:
        self.registry = prometheus.CollectorRegistry()
        self.described: list[Described] = []
        self._informers = collectors.Informers(PREFIX)
        self.registry.register(self._informers)
        for name, type_, meaning, _ in collectors.INFORMER_ROWS:
            self._describe(name, type_, meaning, ("kind",))
        prometheus.ProcessCollector(registry=self.registry)

    def page(self) -> tuple[bytes, str]:
        """The current numbers in the text format, and its content type."""
        return exposition.generate_latest(collectors.Served(self.registry)), exposition.CONTENT_TYPE_LATEST

    def informer(self, kind: str, read: Callable[[], collectors.InformerNumbers]) -> None:
        """Add the numbers of an informer, read at each scrape."""
        self._informers.add(kind, read)

    def _build(self, version: str) -> None:
        self.build_info = self._gauge("build_info", "Always 1; the version in a label.", "version")
        self.build_info.labels(version).set(1)

    def _admission(self) -> None:
        self.admission_reviews = self._histogram(
            "admission_review_duration_seconds",
            "Reviews of the admission webhook, by webhook (mutate, validate), kind of object, and outcome (allowed, "
            "changed, refused, failed).",
            _REVIEWS,
            "webhook",
            "kind",
            "outcome",
        )

    def _counter(self, name: str, meaning: str, *labels: str) -> prometheus.Counter:
        self._describe(name, "counter", meaning, labels)
        return prometheus.Counter(PREFIX + name, meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> prometheus.Gauge:
        self._describe(name, "gauge", meaning, labels)
        return prometheus.Gauge(PREFIX + name, meaning, labels, registry=self.registry)

    def _histogram(self, name: str, meaning: str, buckets: tuple[float, ...], *labels: str) -> prometheus.Histogram:
        self._describe(name, "histogram", meaning, labels)
        return prometheus.Histogram(PREFIX + name, meaning, labels, buckets=buckets, registry=self.registry)

    def _durations(self, name: str, meaning: str, bounds: tuple[float, ...], *labels: str) -> durations.Durations:
        """A histogram that is quickly told of seconds."""
        self._describe(name, "histogram", meaning, labels)
        made = durations.Durations(PREFIX + name, meaning, bounds, labels)
        self.registry.register(made)
        return made

    def _describe(self, name: str, type_: str, meaning: str, labels: tuple[str, ...]) -> None:
        self.described.append(Described(name=PREFIX + name, type=type_, labels=labels, meaning=meaning))
