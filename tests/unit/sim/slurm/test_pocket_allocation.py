"""Which nodes and how much of them a job gets."""

from typing import Any

import pytest
from pocket_desk import Desk


@pytest.mark.parametrize(
    ("fields", "spread"),
    [
        ({}, {"ext001": 1}),
        ({"tasks": 8}, {"ext016": 8}),
        ({"tasks": 130}, {"ext001": 64, "ext002": 64, "ext003": 2}),
        ({"tasks": 8, "minimum_nodes": 4}, {"ext001": 5, "ext002": 1, "ext003": 1, "ext004": 1}),
        ({"tasks": 4, "maximum_nodes": 4}, {"ext001": 1, "ext002": 1, "ext003": 1, "ext004": 1}),
        ({"tasks": 1, "maximum_nodes": 2}, {"ext001": 1, "ext002": 0}),
        ({"tasks": 8, "nodes": "2"}, {"ext001": 7, "ext002": 1}),
        ({"tasks": 2, "cpus_per_task": 40}, {"ext001": 40, "ext002": 40}),
        ({"tasks": ..., "minimum_cpus": 100}, {"ext001": 64, "ext002": 36}),
        ({"tasks": 3, "required_nodes": ["ext[003-005]"]}, {"ext003": 1, "ext004": 1, "ext005": 1}),
        ({"tasks": 4, "required_nodes": ["ext003"], "nodes": "2"}, {"ext001": 1, "ext003": 3}),
        ({"tasks": 9, "required_nodes": ["ext003,ext004", "ext005"], "nodes": "1-2"}, {"ext003": 8, "ext004": 1}),
        ({"tasks": 4, "required_nodes": ["ext003", "ext004"], "minimum_nodes": 1}, {"ext003": 4}),
        ({"excluded_nodes": ["ext[001-004]"]}, {"ext005": 1}),
        ({"constraints": "rack2"}, {"ext006": 1}),
        ({"constraints": "rack1&block2"}, {"ext005": 1}),
        ({"constraints": "(rack2|rack3)&gpu"}, {"ext007": 1}),
        ({"constraints": "[rack2|rack3]", "tasks": 6, "minimum_nodes": 6}, None),
        ({"constraints": "[rack1*1&rack2*1]"}, {"ext001": 1}),
        ({"partition": "mapped,debug"}, {"ext019": 1}),
        ({"partition": "smt", "tasks": 3}, {"ext017": 4}),
        ({"partition": "smt", "tasks": 70}, {"ext017": 64, "ext018": 6}),
        ({"partition": "exclusive"}, {"ext001": 64}),
        ({"shared": ["none"]}, {"ext001": 64}),
    ],
)
def test_the_table_of_spreads(slurm: Desk, fields: dict[str, Any], spread: dict[str, int] | None) -> None:
    """Each as seen on a real cluster of the same shape, without a reservation."""
    slurm.control.unreserve("held")
    job_id = slurm.pending(**fields)
    slurm.slurm.tick()
    assert (slurm.spread(job_id) if slurm.state(job_id) == "RUNNING" else None) == spread


def test_memory_is_counted_as_asked(slurm: Desk) -> None:
    """Per node, per cpu (cores count twice with two threads), per GPU, or the whole node."""
    per_cpu = {"memory_per_node": ..., "memory_per_cpu": 500}
    per_gpu = {"memory_per_node": ..., "memory_per_tres": "gres/gpu:1000", "tres_per_node": "gres/gpu:2"}
    asks = [{}, per_cpu, {"partition": "smt", **per_cpu}, {"partition": "gpu", **per_gpu}, {"memory_per_node": ...}]
    jobs = [slurm.control.job(slurm.running(**ask)) for ask in asks]
    assert [job.grant.shares[0].memory_mib for job in jobs if job.grant] == [100, 500, 1000, 2000, 256_000]


def test_memory_can_be_what_is_missing(slurm: Desk) -> None:
    """Cpus are left, memory is not."""
    placed = {"partition": "smt", "required_nodes": ["ext017"], "memory_per_node": 200_000}
    slurm.running(**placed)
    assert slurm.reason(slurm.pending(**placed)) == "Resources"


def test_gpus_are_drawn_by_type(slurm: Desk) -> None:
    """No type takes any, a type only its own; an exclusive job takes all."""
    untyped = slurm.running(partition="gpu", tres_per_node="gres/gpu:2")
    typed = slurm.running(partition="gpu", tres_per_node="gres/gpu:v100:3")
    whole = slurm.running(partition="exclusive", required_nodes=["ext015"])
    details = [slurm.job(job_id)["gres_detail"] for job_id in (untyped, typed, whole)]
    assert details == [["gpu(CNT:2)"], ["gpu:v100(CNT:3)"], ["gpu:a100(CNT:8)"]]
    assert slurm.node("ext013")["gres_used"] == "gpu:v100:3"


@pytest.mark.parametrize("field", ["tres_per_task", "tres_per_job"])
def test_typed_gpus_leak(slurm: Desk, field: str) -> None:
    """Counted as 0, and not given back before a reconfigure."""
    job_id = slurm.running(partition="gpu", required_nodes=["ext013"], **{field: "gres/gpu:2"})
    (share,) = slurm.call("GET", f"resources/{job_id}").body["nodes"]
    assert [part["count"] for part in share["gres"]] == [0]
    slurm.cancel(job_id)
    waiting = slurm.pending(partition="gpu", required_nodes=["ext013"], tres_per_node="gres/gpu:8")
    assert slurm.reason(waiting) == "Resources"
    slurm.control.reconfigure()
    slurm.slurm.tick()
    assert slurm.state(waiting) == "RUNNING"


def test_untyped_gpus_per_task_are_counted_and_returned(slurm: Desk) -> None:
    """Eight tasks fill one node, and it is free again afterwards."""
    job_id = slurm.running(partition="gpu", tasks=8, tres_per_task="gres/gpu:1", constraints="gpu")
    (node,) = slurm.spread(job_id)
    assert slurm.node(node)["gres_used"] == "gpu:8"
    slurm.cancel(job_id)
    assert slurm.node(node)["gres_used"] == "gpu:0"
    assert slurm.node(node)["state"] == ["IDLE", "EXTERNAL"]


def test_licenses_are_shared_by_all(slurm: Desk) -> None:
    """A job that fits waits for Licenses, and starts when they come back."""
    first = slurm.running(licenses="ansys:2")
    second = slurm.pending(licenses="ansys")
    assert slurm.reason(second) == "Licenses"
    slurm.cancel(first)
    slurm.slurm.tick()
    assert slurm.state(second) == "RUNNING"


def test_blocks_bind(slurm: Desk) -> None:
    """Two nodes stand in one block or are refused; more than a block holds may stand in several."""
    assert slurm.submit(partition="blocks", nodes="2", tasks=2, required_nodes=["ext001", "ext016"]).errors == [2014]
    assert slurm.submit(partition="blocks", nodes="5", tasks=5, segment_size=2).errors == [2178]
    pair = slurm.running(partition="blocks", nodes="2", tasks=2)
    assert len({slurm.control.node(name).block for name in slurm.spread(pair)}) == 1
    assert len(slurm.spread(slurm.running(partition="blocks", minimum_nodes=8, tasks=8))) == 8
