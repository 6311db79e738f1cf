"""What an update changes, what guards it, and what it must not be sent to."""

from typing import Any

import pytest
from slurm_desk import HELD, NEVER_USED, Desk, number, value

from slurm_bridge.model import hostlist

#: Checked before anything is applied: refused once the job is no longer pending.
GUARD = {"mcs_label": ""}


def shape(desk: Desk, job_id: int) -> tuple[Any, ...]:
    """Tasks, CPUs per task, CPUs, fewest nodes, most nodes."""
    job = desk.job(job_id)
    return tuple(value(job[name]) for name in ("tasks", "cpus_per_task", "cpus", "node_count", "max_nodes"))


def test_a_pending_job_changes(each: Desk) -> None:
    """With the guard, the fields of a held job are what was sent."""
    job_id = each.held()
    fields = {"comment": "changed", "constraints": "v100", "time_limit": number(9), "admin_comment": "ours"}
    assert each.update(job_id, **GUARD, **fields).verdict == (200, [])
    job = each.job(job_id)
    assert (job["comment"], job["features"], job["admin_comment"]) == ("changed", "v100", "ours")
    assert value(job["time_limit"]) == 9


def test_name_and_licenses_change_too(each: Desk) -> None:
    """They are part of what an update may carry."""
    job_id = each.held()
    each.update(job_id, name=f"{each.job_name}-renamed", licenses="matlab:1")
    job = each.job(job_id)
    assert (job["name"], job["licenses"]) == (f"{each.job_name}-renamed", "matlab:1")


def test_an_empty_list_changes_nothing(each: Desk) -> None:
    """`[]` leaves a node list as it is."""
    one, two = each.idle("plain", 2)
    job_id = each.held(required_nodes=[one], excluded_nodes=[two])
    assert each.update(job_id, **GUARD, required_nodes=[], excluded_nodes=[]).verdict == (200, [])
    assert (each.job(job_id)["required_nodes"], each.job(job_id)["excluded_nodes"]) == (one, two)


def test_a_list_with_an_empty_name_clears(each: Desk) -> None:
    """`[""]` removes a node list."""
    one, two = each.idle("plain", 2)
    job_id = each.held(required_nodes=[one], excluded_nodes=[two])
    assert each.update(job_id, **GUARD, required_nodes=[""], excluded_nodes=[""]).verdict == (200, [])
    assert (each.job(job_id)["required_nodes"], each.job(job_id)["excluded_nodes"]) == ("", "")


def test_node_lists_are_replaced(each: Desk) -> None:
    """The new list stands in place of the old one."""
    one, two = each.idle("plain", 2)
    job_id = each.held(required_nodes=[one])
    each.update(job_id, **GUARD, required_nodes=[two])
    assert hostlist.expand(each.job(job_id)["required_nodes"]) == (two,)


def test_tasks_alone_forget_the_cpus_per_task(each: Desk) -> None:
    """The number of CPUs becomes one per task."""
    job_id = each.held(tasks=2, cpus_per_task=3)
    each.update(job_id, tasks=4)
    assert shape(each, job_id)[:3] == (4, 3, 4)


def test_cpus_per_task_alone_leave_the_cpus(each: Desk) -> None:
    """The number of CPUs stays as it was."""
    job_id = each.held(tasks=4)
    each.update(job_id, cpus_per_task=3)
    assert shape(each, job_id)[:3] == (4, 3, 4)


def test_minimum_cpus_set_the_cpus(each: Desk) -> None:
    """Sent beside tasks and CPUs per task, they make the number of CPUs right."""
    job_id = each.held(tasks=4)
    each.update(job_id, tasks=2, cpus_per_task=3, minimum_cpus=6)
    assert shape(each, job_id)[:3] == (2, 3, 6)


def test_memory_changes_what_it_counts_for(each: Desk) -> None:
    """Memory per CPU takes the place of memory per node."""
    job_id = each.held()
    each.update(job_id, memory_per_cpu=number(300))
    job = each.job(job_id)
    assert (value(job["memory_per_cpu"]), value(job["memory_per_node"])) == (300, None)


def test_an_unknown_node_is_refused(each: Desk) -> None:
    """422 with 2018, and nothing changed."""
    job_id = each.held()
    assert each.update(job_id, comment="x", required_nodes=["nowhere"]).verdict == (422, [2018])
    assert each.job(job_id)["comment"] == ""


def test_the_guard_refuses_once_the_job_runs(slurm: Desk) -> None:
    """422 with 2073 in every version, and nothing of the update is applied."""
    one, two = slurm.idle("plain", 2)
    job_id = slurm.running(required_nodes=[one])
    for version in ("v0.0.43", "v0.0.44", "v0.0.45"):
        answer = slurm.at(version).update(job_id, **GUARD, comment="changed", required_nodes=[two])
        assert answer.verdict == (422, [2073])
    job = slurm.job(job_id)
    assert (job["comment"], job["required_nodes"], job["nodes"]) == ("", one, one)


def test_a_guarded_update_races_with_the_start(slurm: Desk) -> None:
    """Each job is moved (200) or was too quick (2073), and runs exactly where the answer says."""
    one, two = slurm.idle("plain", 2)
    jobs = [slurm.held(required_nodes=[one]) for _ in range(12)]
    for job_id in jobs:
        slurm.update(job_id, hold=False)
    answers = {job_id: str(slurm.update(job_id, **GUARD, required_nodes=[two]).verdict) for job_id in jobs}
    expected = {"(200, [])": two, "(422, [2073])": one}
    assert set(answers.values()) <= expected.keys()
    found = {job_id: slurm.job(slurm.started(job_id))["nodes"] for job_id in jobs}
    assert found == {job_id: expected[answer] for job_id, answer in answers.items()}


def test_the_guard_is_the_jobs_own_label(slurm: Desk) -> None:
    """An empty label leaves a label as it is, and guards all the same."""
    job_id = slurm.held(mcs_label="blue")
    assert slurm.update(job_id, **GUARD, comment="changed").verdict == (200, [])
    assert slurm.job(job_id)["mcs_label"] == "blue"


def test_comments_of_a_running_job_change(slurm: Desk) -> None:
    """Without the guard they do, and nothing else is touched."""
    job_id = slurm.running()
    before = slurm.resources(job_id)
    assert slurm.update(job_id, comment="c", admin_comment="a").verdict == (200, [])
    assert (slurm.job(job_id)["comment"], slurm.job(job_id)["admin_comment"]) == ("c", "a")
    assert slurm.resources(job_id) == before


@pytest.mark.parametrize(
    ("number_", "fields"),
    [
        (2073, {"cpus_per_task": 2, "tasks": 1}),
        (2073, {"minimum_cpus": 2, "maximum_cpus": 2}),
        (2073, {"tasks": 2}),
        (2036, {"memory_per_node": number(200)}),
        (2036, {"memory_per_node": number(50)}),
    ],
)
def test_what_a_running_job_holds_stays(slurm: Desk, number_: int, fields: dict[str, Any]) -> None:
    """More cpus: 2073; more or less memory: 2036, both as 422. The job holds what it held, and its node is well."""
    job_id = slurm.running()
    before, (node,) = slurm.resources(job_id), slurm.resources(job_id)
    assert slurm.update(job_id, **fields).verdict == (422, [number_])
    assert slurm.resources(job_id) == before
    assert "NOT_RESPONDING" not in slurm.node(node)["state"]


def test_an_ended_job_is_refused(each: Desk) -> None:
    """422 with 2084, with and without the guard: a last note has to come before the cancel."""
    job_id = each.held()
    each.delete(job_id)
    assert each.update(job_id, admin_comment="x").verdict == (422, [2084])
    assert each.update(job_id, **GUARD).verdict == (422, [2084])


def test_an_unknown_job_is_refused(each: Desk) -> None:
    """404 with 2017."""
    assert each.update(NEVER_USED, comment="x").verdict == (404, [2017])


def test_an_account_change_is_unpredictable_without_accounting(each: Desk) -> None:
    """It succeeds, or fails with 500 and a system's error number, for no reason that is visible to a client."""
    answer = each.update(each.held(), account="other")
    assert answer.verdict in ((200, []), (500, [11]), (500, [13]))


def test_an_unknown_partition_is_refused(each: Desk) -> None:
    """422 with 2000."""
    assert each.update(each.held(), partition="nowhere").verdict == (422, [2000])


def test_a_wrong_type_refuses_the_whole_update(each: Desk) -> None:
    """Unlike at submit: 422 with 9000, and a warning that names the value."""
    answer = each.update(each.held(), tasks="abc")
    assert answer.verdict == (422, [9000])
    assert "abc" in answer.warnings


def test_an_unknown_field_is_ignored(each: Desk) -> None:
    """200 with a warning."""
    answer = each.update(each.held(), no_such_field=1)
    assert answer.verdict == (200, [])
    assert "no_such_field" in answer.warnings


def test_a_plain_user_may_not_change_anothers_job(each: Desk) -> None:
    """422 with 2010; their own comment they may change."""
    assert each.plain_user.update(each.held(), comment="x").verdict == (422, [2010])
    assert each.plain_user.update(each.plain_user.held(), comment="x").verdict == (200, [])


# -- held and released


def test_a_user_hold_is_released_by_the_flag(each: Desk) -> None:
    """`hold: false` gives the job its computed priority back."""
    job_id = each.held()
    assert each.update(job_id, hold=False).verdict == (200, [])
    job = each.job(job_id)
    assert not job["hold"]
    assert value(job["priority"]) > 0


def test_an_infinite_priority_releases_too(each: Desk) -> None:
    """It stands for the computed one."""
    job_id = each.held()
    each.update(job_id, priority={"set": True, "infinite": True, "number": 0})
    assert not each.job(job_id)["hold"]


def test_a_number_does_not_release(each: Desk) -> None:
    """A held job keeps its priority of 0: 422 with 2042."""
    job_id = each.held()
    assert each.update(job_id, priority=number(100)).verdict == (422, [2042])


def test_an_operators_hold_names_the_operator(each: Desk) -> None:
    """JobHeldAdmin, by the flag as by priority 0."""
    for fields in ({"hold": True}, HELD):
        job_id = each.pending(partition="closed")
        each.update(job_id, **fields)
        assert each.job(job_id)["state_reason"] == "JobHeldAdmin"


def test_a_held_job_starts_when_it_is_released(slurm: Desk) -> None:
    """Release is all that it needs."""
    job_id = slurm.held()
    slurm.update(job_id, hold=False)
    slurm.started(job_id)


def test_an_operator_sets_the_priority(each: Desk) -> None:
    """It stays what was set."""
    job_id = each.pending(partition="closed", priority=number(4321))
    assert value(each.job(job_id)["priority"]) == 4321
    each.update(job_id, priority=number(1234))
    assert value(each.job(job_id)["priority"]) == 1234


# -- deleted nodes


def test_a_deleted_node_blocks_every_update(slurm: Desk) -> None:
    """Once a listed node is gone, every update of the job fails with 2018, also the one that would repair it."""
    assert slurm.add_nodes("gone1", "gone2").verdict == (200, [])
    one = slurm.held(excluded_nodes=["gone1"])
    other = slurm.held(excluded_nodes=["gone2"])
    assert slurm.ask("DELETE", "node/gone1").verdict == (200, [])
    assert slurm.update(one, comment="x").verdict == (422, [2018])
    assert slurm.update(one, excluded_nodes=[""]).verdict == (422, [2018])
    assert slurm.update(other, comment="x").verdict == (200, [])
    assert slurm.delete(one).json["status"] == []
