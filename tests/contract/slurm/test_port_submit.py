"""`submit` of ports.Slurm: every field of a request arrives, and every way to be refused has its reason."""

import dataclasses
import secrets
from typing import Any

import pytest
from slurm_desk import Desk
from slurm_port import Port, connect

from slurm_bridge.model.job import Done, Gres, GresPer, JobRequest, JobView, Memory, MemoryPer, Phase, Refusal, Refused
from slurm_bridge.model.names import JobId

#: Field of a request -> what is asked, and what `job` then shows.
FIELDS: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "name": [({"name": "given"}, {"name": "given"})],
    "partition": [({"partition": "batch"}, {"partition": "batch"})],
    "licenses": [({"licenses": "matlab:2"}, {"licenses": "matlab:2"})],
    "constraints": [({"constraints": "v100|a100"}, {"constraints": "v100|a100"})],
    "user": [({"user": "alice"}, {"user": "alice"})],
    "priority": [({"priority": 77, "partition": "closed", "hold": False}, {"priority": 77, "held": False})],
    "hold": [({"hold": True}, {"held": True, "priority": 0})],
    "time_limit_minutes": [({"time_limit_minutes": 17}, {"time_limit_minutes": 17})],
    "minimum_nodes": [({"tasks": 4, "minimum_nodes": 2, "maximum_nodes": 3}, {"minimum_nodes": 2, "maximum_nodes": 3})],
    "maximum_nodes": [
        ({"tasks": 4, "maximum_nodes": 2}, {"maximum_nodes": 2}),
        ({"tasks": 1, "maximum_nodes": 3}, {"maximum_nodes": 3}),
    ],
    "tasks": [({"tasks": 6}, {"tasks": 6, "cpus": 6})],
    "cpus_per_task": [({"tasks": 2, "cpus_per_task": 3}, {"cpus_per_task": 3, "cpus": 6})],
    "memory": [
        ({"memory": Memory(mib=321)}, {"memory": Memory(mib=321)}),
        ({"memory": Memory(mib=33, per=MemoryPer.CPU)}, {"memory": Memory(mib=33, per=MemoryPer.CPU)}),
        (
            {"memory": Memory(mib=44, per=MemoryPer.GPU), "gres": (Gres(name="gpu", count=1),), "partition": "gpu"},
            {"memory": Memory(mib=44, per=MemoryPer.GPU)},
        ),
    ],
    "mcs_label": [({"mcs_label": "blue"}, {"mcs_label": "blue"})],
    "comment": [({"comment": "said"}, {"comment": "said"})],
}

#: Fields that `job` does not show as they are; each has a case of its own below.
ELSEWHERE = {
    "owner",
    "job_id",
    "account",
    "qos",
    "reservation",
    "components",
    "wckey",
    "group",
    "nice",
    "gres",
    "gres_per",
    "exclusive",
    "excluded_nodes",
    "tasks_per_node",
}


def test_no_field_is_forgotten() -> None:
    """Every field of a request stands in one of the two tables."""
    assert FIELDS.keys() | ELSEWHERE == {field.name for field in dataclasses.fields(JobRequest)}
    assert not FIELDS.keys() & ELSEWHERE


def view(port: Port, job_id: JobId) -> JobView:
    """The job as the port shows it."""
    found = port.client.job(job_id)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("asked", "shown"), [pytest.param(*case, id=name) for name, cases in FIELDS.items() for case in cases]
)
def test_a_field_arrives(each_port: Port, asked: dict[str, Any], shown: dict[str, Any]) -> None:
    """What is asked for is what `job` shows."""
    job_id = each_port.made(each_port.request(**({"hold": True} | asked)))
    found = view(each_port, job_id)
    assert {name: getattr(found, name) for name in shown} == shown


def test_a_placeholder_is_an_external_job(each_port: Port) -> None:
    """No script runs."""
    assert "EXTERNAL_JOB" in each_port.desk.job(each_port.held())["flags"]


def test_the_owner_record_comes_back(each_port: Port) -> None:
    """`job` reads the owner that `submit` wrote."""
    owner = each_port.owner(kind="JobSet", members="0a1b", attempt=3)
    found = view(each_port, each_port.held(owner=owner))
    assert found.owner == owner


def test_a_foreign_comment_is_no_owner(each_port: Port) -> None:
    """A job that this bridge did not submit has no owner, whatever its comment says."""
    desk = each_port.desk
    job_id = JobId(desk.held(comment='{"mark":"slurm-bridge/1"}', admin_comment="something"))
    found = view(each_port, job_id)
    assert (found.owner, found.admin_comment) == (None, "something")


def test_a_new_job_is_dated(each_port: Port) -> None:
    """It pends since its submit, and has neither nodes nor an end."""
    found = view(each_port, each_port.held())
    assert found.submit_time > 0
    assert (found.start_time, found.nodes, found.het_job_id) == (0, (), None)


def test_a_job_tells_its_identity_where_the_version_knows_it(each_port: Port) -> None:
    """From v0.0.44 on there is an id that never comes back."""
    found = view(each_port, each_port.held())
    assert bool(found.sluid) == (each_port.desk.version != "v0.0.43")


# -- fields with a case of their own


def test_node_lists_arrive(each_port: Port) -> None:
    """Excluded nodes, in any order, as names; none is required."""
    one, two = each_port.desk.machines("plain")[:2]
    found = view(each_port, each_port.held(tasks=2, excluded_nodes=(two, one)))
    assert (found.required_nodes, set(found.excluded_nodes)) == ((), {one, two})


def test_gpus_per_node_arrive(each_port: Port) -> None:
    """Typed and untyped, with their count."""
    for gres in (Gres(name="gpu", count=2), Gres(name="gpu", count=2, type="v100")):
        job = each_port.desk.job(each_port.held(partition="gpu", gres=(gres,)))
        assert job["tres_per_node"] == ":".join(filter(None, ("gres/gpu", gres.type, "2")))


def test_gpus_per_task_arrive(each_port: Port) -> None:
    """Counted for every task."""
    job_id = each_port.held(partition="gpu", tasks=2, gres=(Gres(name="gpu", count=1),), gres_per=GresPer.TASK)
    job = each_port.desk.job(job_id)
    assert ("gres/gpu:1" in job["tres_per_task"], job["tres_per_node"]) == (True, "")


def test_an_exclusive_job_gets_the_whole_node(port: Port) -> None:
    """All CPUs, whatever was asked."""
    job_id = port.running(exclusive=True, constraints="plain")
    ((name, cpus),) = port.desk.cpus(job_id).items()
    assert cpus == port.desk.node(name)["cpus"]


def test_an_exclusive_job_shows_it(each_port: Port) -> None:
    """While it waits; another does not. The newest API version says it of none."""
    assert view(each_port, each_port.held(exclusive=True)).exclusive is (each_port.desk.version != "v0.0.45")
    assert not view(each_port, each_port.held()).exclusive


def test_a_reservation_is_entered_by_its_user(port: Port) -> None:
    """The job of a user of the reservation runs on its node."""
    job_id = port.running(reservation="held", user="alice", group="alice")
    assert port.desk.job(job_id)["resv_name"] == "held"


def test_the_group_arrives(each_port: Port) -> None:
    """By name or by number."""
    job = each_port.desk.job(each_port.held(user="alice", group="alice"))
    assert (job["user_name"], job["group_name"]) == ("alice", "alice")


def test_a_wckey_arrives(each_port: Port) -> None:
    """As it is."""
    assert each_port.desk.job(each_port.held(wckey="project"))["wckey"] == "project"


def test_nice_lowers_the_priority_field(each_port: Port) -> None:
    """The number stands in the job's record."""
    assert each_port.desk.job(each_port.held(nice=50))["nice"] == 50


def test_account_and_qos_need_accounting(each_port: Port) -> None:
    """Without accounting both are accepted, and kept as they are or dropped."""
    job = each_port.desk.job(each_port.held(account="schedmd", qos="normal"))
    assert job["account"] in ("schedmd", "")
    assert job["qos"] in ("normal", "")


def test_a_request_without_optional_fields_is_enough(each_port: Port) -> None:
    """Partition, user and limit are then Slurm's choice."""
    request = each_port.request(partition=None, time_limit_minutes=None, hold=True)
    found = view(each_port, each_port.made(request))
    assert (found.partition, found.user) == ("debug", "slurm")


# -- outcomes


def _chosen() -> JobId:
    return JobId(10_000_000 + secrets.randbelow(50_000_000))


def test_done_has_the_id_and_the_warnings(each_port: Port) -> None:
    """A job that waits for what is not there is done, with a warning."""
    outcome = each_port.submit(each_port.request(partition="closed"))
    assert isinstance(outcome, Done)
    assert any("DOWN" in warning for warning in outcome.warnings)


def test_a_chosen_id_is_a_fence(each_port: Port) -> None:
    """The second submit of one id is refused: EXISTS."""
    request = each_port.request(job_id=_chosen(), hold=True)
    assert each_port.made(request) == request.job_id
    again = each_port.submit(request)
    assert isinstance(again, Refused)
    assert (again.why, again.code) == (Refusal.EXISTS, 2011)


def test_a_chosen_id_may_be_used_up_by_a_refusal(each_port: Port) -> None:
    """Refused in the selection of nodes: a FAILED job with our owner keeps the id, and the next submit is refused."""
    request = each_port.request(job_id=_chosen(), cpus_per_task=300)
    assert isinstance(each_port.submit(request), Refused)
    (left,) = each_port.client.find(request.owner)
    assert (left.job_id, left.state.phase) == (request.job_id, Phase.ENDED)
    again = each_port.submit(dataclasses.replace(request, cpus_per_task=1))
    assert isinstance(again, Refused)
    assert again.why is Refusal.EXISTS


REFUSED: dict[str, tuple[dict[str, Any], Refusal, int]] = {
    "unknown partition": ({"partition": "nowhere"}, Refusal.INVALID, 2000),
    "too large for any node": ({"cpus_per_task": 300}, Refusal.INVALID, 2014),
    "unknown gres": ({"gres": (Gres(name="nothing", count=1),)}, Refusal.INVALID, 2072),
    "unknown feature": ({"constraints": "nothing"}, Refusal.INVALID, 2029),
    "unknown license": ({"licenses": "nothing"}, Refusal.INVALID, 2048),
    "unknown reservation": ({"reservation": "nothing"}, Refusal.INVALID, 2053),
    "unknown user": ({"user": "nobody-of-that-name"}, Refusal.INVALID, 2166),
    "comment too long": ({"comment": "x" * 1025}, Refusal.INVALID, 2012),
    "unknown excluded node": ({"excluded_nodes": ("nowhere",)}, Refusal.UNKNOWN_NODE, 2018),
}


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.replace(" ", "-"))
def test_a_refusal_has_its_reason(each_port: Port, case: str) -> None:
    """Slurm's number becomes what the caller does next."""
    fields, why, code = REFUSED[case]
    outcome = each_port.submit(each_port.request(**fields))
    assert isinstance(outcome, Refused), outcome
    assert (outcome.why, outcome.code) == (why, code)
    assert outcome.message


def test_a_request_that_makes_no_sense_is_refused(each_port: Port) -> None:
    """More nodes than tasks: INVALID, and no job."""
    outcome = each_port.submit(each_port.request(tasks=1, minimum_nodes=2))
    assert isinstance(outcome, Refused)
    assert outcome.why is Refusal.INVALID


def test_a_plain_users_token_is_forbidden_to_own(slurm: Desk, tmp_path: Any) -> None:
    """An owner record needs an operator: FORBIDDEN."""
    file = tmp_path / "user-token"
    file.write_text(slurm.servers.user_token)
    with connect(slurm.servers.url, file) as client:
        port = Port(client=client, desk=slurm)
        outcome = port.submit(port.request())
    assert isinstance(outcome, Refused)
    assert outcome.why is Refusal.FORBIDDEN
