"""Connects the counters of other packages to the metrics."""

import collections
import datetime as dt
import math
import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

from slurm_bridge import ports
from slurm_bridge.controllers.leader import Election
from slurm_bridge.controllers.ownership import NamespaceOwnership, Standing
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmtoken import TokenLife
from slurm_bridge.scheduler import pending_workloads, words
from slurm_bridge.scheduler.core import Core
from slurm_bridge.telemetry.metrics import Metrics

#: This many namespaces, and this many reasons, have their own time series.
MOST_SERIES: Final = 20
#: Strangers choose reasons: hooks of a site, and Slurm's administrators. Others than such words are not shown.
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")

#: How a look at a workload ends. Series exist from the start: the first increase of a series that is new is not seen.
RESULTS: Final = ("error", "parked", "rejected", "scheduled", "submitted", "unavailable", "unknown", "unschedulable")
#: Why pods are ended beside the ends of their jobs that Slurm has words for.
ENDED_BY_US: Final = ("GONE", "NOTBOUND", "RESTART", "SHRUNK")
#: What becomes of a condition or an event.
_WRITES: Final = ("dropped", "failed", "ok", "same", "stale")


class Shown(Protocol):
    """A gauge with labels."""

    def clear(self) -> None: ...

    def labels(self, *values: str) -> Any: ...


class MetricsCounters:
    """Implements the scheduler's Counters with metrics."""

    def __init__(self, metrics: Metrics, clock: ports.Clock) -> None:
        self._metrics, self._clock = metrics, clock
        self._look = metrics.scheduling_attempt_duration.labels().observe
        self._stages = [metrics.stage_duration.labels(stage).observe for stage in ("submit", "queue", "bind")]
        for result in RESULTS:
            metrics.schedule_attempts.labels(result)
        for reason in (*words.ENDS, *ENDED_BY_US):
            metrics.evicted_workloads.labels(reason.lower())
        for what in ("condition", "event"):
            for outcome in _WRITES:
                metrics.status_writes.labels(what, outcome)
        for result in ("ok", "refused"):
            metrics.configuration_reloads.labels(result)
        metrics.surprises.labels("scheduling")

    def looked(self, seconds: float) -> None:
        self._look(seconds)

    def attempt(self, result: str) -> None:
        self._metrics.schedule_attempts.labels(result).inc()
        if result == "scheduled":
            self._metrics.admitted_workloads.inc()

    def surprise(self, where: str) -> None:
        self._metrics.surprises.labels(where).inc()

    def bound(self, pod: Pod, by: Placeholder) -> None:
        waited = max(0.0, self._clock.now() - by.since)
        self._metrics.allocation_to_bound.observe(waited)
        view = by.view
        # Both times are of Slurm's clock: they are compared with each other, and never with ours.
        queued = float(max(0, view.start_time - view.submit_time)) if view is not None and view.submit_time else None
        if queued is not None:
            self._metrics.admission_wait_time.observe(queued + waited)
        try:
            created = dt.datetime.fromisoformat(pod.metadata.creation_timestamp or "").timestamp()
        except (ValueError, OverflowError):
            return
        whole = max(0.0, self._clock.wall() - created)
        self._metrics.pod_scheduling_sli_duration.observe(whole)
        if queued is not None:
            for observe, seconds in zip(self._stages, (max(0.0, whole - queued - waited), queued, waited), strict=True):
                observe(seconds)

    def ended(self, reason: str) -> None:
        if reason == "orphan":
            self._metrics.orphans_cancelled.inc()
        elif reason != "pod":
            self._metrics.evicted_workloads.labels(reason).inc()

    def resized(self) -> None:
        self._metrics.pod_resizes.inc()


def refresh(metrics: Metrics, core: Core, election: Election | None, clock: ports.Clock) -> None:
    """Update the gauges that are read from their owners; runs before each scrape."""
    pending = pending_workloads.count(core.context.states)
    for status, number in pending.by_status.items():
        metrics.pending_workloads.labels(status).set(number)
    table = core.context.table
    _largest(metrics.waiting_workloads, pending.by_reason)
    _largest(metrics.namespace_waiting_workloads, _singly(core.queue.demand()))
    _largest(metrics.namespace_unstarted_jobs, _singly(table.unstarted_by_namespace()))
    _largest(metrics.unstarted_jobs, _singly(table.unstarted_by_reason()))
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


def refresh_token(metrics: Metrics, life: TokenLife | None) -> None:
    """Likewise, of the token for Slurm; None: it has no end."""
    metrics.token_expires.set(life.expires if life is not None else math.inf)
    metrics.token_lifetime.set(life.whole if life is not None else 0.0)


def refresh_parts(metrics: Metrics, part: str, ownership: NamespaceOwnership) -> None:
    """Likewise, where there are parts. A replica that does not lead has no namespaces."""
    metrics.part.labels(part).set(1)
    for standing in Standing:
        number = len(ownership.standing(standing)) if ownership.current else 0
        metrics.part_namespaces.labels(standing.name.lower()).set(number)
    metrics.part_namespaces.labels("awaited").set(len(ownership.awaited) if ownership.current else 0)


def _singly(numbers: Mapping[str, int]) -> Mapping[tuple[str, ...], int]:
    return {(name,): number for name, number in numbers.items()}


def _largest(gauge: Shown, numbers: Mapping[Any, int]) -> None:
    """Set series for the largest values of each label; all other values together are the value "".

    A key of `numbers` is a tuple with a value for each label.
    """
    kept = [_most(numbers, place) for place in range(len(next(iter(numbers), ())))]
    shown: collections.Counter[tuple[str, ...]] = collections.Counter()
    for values, number in numbers.items():
        shown[tuple(value if value in own else "" for value, own in zip(values, kept, strict=True))] += number
    gauge.clear()
    for labels, number in shown.items():
        gauge.labels(*labels).set(number)


def _most(numbers: Mapping[Any, int], place: int) -> frozenset[str]:
    sums: collections.Counter[str] = collections.Counter()
    for values, number in numbers.items():
        sums[values[place]] += number
    words_alone = (value for value in sums if _WORD.fullmatch(value))
    return frozenset(sorted(words_alone, key=lambda value: (-sums[value], value))[:MOST_SERIES])
