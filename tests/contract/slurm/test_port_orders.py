"""`update`, `note` and `cancel` of ports.Slurm."""

import dataclasses
from typing import Any

import pytest
from slurm_desk import NEVER_USED
from slurm_port import Port

from slurm_bridge.model.job import Done, JobView, Memory, MemoryPer, Phase, Refusal, Refused
from slurm_bridge.model.names import JobId

UNKNOWN = JobId(NEVER_USED)


def view(port: Port, job_id: JobId) -> JobView:
    """The job as the port shows it."""
    found = port.client.job(job_id)
    assert found is not None
    return found


def why(outcome: object) -> Refusal:
    """The reason of a refusal."""
    assert isinstance(outcome, Refused), outcome
    return outcome.why


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tasks": ({"tasks": 5}, {"tasks": 5, "cpus": 5}),
    "tasks and cpus": ({"tasks": 2, "cpus_per_task": 3}, {"tasks": 2, "cpus_per_task": 3, "cpus": 6}),
    "memory per node": ({"memory": Memory(mib=222)}, {"memory": Memory(mib=222)}),
    "memory per cpu": (
        {"memory": Memory(mib=22, per=MemoryPer.CPU)},
        {"memory": Memory(mib=22, per=MemoryPer.CPU)},
    ),
    "node counts": (
        {"tasks": 4, "minimum_nodes": 2, "maximum_nodes": 3},
        {"minimum_nodes": 2, "maximum_nodes": 3},
    ),
    "tasks per node": (
        {"tasks": 6, "minimum_nodes": 2, "maximum_nodes": 2, "tasks_per_node": 3},
        {"minimum_nodes": 2, "maximum_nodes": 2, "tasks": 6},
    ),
    "constraints": ({"constraints": "v100"}, {"constraints": "v100"}),
    "time limit": ({"time_limit_minutes": 9}, {"time_limit_minutes": 9}),
    "comment": ({"comment": "new"}, {"comment": "new"}),
}


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.replace(" ", "-"))
def test_a_pending_job_becomes_what_is_asked(each_port: Port, case: str) -> None:
    """Done means that it was read back."""
    asked, shown = CHANGES[case]
    request = each_port.request(hold=True)
    job_id = each_port.made(request)
    outcome = each_port.client.update(job_id, dataclasses.replace(request, **asked))
    assert isinstance(outcome, Done), outcome
    found = view(each_port, job_id)
    assert {name: getattr(found, name) for name in shown} == shown


def test_node_lists_are_set_and_cleared(each_port: Port) -> None:
    """Both ways, and the rest of the shape stays."""
    one, two = each_port.desk.machines("plain")[:2]
    request = each_port.request(hold=True, tasks=2)
    job_id = each_port.made(request)
    limited = dataclasses.replace(request, excluded_nodes=(one, two))
    assert isinstance(each_port.client.update(job_id, limited), Done)
    assert (view(each_port, job_id).required_nodes, set(view(each_port, job_id).excluded_nodes)) == ((), {one, two})
    assert isinstance(each_port.client.update(job_id, request), Done)
    found = view(each_port, job_id)
    assert (found.required_nodes, found.excluded_nodes, found.tasks) == ((), (), 2)


def test_nodes_that_an_earlier_version_has_required_are_cleared(each_port: Port) -> None:
    """Every update of a waiting job takes them away."""
    one, two = each_port.desk.machines("plain")[:2]
    job_id = JobId(each_port.desk.held(required_nodes=[one]))
    request = each_port.request(excluded_nodes=(two,))
    assert isinstance(each_port.client.update(job_id, request), Done)
    found = view(each_port, job_id)
    assert (found.required_nodes, found.excluded_nodes, found.owner) == ((), (two,), request.owner)


def test_an_update_keeps_a_hold(each_port: Port) -> None:
    """The update does not release the job."""
    request = each_port.request(hold=True)
    job_id = each_port.made(request)
    each_port.client.update(job_id, dataclasses.replace(request, hold=False, comment="new"))
    assert view(each_port, job_id).held


def test_a_started_job_is_left_alone(port: Port) -> None:
    """STARTED, and it runs on as it was."""
    request = port.request(constraints="plain")
    job_id = port.made(request)
    port.desk.started(job_id)
    before = port.client.allocation(job_id)
    smaller = dataclasses.replace(request, constraints="v100", comment="new", tasks=2)
    assert why(port.client.update(job_id, smaller)) is Refusal.STARTED
    assert port.client.allocation(job_id) == before
    assert view(port, job_id).comment == ""


def test_an_ended_job_cannot_be_updated(each_port: Port) -> None:
    """OVER."""
    request = each_port.request(hold=True)
    job_id = each_port.made(request)
    each_port.client.cancel(job_id)
    assert why(each_port.client.update(job_id, request)) is Refusal.OVER


def test_an_unknown_job_cannot_be_updated(each_port: Port) -> None:
    """NO_SUCH_JOB."""
    assert why(each_port.client.update(UNKNOWN, each_port.request())) is Refusal.NO_SUCH_JOB


def test_an_unknown_node_refuses_the_update(each_port: Port) -> None:
    """UNKNOWN_NODE, and nothing changed."""
    request = each_port.request(hold=True)
    job_id = each_port.made(request)
    wrong = dataclasses.replace(request, excluded_nodes=("nowhere",), comment="new")
    assert why(each_port.client.update(job_id, wrong)) is Refusal.UNKNOWN_NODE
    assert view(each_port, job_id).comment == ""


# -- note


def test_a_note_is_rewritten_while_pending(each_port: Port) -> None:
    """The owner record changes, nothing else."""
    owner = each_port.owner()
    job_id = each_port.held(owner=owner)
    noted = each_port.owner(uid=owner.uid, note="withdrawn")
    assert isinstance(each_port.client.note(job_id, noted), Done)
    assert view(each_port, job_id).owner == noted


def test_a_note_is_rewritten_while_running(port: Port) -> None:
    """And the job runs on."""
    job_id = port.running()
    noted = port.owner(note="bound")
    assert isinstance(port.client.note(job_id, noted), Done)
    found = view(port, job_id)
    assert (found.owner, found.state.phase) == (noted, Phase.RUNNING)


def test_a_note_comes_too_late_after_the_end(each_port: Port) -> None:
    """OVER; of an unknown job NO_SUCH_JOB."""
    job_id = each_port.held()
    each_port.client.cancel(job_id)
    assert why(each_port.client.note(job_id, each_port.owner())) is Refusal.OVER
    assert why(each_port.client.note(UNKNOWN, each_port.owner())) is Refusal.NO_SUCH_JOB


# -- cancel


def test_a_cancelled_job_has_ended(each_port: Port) -> None:
    """Done, and its phase is ENDED in the next answer."""
    job_id = each_port.held()
    assert each_port.client.cancel(job_id) == Done(job_id=job_id)
    assert each_port.client.states([job_id])[job_id].phase is Phase.ENDED


def test_an_ended_job_is_over(each_port: Port) -> None:
    """A second cancel is refused."""
    job_id = each_port.held()
    each_port.client.cancel(job_id)
    assert why(each_port.client.cancel(job_id)) is Refusal.OVER


def test_an_unknown_job_is_no_job(each_port: Port) -> None:
    """NO_SUCH_JOB."""
    assert why(each_port.client.cancel(UNKNOWN)) is Refusal.NO_SUCH_JOB


def test_one_order_ends_many_and_says_how_each_of_them_ended(each_port: Port) -> None:
    """Done, OVER or NO_SUCH_JOB, and a job that is not named goes on."""
    first, second, over, other = (each_port.held() for _ in range(4))
    each_port.client.cancel(over)
    ended = each_port.client.cancel_many([first, over, UNKNOWN, second])
    assert (ended[first], ended[second]) == (Done(job_id=first), Done(job_id=second))
    assert (why(ended[over]), why(ended[UNKNOWN])) == (Refusal.OVER, Refusal.NO_SUCH_JOB)
    phases = {job_id: seen.phase for job_id, seen in each_port.client.states([first, second, other]).items()}
    assert phases == {first: Phase.ENDED, second: Phase.ENDED, other: Phase.PENDING}


def test_an_order_to_end_none_is_not_sent(each_port: Port) -> None:
    """Slurm would refuse it."""
    assert each_port.client.cancel_many([]) == {}
