"""Heterogeneous jobs through ports.Slurm."""

import secrets

from slurm_port import Port

from slurm_bridge.model.job import Done, Phase, Refusal, Refused
from slurm_bridge.model.names import JobId


def held(port: Port) -> JobId:
    """Two components that will not start."""
    return port.made(port.request(hold=True), port.request(hold=True, tasks=2))


def running(port: Port) -> JobId:
    """Two components that run."""
    leader = port.made(port.request(), port.request(tasks=2))
    port.desk.started(leader)
    return leader


def test_states_have_a_component_each(each_port: Port) -> None:
    """One entry under the leader's id, with all components."""
    leader = held(each_port)
    states = each_port.client.states([leader])
    assert set(states) == {leader}
    assert [component.state.phase for component in states[leader].components] == [Phase.PENDING, Phase.PENDING]
    assert [component.offset for component in states[leader].components] == [0, 1]
    assert not states[leader].torn


def test_job_shows_the_leader(each_port: Port) -> None:
    """And a component by its own id."""
    leader = held(each_port)
    first, second = each_port.client.job(leader), each_port.client.job(JobId(leader + 1))
    assert first is not None
    assert second is not None
    assert (first.job_id, first.het_job_id, first.het_offset, first.tasks) == (leader, leader, 0, 1)
    assert (second.job_id, second.het_job_id, second.het_offset, second.tasks) == (leader + 1, leader, 1, 2)


def test_a_chosen_id_is_the_leaders(each_port: Port) -> None:
    """And fences it."""
    chosen = JobId(10_000_000 + secrets.randbelow(50_000_000))
    requests = (
        each_port.request(job_id=chosen, hold=True),
        each_port.request(job_id=JobId(chosen + 1), hold=True),
    )
    assert each_port.made(*requests) == chosen
    again = each_port.submit(*requests)
    assert isinstance(again, Refused)
    assert again.why is Refusal.EXISTS


def test_running_components_hold_nodes_of_their_own(port: Port) -> None:
    """Each has its allocation."""
    leader = running(port)
    first, second = port.client.allocation(leader), port.client.allocation(JobId(leader + 1))
    assert first is not None
    assert second is not None
    assert not set(first.nodes) & set(second.nodes)
    assert port.client.states([leader])[leader].phase is Phase.RUNNING


def test_a_component_that_ended_alone_tears_the_job(port: Port) -> None:
    """`torn`, until the leader is cancelled too; what that answers, the whole has ended."""
    leader = running(port)
    assert isinstance(port.client.cancel(JobId(leader + 1)), Done)
    assert port.client.states([leader])[leader].torn
    port.client.cancel(leader)
    states = port.client.states([leader])[leader]
    assert (states.phase, states.torn) == (Phase.ENDED, False)


def test_cancelling_the_leader_ends_all(each_port: Port) -> None:
    """Every component."""
    leader = held(each_port)
    assert isinstance(each_port.client.cancel(leader), Done)
    assert each_port.client.states([leader])[leader].phase is Phase.ENDED


def test_a_refused_component_refuses_the_whole(each_port: Port) -> None:
    """Nothing of it lives on."""
    owner = each_port.owner()
    outcome = each_port.submit(each_port.request(owner=owner), each_port.request(partition="nowhere"))
    assert isinstance(outcome, Refused)
    assert all(job.state.phase is Phase.ENDED for job in each_port.client.find(owner))
