"""Reservations over slurmrestd: which users may create them, their effect on jobs, their end."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import slurm_http
from slurm_desk import Desk, number

FLAGS = ("IGNORE_JOBS", "FLEX", "NO_HOLD_JOBS_AFTER_END")
USER = "slurm-bridge"
OURS = {"user_id": USER, "group_id": USER}


class Kept:
    """Reservations of one case, of nodes that nobody else uses."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self._made = desk, list[str]()
        self.nodes = desk.idle("mapped", 2)

    def name(self, suffix: str = "") -> str:
        """Of this run alone."""
        return f"{self.desk.job_name}-kept{suffix}"

    def make(self, *nodes: str, desk: Desk | None = None, suffix: str = "", **fields: Any) -> slurm_http.Answer:
        """One of these nodes, from now on, for a minute."""
        self._made.append(self.name(suffix))
        usual = {"name": self._made[-1], "node_list": list(nodes or self.nodes), "users": [USER]}
        usual |= {"flags": list(FLAGS), "start_time": "now", "end_time": "now+60"}
        body = {key: value for key, value in (usual | fields).items() if value is not ...}
        return (desk or self.desk).ask("POST", "reservation", body)

    def remove(self, suffix: str = "", desk: Desk | None = None) -> slurm_http.Answer:
        """Give the nodes back."""
        return (desk or self.desk).ask("DELETE", f"reservation/{self.name(suffix)}")

    def shown(self, suffix: str = "") -> dict[str, Any] | None:
        """As the list has it."""
        listed: Sequence[dict[str, Any]] = self.desk.get("reservations/").json["reservations"]
        return next((one for one in listed if one["name"] == self.name(suffix)), None)

    def sweep(self) -> None:
        """All jobs first: one that a job names stays."""
        self.desk.sweep()
        for name in dict.fromkeys(self._made):
            self.desk.ask("DELETE", f"reservation/{name}")


@pytest.fixture
def kept(slurm: Desk) -> Iterator[Kept]:
    """Gone when the case is over."""
    made = Kept(slurm)
    yield made
    made.sweep()


def test_an_operator_makes_and_removes_one(each: Desk) -> None:
    """In every version; times may be words, and the nodes say that they are reserved."""
    kept = Kept(each)
    try:
        assert kept.make().verdict == (200, [])
        shown = kept.shown()
        assert shown is not None
        assert (shown["users"], set(FLAGS) <= set(shown["flags"])) == (USER, True)
        assert shown["end_time"]["number"] - shown["start_time"]["number"] == pytest.approx(60, abs=1)
        each.until(lambda: "RESERVED" in each.node(kept.nodes[0])["state"], "the node says so")
        assert kept.remove().verdict == (200, [])
        assert kept.shown() is None
    finally:
        kept.sweep()


def test_a_plain_user_makes_and_removes_none(kept: Kept, slurm: Desk) -> None:
    """2010 for both; all users may read them."""
    assert kept.make(desk=slurm.plain_user).verdict == (422, [2010])
    kept.make()
    assert kept.remove(desk=slurm.plain_user).verdict == (422, [2010])
    assert kept.name() in slurm.plain_user.get("reservations/").text


def test_what_cannot_be_reserved(kept: Kept) -> None:
    """An unknown node or user, nodes of another reservation, and a reservation without a start."""
    assert kept.make("nowhere").verdict == (422, [2018])
    assert kept.make(users=["nobody-at-all"]).verdict == (500, [-1])
    assert kept.make(start_time=...).verdict == (422, [2053])
    assert kept.make(suffix="2").verdict == (200, [])
    assert kept.make().verdict == (422, [2058])


def test_one_that_has_begun_changes_without_its_beginning(kept: Kept) -> None:
    """With a start 2104 and nothing happens; without, nodes and end are what is said."""
    one, two = kept.nodes
    kept.make(one)
    assert kept.make(two).verdict == (422, [2104])
    changes = {"name": kept.name(), "node_list": [two], "end_time": "now+300"}
    assert kept.desk.ask("POST", "reservation", changes).verdict == (200, [])
    shown = kept.shown()
    assert shown is not None
    assert (shown["node_list"], shown["users"]) == (two, USER)
    assert shown["end_time"]["number"] - shown["start_time"]["number"] == pytest.approx(300, abs=10)


def test_removing_what_is_not_there(slurm: Desk) -> None:
    """2053."""
    assert slurm.ask("DELETE", f"reservation/{slurm.job_name}-none").verdict == (422, [2053])


def test_a_waiting_job_enters_and_leaves_in_place(kept: Kept, slurm: Desk) -> None:
    """Other jobs of the same user do not get the nodes. A job that leaves the reservation continues."""
    (node, _) = kept.nodes
    wanted = {"required_nodes": [node], "partition": "mapped", **OURS}
    kept.make()
    inside, outside = slurm.held(**wanted), slurm.pending(**wanted)
    assert slurm.update(inside, reservation=kept.name()).verdict == (200, [])
    slurm.update(inside, hold=False)
    slurm.started(inside)
    assert slurm.job(outside)["state_reason"] == "ReqNodeNotAvail"
    assert kept.remove().verdict == (422, [2055])
    assert slurm.update(inside, reservation="", admin_comment="left").verdict == (200, [])
    shown = slurm.job(inside)
    assert (shown["resv_name"], shown["admin_comment"], shown["nodes"]) == ("", "left", node)
    assert kept.remove().verdict == (200, [])
    slurm.started(outside)
    assert "RUNNING" in slurm.state(inside)


def test_a_waiting_job_keeps_it_from_being_removed(kept: Kept, slurm: Desk) -> None:
    """Until it leaves."""
    kept.make()
    inside = slurm.held(**OURS)
    slurm.update(inside, reservation=kept.name())
    assert kept.remove().verdict == (422, [2055])
    slurm.update(inside, reservation="")
    assert kept.remove().verdict == (200, [])


def test_a_job_enters_only_what_is_there_and_for_its_user(kept: Kept, slurm: Desk) -> None:
    """2053 and 2052."""
    job = slurm.held(user_id="alice", group_id="alice")
    assert slurm.update(job, reservation=kept.name()).verdict == (422, [2053])
    kept.make()
    assert slurm.update(job, reservation=kept.name()).verdict == (422, [2052])
    assert slurm.job(job)["resv_name"] == ""


def test_a_job_of_a_flexible_reservation_takes_other_nodes_too(kept: Kept, slurm: Desk) -> None:
    """One node of the reservation, and one that is not in it."""
    one, two = kept.nodes
    kept.make(one)
    job = slurm.running(
        reservation=kept.name(), partition="mapped", required_nodes=[one, two], tasks=2, minimum_nodes=2, **OURS
    )
    assert slurm.cpus(job) == {one: 1, two: 1}


@pytest.mark.patient
@pytest.mark.timeout(150)
def test_at_its_end_waiting_jobs_go_on_waiting_unless_they_are_held(kept: Kept, slurm: Desk) -> None:
    """With NO_HOLD_JOBS_AFTER_END they wait without it; otherwise Slurm holds them until they are released."""
    jobs = {}
    for node, flags in zip(kept.nodes, (FLAGS, FLAGS[:2]), strict=True):
        wanted = {"required_nodes": [node], "partition": "mapped", **OURS}
        slurm.running(**wanted, shared=["none"])
        kept.make(node, suffix=node, flags=list(flags), end_time="now+5")
        jobs[node] = slurm.pending(**wanted, reservation=kept.name(node))
    slurm.servers.pass_time(6)
    slurm.until(lambda: not any(map(kept.shown, jobs)), "the end of both", 90)
    waits, held = (slurm.job(job) for job in jobs.values())
    assert (waits["hold"], waits["resv_name"], waits["job_state"]) == (False, "", ["PENDING"])
    assert (held["hold"], held["resv_name"], held["priority"]) == (True, "", number(0))
    assert "RESV_DEL_HOLD" in held["job_state"]
