"""Connects the counters of other packages to the metrics."""

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final, Protocol

from slurm_bridge import ports
from slurm_bridge.controllers.leader import Election
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.core import Core
from slurm_bridge.telemetry.metrics import Metrics

#: This many namespaces have their own time series.
MOST_NAMESPACES: Final = 20


class Shown(Protocol):
    """A gauge with one label."""

    def clear(self) -> None: ...

    def labels(self, value: str, /) -> Any: ...


class MetricsCounters:
    """Implements the scheduler's Counters with metrics."""

    def __init__(self, metrics: Metrics, clock: ports.Clock) -> None:
        self._metrics, self._clock = metrics, clock

    def attempt(self, result: str) -> None:
        self._metrics.schedule_attempts.labels(result).inc()

    def surprise(self, where: str) -> None:
        self._metrics.surprises.labels(where).inc()

    def bound(self, pod: Pod, waited: float | None) -> None:
        self._metrics.admitted_workloads.inc()
        if waited is not None:
            self._metrics.allocation_to_bound.observe(max(0.0, waited))
        try:
            created = dt.datetime.fromisoformat(pod.metadata.creation_timestamp or "").timestamp()
        except (ValueError, OverflowError):
            return
        self._metrics.pod_scheduling_sli_duration.observe(max(0.0, self._clock.wall() - created))

    def ended(self, reason: str) -> None:
        if reason == "orphan":
            self._metrics.orphans_cancelled.inc()
        elif reason != "pod":
            self._metrics.evicted_workloads.labels(reason).inc()

    def resized(self) -> None:
        self._metrics.pod_resizes.inc()


def refresh(metrics: Metrics, core: Core, election: Election | None, clock: ports.Clock) -> None:
    """Update the gauges that are read from their owners; runs before each scrape."""
    for status, number in core.queue.counts().items():
        metrics.pending_workloads.labels(status).set(number)
    _by_namespace(metrics.namespace_waiting_workloads, core.queue.demand())
    _by_namespace(metrics.namespace_unstarted_jobs, core.context.table.unstarted_by_namespace())
    for phase, number in core.context.table.counts().items():
        metrics.placeholder_jobs.labels(phase.value).set(number)
    metrics.foreign_pods.set(core.pod_index.disowned)
    metrics.resized_pods.set(core.resizes.standing)
    vanished, bound = core.context.table.vanished()
    metrics.breaker_open.set(core.context.config.ends.breaker.open(vanished, bound))
    metrics.leader.set(election is None or election.leading)
    last = core.context.mirror.last_good
    if last is not None:
        age = clock.now() - last
        metrics.slurm_read_age.set(age)
        metrics.slurm_read_timestamp.set(clock.wall() - age)


def _by_namespace(gauge: Shown, numbers: Mapping[str, int]) -> None:
    """Set one series for each of the largest namespaces and one for the sum of all others."""
    largest = sorted(numbers, key=lambda name: (-numbers[name], name))[:MOST_NAMESPACES]
    gauge.clear()
    for name in largest:
        gauge.labels(name).set(numbers[name])
    if len(numbers) > len(largest):
        gauge.labels("").set(sum(numbers.values()) - sum(numbers[name] for name in largest))
