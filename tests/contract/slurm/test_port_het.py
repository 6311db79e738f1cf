"""Heterogeneous jobs through ports.Slurm."""

import secrets

import msgspec
import pytest
import slurm_early
from slurm_early import Early
from slurm_port import Port

from slurm_bridge.model.job import Done, Gres, JobView, Memory, MemoryPer, Phase, Refusal, Refused
from slurm_bridge.model.names import JobId


def held(port: Port) -> JobId:
    """Two components that will not start."""
    return port.made(port.request(hold=True), port.request(hold=True, tasks=2))


def running(port: Port) -> JobId:
    """Two components that run."""
    leader = port.made(port.request(), port.request(tasks=2))
    port.desk.started(leader)
    return leader


def waiting(port: Port, *components: dict[str, object]) -> JobId:
    """Components of which one cannot start."""
    return port.made(*[port.request(**fields) for fields in components])


def chosen_id() -> JobId:
    """Far above those that Slurm gives."""
    return JobId(10_000_000 + secrets.randbelow(50_000_000))


def whole(port: Port, leader: JobId) -> JobView:
    """The job as its leader shows it."""
    view = port.client.job(leader)
    assert view is not None
    return view


def ids_of(port: Port, leader: JobId) -> list[JobId]:
    """The ids of all components that Slurm remembers."""
    return [one.job_id for one in port.client.components(leader)]


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
    chosen = chosen_id()
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


def test_leaders_and_other_jobs_end_by_one_order(each_port: Port) -> None:
    """Every component of each; the ids of leaders are chosen, as those of placeholders are."""
    leader = each_port.made(each_port.request(hold=True, job_id=chosen_id()), each_port.request(hold=True, tasks=2))
    other = each_port.held()
    assert each_port.client.cancel_many([leader, other]) == {one: Done(job_id=one) for one in (leader, other)}
    ended = each_port.client.states([leader, other])
    assert [(ended[one].phase, ended[one].torn) for one in (leader, other)] == [(Phase.ENDED, False)] * 2


def test_a_refused_component_refuses_the_whole(each_port: Port) -> None:
    """Nothing of it lives on."""
    owner = each_port.owner()
    outcome = each_port.submit(each_port.request(owner=owner), each_port.request(partition="nowhere"))
    assert isinstance(outcome, Refused)
    assert all(job.state.phase is Phase.ENDED for job in each_port.client.find(owner))


def test_a_server_of_today_takes_components(each_port: Port) -> None:
    """Whatever API version is spoken: what counts is its release."""
    assert each_port.client.heterogeneous()


def test_components_come_in_order(each_port: Port) -> None:
    """The leader first, also when its id was chosen and is the highest; a plain job is its only component."""
    others = [each_port.request(hold=True, tasks=count) for count in (2, 3)]
    leader = each_port.made(each_port.request(hold=True, job_id=chosen_id()), *others)
    found = each_port.client.components(leader)
    assert [(one.het_offset, one.tasks, one.het_job_id) for one in found] == [
        (0, 1, leader),
        (1, 2, leader),
        (2, 3, leader),
    ]
    assert [component.offset for component in each_port.client.states([leader])[leader].components] == [0, 1, 2]
    alone = each_port.held()
    assert ids_of(each_port, alone) == [alone]
    assert ids_of(each_port, JobId(67_000_000)) == []


def test_lists_have_the_leader_only(each_port: Port) -> None:
    """A list or a search returns one job: components would be taken for placeholders of their own."""
    owner = each_port.owner()
    leader = each_port.made(*[each_port.request(owner=owner, hold=True) for _ in range(3)])
    components = set(ids_of(each_port, leader)) - {leader}
    assert len(components) == 2
    assert [one.job_id for one in each_port.client.find(owner)] == [leader]
    assert not components & {one.job_id for one in each_port.client.jobs()}
    states = each_port.client.states()
    assert len(states[leader].components) == 3
    assert not components & states.keys()


def test_every_component_says_whose_it_is(each_port: Port) -> None:
    """A note reaches the leader's record only."""
    owner = each_port.owner()
    leader = each_port.made(each_port.request(owner=owner, hold=True), each_port.request(hold=True))
    noted = msgspec.structs.replace(owner, note="a last word")
    assert isinstance(each_port.client.note(leader, noted), Done)
    assert [one.owner for one in each_port.client.components(leader)] == [noted, owner]
    assert whole(each_port, leader).owner == noted


def test_a_heterogeneous_job_is_not_changed(each_port: Port) -> None:
    """Slurm would change the leader alone: refused before it is asked."""
    leader = held(each_port)
    request = each_port.request(tasks=3, components=(each_port.request(),))
    outcome = each_port.client.update(leader, request)
    assert isinstance(outcome, Refused)
    assert outcome.why is Refusal.INVALID
    assert [one.tasks for one in each_port.client.components(leader)] == [1, 2]


def test_components_differ_in_everything(port: Port) -> None:
    """Partition, GPUs, memory, nodes and priority, each as asked; each allocation is its own component's."""
    (left_out,) = port.desk.idle("plain")
    leader = port.made(
        port.request(partition="gpu", constraints="gpu", gres=(Gres(name="gpu", count=2),), priority=4000),
        port.request(tasks=4, memory=Memory(mib=50, per=MemoryPer.CPU), excluded_nodes=(left_out,), priority=3000),
        port.request(tasks=2, minimum_nodes=2, memory=Memory(mib=77), excluded_nodes=(left_out,), priority=2000),
    )
    port.desk.started(leader)
    found = [port.client.allocation(job_id) for job_id in ids_of(port, leader)]
    shares = [one.shares for one in found if one is not None]
    assert [[(one.cpus, one.memory_mib) for one in each] for each in shares] == [[(1, 100)], [(4, 200)], [(1, 77)] * 2]
    assert [one.count for one in shares[0][0].gres if one.name == "gpu" and one.count] == [2]
    nodes = [one.node for each in shares for one in each]
    assert len(nodes) == len(set(nodes)) == 4
    assert left_out not in nodes


@pytest.mark.parametrize("first", [True, False])
def test_one_that_cannot_start_keeps_all_and_says_why(port: Port, first: bool) -> None:
    """The leader shows the reason of whichever component has one; the others only wait for resources."""
    stuck: dict[str, object] = {"partition": "limited", "time_limit_minutes": 100}
    leader = waiting(port, *((stuck, {}) if first else ({}, stuck)))
    port.desk.until(lambda: whole(port, leader).reason == "PartitionTimeLimit", "the reason is told")
    others = [one.reason for one in port.client.components(leader)]
    assert sorted(others) in (["", "PartitionTimeLimit"], ["PartitionTimeLimit", "Resources"])
    assert port.client.states([leader])[leader].phase is Phase.PENDING


@pytest.mark.parametrize("first", [True, False])
def test_one_that_is_held_holds_all(port: Port, first: bool) -> None:
    """Whichever it is."""
    leader = waiting(port, {"hold": first}, {"hold": not first})
    view = whole(port, leader)
    assert (view.held, view.reason) == (True, "JobHeldUser")
    assert port.desk.stays(lambda: port.client.states([leader])[leader].phase is Phase.PENDING, leader + first, looks=1)


def test_a_pending_job_that_lost_a_component_is_torn(port: Port) -> None:
    """It would wait for ever; cancelling it ends the rest."""
    leader = waiting(port, {}, {"hold": True}, {})
    port.client.cancel(JobId(leader + 1))
    assert port.client.states([leader])[leader].torn
    assert whole(port, leader).torn
    port.client.cancel(leader)
    assert not whole(port, leader).torn
    assert port.client.states([leader])[leader].phase is Phase.ENDED


def test_what_a_refused_submit_leaves_behind_is_over(each_port: Port) -> None:
    """A cancelled leader of one, which takes the chosen id: the second try has to choose another."""
    chosen, owner = chosen_id(), each_port.owner()
    requests = (each_port.request(owner=owner, job_id=chosen), each_port.request(owner=owner, cpus_per_task=1000))
    outcome = each_port.submit(*requests)
    assert isinstance(outcome, Refused)
    assert outcome.why is Refusal.INVALID
    view = whole(each_port, chosen)
    assert (view.state.phase, view.torn, view.owner) == (Phase.ENDED, False, owner)
    again = each_port.submit(*requests)
    assert isinstance(again, Refused)
    assert again.why is Refusal.EXISTS


def test_a_component_has_no_components(port: Port) -> None:
    """Nothing is sent."""
    nested = port.request(components=(port.request(components=(port.request(),)),))
    outcome = port.client.submit(nested)
    assert isinstance(outcome, Refused)
    assert outcome.why is Refusal.INVALID


def pass_limits(port: Port, early: Early) -> None:
    """Let time limits of a minute pass; the witness of another case must not miss what that does to its job."""
    port.desk.servers.pass_time(100)
    port.desk.until(lambda: {"TIMEOUT"} in early.short.seen, "a job times out", seconds=115)


@pytest.mark.ageing
def test_a_forgotten_component_still_tears_the_job(port: Port, early: Early) -> None:
    """jobs/state says nothing of it any more, the list of jobs does; it is not safe to ask for the leader alone.

    slurmctld 26.05.5 then reads the record that it has freed: the answer is an error for a while, or slurmctld dies.
    """
    leader = JobId(early.torn)
    pass_limits(port, early)
    port.desk.until(lambda: not port.desk.states(leader + 1), "the component is forgotten", seconds=100)
    assert not port.client.states([leader])[leader].torn
    listed = [one for one in port.client.jobs() if one.job_id == leader]
    assert [(one.state.phase, one.torn) for one in listed] == [(Phase.RUNNING, True)]
    assert isinstance(port.client.cancel(leader), Done | Refused)
    assert port.client.states([leader])[leader].phase is Phase.ENDED


@pytest.mark.ageing
def test_a_component_outlives_its_forgotten_leader(port: Port, early: Early) -> None:
    """Time limits are each component's own. What is left is listed itself, torn, and ended by its own id."""
    leader, left = JobId(early.left), JobId(early.left + 1)
    pass_limits(port, early)
    port.desk.until(lambda: port.desk.state(leader) != {"RUNNING"}, "the leader's time is over", seconds=115)
    port.desk.servers.pass_time(60)
    port.desk.until(lambda: not port.desk.states(leader), "the leader is forgotten", seconds=100)
    assert port.client.job(leader) is None
    found = port.client.find(slurm_early.owner(port.desk))
    assert (left, True) in [(one.job_id, one.torn) for one in found]
    assert whole(port, left).torn
    assert port.client.states()[left].phase is Phase.RUNNING
    assert isinstance(port.client.cancel(left), Done)
    assert not whole(port, left).torn
