"""What the benchmark computes from what it measures."""

import pytest
from clusterbench import figures, report
from clusterbench.contestants import ALL, OURS


def turn(who: str = "ours", **fields: object) -> figures.Turn:
    """Ten pods in two seconds."""
    plain: dict[str, object] = {
        "who": who,
        "pods": 10,
        "seconds": 2.0,
        "created_to_bound": None,
        "running_to_bound": None,
        "cpu": {"etcd": 0.5, "kwok": 1.0},
        "machine": 2.5,
        "calls": {"slurmctld": {"SUBMIT": 10, "INFO": 20}},
        "emptied_seconds": 1.0,
    }
    return figures.Turn(**{**plain, **fields})  # type: ignore[arg-type]


def rate(one: figures.Turn) -> float:
    """What is compared."""
    return one.rate


def test_a_turn_is_counted_from_the_first_creation_to_the_last_binding() -> None:
    """Not from the first to the first, and whatever the order of the pods is."""
    assert figures.seconds({"a": 10.0, "b": 11.0}, {"a": 15.0, "b": 12.0}) == pytest.approx(5.0)


def test_what_lacks_a_moment_has_no_latency() -> None:
    """A job whose start is not in the log says nothing."""
    assert figures.between({"a": 1.0}, {"a": 1.5, "b": 3.0}) == pytest.approx([0.5])


def test_latency_is_never_negative() -> None:
    """The binding may be seen in the very millisecond in which the log has the start."""
    assert figures.between({"a": 1.001}, {"a": 1.0}) == [0.0]


@pytest.mark.parametrize(("part", "expected"), [(0.5, 50), (0.95, 95), (0.99, 99), (0.0, 1), (1.0, 100)])
def test_a_percentile_is_one_of_the_values(part: float, expected: int) -> None:
    """The smallest that so many do not exceed."""
    assert figures.percentile(range(1, 101), part) == expected


def test_percentiles_of_nothing_are_nothing() -> None:
    """kube-scheduler has no jobs that start."""
    assert figures.Percentiles.of([]) is None


def test_percentiles_are_milliseconds() -> None:
    """Seconds go in."""
    assert figures.Percentiles.of([0.25]) == figures.Percentiles(p50=250.0, p95=250.0, p99=250.0)


def test_a_turn_tells_rates_and_costs_per_pod() -> None:
    """Pods per second, milliseconds of CPU, calls."""
    one = turn()
    assert (one.rate, one.cpu_per_pod, one.calls_per_pod("slurmctld")) == (5.0, 150.0, 3.0)


def test_a_server_that_was_not_called_has_no_calls() -> None:
    """A missing counter is no error."""
    assert turn().calls_per_pod("apiserver") == 0


def test_what_others_did_meanwhile_is_known() -> None:
    """Two and a half seconds of work, of which one and a half are explained, in two seconds."""
    assert turn().elsewhere == pytest.approx(0.5)


def test_ratios_are_taken_within_a_round() -> None:
    """A slow round is slow for both: the ratio of medians would say something else."""
    played = [turn("ours"), turn("raw"), turn("ours", seconds=4.0), turn("raw", seconds=8.0)]
    assert figures.ratios(played, "ours", "raw", rate) == [1.0, 2.0]


def test_a_round_that_was_cut_short_has_no_ratio() -> None:
    """Only one of the two has played."""
    assert figures.ratios([turn("ours")], "ours", "raw", rate) == []
    assert figures.differences([turn("ours")], "ours", "raw", rate) == []


def test_what_hooks_cost_is_told_beside_the_daemon_without_them() -> None:
    """In milliseconds of its own CPU per pod, round by round; the servers' CPU is not counted."""
    plain, hooked = OURS.name, ALL.name
    played = [turn(plain, cpu={plain: 0.04, "etcd": 1.0}), turn(hooked, cpu={hooked: 0.05, "etcd": 9.0})]
    played += [turn(plain, cpu={plain: 0.06, "etcd": 1.0}), turn(hooked, cpu={hooked: 0.09, "etcd": 9.0})]
    told = f"{hooked} - {plain}, ms of its own CPU per pod within a round: 2.00 (from 1.00 to 3.00)"
    assert told in report.table(played).splitlines()


def test_each_round_begins_with_another() -> None:
    """No contestant always has the cleanest cluster."""
    names = ["a", "b", "c"]
    assert [figures.order(names, round_) for round_ in range(4)] == [list("abc"), list("bca"), list("cab"), list("abc")]


def test_the_median_leaves_out_what_is_not_known() -> None:
    """And is nothing of nothing."""
    turns = [turn(cpu={"etcd": 1.0}), turn(cpu={}), turn(cpu={"etcd": 3.0})]
    assert figures.median(turns, lambda one: one.cpu.get("etcd")) == pytest.approx(2.0)
    assert figures.median(turns, lambda _: None) is None
