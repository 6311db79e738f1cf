"""What the benchmark of ends says of its figures."""

import pathlib
import types
from typing import Any

import pytest
from clusterbench import ends, figures
from clusterbench.contestants import OURS


def test_watching_is_shared_by_slurmctld_and_the_daemon() -> None:
    """What else runs does not count."""
    watch = ends.Watch(seconds=60, cpu={"slurmctld": 0.6, OURS.name: 0.9, "etcd": 9.0}, calls={})
    assert watch.share == 0.025
    assert "2.5 % of a processor" in str(watch)


def test_a_burst_tells_how_fast_its_ends_came() -> None:
    """The rate is that between the first and the last."""
    latency = figures.Percentiles.of([0.1, 0.2, 1.1])
    burst = ends.Burst(what="it", number=300, latency=latency, first=0.5, seconds=2.0, cpu={"etcd": 1.0}, calls={})
    assert "p50 200 ms" in str(burst)
    assert "200/s" in str(burst)


def test_a_job_is_over_when_slurm_does_not_call_it_alive() -> None:
    """Ended, or not known any more; it is not asked for again."""
    asked: list[str] = []
    answers = ['{"jobs":[{"job_id":"1","state":["RUNNING"]},{"job_id":"2","state":["CANCELLED"]}]}', '{"jobs":[]}']

    def call(_method: str, path: str) -> str:
        asked.append(path)
        return answers.pop(0)

    bed: Any = types.SimpleNamespace(slurm=types.SimpleNamespace(call=call))
    over = ends._Over(bed, {1: "a", 2: "b", 3: "c"})
    over.run()
    assert over.at.keys() == {"a", "b", "c"}
    assert over.at["b"] < over.at["a"]
    assert asked[1] == "/jobs/state/?job_id=1"


def _burst(p99: float) -> ends.Burst:
    latency = figures.Percentiles(p50=0.0, p95=0.0, p99=p99)
    return ends.Burst(what="", number=3, latency=latency, first=0.0, seconds=1.0, cpu={}, calls={})


def test_deletions_are_compared_with_those_that_the_servers_alone_need_as_long_for() -> None:
    """Whatever else the machine does slows both."""
    watch = ends.Watch(seconds=1, cpu={"slurmctld": 0.0, OURS.name: 0.0}, calls={})
    found = ends.Ends(
        running=9, bound_per_second=1.0, watch=watch, cancelled=_burst(3000), deleted=_burst(100), bare=_burst(2500)
    )
    assert found.ratio == 1.2


def test_too_few_running_pods_for_all_bursts_are_refused_at_once() -> None:
    """Before any pod is created."""
    nothing: Any = None
    with pytest.raises(ValueError, match="--running 8: at least 9, three times --ends"):
        ends.measure(nothing, 8, 3, 1.0, pathlib.Path())
