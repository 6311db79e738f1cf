"""The quick histogram shows what the usual one shows."""

import threading

import prometheus_client as prometheus
from prometheus_client import CollectorRegistry, exposition

from slurm_bridge.telemetry.collectors import Served
from slurm_bridge.telemetry.durations import Durations

BOUNDS = (0.1, 1.0)
SECONDS = (0.0, 0.1, 0.5, 1.0, 7.0)


def page(registry: CollectorRegistry) -> str:
    """As it is served."""
    return exposition.generate_latest(Served(registry)).decode()


def test_the_page_is_that_of_the_usual_histogram() -> None:
    """To the letter: a bound belongs to the bucket below it, and buckets count those before them, too."""
    usual, quick = CollectorRegistry(), CollectorRegistry()
    there = prometheus.Histogram("took_seconds", "How long.", ("hook",), buckets=BOUNDS, registry=usual)
    mine = Durations("took_seconds", "How long.", BOUNDS, ("hook",))
    quick.register(mine)
    for name, seconds in (*(("a", one) for one in SECONDS), ("b", 0.2)):
        there.labels(name).observe(seconds)
        mine.labels(name).observe(seconds)
    assert page(quick) == page(usual)


def test_without_any_call_it_is_described_all_the_same() -> None:
    """A dashboard finds its name."""
    registry = CollectorRegistry()
    registry.register(Durations("took_seconds", "How long.", BOUNDS, ("hook",)))
    assert "# TYPE took_seconds histogram" in page(registry)


def test_nothing_is_lost_between_threads() -> None:
    """Workers and the scheduler tell it of the same hook."""
    counts = Durations("took_seconds", "How long.", BOUNDS, ("hook",)).labels("a")
    threads = [threading.Thread(target=lambda: [counts.observe(0.5) for _ in range(1000)]) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert counts.read() == ((0, 4000, 0), 2000.0)
