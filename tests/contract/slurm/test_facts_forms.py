"""How several equal pods are asked for: by task where Slurm counts tasks exactly, else by node."""

from typing import Any

import pytest
from slurm_desk import WHOLE_NODE, Desk, number

#: Four pods of two CPUs, 700 MiB and one GPU on each of two nodes: as one task a node.
BY_NODE: dict[str, Any] = {
    "partition": "gpu",
    "constraints": "v100",
    "tasks": 2,
    "cpus_per_task": 8,
    "minimum_nodes": 2,
    "maximum_nodes": 2,
    "memory_per_node": number(2800),
    "tres_per_node": "gres/gpu:4",
}
GUARD = {"mcs_label": ""}


def given(desk: Desk, job_id: int) -> list[tuple[int, int, int]]:
    """CPUs, memory and GPUs of each node."""
    cpus = desk.cpus(job_id)
    return [
        (cpus[name], node["mem_alloc"], sum(gres["count"] for gres in node["gres"]))
        for name, node in desk.resources(job_id).items()
    ]


# -- by task


def test_tasks_fill_a_node_and_go_on_with_the_next(slurm: Desk) -> None:
    """A hundred of one CPU on nodes of 64; each has its memory."""
    slurm.idle("plain", 2)
    job_id = slurm.running(tasks=100, memory_per_node=..., memory_per_cpu=number(50), constraints="plain")
    assert given(slurm, job_id) == [(64, 3200, 0), (36, 1800, 0)]


def test_memory_alone_can_be_what_fills_a_node(slurm: Desk) -> None:
    """Of three with 100 GB two share a node of 256 GB."""
    slurm.idle("plain", 2)
    job_id = slurm.running(tasks=3, memory_per_node=..., memory_per_cpu=number(100_000), constraints="plain")
    assert given(slurm, job_id) == [(2, 200_000, 0), (1, 100_000, 0)]


def test_memory_by_gpu_goes_with_gpus_by_task(slurm: Desk) -> None:
    """Twelve tasks with a GPU each: eight on the first node, and each has its memory."""
    slurm.idle("gpu", 2)
    job_id = slurm.running(
        partition="gpu",
        constraints="gpu",
        tasks=12,
        tres_per_task="gres/gpu:1",
        memory_per_node=...,
        memory_per_tres="gres/gpu:700",
    )
    assert given(slurm, job_id) == [(8, 5600, 8), (4, 2800, 4)]


def test_the_memory_of_a_threaded_core_is_rounded_once_for_all_tasks(slurm: Desk) -> None:
    """Three tasks of one CPU take four CPUs and their memory, two of three take six."""
    three = slurm.running(partition="smt", tasks=3, memory_per_node=..., memory_per_cpu=number(100))
    two = slurm.running(partition="smt", tasks=2, cpus_per_task=3, memory_per_node=..., memory_per_cpu=number(100))
    found = [node["mem_alloc"] for job_id in (three, two) for node in slurm.resources(job_id).values()]
    assert found == [400, 600]


def test_memory_by_cpu_of_a_whole_node_is_that_of_all_its_cpus(slurm: Desk) -> None:
    """Two tasks of 50 MB take 64 times 50; two of 100 GB are refused with 2014."""
    slurm.idle("plain")
    whole = {"tasks": 2, "memory_per_node": ..., "constraints": "plain", **WHOLE_NODE}
    assert given(slurm, slurm.running(memory_per_cpu=number(50), **whole)) == [(64, 3200, 0)]
    assert slurm.submit(memory_per_cpu=number(100_000), **whole).errors == [2014]


# -- by node


def test_one_task_a_node_has_what_all_of_its_pods_need(slurm: Desk) -> None:
    """Both nodes the same, also where GPUs have types, and all is given back."""
    nodes = slurm.idle("v100", 2)
    job_id = slurm.running(**BY_NODE)
    assert given(slurm, job_id) == [(8, 2800, 4), (8, 2800, 4)]
    slurm.delete(job_id)
    assert {slurm.node(name)["gres_used"] for name in nodes} == {"gpu:v100:0"}


def test_one_task_a_pod_has_the_gpus_elsewhere_than_the_cpus(slurm: Desk) -> None:
    """Eight tasks over two nodes with four GPUs each: fourteen CPUs here, two there."""
    slurm.idle("v100", 2)
    job_id = slurm.running(**BY_NODE | {"tasks": 8, "cpus_per_task": 2})
    assert given(slurm, job_id) == [(14, 2800, 4), (2, 2800, 4)]


def test_another_amount_by_node_is_an_update(slurm: Desk) -> None:
    """As long as the number of nodes stays."""
    slurm.idle("v100", 2)
    job_id = slurm.pending(hold=True, **BY_NODE)
    more = {"cpus_per_task": 12, "minimum_cpus": 24, "memory_per_node": number(4200), "tres_per_node": "gres/gpu:6"}
    changed = {**BY_NODE, **more, **GUARD}
    del changed["partition"]
    assert slurm.update(job_id, **changed).verdict == (200, [])
    assert slurm.job(job_id)["cpus"]["number"] == 24
    slurm.update(job_id, hold=False)
    assert given(slurm, slurm.started(job_id)) == [(12, 4200, 6), (12, 4200, 6)]


def test_another_number_of_nodes_leaves_too_many_cpus(slurm: Desk) -> None:
    """Slurm takes the old CPUs of a task for each new node, if that is more than what is said: a new job is better."""
    job_id = slurm.pending(hold=True, **BY_NODE)
    fewer = {"tasks": 1, "minimum_nodes": 1, "maximum_nodes": 1, "cpus_per_task": 6, "minimum_cpus": 6}
    changed = {**BY_NODE, **fewer, **GUARD}
    del changed["partition"]
    assert slurm.update(job_id, **changed).verdict == (200, [])
    assert slurm.job(job_id)["cpus"]["number"] == 8


def test_as_many_cpus_as_before_are_not_heard_when_the_tasks_change(slurm: Desk) -> None:
    """Four tasks of two become two of four, with two CPUs in all: an update has to be read back."""
    job_id = slurm.pending(hold=True, tasks=4, cpus_per_task=2)
    assert slurm.update(job_id, tasks=2, cpus_per_task=4, minimum_cpus=8, **GUARD).verdict == (200, [])
    assert slurm.job(job_id)["cpus"]["number"] == 2


# -- how many nodes


def test_with_tasks_per_node_each_node_gets_exactly_so_many(slurm: Desk) -> None:
    """Eight tasks on four nodes: two on each, where Slurm alone would give five, one, one and one."""
    slurm.idle("plain", 4)
    shape = {"tasks": 8, "minimum_nodes": 4, "maximum_nodes": 4, "constraints": "plain"}
    assert sorted(cpus for cpus, _, _ in given(slurm, slurm.running(**shape))) == [1, 1, 1, 5]
    assert [cpus for cpus, _, _ in given(slurm, slurm.running(tasks_per_node=2, **shape))] == [2, 2, 2, 2]


def test_a_node_has_cpus_for_all_tasks_per_node_also_where_fewer_come(slurm: Desk) -> None:
    """Four tasks on two nodes of three tasks each hold six CPUs."""
    slurm.idle("plain", 2)
    shape = {"tasks": 4, "minimum_nodes": 2, "maximum_nodes": 2, "tasks_per_node": 3, "constraints": "plain"}
    assert [cpus for cpus, _, _ in given(slurm, slurm.running(**shape))] == [3, 3]


def test_a_number_of_tasks_per_node_can_be_changed_and_not_taken_away(slurm: Desk) -> None:
    """Slurm refuses zero."""
    shape = {"tasks": 8, "minimum_nodes": 4, "maximum_nodes": 4}
    job_id = slurm.pending(hold=True, tasks_per_node=2, constraints="plain", **shape)
    changed = {"tasks": 8, "minimum_cpus": 8, "minimum_nodes": 2, "maximum_nodes": 2}
    assert slurm.update(job_id, tasks_per_node=4, **changed, **GUARD).verdict == (200, [])
    assert slurm.update(job_id, tasks_per_node=0, **GUARD).verdict[1] == [2069]


@pytest.mark.parametrize("least", [1, 2])
def test_between_a_minimum_and_a_maximum_few_nodes_can_be_preferred(slurm: Desk, least: int) -> None:
    """Eight tasks on one to three nodes take three; with PREFER_MINIMUM_NODE_COUNT as few as they may."""
    slurm.idle("plain", 3)
    between = {"tasks": 8, "minimum_nodes": least, "maximum_nodes": 3, "constraints": "plain"}
    assert len(slurm.resources(slurm.running(**between))) == 3
    few = ["EXTERNAL_JOB", "PREFER_MINIMUM_NODE_COUNT"]
    assert len(slurm.resources(slurm.running(flags=few, **between))) == least


def test_a_maximum_of_a_waiting_job_can_be_raised(slurm: Desk) -> None:
    """Three whole nodes wait for ever on one at most, and start on three."""
    slurm.idle("plain", 3)
    few = ["EXTERNAL_JOB", "PREFER_MINIMUM_NODE_COUNT"]
    shape = {"tasks": 3, "cpus_per_task": 40, "minimum_nodes": 1, "constraints": "plain"}
    job_id = slurm.pending(hold=True, maximum_nodes=1, flags=few, **shape)
    assert slurm.update(job_id, maximum_nodes=3, minimum_cpus=120, **shape, **GUARD).verdict == (200, [])
    slurm.update(job_id, hold=False)
    assert len(slurm.resources(slurm.started(job_id))) == 3
