"""Which jobs start when, why the others wait, and how jobs end by themselves."""

from collections.abc import Callable

from pocket_desk import Desk

from slurm_bridge.sim.slurm import state

WHOLE = {"partition": "mapped", "tasks": 64}
MINUTES_5 = {"time_limit": {"set": True, "number": 5}}


def full(slurm: Desk) -> list[int]:
    """Both machines of a partition are taken for an hour."""
    return [slurm.running(**WHOLE), slurm.running(**WHOLE)]


def test_the_first_waits_for_resources_the_next_behind_it(slurm: Desk) -> None:
    """Resources, then Priority, and backfill says when and where it means to start the first."""
    full(slurm)
    first, second = slurm.pending(**WHOLE), slurm.pending(**WHOLE)
    assert [slurm.reason(first), slurm.reason(second)] == ["Resources", "Priority"]
    planned = slurm.job(first)
    assert planned["scheduled_nodes"] == "ext019"
    assert planned["start_time"]["number"] == planned["submit_time"]["number"] + 3600


def test_priority_is_the_order(slurm: Desk) -> None:
    """The more important of two waiting jobs gets the node, although it came later."""
    running, _ = full(slurm)
    low = slurm.pending(**WHOLE)
    high = slurm.pending(priority={"set": True, "number": 100}, **WHOLE)
    slurm.cancel(running)
    slurm.slurm.tick()
    assert [slurm.state(low), slurm.state(high)] == ["PENDING", "RUNNING"]


def test_backfill_lets_a_short_job_go_first_and_no_long_one(slurm: Desk) -> None:
    """It may start where it is over before the planned job needs the nodes."""
    slurm.running(**WHOLE)
    big = slurm.pending(partition="mapped", tasks=128)
    long = slurm.pending(partition="mapped", time_limit={"set": True, "number": 120})
    short = slurm.pending(partition="mapped", **MINUTES_5)
    slurm.slurm.tick()
    assert [slurm.state(job) for job in (big, long, short)] == ["PENDING", "PENDING", "RUNNING"]


def test_a_time_limit_ends_a_job(slurm: Desk) -> None:
    """TIMEOUT, with TimeLimit as the reason; a longer limit set meanwhile counts."""
    ends, lives = slurm.running(**MINUTES_5), slurm.running(**MINUTES_5)
    slurm.update(lives, time_limit={"set": True, "number": 60})
    slurm.control.advance(300)
    assert [slurm.state(ends), slurm.state(lives)] == ["TIMEOUT", "RUNNING"]
    assert slurm.job(ends)["state_reason"] == "TimeLimit"


def test_partitions_lend_their_limits(slurm: Desk) -> None:
    """Without a limit the partition's default holds, and one above its maximum waits for ever."""
    assert slurm.job(slurm.pending(partition="limited", time_limit=...))["time_limit"]["number"] == 5
    assert slurm.reason(slurm.pending(partition="limited")) == "PartitionTimeLimit"
    assert slurm.reason(slurm.pending(partition="closed")) == "PartitionDown"


def test_closed_partitions_take_no_jobs(slurm: Desk) -> None:
    """INACTIVE and DRAIN refuse with 2070; jobs that wait in an inactive one stay there."""
    waiting = slurm.pending(partition="batch")
    slurm.control.set_partition("batch", state="INACTIVE")
    assert slurm.submit(partition="batch").errors == [2070]
    assert slurm.reason(waiting) == "PartitionInactive"


def test_ended_jobs_are_forgotten(slurm: Desk) -> None:
    """After MinJobAge a job is 404, and its id no fence any more."""
    job_id = slurm.pending(job_id=77)
    slurm.cancel(job_id)
    slurm.control.advance(29)
    assert slurm.submit(job_id=77).errors == [2011]
    slurm.control.advance(1)
    assert slurm.call("GET", "job/77").errors == [2017]
    assert slurm.submit(job_id=77).job_id == 77


def test_a_job_may_begin_later(slurm: Desk) -> None:
    """BeginTime until then."""
    job_id = slurm.pending(begin_time={"set": True, "number": int(slurm.clock.wall()) + 60})
    assert slurm.reason(job_id) == "BeginTime"
    slurm.control.advance(60)
    assert slurm.state(job_id) == "RUNNING"


def test_configuring_comes_before_running(opened: Callable[..., Desk]) -> None:
    """Where it is asked for, a second word stands beside RUNNING for a while."""
    slurm = opened(configuring_seconds=10)
    job_id = slurm.running()
    assert slurm.job(job_id)["job_state"] == ["RUNNING", "CONFIGURING"]
    slurm.control.advance(10)
    assert slurm.job(job_id)["job_state"] == ["RUNNING"]


def test_components_start_together_on_different_nodes(slurm: Desk) -> None:
    """One free node is not enough for two components, however small."""
    blocker = slurm.running(**WHOLE)
    leader = slurm.het({"partition": "mapped"}, {"partition": "mapped"}).job_id
    slurm.slurm.tick()
    assert [slurm.state(leader), slurm.reason(leader + 1)] == ["PENDING", "Resources"]
    slurm.cancel(blocker)
    slurm.slurm.tick()
    assert {*slurm.spread(leader), *slurm.spread(leader + 1)} == {"ext019", "ext020"}


def test_a_held_leader_holds_all(slurm: Desk) -> None:
    """Released, all components start."""
    leader = slurm.het({"hold": True}, {}).job_id
    slurm.slurm.tick()
    assert [slurm.state(leader), slurm.state(leader + 1)] == ["PENDING", "PENDING"]
    slurm.control.release(leader)
    slurm.slurm.tick()
    assert [slurm.state(leader), slurm.state(leader + 1)] == ["RUNNING", "RUNNING"]


def test_a_reservation_keeps_others_out(slurm: Desk) -> None:
    """Its users enter, others wait for a node that they insist on; root enters always."""
    assert slurm.reason(slurm.pending(required_nodes=["ext006"])) == "ReqNodeNotAvail"
    assert list(slurm.spread(slurm.running(reservation="held", user_id="alice"))) == ["ext001"]
    assert slurm.submit(reservation="held", user_id="0").job_id
    assert "RESERVED" in slurm.node("ext006")["state"]


def test_a_strict_reservation_ends_its_jobs(slurm: Desk) -> None:
    """Without FLEX its jobs run only on its nodes, and end with it; the reservation goes by itself."""
    wall = slurm.clock.wall()
    slurm.control.reserve(state.Reservation(name="strict", nodes=("ext002",), start=wall, end=wall + 100))
    job_id = slurm.running(reservation="strict")
    assert list(slurm.spread(job_id)) == ["ext002"]
    slurm.control.advance(100)
    assert slurm.state(job_id) == "TIMEOUT"
    assert [found["name"] for found in slurm.call("GET", "reservations/").body["reservations"]] == ["held"]


def test_a_paused_world_starts_nothing(slurm: Desk) -> None:
    """Until it goes on."""
    slurm.control.pause()
    job_id = slurm.pending()
    slurm.slurm.tick()
    assert slurm.state(job_id) == "PENDING"
    slurm.control.unpause()
    slurm.slurm.tick()
    assert slurm.state(job_id) == "RUNNING"


def test_the_ledger_agrees_with_the_jobs(slurm: Desk) -> None:
    """After many jobs of all kinds have come and gone, everything is free."""
    kinds = ({}, {"tasks": 70}, {"partition": "gpu", "tres_per_node": "gres/gpu:2"}, {"shared": ["none"]})
    jobs = [slurm.pending(**kinds[number % len(kinds)]) for number in range(40)]
    slurm.slurm.tick()
    for job_id in jobs:
        slurm.cancel(job_id)
    nodes = slurm.call("GET", "nodes/").body["nodes"]
    assert {(node["alloc_cpus"], node["alloc_memory"], node["state"][0]) for node in nodes} == {(0, 0, "IDLE")}
