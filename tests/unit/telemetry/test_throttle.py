"""Log lines about workloads are few and short, whatever users create."""

import io

import pytest
from loguru import logger

from slurm_bridge.model.names import workload_key
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.telemetry import logs, throttle
from slurm_bridge.telemetry.throttle import Throttle


def record(workload: str, text: str = "not now") -> dict[str, object]:
    """A line about a workload."""
    return {"extra": {"workload": workload}, "message": text}


@pytest.mark.security("fairness")
def test_lines_about_one_namespace_are_few_and_leave_those_of_others() -> None:
    """The log has a bounded number of lines about one namespace; lines about others are written as before."""
    clock = VirtualClock()
    kept = Throttle(clock.now, at_once=3, per_second=1)
    assert [kept(record(f"Pod evil/p{number}")) for number in range(5)] == [True] * 3 + [False] * 2
    assert kept(record("Job kind/web"))
    assert kept({"extra": {}, "message": "leading"})
    clock.advance(1)
    line = record("JobSet evil/set")
    assert kept(line)
    assert line["message"] == "not now (2 lines about namespace evil were left out)"


@pytest.mark.security("fairness")
def test_lines_that_name_a_workload_by_its_key_use_up_those_of_its_own_namespace_only() -> None:
    """Log lines about the pods of one namespace are never left out because of those of another one."""
    kept = Throttle(VirtualClock().now, at_once=3, per_second=1)
    keys = [workload_key("Pod", "evil", f"p{number}", f"u{number}") for number in range(5)]
    assert [kept(record(key, "this workload could not be dealt with")) for key in keys] == [True] * 3 + [False] * 2
    assert kept(record(workload_key("Pod", "kind", "web", "u")))


@pytest.mark.security("fairness")
@pytest.mark.parametrize("name", ["x kind/web", "x/Pod kind/web"])
def test_the_name_of_a_group_uses_up_no_lines_of_another_namespace(name: str) -> None:
    """Log lines about a group named like a workload of another namespace count for the group's own namespace."""
    for said in (f"Group evil/{name}", workload_key("Group", "evil", name, f"Group:evil/{name}")):
        assert throttle.subject({"workload": said}) == "namespace evil"


def test_a_line_about_a_workload_is_cut() -> None:
    """At 1 KiB."""
    line = record("Pod a/b", "x" * 100_000)
    assert Throttle(VirtualClock().now)(line)
    assert len(str(line["message"])) == 1024


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({}, None),
        ({"workload": "Pod team/web"}, "namespace team"),
        ({"pod": "team/web"}, "namespace team"),
        ({"workload": "Pod/team/web/0b7e-uid"}, "namespace team"),
        ({"workload": "Group/team/a b%2Fc/Group:team/a b/c"}, "namespace team"),
        ({"workload": "0b7e-uid"}, "0b7e-uid"),
    ],
)
def test_whose_a_line_is(extra: dict[str, str], said: str | None) -> None:
    """The namespace's, where the line names it."""
    assert throttle.subject(extra) == said


def test_the_log_is_throttled_as_it_is_configured_and_not_where_details_are_asked_for() -> None:
    """A user who looks for a defect sees every line."""
    for verbosity, lines in ((0, throttle.AT_ONCE), (4, 2 * throttle.AT_ONCE)):
        sink = io.StringIO()
        logs.configure(verbosity=verbosity, sink=sink)
        for number in range(2 * throttle.AT_ONCE):
            logger.bind(workload=f"Pod evil/p{number}").info("not now")
        assert abs(len(sink.getvalue().splitlines()) - lines) <= 5
