"""What happens becomes numbers that operators know from other schedulers."""

import dataclasses

import pytest

from slurm_bridge.daemon import counters
from slurm_bridge.daemon.counters import MOST_SERIES, MetricsCounters
from slurm_bridge.model import kinds
from slurm_bridge.model.job import JobState, JobView
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.names import JobId
from slurm_bridge.model.placeholder import Placeholder
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

    def refreshed(self, bridge: Bridge) -> str:
        """As it is scraped from a daemon."""
        counters.refresh(self.metrics, bridge.core, None, bridge.clock)
        return self.page()


@pytest.fixture
def desk() -> Desk:
    """Nothing was counted yet."""
    return Desk()


def pod(created: str | None = "2023-11-14T22:13:10Z") -> Pod:
    """A pod of ten seconds of age."""
    return Pod(metadata=ObjectMeta(name="a", namespace="team", uid="u", creation_timestamp=created))


def job(*, since: float = 0.0, submitted: int = 100, started: int = 107) -> Placeholder:
    """A job that waited for seven seconds of Slurm's clock, and runs since then by ours."""
    owner = Owner(cluster="here", kind="Pod", namespace="team", name="a", uid="u", members="", request="")
    state = JobState(frozenset({"RUNNING"}))
    view = JobView(job_id=JobId(7), name="a", state=state, submit_time=submitted, start_time=started)
    return Placeholder(job_id=JobId(7), owner=owner, state=state, since=since, view=view)


def stages(page: str) -> dict[str, float]:
    """The seconds of each stage."""
    name = 'slurm_bridge_stage_duration_seconds_sum{stage="'
    rows = [line.removeprefix(name) for line in page.splitlines() if line.startswith(name)]
    return {row.split('"')[0]: float(row.split()[-1]) for row in rows}


def test_the_stages_of_a_pods_way_add_up_to_its_whole_way(desk: Desk) -> None:
    """Of ten seconds seven were Slurm's, and half a one ours: the others were before the submission."""
    desk.counters.bound(pod(), job(since=desk.clock.now() - 0.5))
    page = desk.page()
    assert "slurm_bridge_pod_scheduling_sli_duration_seconds_sum 10.0" in page
    assert "slurm_bridge_admission_wait_time_seconds_sum 7.5" in page
    assert stages(page) == {"submit": 2.5, "queue": 7.0, "bind": 0.5}


@pytest.mark.parametrize(
    ("created", "placeholder"),
    [
        ("2030-01-01T00:00:00Z", job(since=9e9)),
        (None, job(since=9e9, started=-5)),
        ("9" * 99, job(since=9e9, submitted=2**62)),
    ],
)
def test_clocks_that_disagree_measure_nothing_negative(
    desk: Desk, created: str | None, placeholder: Placeholder
) -> None:
    """Kubernetes' time and Slurm's are not ours, and both may be garbage."""
    desk.counters.bound(pod(created), placeholder)
    page = desk.page()
    assert "slurm_bridge_pod_scheduling_sli_duration_seconds_sum 0.0" in page
    assert "slurm_bridge_admission_wait_time_seconds_sum 0.0" in page or "wait_time_seconds_sum 7.0" in page
    assert min(stages(page).values()) >= 0


def test_attempts_are_counted_by_their_result(desk: Desk) -> None:
    """As kube-scheduler does; a workload is admitted with each that binds the pods that waited."""
    for result in ("scheduled", "scheduled", "unschedulable"):
        desk.counters.attempt(result)
    page = desk.page()
    assert 'slurm_bridge_schedule_attempts_total{result="scheduled"} 2.0' in page
    assert "slurm_bridge_admitted_workloads_total 2.0" in page


def test_ends_are_evictions_orphans_or_plain(desk: Desk) -> None:
    """A pod that finished is neither."""
    for reason in ("timeout", "orphan", "pod"):
        desk.counters.ended(reason)
    page = desk.page()
    assert 'slurm_bridge_evicted_workloads_total{reason="timeout"} 1.0' in page
    assert "slurm_bridge_orphans_cancelled_total 1.0" in page
    assert 'reason="pod"' not in page


def test_what_an_alert_counts_is_zero_before_it_happens(desk: Desk) -> None:
    """The first increase of a series that appears with it is not seen by Prometheus."""
    page = desk.page()
    for series in (
        'evicted_workloads_total{reason="node_fail"}',
        'configuration_reloads_total{result="refused"}',
        'status_writes_total{outcome="dropped",what="condition"}',
        'surprises_total{loop="scheduling"}',
    ):
        assert f"slurm_bridge_{series} 0.0" in page


def test_what_is_read_rather_than_counted_is_read_when_somebody_asks(desk: Desk, bridge: Bridge) -> None:
    """Queue, placeholders, breaker, lead, and the age of what we know; a bound workload does not wait."""
    bridge.bound("a")
    bridge.waiting("b")
    page = desk.refreshed(bridge)
    assert 'slurm_bridge_placeholder_jobs{phase="running"} 1.0' in page
    assert 'slurm_bridge_placeholder_jobs{phase="pending"} 1.0' in page
    assert 'slurm_bridge_pending_workloads{status="waiting"} 1.0' in page
    assert 'slurm_bridge_waiting_workloads{namespace="default",reason="SlurmJobPending"} 1.0' in page
    assert "slurm_bridge_breaker_open 0.0" in page
    assert "slurm_bridge_leader 1.0" in page


def test_a_workload_that_only_its_user_can_change_is_parked(desk: Desk, bridge: Bridge) -> None:
    """It is under the reason that its pods show, beside a neighbour that waits for Slurm."""
    bridge.waiting("fine")
    bridge.pod("wrong", annotations={"slurmjob.slinky.slurm.net/timelimit": "soon"})
    bridge.step()
    page = desk.refreshed(bridge)
    assert 'slurm_bridge_pending_workloads{status="parked"} 1.0' in page
    assert 'slurm_bridge_waiting_workloads{namespace="default",reason="InvalidAnnotation"} 1.0' in page
    assert 'slurm_bridge_waiting_workloads{namespace="default",reason="SlurmJobPending"} 1.0' in page


def test_series_are_few_however_many_namespaces_and_reasons_there_are(desk: Desk, bridge: Bridge) -> None:
    """Names that users choose make no more series than the bound; the rest is one number, and none is lost."""
    bridge.slurm.control.pause()
    for number in range(2 * MOST_SERIES):
        bridge.kube.create(kinds.NAMESPACES, {"metadata": {"name": f"ns{number}"}})
        bridge.pod("a", f"ns{number}")
    bridge.step()
    rows = [line for line in desk.refreshed(bridge).splitlines() if line.startswith("slurm_bridge_waiting_workloads{")]
    assert len(rows) == MOST_SERIES + 1
    assert sum(float(row.split()[-1]) for row in rows) == 2 * MOST_SERIES
    assert any('namespace="",' in row for row in rows)


def test_a_reason_that_is_no_word_is_shown_as_one_of_the_others(desk: Desk, bridge: Bridge) -> None:
    """Slurm's reasons may be texts of any length: they neither break the page nor make series of their own."""
    job_id = bridge.waiting("a").job_id
    table = bridge.core.context.table
    bridge.until(lambda: (one := table.get(job_id)) is not None and one.view is not None)
    known = table.get(job_id)
    assert known is not None
    assert known.view is not None
    hostile = dataclasses.replace(known.view, reason='x"} 9\n' * 9_999)
    table.put(dataclasses.replace(known, view=hostile))
    page = desk.refreshed(bridge)
    assert 'slurm_bridge_unstarted_jobs{reason=""} 1.0' in page
    assert '"} 9' not in page
