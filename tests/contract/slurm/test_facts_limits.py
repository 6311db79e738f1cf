"""Time limits: which one applies, and what an impossible one leads to."""

from slurm_desk import Desk, number, value


def test_a_limit_is_minutes_as_number_or_object(each: Desk) -> None:
    """Both forms are read, and it comes back as an object."""
    assert value(each.job(each.held(time_limit=7))["time_limit"]) == 7
    assert value(each.job(each.held(time_limit=number(8)))["time_limit"]) == 8


def test_without_a_limit_the_partition_decides(slurm: Desk) -> None:
    """A started job without a limit has the partition's DefaultTime."""
    job_id = slurm.running(partition="limited", time_limit=...)
    assert value(slurm.job(job_id)["time_limit"]) == 5


def test_a_limit_above_the_partitions_is_accepted_without_a_warning(each: Desk) -> None:
    """Above MaxTime: 200, no warning, and PartitionTimeLimit as reason."""
    answer = each.submit(partition="limited", time_limit=number(60))
    assert answer.verdict == (200, [])
    assert not answer.warnings
    each.until(lambda: each.job(answer.job_id)["state_reason"] == "PartitionTimeLimit", "the reason is known")


def test_a_limit_above_the_partitions_waits_for_ever(slurm: Desk) -> None:
    """Later jobs of the partition start, this one does not."""
    waiting = slurm.pending(partition="limited", time_limit=number(60))
    slurm.running(partition="limited")
    assert slurm.state(waiting) == {"PENDING"}


def test_no_limit_may_be_asked_for(slurm: Desk) -> None:
    """`infinite` stays infinite where the partition has no maximum."""
    job_id = slurm.held(time_limit={"set": True, "infinite": True, "number": 0})
    assert value(slurm.job(job_id)["time_limit"]) == "infinite"
