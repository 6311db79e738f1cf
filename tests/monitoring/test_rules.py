"""Each alert fires for what it is about and for nothing else: evaluated by promtool on series that are written here."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import yaml

from hack.monitoring_table import ALERTS, PREFIX
from tests.monitoring import support_prometheus
from tests.monitoring.support_prometheus import RULES

#: A series without its prefix and its labels `job` and `instance`, and its values, one a minute.
Series = tuple[str, str]

LEADS: Series = ("leader", "1x120")


def histogram(name: str, below: Sequence[tuple[str, str]]) -> tuple[Series, ...]:
    """Buckets, each with its values."""
    return tuple((f'{name}_bucket{{le="{bound}"}}', values) for bound, values in below)


#: What a healthy installation shows, for two hours: every alert has data, and none fires.
HEALTHY: tuple[Series, ...] = (
    LEADS,
    ("slurm_last_good_read_timestamp_seconds", "0+60x120"),
    ("slurm_token_expires_timestamp_seconds", "9000x120"),
    ("slurm_token_lifetime_seconds", "9000x120"),
    ("breaker_open", "0x120"),
    ('surprises_total{loop="scheduling"}', "0x120"),
    ('unreadable_total{server="slurm", kind="job"}', "3x120"),
    ('slurm_request_duration_seconds_count{operation="submit", outcome="ok"}', "0+60x120"),
    ('slurm_request_duration_seconds_count{operation="submit", outcome="invalid"}', "0+60x120"),
    ('kubernetes_request_duration_seconds_count{operation="bind", outcome="ok"}', "0+60x120"),
    ('kubernetes_request_duration_seconds_count{operation="bind", outcome="Conflict"}', "0+60x120"),
    *histogram("allocation_to_bound_duration_seconds", (("1", "0+60x120"), ("30", "0+60x120"), ("+Inf", "0+60x120"))),
    ('hook_errors_total{hook="policy", phase="admit"}', "2x120"),
    ('hook_duration_seconds_sum{hook="policy", phase="admit"}', "0+6x120"),
    ('hook_events_total{hook="vela", what="agents-failed"}', "0+1x120"),
    ('pending_workloads{status="parked"}', "0x120"),
    ('waiting_workloads{namespace="a", reason="SlurmJobPending"}', "9x120"),
    ('evicted_workloads_total{reason="gone"}', "0x120"),
    ('evicted_workloads_total{reason="timeout"}', "0+1x120"),
    ("orphans_cancelled_total", "4x120"),
    ("foreign_pods", "0x120"),
    ('status_writes_total{what="event", outcome="dropped"}', "0x120"),
    ('status_writes_total{what="event", outcome="ok"}', "0+60x120"),
    ('configuration_reloads_total{result="refused"}', "1x120"),
    ('configuration_reloads_total{result="ok"}', "0+1x120"),
    ('check_findings{level="failure"}', "0x120"),
    ('check_findings{level="warning"}', "2x120"),
    ('informer_synced{kind="pods"}', "1x120"),
    ('informer_failures_total{kind="pods"}', "0x60 1x60"),
    ("process_start_time_seconds", "1000x120"),
    ('node_actions_total{action="drain", outcome="ok"}', "0+1x120"),
    ('admission_review_duration_seconds_count{webhook="mutate", kind="Pod", outcome="allowed"}', "0+9x120"),
)

#: Alert -> what makes it fire within two hours, in place of the healthy series of the same names.
FIRES: Mapping[str, Sequence[Series]] = {
    "SlurmBridgeDown": (("leader", "1x100 stale _x20"),),
    "SlurmBridgeNoLeader": (("leader", "1x100 0x20"),),
    "SlurmBridgeSeveralLeaders": (LEADS, ('leader{instance="b"}', "0x100 1x20")),
    "SlurmBridgeNamespacesAwaited": (('part_namespaces{state="awaited"}', "0x90 2x30"),),
    "SlurmBridgeSlurmSilent": (("slurm_last_good_read_timestamp_seconds", "0+60x110 6600x10"),),
    "SlurmBridgeTokenEnds": (("slurm_token_expires_timestamp_seconds", "7700x120"),),
    "SlurmBridgeBreakerOpen": (("breaker_open", "0x110 1x10"),),
    "SlurmBridgeSurprises": (('surprises_total{loop="watch of pods"}', "_x110 1x10"),),
    "SlurmBridgeUnreadable": (('unreadable_total{server="slurm", kind="job"}', "3x110 4x10"),),
    "SlurmBridgeCallsToSlurmFail": (
        ('slurm_request_duration_seconds_count{operation="submit", outcome="ok"}', "0+60x120"),
        ('slurm_request_duration_seconds_count{operation="submit", outcome="Unavailable"}', "0x60 0+20x60"),
    ),
    "SlurmBridgeAnswersLost": (
        ('slurm_request_duration_seconds_count{operation="submit", outcome="ok"}', "0+60x120"),
        ('slurm_request_duration_seconds_count{operation="submit", outcome="unknown"}', "0x60 0+2x60"),
    ),
    "SlurmBridgeCallsToKubernetesFail": (
        ('kubernetes_request_duration_seconds_count{operation="bind", outcome="ok"}', "0+60x120"),
        ('kubernetes_request_duration_seconds_count{operation="bind", outcome="NotAuthorized"}', "0x60 0+20x60"),
    ),
    "SlurmBridgeBindingSlow": histogram(
        "allocation_to_bound_duration_seconds", (("1", "0+30x120"), ("30", "0+60x120"), ("+Inf", "0+60x120"))
    ),
    "SlurmBridgeHookErrors": (('hook_errors_total{hook="policy", phase="admit"}', "2x100 2+1x20"),),
    "SlurmBridgeHooksSlow": (('hook_duration_seconds_sum{hook="policy", phase="admit"}', "0+55x120"),),
    "SlurmBridgeHookBackground": (('hook_events_total{hook="vela", what="agents-unavailable"}', "_x110 1+1x10"),),
    "SlurmBridgeParked": (('pending_workloads{status="parked"}', "0x40 2x80"),),
    "SlurmBridgeWindowFull": (('waiting_workloads{namespace="a", reason="SlurmQueueFull"}', "_x40 5x80"),),
    "SlurmBridgePodsLost": (('evicted_workloads_total{reason="gone"}', "0x110 7x10"),),
    "SlurmBridgeOrphans": (("orphans_cancelled_total", "4x110 5x10"),),
    "SlurmBridgeForeignPods": (("foreign_pods", "0x40 1x80"),),
    "SlurmBridgeStatusDropped": (('status_writes_total{what="event", outcome="dropped"}', "0x90 0+5x30"),),
    "SlurmBridgeReloadRefused": (('configuration_reloads_total{result="refused"}', "1x110 2x10"),),
    "SlurmBridgeCheckFailed": (('check_findings{level="failure"}', "0x100 1x20"),),
    "SlurmBridgeCacheIncomplete": (('informer_synced{kind="pods"}', "1x90 0x30"),),
    "SlurmBridgeWatchesFail": (('informer_failures_total{kind="pods"}', "0x60 0+6x60"),),
    "SlurmBridgeLeaderChanges": (("leader", "1x60 0 1 0 1 0 1 0 1 0 1 0 1 0 1 1x46"),),
    "SlurmBridgeRestarts": (("process_start_time_seconds", "1000x90 2000x9 3000x9 4000x9"),),
    "SlurmBridgeNodeActionsFail": (('node_actions_total{action="drain", outcome="busy"}', "0+1x120"),),
    "SlurmBridgeWebhookFails": (
        ('admission_review_duration_seconds_count{webhook="mutate", kind="Pod", outcome="allowed"}', "0+9x120"),
        (
            'admission_review_duration_seconds_count{webhook="mutate", kind="Pod", outcome="failed"}',
            "0x100 1+1x20",
        ),
    ),
}


def labelled(series: str, job: str) -> str:
    """With the labels of a target."""
    name, _, rest = series.partition("{")
    own = rest.rstrip("}")
    target = f'job="{job}"' + ("" if "instance=" in own else f', instance="{job}-a"')
    prefix = "" if name.startswith("process_") else PREFIX
    return f"{prefix}{name}{{{target}{', ' if own else ''}{own}}}"


def name_of(series: str) -> str:
    """Of the metric."""
    return series.partition("{")[0]


def fired(folder: pathlib.Path, series: Sequence[tuple[str, Series]], expected: Mapping[tuple[str, str], int]) -> str:
    """What promtool says where other alerts fire at the end than these, by job and name."""
    samples = [
        {"labels": f'{{alertname="{alert}", job="{job}"}}' if job else f'{{alertname="{alert}"}}', "value": number}
        for (job, alert), number in expected.items()
    ]
    case: dict[str, Any] = {
        "interval": "1m",
        "input_series": [{"series": labelled(one, job), "values": values} for job, (one, values) in series],
        "promql_expr_test": [
            {
                "expr": 'count by (job, alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "115m",
                "exp_samples": samples,
            }
        ],
    }
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [case]}))
    done = support_prometheus.promtool("test", "rules", str(file))
    return "" if done.returncode == 0 else f"{done.stdout}{done.stderr}"


def test_promtool_finds_no_fault_in_the_rules() -> None:
    """Each rule is read, and no two are the same."""
    done = support_prometheus.promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


def test_nothing_fires_while_all_is_well(tmp_path: pathlib.Path) -> None:
    """Refusals of jobs, conflicts, time limits and old counts are no reason to wake an operator."""
    assert fired(tmp_path, [("well", one) for one in HEALTHY], {}) == ""


def test_every_alert_has_its_cause() -> None:
    """A new alert needs a line in the table above."""
    assert list(FIRES) == [alert.name for alert in ALERTS]


@pytest.mark.parametrize("alert", FIRES)
def test_an_alert_fires_for_the_installation_that_it_is_about(alert: str, tmp_path: pathlib.Path) -> None:
    """It is the only one, and fires once; a healthy installation beside it is not named."""
    cause = FIRES[alert]
    replaced = {name_of(series) for series, _ in cause}
    ill = [*cause, *(one for one in HEALTHY if name_of(one[0]) not in replaced)]
    # One that is not scraped has no neighbour: the alert is about all of them.
    alone = alert == "SlurmBridgeDown"
    series = [("ill", one) for one in ill] + ([] if alone else [("well", one) for one in HEALTHY])
    if alone:
        series = [("ill", one) for one in cause]
    assert fired(tmp_path, series, {("" if alone else "ill", alert): 1}) == ""


def test_replicas_that_do_not_lead_raise_no_alert(tmp_path: pathlib.Path) -> None:
    """Their gauges are of the time when they led, or of no time."""
    beside = [
        (f'{name}{{instance="b"{labels}}}', values)
        for name, labels, values in (
            ("leader", "", "0x120"),
            ("slurm_last_good_read_timestamp_seconds", "", "0x120"),
            ("slurm_token_expires_timestamp_seconds", "", "1x120"),
            ("slurm_token_lifetime_seconds", "", "9000x120"),
            ("breaker_open", "", "1x120"),
            ("foreign_pods", "", "3x120"),
            ("pending_workloads", ', status="parked"', "3x120"),
            ("waiting_workloads", ', namespace="a", reason="SlurmQueueFull"', "3x120"),
            ("check_findings", ', level="failure"', "3x120"),
        )
    ]
    assert fired(tmp_path, [("well", one) for one in (*HEALTHY, *beside)], {}) == ""


def test_names_of_strangers_make_no_alert(tmp_path: pathlib.Path) -> None:
    """A namespace or a reason may have any name, also one that looks like what an alert looks for."""
    strange = [
        ('waiting_workloads{namespace="SlurmQueueFull", reason="leader\\"} == 1"}', "9x120"),
        ('waiting_workloads{namespace="status=parked", reason="HookFailed"}', "9x120"),
    ]
    assert fired(tmp_path, [("well", one) for one in (*HEALTHY, *strange)], {}) == ""


@pytest.mark.parametrize(
    ("leads", "expected"),
    [
        (("1x120", "1x120"), {}),
        (("1x120", "1x100 0x20"), {("well", "SlurmBridgeNoLeader"): 1}),
    ],
    ids=["each part has a leader", "one part has none"],
)
def test_each_part_has_a_leader_of_its_own(
    leads: Sequence[str], expected: Mapping[tuple[str, str], int], tmp_path: pathlib.Path
) -> None:
    """Daemons of all parts may be scraped under one job: two leaders are right, and one is too few."""
    parts = [
        series
        for part, leading in zip("ab", leads, strict=True)
        for series in (
            (f'leader{{instance="{part}"}}', leading),
            (f'part_info{{instance="{part}", part="{part}"}}', "1x120"),
        )
    ]
    others = [one for one in HEALTHY if name_of(one[0]) != "leader"]
    assert fired(tmp_path, [("well", one) for one in (*parts, *others)], expected) == ""
