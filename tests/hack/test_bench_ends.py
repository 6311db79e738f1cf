"""What the benchmark of ends says of its figures."""

import types
from typing import Any

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
