"""Heterogeneous jobs in the pocket slurmctld, where the contract's cases would wait too long or hurt."""

from collections.abc import Callable

from tests.unit.sim.slurm.pocket_desk import Desk

STUCK = {"partition": "limited", "time_limit": {"set": True, "number": 1000}}


def reasons(slurm: Desk, leader: int, count: int) -> list[str]:
    """Why each component waits."""
    slurm.slurm.tick()
    return [slurm.reason(leader + offset) for offset in range(count)]


def test_each_component_has_its_own_reason(slurm: Desk) -> None:
    """Those without one wait for resources."""
    assert reasons(slurm, slurm.het({}, STUCK).job_id, 2) == ["Resources", "PartitionTimeLimit"]
    assert reasons(slurm, slurm.het(STUCK, {}).job_id, 2) == ["PartitionTimeLimit", "Resources"]
    assert reasons(slurm, slurm.het({"hold": True}, {}).job_id, 2) == ["JobHeldUser", "Resources"]
    assert reasons(slurm, slurm.het({}, {"hold": True}).job_id, 2) == ["Resources", "JobHeldUser"]


def test_what_the_last_component_waits_for_is_warned_of(slurm: Desk) -> None:
    """Of the others nothing is said."""
    held = [warning["description"] for warning in slurm.het({}, {"hold": True}).body["warnings"]]
    assert held == [
        "HetJob submission resulted in non-zero return code: Job is in held state, pending scheduler release",
        "Job is in held state, pending scheduler release",
    ]
    assert slurm.het({"hold": True}, {}).body["warnings"] == []


def test_a_release_without_external_components_refuses_the_second(opened: Callable[..., Desk]) -> None:
    """And leaves the first behind, cancelled."""
    slurm = opened(release="26.05.2")
    answer = slurm.het({"job_id": 700}, {})
    assert answer.body["errors"][0]["error_number"] == 2189
    assert slurm.state(700) == "CANCELLED"


def test_a_component_is_named_by_the_distance_of_its_id(slurm: Desk) -> None:
    """Not by its offset."""
    leader = slurm.het({"job_id": 700}, {}).job_id
    assert slurm.call("GET", f"job/{leader}+1").body["errors"][0]["error_number"] == 2017
    plain = slurm.het({}, {}).job_id
    assert [job["job_id"] for job in slurm.call("GET", f"job/{plain}+1").body["jobs"]] == [plain + 1]


def test_the_rest_of_a_pending_job_waits_for_ever(slurm: Desk) -> None:
    """Also when the component that kept it back is cancelled."""
    leader = slurm.het({}, {"hold": True}).job_id
    slurm.cancel(leader + 1)
    slurm.slurm.tick()
    assert [slurm.state(leader), slurm.state(leader + 1)] == ["PENDING", "CANCELLED"]


def test_an_administrator_holds_and_releases_the_whole(slurm: Desk) -> None:
    """By the leader's id."""
    leader = slurm.het(STUCK, STUCK).job_id
    slurm.control.hold(leader)
    assert [slurm.reason(leader), slurm.reason(leader + 1)] == ["JobHeldAdmin", "JobHeldAdmin"]
    slurm.control.release(leader)
    assert reasons(slurm, leader, 2) == ["PartitionTimeLimit", "PartitionTimeLimit"]


def test_a_crash_keeps_whole_families_only(slurm: Desk) -> None:
    """One that lost a component fails, one that lost its leader goes; the others are listed by id."""
    torn, orphaned, kept = (slurm.het(first, {}).job_id for first in ({}, {}, {"job_id": 700}))
    slurm.slurm.tick()
    slurm.cancel(torn + 1)
    slurm.control.end(orphaned, "TIMEOUT")
    slurm.control.advance(40)
    slurm.control.crash()
    jobs = slurm.control.jobs()
    assert (jobs[torn].state, jobs[torn].reason) == ("FAILED", "SystemFailure")
    assert orphaned + 1 not in jobs
    listed = slurm.call("GET", f"job/{kept}").body["jobs"]
    assert [(job["job_state"], job["het_job_offset"]["number"]) for job in listed] == [
        (["RUNNING"], 1),
        (["RUNNING"], 0),
    ]
