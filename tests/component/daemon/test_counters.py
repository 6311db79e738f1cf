"""What happens becomes numbers that operators know from other schedulers."""

import pytest

from slurm_bridge.daemon import counters
from slurm_bridge.daemon.counters import MetricsCounters
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.telemetry.metrics import Metrics
from tests.component.scheduler.whole_core import Bridge


class Desk:
    """Counters, and the page that it fills."""

    def __init__(self) -> None:
        self.clock = VirtualClock(wall=1_700_000_000.0)
        self.metrics = Metrics(version="test")
        self.counters = MetricsCounters(self.metrics, self.clock)

    def page(self) -> str:
        """As it is served."""
        return self.metrics.page()[0].decode()


@pytest.fixture
def desk() -> Desk:
    """Nothing was counted yet."""
    return Desk()


def pod(created: str | None = "2023-11-14T22:13:10Z") -> Pod:
    """A pod of ten seconds of age."""
    return Pod(metadata=ObjectMeta(name="a", namespace="team", uid="u", creation_timestamp=created))


def test_a_bound_pod_is_admitted_and_its_waiting_measured(desk: Desk) -> None:
    """From its creation, and from the start of its job."""
    desk.counters.bound(pod(), 0.5)
    page = desk.page()
    assert "slurm_bridge_admitted_workloads_total 1.0" in page
    assert "slurm_bridge_pod_scheduling_sli_duration_seconds_sum 10.0" in page


def test_clocks_that_disagree_measure_nothing_negative(desk: Desk) -> None:
    """Kubernetes' time is not ours."""
    desk.counters.bound(pod("2030-01-01T00:00:00Z"), -3.0)
    desk.counters.bound(pod(None), None)
    assert "slurm_bridge_pod_scheduling_sli_duration_seconds_sum 0.0" in desk.page()


def test_attempts_are_counted_by_their_result(desk: Desk) -> None:
    """As kube-scheduler does."""
    for result in ("scheduled", "scheduled", "unschedulable"):
        desk.counters.attempt(result)
    assert 'slurm_bridge_schedule_attempts_total{result="scheduled"} 2.0' in desk.page()


def test_ends_are_evictions_orphans_or_plain(desk: Desk) -> None:
    """A pod that finished is neither."""
    for reason in ("timeout", "orphan", "pod"):
        desk.counters.ended(reason)
    page = desk.page()
    assert 'slurm_bridge_evicted_workloads_total{reason="timeout"} 1.0' in page
    assert "slurm_bridge_orphans_cancelled_total 1.0" in page
    assert 'reason="pod"' not in page


def test_what_is_read_rather_than_counted_is_read_when_somebody_asks(desk: Desk, bridge: Bridge) -> None:
    """Queue, placeholders, breaker, lead, and the age of what we know."""
    bridge.bound("a")
    bridge.waiting("b")
    counters.refresh(desk.metrics, bridge.core, None, bridge.clock)
    page = desk.page()
    assert 'slurm_bridge_placeholder_jobs{phase="running"} 1.0' in page
    assert 'slurm_bridge_placeholder_jobs{phase="pending"} 1.0' in page
    assert 'slurm_bridge_pending_workloads{status="waiting"} 2.0' in page
    assert "slurm_bridge_breaker_open 0.0" in page
    assert "slurm_bridge_leader 1.0" in page
