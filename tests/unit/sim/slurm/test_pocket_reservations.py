"""Reservations of the pocket: made, changed, given back, and what their end does."""

from pocket_desk import Answer, Desk

from slurm_bridge.sim.slurm import state

USER = {"user_id": "slurm-bridge"}


def make(slurm: Desk, *nodes: str, **fields: object) -> Answer:
    """One of these nodes for a minute; `...` leaves a field out."""
    usual = {"name": "r", "node_list": list(nodes), "users": ["slurm-bridge"], "flags": ["IGNORE_JOBS", "FLEX"]}
    body = {**usual, "start_time": "now", "end_time": "now+60", **fields}
    return slurm.call("POST", "reservation", {key: value for key, value in body.items() if value is not ...})


def test_times_are_words_or_numbers(slurm: Desk) -> None:
    """Of Slurm's own clock."""
    end = {"set": True, "infinite": False, "number": 2_000_000_000}
    assert make(slurm, "ext001").errors == []
    assert make(slurm, "ext002", name="s", end_time=end).errors == []
    kept = slurm.slurm.world.reservations
    assert (kept["r"].start, kept["r"].end, kept["s"].end) == (slurm.clock.wall(), slurm.clock.wall() + 60, 2e9)


def test_a_hostlist_that_cannot_be_read_is_an_unknown_node(slurm: Desk) -> None:
    """2018."""
    assert make(slurm, "ext[001").errors == [2018]


def test_a_running_job_of_another_reservation_keeps_it(slurm: Desk) -> None:
    """2055 until it has left or ended."""
    make(slurm, "ext001")
    job = slurm.running(reservation="r", required_nodes=["ext001"], **USER)
    assert slurm.call("DELETE", "reservation/r").errors == [2055]
    slurm.cancel(job)
    assert slurm.call("DELETE", "reservation/r").errors == []


def test_at_its_end_waiting_jobs_are_held_or_not(slurm: Desk) -> None:
    """As the flag says; a release starts the held one."""
    kept = {"r": ["FLEX"], "s": ["FLEX", "NO_HOLD_JOBS_AFTER_END"]}
    jobs = {}
    for number, (name, flags) in enumerate(kept.items(), start=1):
        node = f"ext00{number}"
        blocker = slurm.running(required_nodes=[node], shared=["none"])
        make(slurm, node, name=name, flags=flags)
        jobs[name] = slurm.pending(reservation=name, required_nodes=[node], **USER)
        assert blocker
    slurm.control.advance(61)
    held, waits = (slurm.control.job(job) for job in jobs.values())
    assert (held.held, held.reason, held.ask.reservation) == (True, state.RESERVATION_DELETED, "")
    assert slurm.job(jobs["r"])["job_state"] == ["PENDING", "RESV_DEL_HOLD"]
    assert (waits.held, waits.ask.reservation) == (False, "")
    assert slurm.slurm.world.reservations.keys().isdisjoint(kept)
