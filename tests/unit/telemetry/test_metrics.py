"""Numbers: all of them documented, all of them served, none of them shared between daemons."""

import pathlib
from collections.abc import Callable

import pytest
from prometheus_client import parser

from hack import docs_tables
from slurm_bridge.telemetry import agents, collectors, instruments, metrics

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
DAEMON = (metrics.Metrics, "metrics.md", docs_tables.metrics)
AGENT = (agents.AgentMetrics, "agents.md", docs_tables.agent_metrics)


@pytest.fixture
def numbers() -> metrics.Metrics:
    """Those of one daemon."""
    return metrics.Metrics(version="1.2.3")


@pytest.fixture(params=[metrics.Metrics, agents.AgentMetrics])
def every(request: pytest.FixtureRequest) -> instruments.Instruments:
    """Those of each kind of process."""
    made: instruments.Instruments = request.param(version="1.2.3")
    return made


def served(numbers: instruments.Instruments) -> dict[str, str]:
    """Names and types as Prometheus reads them, ours only; counters under the name of their samples."""
    text = numbers.page()[0].decode()
    families = list(parser.text_string_to_metric_families(text))
    total = {family.name: "_total" if family.type == "counter" else "" for family in families}
    return {f"{f.name}{total[f.name]}": f.type for f in families if f.name.startswith(instruments.PREFIX)}


def value(numbers: metrics.Metrics, name: str, **labels: str) -> float | None:
    """One sample."""
    return numbers.registry.get_sample_value(instruments.PREFIX + name, labels)


def test_what_is_described_is_what_is_served(every: instruments.Instruments) -> None:
    """Every metric that is served is described, and every one that is described is served."""
    assert {row.name: row.type for row in every.described} == served(every)


@pytest.mark.parametrize(("process", "page", "table"), [DAEMON, AGENT], ids=["daemon", "agent"])
def test_the_documented_list_is_the_served_one(
    process: type[instruments.Instruments], page: str, table: Callable[[], str]
) -> None:
    """The page in docs/ is generated, and current."""
    assert table() in (DOCS / page).read_text()
    assert {line.split("`")[1] for line in table().splitlines()[2:]} == set(served(process()))


def test_every_metric_explains_itself(every: instruments.Instruments) -> None:
    """In a sentence, and under the prefix."""
    for row in every.described:
        assert row.meaning.endswith(".")
        assert row.name.startswith(instruments.PREFIX)


def test_names_follow_the_habits_of_prometheus(every: instruments.Instruments) -> None:
    """Counters end in _total, and nothing else does; durations are seconds."""
    for row in every.described:
        assert row.name.endswith("_total") == (row.type == "counter")
        assert "duration" not in row.name or row.name.endswith("_seconds")


def test_two_daemons_in_one_process_count_apart(numbers: metrics.Metrics) -> None:
    """There is no shared registry."""
    other = metrics.Metrics()
    numbers.orphans_cancelled.inc()
    assert value(numbers, "orphans_cancelled_total") == 1
    assert value(other, "orphans_cancelled_total") == 0


def test_calls_are_counted_by_operation_and_outcome(numbers: metrics.Metrics) -> None:
    """Of both sides."""
    numbers.request_to_slurm("submit", "ok", 0.2)
    numbers.request_to_kubernetes("bind", "Conflict", 0.1)
    numbers.status_write("event", "dropped")
    assert value(numbers, "slurm_request_duration_seconds_count", operation="submit", outcome="ok") == 1
    assert value(numbers, "kubernetes_request_duration_seconds_sum", operation="bind", outcome="Conflict") == 0.1
    assert value(numbers, "status_writes_total", what="event", outcome="dropped") == 1


def test_informers_are_asked_when_somebody_looks(numbers: metrics.Metrics) -> None:
    """Their own counters are shown, not copies."""
    lists = [1]
    numbers.informer(
        "pods",
        lambda: collectors.InformerNumbers(objects=5, synced=True, lists=lists[0], watches=1, events=9, failures=0),
    )
    lists[0] = 2
    text = numbers.page()[0].decode()
    assert 'slurm_bridge_informer_lists_total{kind="pods"} 2.0' in text
    assert 'slurm_bridge_informer_objects{kind="pods"} 5.0' in text
    assert 'slurm_bridge_informer_synced{kind="pods"} 1.0' in text


def test_the_page_is_prometheus_text_without_birthdays(numbers: metrics.Metrics) -> None:
    """The moment in which each counter was made would be half of the page."""
    numbers.schedule_attempts.labels("bound").inc()
    body, content_type = numbers.page()
    assert content_type.startswith("text/plain")
    assert b"_created" not in body
    assert b'slurm_bridge_build_info{version="1.2.3"} 1.0' in body


def test_no_good_read_yet_is_not_a_fresh_one(numbers: metrics.Metrics) -> None:
    """An age of 0 would look healthy."""
    assert value(numbers, "slurm_last_good_read_age_seconds") == -1
