"""What Slurm has given to jobs of anybody counts like what pods request: a node full of native jobs is not empty."""

import pytest

from slurm_bridge.families.kube_scheduler.priorities import table
from slurm_bridge.families.kube_scheduler.priority_chain import Prioritizer
from slurm_bridge.model.slurmnode import SlurmNode
from tests.unit.families.kube_scheduler.scoring import asking, by_name, machine, run, there

ROOM = {"cpu": "10", "memory": "10240Mi"}


def scores(name: str, *, used_cpus: int, used_memory_mib: int) -> dict[str, int]:
    """Of a node with these jobs, one with a pod of half of it, and an empty one."""
    pod = asking("there", {"cpu": "5", "memory": "5120Mi"}, node="pods")
    keeper = there([machine(one, **ROOM) for one in ("jobs", "pods", "empty")], [pod])
    machines = [SlurmNode(name=one, states=frozenset({"IDLE"}), cpus=10, memory_mib=10240) for one in ("pods", "empty")]
    busy = SlurmNode(
        name="jobs",
        states=frozenset({"MIXED"}),
        cpus=10,
        memory_mib=10240,
        used_cpus=used_cpus,
        used_memory_mib=used_memory_mib,
    )
    keeper.set_slurm([*machines, busy], ())
    made = Prioritizer([table.configured(name)])
    return by_name(run(made, keeper.snapshot(), asking("new", {"cpu": "1", "memory": "1024Mi"})))


@pytest.mark.parametrize("name", ["LeastRequested", "MostRequested", "LeastAllocated", "MostAllocated"])
def test_jobs_count_like_pods(name: str) -> None:
    """Of the same size they make a node just as good."""
    found = scores(name, used_cpus=5, used_memory_mib=5120)
    assert found["jobs"] == found["pods"] != found["empty"]


def test_what_is_more_counts() -> None:
    """Our pods are known to both sides, and must not count twice."""
    found = scores("LeastRequested", used_cpus=0, used_memory_mib=0)
    assert found["jobs"] == found["empty"] > found["pods"]
