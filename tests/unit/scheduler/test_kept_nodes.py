"""Which nodes are kept: those that hold all tasks once they are empty, the least used first."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.model.job import Memory, MemoryPer
from slurm_bridge.scheduler.reservations import choice
from slurm_bridge.translate import resources
from tests.unit.hooks.builders import node, partition, pod, shape, slurm_node
from tests.unit.mirror.watching import view

#: Nodes of 16 cpus and 64 000 MiB, of which so many cpus are used.
USED = {"n1": 8, "n2": 0, "n3": 16, "n4": 4}


def seen(used: dict[str, int] | None = None, **fields: Any) -> ClusterSnapshot:
    """The nodes of one partition."""
    chosen = USED if used is None else used
    keeper = ClusterCache(resources.requests_of)
    for name in chosen:
        keeper.on_node(None, node(name))
    nodes = [slurm_node(name, used_cpus=cpus, **fields) for name, cpus in chosen.items()]
    keeper.set_slurm(nodes, [partition("debug", *chosen)])
    return keeper.snapshot()


def job(**fields: Any) -> Any:
    """A job of one task of ten cpus that waits in that partition."""
    usual = {"partition": "debug", "tasks": 1, "cpus_per_task": 10, "minimum_nodes": 1, "maximum_nodes": None}
    return dataclasses.replace(view(), **{**usual, **fields})


def task(**fields: Any) -> choice.TaskNeeds:
    """Of one small pod for each task of the job."""
    asked = job(**fields)
    return choice.task([shape(*(pod(f"p{number}") for number in range(asked.tasks)))], asked)


def chosen(snapshot: ClusterSnapshot | None = None, **fields: Any) -> tuple[str, ...]:
    """Of all nodes."""
    known = snapshot or seen()
    return choice.choose(task(**fields), job(**fields), known.nodes.values())


def test_the_least_used_node_is_the_first_to_be_free() -> None:
    """Also where another one is free of it already."""
    assert chosen() == ("n2",)
    assert chosen(seen({"n1": 12, "n3": 8})) == ("n3",)


def test_as_many_as_hold_all_tasks() -> None:
    """One task of ten cpus fits on each."""
    assert chosen(tasks=3) == ("n1", "n2", "n4")
    assert chosen(tasks=3, cpus_per_task=8) == ("n2", "n4")
    assert chosen(tasks=5) == ()


def test_as_many_as_are_asked_for() -> None:
    """A minimum is kept; with a maximum each has to take its part."""
    assert len(chosen(tasks=3, cpus_per_task=4, minimum_nodes=3)) == 3
    assert chosen(tasks=4, cpus_per_task=8, minimum_nodes=2, maximum_nodes=2) == ("n2", "n4")
    assert chosen(tasks=4, cpus_per_task=10, minimum_nodes=2, maximum_nodes=2) == ()


def test_a_node_that_was_kept_in_vain_comes_last() -> None:
    """Not out of the question."""
    every = seen().nodes.values()
    assert choice.choose(task(), job(), every, last={"n2"}) == ("n4",)
    assert choice.choose(task(), job(), every, last=set(USED)) == ("n2",)


def test_of_equal_nodes_the_one_whose_jobs_end_first() -> None:
    """One of which that is not known comes after those; equal ones by name."""
    every = seen({"n1": 4, "n2": 4, "n3": 4}).nodes.values()
    assert choice.choose(task(), job(), every, ends={"n2": 200, "n3": 100}) == ("n3",)
    assert choice.choose(task(), job(), every, ends={"n2": 200}) == ("n2",)
    assert choice.choose(task(), job(), every) == ("n1",)


@pytest.mark.parametrize("words", ["DOWN", "DRAIN IDLE", "IDLE RESERVED", "IDLE NOT_RESPONDING"])
def test_nodes_on_which_nothing_starts_are_left_out(words: str) -> None:
    """Whatever leaves them."""
    assert chosen(seen(states=f"{words} EXTERNAL")) == ()


def test_what_slurm_does_not_know_of_is_never_free() -> None:
    """A pod of another scheduler takes room in Kubernetes; a pod that Slurm has placed will leave."""
    (facts,) = seen({"n1": 0}).nodes.values()
    large = choice.task([shape(pod(requests={"cpu": "12"}))], job())
    used = resources.requests_of(pod(requests={"cpu": "8"}))
    stranger = dataclasses.replace(facts, used=used, placed={})
    ours = dataclasses.replace(facts, used=used, placed=used)
    assert [choice.room(large, one) for one in (facts, stranger, ours)] == [1, 0, 1]


def test_a_task_may_be_several_pods() -> None:
    """Of four pods on two nodes with two tasks, each is two pods; what the job asks for is the least."""
    pods = [pod(f"p{number}", requests={"cpu": "3"}) for number in range(4)]
    made = choice.task([shape(*pods)], job(tasks=2, cpus_per_task=7, memory=Memory(mib=9000)))
    assert (made.needs.cpus, made.needs.memory_mib, made.amounts["cpu"]) == (7, 9000, 6)
    by_cpu = choice.task([shape(*pods)], job(tasks=4, cpus_per_task=1, memory=Memory(mib=9000, per=MemoryPer.CPU)))
    assert (by_cpu.needs.memory_mib, by_cpu.amounts["cpu"]) == (512, 3)


def test_a_job_comes_to_the_nodes_of_its_partition_that_it_names_or_does_not_exclude() -> None:
    """As Slurm has been asked last."""
    snapshot = seen()
    assert choice.allowed(job(), snapshot) == USED.keys()
    assert choice.allowed(job(excluded="n[1-2]"), snapshot) == {"n3", "n4"}
    assert choice.allowed(job(required_nodes=("n1", "n2", "n9")), snapshot) == {"n1", "n2"}


@given(
    used=st.dictionaries(st.sampled_from([f"n{number}" for number in range(9)]), st.integers(0, 16)),
    tasks=st.integers(1, 12),
    cpus=st.integers(1, 16),
    least=st.integers(1, 4),
)
def test_what_is_chosen_holds_all_and_nothing_in_it_is_too_much(
    used: dict[str, int], tasks: int, cpus: int, least: int
) -> None:
    """Without the last one it would not be enough, whatever order they come in."""
    least = min(least, tasks)
    fields = {"tasks": tasks, "cpus_per_task": cpus, "minimum_nodes": least}
    known = seen(used).nodes
    one = task(**fields)
    found = choice.choose(one, job(**fields), known.values())
    assert found == choice.choose(one, job(**fields), list(reversed(known.values())))

    def room(names: tuple[str, ...]) -> int:
        return sum(choice.room(one, known[name]) for name in names)

    if found:
        assert room(found) >= tasks
        assert len(found) >= least
        assert len(found) == least or room(found) - min(choice.room(one, known[name]) for name in found) < tasks
    else:
        every: list[NodeFacts] = list(known.values())
        assert sum(choice.room(one, facts) for facts in every) < tasks or len(every) < least
