"""What an update changes, what it refuses, and what it breaks."""

from typing import Any

import pytest
from pocket_desk import Desk

GUARD = {"mcs_label": ""}


def sizes(slurm: Desk, job_id: int) -> tuple[int, int, int]:
    """Tasks, cpus, nodes as shown."""
    shown = slurm.job(job_id)
    return tuple(shown[name]["number"] for name in ("tasks", "cpus", "node_count"))  # type: ignore[return-value]


def test_a_guarded_update_leaves_a_running_job_alone(slurm: Desk) -> None:
    """2073, and nothing has changed."""
    job_id = slurm.running(tasks=4, minimum_nodes=2)
    before = slurm.control.job(job_id)
    assert slurm.update(job_id, required_nodes=["ext001"], comment="x", **GUARD).errors == [2073]
    assert slurm.control.job(job_id) == before


@pytest.mark.parametrize("fields", [{"required_nodes": ["ext002"], "constraints": "plain"}, {"nodes": "1"}])
def test_an_unguarded_update_shrinks_a_running_job(slurm: Desk, fields: dict[str, Any]) -> None:
    """Even where it is refused; the released node goes NOT_RESPONDING until a reconfigure."""
    job_id = slurm.running(tasks=2, required_nodes=["ext001", "ext002"])
    answer = slurm.update(job_id, **fields)
    assert answer.errors == ([2073] if "constraints" in fields else [])
    (kept,) = slurm.spread(job_id)
    (lost,) = {"ext001", "ext002"} - {kept}
    assert kept == ("ext002" if "constraints" in fields else "ext001")
    assert "NOT_RESPONDING" in slurm.node(lost)["state"]
    slurm.call("GET", "reconfigure/")
    assert "NOT_RESPONDING" not in slurm.node(lost)["state"]


@pytest.mark.parametrize("name", ["account", "constraints", "excluded_nodes", "tasks", "tres_per_node", "wckey"])
def test_a_running_job_is_no_longer_pending(slurm: Desk, name: str) -> None:
    """2073 without the guard, too, but only as far as these go."""
    values: dict[str, Any] = {"excluded_nodes": ["ext009"], "tasks": 2}
    assert slurm.update(slurm.running(), **{name: values.get(name, "x")}).errors == [2073]


def test_a_running_job_takes_notes(slurm: Desk) -> None:
    """Comments, name, nice, limit and priority."""
    job_id = slurm.running()
    assert (
        slurm.update(job_id, comment="c", admin_comment="a", name="n", priority={"set": True, "number": 7}).errors == []
    )
    shown = slurm.job(job_id)
    assert (shown["comment"], shown["admin_comment"], shown["name"]) == ("c", "a", "n")
    assert slurm.update(job_id, memory_per_node=50).errors == [2036]


def test_an_ended_or_unknown_job_takes_none(slurm: Desk) -> None:
    """2084 and 2017."""
    job_id = slurm.pending()
    slurm.cancel(job_id)
    assert slurm.update(job_id, comment="x").errors == [2084]
    assert slurm.update(999, comment="x").errors == [2017]


def test_node_lists_clear_by_an_empty_name(slurm: Desk) -> None:
    """`[""]` clears, `[]` does nothing."""
    job_id = slurm.pending(hold=True, required_nodes=["ext001"], excluded_nodes=["ext003"])
    slurm.update(job_id, required_nodes=[], excluded_nodes=[])
    assert (slurm.job(job_id)["required_nodes"], slurm.job(job_id)["excluded_nodes"]) == ("ext001", "ext003")
    slurm.update(job_id, required_nodes=[""], excluded_nodes=[""])
    assert (slurm.job(job_id)["required_nodes"], slurm.job(job_id)["excluded_nodes"]) == ("", "")


def test_cpus_follow_tasks_alone(slurm: Desk) -> None:
    """Tasks recompute cpus as one each, cpus_per_task leaves them, a node count multiplies, minimum_cpus says it."""
    job_id = slurm.pending(hold=True, tasks=4, cpus_per_task=2)
    assert sizes(slurm, job_id) == (4, 8, 1)
    slurm.update(job_id, tasks=6)
    assert sizes(slurm, job_id) == (6, 6, 1)
    slurm.update(job_id, cpus_per_task=3)
    assert sizes(slurm, job_id) == (6, 6, 1)
    slurm.update(job_id, minimum_cpus=12)
    assert sizes(slurm, job_id) == (6, 12, 1)
    slurm.update(job_id, minimum_nodes=2, maximum_nodes=3)
    assert sizes(slurm, job_id) == (6, 18, 2)


def test_a_deleted_node_blocks_every_update(slurm: Desk) -> None:
    """2018, also for the update that would repair the list."""
    slurm.call("POST", "new/node/", {"node_conf": "NodeName=gone[1-2] CPUs=4 RealMemory=4000 State=EXTERNAL"})
    job_id = slurm.pending(hold=True, excluded_nodes=["gone1"])
    slurm.call("DELETE", "node/gone1")
    assert slurm.update(job_id, comment="x").errors == [2018]
    assert slurm.update(job_id, excluded_nodes=[""]).errors == [2018]


@pytest.mark.parametrize(
    ("fields", "number"),
    [
        ({"partition": "nowhere"}, 2000),
        ({"partition": "batch"}, 11),
        ({"account": "other"}, 11),
        ({"required_nodes": ["nowhere"]}, 2018),
        ({"constraints": "nothing"}, 2029),
        ({"licenses": "nothing:1"}, 2048),
        ({"tres_per_node": "gpu:1"}, 2115),
        ({"user_id": "alice"}, 2010),
        ({"tasks": "abc"}, 9000),
    ],
)
def test_refusals_of_a_pending_job(slurm: Desk, fields: dict[str, Any], number: int) -> None:
    """Each changes nothing."""
    job_id = slurm.pending(partition="closed")
    before = slurm.control.job(job_id)
    assert slurm.update(job_id, comment="x", **fields).errors == [number]
    assert slurm.control.job(job_id) == before


def test_hold_is_priority_zero(slurm: Desk) -> None:
    """An operator's hold says so, a held job takes no priority, and a release computes it anew."""
    job_id = slurm.pending(partition="closed", nice=-5)
    slurm.update(job_id, priority={"set": True, "number": 0})
    assert (slurm.job(job_id)["hold"], slurm.job(job_id)["state_reason"]) == (True, "JobHeldAdmin")
    assert slurm.update(job_id, priority={"set": True, "number": 9}).errors == [2042]
    slurm.update(job_id, hold=False)
    assert (slurm.job(job_id)["hold"], slurm.job(job_id)["priority"]["number"]) == (False, 5)


def test_a_plain_user_changes_only_their_own(slurm: Desk) -> None:
    """2010 for another's job, 2002 for an operator's field."""
    other, own = slurm.pending(hold=True), slurm.pending(hold=True, user_id="alice")

    def errors(job_id: int, **fields: str) -> list[int]:
        return slurm.call("POST", f"job/{job_id}", fields, token="pocket-alice-token").errors

    assert errors(other, comment="x") == [2010]
    assert errors(own, admin_comment="x") == [2002]
    assert errors(own, comment="x") == []
