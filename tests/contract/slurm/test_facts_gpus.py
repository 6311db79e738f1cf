"""GPUs of external nodes: what is counted, and where the count is lost."""

from typing import Any

import pytest
from slurm_desk import WHOLE_NODE, Desk


def gres(desk: Desk, job_id: int) -> list[tuple[str, str, int]]:
    """Name, type and count of the one node of a job."""
    (node,) = desk.resources(job_id).values()
    return [(found["name"], found["type"], found["count"]) for found in node["gres"]]


def test_untyped_gpus_per_node_are_counted(slurm: Desk) -> None:
    """The resources name the GPUs with an empty type."""
    job_id = slurm.running(partition="gpu", constraints="gpu", tres_per_node="gres/gpu:2")
    assert gres(slurm, job_id) == [("gpu", "", 2)]
    assert slurm.job(job_id)["gres_detail"] == ["gpu(CNT:2)"]


def test_untyped_gpus_per_task_are_counted(slurm: Desk) -> None:
    """Without types, a request per task is counted too."""
    job_id = slurm.running(partition="gpu", constraints="gpu", tasks=2, tres_per_task="gres/gpu:1", nodes="1")
    assert gres(slurm, job_id) == [("gpu", "", 2)]


def test_typed_gpus_per_node_are_counted(slurm: Desk) -> None:
    """A request without a type is answered with the type of the node."""
    job_id = slurm.running(partition="gpu", constraints="v100", tres_per_node="gres/gpu:2")
    assert gres(slurm, job_id) == [("gpu", "v100", 2)]


def test_a_type_chooses_the_node(slurm: Desk) -> None:
    """Only nodes with that type will do."""
    job_id = slurm.running(partition="gpu", tres_per_node="gres/gpu:a100:3")
    assert gres(slurm, job_id) == [("gpu", "a100", 3)]
    assert slurm.job(job_id)["nodes"] in slurm.machines("a100")


def test_a_whole_typed_node_is_counted(slurm: Desk) -> None:
    """An exclusive job is safe whatever its request counts for."""
    job_id = slurm.running(partition="gpu", constraints="a100", tasks=2, tres_per_task="gres/gpu:1", **WHOLE_NODE)
    assert gres(slurm, job_id) == [("gpu", "a100", 8)]


def test_used_gpus_are_counted_by_the_node(slurm: Desk) -> None:
    """The node's `gres_used` follows, and is zero when the job is over."""
    (node,) = slurm.idle("v100")
    job_id = slurm.running(partition="gpu", required_nodes=[node], tres_per_node="gres/gpu:v100:2")
    assert slurm.node(node)["gres_used"] == "gpu:v100:2"
    slurm.delete(job_id)
    assert slurm.node(node)["gres_used"] == "gpu:v100:0"


@pytest.mark.disruptive
def test_typed_gpus_per_task_or_job_leak(slurm: Desk) -> None:
    """On a typed node they are counted as 0 and not given back: a job for all of them waits until a reconfigure."""
    nodes = slurm.idle("v100", 2)
    requests: tuple[dict[str, Any], ...] = ({"tasks": 2, "tres_per_task": "gres/gpu:1"}, {"tres_per_job": "gres/gpu:2"})
    for node, fields in zip(nodes, requests, strict=True):
        leaking = slurm.running(partition="gpu", required_nodes=[node], **fields)
        assert gres(slurm, leaking) == [("gpu", "v100", 0)]
        assert slurm.node(node)["gres_used"] == "gpu:v100:0"
        slurm.delete(leaking)
    waiting = [slurm.pending(partition="gpu", required_nodes=[node], tres_per_node="gres/gpu:8") for node in nodes]
    slurm.running(partition="gpu", constraints="gpu")
    assert [slurm.state(job_id) for job_id in waiting] == [{"PENDING"}, {"PENDING"}]
    slurm.reconfigure()
    for job_id in waiting:
        slurm.started(job_id)
