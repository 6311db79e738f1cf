"""Pods that start together or not at all: one job for all of them, from the first member to the end of the last."""

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from tests.component.scheduler.gang_scenes import bound, gang, job_of, member, pending, running
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE


def test_t12_a_group_is_one_job(bridge: Bridge) -> None:
    """Submitted once, with a task for each pod, and bound where it is."""
    pods = running(bridge, size=6)
    job = job_of(bridge)
    assert bridge.submits() == 1
    assert job.ask.tasks == 6
    assert {bridge.manifest(name)["metadata"]["labels"][names.LABEL_JOB_ID] for name in pods} == {str(job.job_id)}


def test_t12a_members_share_nodes(bridge: Bridge) -> None:
    """Four pods of one cpu each need no node for each of them."""
    pods = running(bridge, size=4)
    assert len(set(bound(bridge, pods))) < 4


def test_t26_members_follow_each_other_over_the_nodes(bridge: Bridge) -> None:
    """Rank order is node order: whoever is next to each other in rank is on the same node or the next."""
    pods = running(bridge, size=8)
    nodes = bound(bridge, pods)
    assert nodes == sorted(nodes)


def test_nothing_is_submitted_before_all_are_there(bridge: Bridge) -> None:
    """The reason says how many are."""
    for name in ("g-0", "g-1", "g-2"):
        member(bridge, name)
    bridge.run(10)
    assert bridge.submits() == 0
    reason, message = bridge.condition("g-0")
    assert reason == "GangIncomplete"
    assert "3 of 4" in message
    member(bridge, "g-3")
    bridge.until(lambda: bridge.node_of("g-0"))


def test_t10_groups_of_one_name_in_two_namespaces_stay_apart(bridge: Bridge) -> None:
    """Two pods here and two there are no four."""
    labels = {names.GROUP: "g", names.GROUP_SIZE: "4"}
    bridge.kube.create(kinds.NAMESPACES, {"metadata": {"name": "other"}})
    for number in range(2):
        member(bridge, f"g-{number}")
        bridge.pod(f"g-{number}", "other", labels=labels)
    bridge.run(10)
    assert bridge.submits() == 0


def test_t11_members_that_are_over_do_not_count(bridge: Bridge) -> None:
    """Three that live and one that has failed are three."""
    for name in ("g-0", "g-1", "g-2", "g-3"):
        member(bridge, name)
        if name == "g-1":
            bridge.status(name, phase="Failed")
    bridge.run(10)
    assert bridge.submits() == 0


def test_t39_a_group_whose_pods_all_go_takes_its_job_with_it(bridge: Bridge) -> None:
    """Before it has started."""
    pods = pending(bridge)
    for name in pods:
        bridge.delete(name)
    bridge.run(3)
    assert all(job.over for job in bridge.jobs())


def test_t43_a_member_that_is_made_anew_before_the_start_keeps_the_job(bridge: Bridge) -> None:
    """The job waits on under its old age, and says for whom it is now."""
    pods = pending(bridge)
    before = job_of(bridge)
    bridge.delete(pods[1])
    bridge.run(2)
    member(bridge, pods[1])
    bridge.run(3)
    after = job_of(bridge)
    assert after.job_id == before.job_id
    assert bridge.world.observer.owner(after) != bridge.world.observer.owner(before)
    bridge.slurm.control.unpause()
    bridge.until(lambda: all(bound(bridge, pods)))
    assert bridge.submits() == 1


def test_t43_a_member_that_stays_away_takes_the_job_with_it(bridge: Bridge) -> None:
    """After a while; the group waits, and says for what."""
    pods = pending(bridge)
    bridge.delete(pods[1])
    bridge.run(60)
    assert all(job.over for job in bridge.jobs())
    assert bridge.condition(pods[0])[0] == "GangIncomplete"
    member(bridge, pods[1])
    bridge.slurm.control.unpause()
    bridge.until(lambda: all(bound(bridge, pods)))


def test_t31_a_running_group_ends_with_its_job(bridge: Bridge) -> None:
    """All of its pods."""
    pods = running(bridge)
    bridge.slurm.control.end(job_of(bridge).job_id, "CANCELLED")
    bridge.until(lambda: all(bridge.leaving(name) for name in pods))


def test_t43a_a_pending_group_whose_job_is_cancelled_is_parked(bridge: Bridge) -> None:
    """Every member knows, and nothing is submitted again before a user wants it."""
    pods = pending(bridge)
    bridge.slurm.control.end(job_of(bridge).job_id, "CANCELLED")
    bridge.run(10)
    assert bridge.submits() == 1
    assert all(bridge.park_note(name) for name in pods)
    bridge.slurm.control.unpause()
    bridge.annotate(pods[2], retry="1")
    bridge.until(lambda: all(bound(bridge, pods)))


def test_t42_replacements_of_an_ended_group_get_their_own_job(bridge: Bridge) -> None:
    """They are not parked for the end of a job that others ran by."""
    pods = running(bridge)
    first = job_of(bridge)
    bridge.slurm.control.end(first.job_id, "CANCELLED")
    bridge.until(lambda: not any(bridge.exists(name) for name in pods))
    gang(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    assert job_of(bridge).job_id != first.job_id


def test_a_replacement_takes_the_place_of_the_one_that_went(bridge: Bridge) -> None:
    """The others run on, and nothing is asked of Slurm."""
    pods = running(bridge, size=4, cpu="2")
    where = bridge.node_of(pods[1])
    bridge.delete(pods[1], grace=0)
    bridge.run(2)
    member(bridge, "g-9", cpu="2")
    bridge.until(lambda: bridge.node_of("g-9"))
    assert bridge.node_of("g-9") == where
    assert bridge.submits() == 1


def test_whoever_comes_late_waits_for_a_place(bridge: Bridge) -> None:
    """A fifth pod of four has none until one leaves."""
    pods = running(bridge)
    member(bridge, "g-late")
    bridge.run(5)
    assert bridge.condition("g-late")[0] == "GangFull"
    bridge.delete(pods[0], grace=0)
    bridge.until(lambda: bridge.node_of("g-late"))


def test_a_group_that_restarts_as_a_whole_ends_when_one_is_lost(bridge: Bridge) -> None:
    """And starts anew, by another job, when all are there again."""
    pods = running(bridge, lost="restart-group")
    first = job_of(bridge)
    bridge.status(pods[1], phase="Failed")
    bridge.until(lambda: all(bridge.leaving(name) for name in pods if name != pods[1]))
    bridge.until(lambda: bridge.of(first).over)
    bridge.delete(pods[1], grace=0)
    gang(bridge, lost="restart-group")
    bridge.until(lambda: all(bound(bridge, pods)))
    assert job_of(bridge).job_id != first.job_id


@pytest.mark.parametrize("after", range(4))
def test_a_start_that_is_interrupted_goes_on_where_it_was(bridge: Bridge, after: int) -> None:
    """However many were bound when the daemon died: the rest comes to the same nodes, by the same job."""
    bridge.kube_calls.plan(faults.Reset(acted=False), method="POST", target="/binding", times=99, nth=after + 1)
    pods = gang(bridge, cpu="2")
    bridge.run(5)
    assert sum(map(bool, bound(bridge, pods))) == after
    nodes = bound(bridge, pods)
    bridge.start()
    bridge.until(lambda: all(bound(bridge, pods)))
    assert bridge.submits() == 0
    assert [now for now, before in zip(bound(bridge, pods), nodes, strict=True) if before] == [n for n in nodes if n]
    assert bound(bridge, pods) == sorted(bound(bridge, pods))


def test_a_start_that_cannot_be_finished_is_undone(bridge: Bridge) -> None:
    """After its time is over all are ended, and their job with them."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=9999, nth=3)
    pods = gang(bridge)
    bridge.run(5)
    assert 0 < sum(map(bool, bound(bridge, pods))) < 4
    bridge.run(400, step=5)
    assert not any(bound(bridge, [name for name in pods if bridge.exists(name)]))
    assert all(bridge.leaving(name) for name in pods[:2])


def test_more_members_join_a_job_that_pends(bridge: Bridge) -> None:
    """By an update of the same job, once they have settled."""
    bridge.kube.create(
        kinds.COSCHEDULING_PODGROUPS, {"metadata": {"name": "pg", "namespace": NAMESPACE}, "spec": {"minMember": 2}}
    )
    bridge.slurm.control.pause()
    for number in range(2):
        bridge.pod(f"p-{number}", labels={names.LABEL_COSCHEDULING: "pg"})
    bridge.run(5)
    (job,) = [job for job in bridge.jobs() if not job.over]
    assert job.ask.tasks == 2
    bridge.pod("p-2", labels={names.LABEL_COSCHEDULING: "pg"})
    bridge.run(5)
    assert bridge.of(job).ask.tasks == 3
    bridge.slurm.control.unpause()
    bridge.until(lambda: all(bound(bridge, ["p-0", "p-1", "p-2"])))
    assert bridge.submits() == 1


def test_a_burst_of_members_is_submitted_once(bridge: Bridge) -> None:
    """Where nobody says how many there will be, it waits until no more come."""
    bridge.kube.create(
        kinds.COSCHEDULING_PODGROUPS, {"metadata": {"name": "pg", "namespace": NAMESPACE}, "spec": {"minMember": 2}}
    )
    for number in range(8):
        bridge.pod(f"p-{number}", labels={names.LABEL_COSCHEDULING: "pg"})
        bridge.step(0.1)
    bridge.until(lambda: bridge.node_of("p-7"))
    assert bridge.submits() == 1


def test_pods_stay_with_the_job_that_they_were_bound_by(bridge: Bridge) -> None:
    """Whatever they would belong to if they came today: a label that is taken away ends nobody."""
    pods = running(bridge)
    for name in pods:
        bridge.kube.merge(kinds.PODS, (NAMESPACE, name), {"metadata": {"labels": {names.GROUP: None}}})
    bridge.start()
    bridge.run(60, step=2)
    assert all(bound(bridge, pods))
    assert not any(bridge.leaving(name) for name in pods)
    assert not job_of(bridge).over


def test_t18_a_forgotten_job_of_a_group_is_asked_for_again(bridge: Bridge) -> None:
    """Under its id and for the nodes that its pods are on."""
    pods = running(bridge, size=6)
    job, nodes = job_of(bridge), set(bound(bridge, pods))
    bridge.run(3)
    bridge.slurm.control.pause()
    bridge.world.crash_slurm(1e6)
    bridge.run(8)
    again = job_of(bridge)
    assert again.job_id == job.job_id
    assert (again.ask.required, again.ask.minimum_nodes) == ((), len(nodes))
    assert not nodes.intersection(again.ask.excluded)
    assert len(nodes) + len(again.ask.excluded) == len(bridge.slurm.world.nodes)
    bridge.slurm.control.unpause()
    bridge.run(8)
    assert bridge.of(job).running
    assert not any(bridge.leaving(name) for name in pods)
