"""Groups in trouble: jobs and components that are lost, forgotten or refused end no pod without reason."""

import dataclasses
import pathlib

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from tests.component.scheduler.gang_scenes import bound, gang, job_of, member, pair, parts, pending
from tests.component.scheduler.troubled_gangs import living
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import fleet
from tests.simulation.world import World

pytestmark = pytest.mark.thorough


def test_t43a_a_cancelled_pending_group_stays_parked_though_a_member_was_made_anew(bridge: Bridge) -> None:
    """An administrator's word about a job that never started is one about the group, whoever is its member now."""
    pods = pending(bridge)
    job = job_of(bridge)
    bridge.delete(pods[1])
    bridge.run(5)
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    bridge.run(2)
    member(bridge, pods[1])
    bridge.run(10)
    assert bridge.submits() == 1


def test_t29_nobody_is_bound_before_every_component_is_up(bridge: Bridge) -> None:
    """One whose first component runs while a node of the second one powers up has not started."""
    bridge.slurm.control.pause()
    pods = pair(bridge)
    bridge.run(2)
    first, second = sorted(parts(bridge), key=lambda one: one.offset)
    bridge.slurm.world.config = dataclasses.replace(bridge.slurm.world.config, configuring_seconds=20.0)
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.slurm.world.jobs[second.job_id].running)
    bridge.slurm.world.put(dataclasses.replace(bridge.of(first), configuring=False))
    bridge.run(6)
    assert not any(bound(bridge, pods))
    assert not bridge.of(first).over
    bridge.until(lambda: all(bound(bridge, pods)))


def test_a_group_ends_whole_when_its_leading_component_ends(bridge: Bridge) -> None:
    """The others hold their nodes no longer than their pods."""
    pods = pair(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    first, second = sorted(parts(bridge), key=lambda one: one.offset)
    bridge.slurm.control.end(first.job_id, "CANCELLED")
    bridge.until(lambda: all(bridge.leaving(name) for name in pods))
    bridge.until(lambda: bridge.of(second).over)


def test_components_of_a_running_group_survive_a_restart_of_the_daemon(bridge: Bridge) -> None:
    """None of them is taken for a second job."""
    pods = pair(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    bridge.start()
    bridge.run(60, step=2)
    assert not any(bridge.leaving(name) for name in pods)
    assert all(not job.over for job in parts(bridge))


def test_a_pod_whose_job_id_another_workload_has_now_is_not_one_of_its_members(bridge: Bridge) -> None:
    """Ids that Slurm counts come back after a crash; whoever has one now is no group of whoever had it."""
    bridge._given["slurm"] = {"job_ids": None}
    bridge.start()
    lost = bridge.bound("a")
    bridge.world.crash_slurm(30.0)
    bridge.slurm.control.pause()
    bridge.pod("b")
    bridge.settle()
    assert bridge.job("b").job_id == lost.job_id
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of("b"), 120)
    bridge.until(lambda: bridge.leaving("a"), 120)


def test_a_job_id_that_came_back_in_another_namespace_costs_nobody_his_job(bridge: Bridge) -> None:
    """Its owner there is not asked to submit a second one."""
    bridge._given["slurm"] = {"job_ids": None}
    bridge.start()
    bridge.kube.create(kinds.NAMESPACES, {"metadata": {"name": "other"}})
    lost = bridge.bound("a")
    bridge.world.crash_slurm(30.0)
    bridge.slurm.control.pause()
    uid = bridge.pod("b", "other")
    bridge.settle()
    assert [job.job_id for job in bridge.jobs(uid)] == [lost.job_id]
    bridge.run(30)
    assert [job.job_id for job in bridge.jobs(uid)] == [lost.job_id]


@pytest.mark.parametrize(("leader", "worker"), [("3", "2"), ("2", "1")])
def test_a_forgotten_job_of_different_pods_is_asked_for_again(bridge: Bridge, leader: str, worker: str) -> None:
    """Each component for the nodes of its own pods, a sum for the node that all of them are on."""
    pods = pair(bridge, leader=leader, worker=worker)
    bridge.until(lambda: all(bound(bridge, pods)))
    before = job_of(bridge)
    bridge.run(3)
    bridge.slurm.control.pause()
    bridge.world.crash_slurm(1e6)
    bridge.run(8)
    again = job_of(bridge)
    assert again.job_id == before.job_id
    bridge.slurm.control.unpause()
    bridge.run(40)
    assert bridge.of(again).running
    assert not any(bridge.leaving(name) for name in pods)


def test_a_component_whose_leader_was_forgotten_while_nobody_looked_is_ended_with_its_pods(bridge: Bridge) -> None:
    """The daemon was down meanwhile."""
    pods = pair(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    first, second = sorted(parts(bridge), key=lambda one: one.offset)
    bridge.slurm.control.end(first.job_id, "CANCELLED")
    del bridge.slurm.world.jobs[first.job_id]
    bridge.start()
    bridge.run(20)
    assert all(bridge.leaving(name) for name in pods)
    assert bridge.of(second).over


def test_a_component_job_that_waits_keeps_its_place_when_nodes_come_and_go(bridge: Bridge) -> None:
    """A closed node that it does not need is no reason to line up anew."""
    bridge.slurm.control.pause()
    pair(bridge)
    bridge.run(3)
    assert len(parts(bridge)) == 2
    for _ in range(3):
        bridge.world.cordon("n1", on=True)
        bridge.run(5)
        bridge.world.cordon("n1", on=False)
        bridge.run(5)
    assert bridge.submits() == 1


@pytest.mark.parametrize("gpu_type", ["", "v100"])
def test_a_forgotten_job_with_gpus_is_asked_for_again(tmp_path: pathlib.Path, gpu_type: str) -> None:
    """In the form and for the nodes that it had."""
    bridge = Bridge(tmp_path, world=World(1, tmp_path / "token", fleet=fleet.hall(8, gpu_type=gpu_type)))
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "1"}}}
    pods = [f"g-{number}" for number in range(8)]
    for name in pods:
        labels = {names.GROUP: "g", names.GROUP_SIZE: "8"}
        bridge.pod(name, labels=labels, spec={"containers": [container]})
    bridge.until(lambda: all(bound(bridge, pods)))
    before, nodes = job_of(bridge), bound(bridge, pods)
    bridge.run(3)
    bridge.slurm.control.pause()
    bridge.world.crash_slurm(1e6)
    bridge.run(8)
    again = job_of(bridge)
    assert again.job_id == before.job_id
    bridge.slurm.control.unpause()
    bridge.run(40)
    assert bridge.of(again).running
    assert bound(bridge, pods) == nodes
    assert not any(bridge.leaving(name) for name in pods)


def test_a_record_that_cannot_be_changed_any_more_does_not_keep_a_group_from_its_nodes(bridge: Bridge) -> None:
    """Every update of a job that names a node that has left Slurm is refused, for ever."""
    pods = pending(bridge)
    bridge.delete(pods[1])
    bridge.run(2)
    refused = b'{"errors": [{"error_number": 2018, "error": "Invalid node name specified", "source": "x"}]}'
    bridge.slurm_calls.plan(faults.Answer(422, refused), method="POST", target=r"/job/\d+", times=9999)
    bridge.slurm.control.unpause()
    bridge.world.pass_time(2)
    member(bridge, pods[1])
    bridge.until(lambda: all(bound(bridge, pods)))


@pytest.mark.parametrize("after", range(1, 30))
def test_a_group_survives_the_death_of_the_daemon_at_every_call(bridge: Bridge, after: int) -> None:
    """It is submitted once, bound as a whole, and ends with its job."""
    pods = [f"g-{number}" for number in range(3)]
    count = [0]

    class Dead(Exception):
        """The process is gone."""

    def die() -> None:
        count[0] += 1
        if count[0] == after:
            raise Dead

    bridge.slurm_calls.plan(faults.Meanwhile(die), method="*", target="", times=9999)
    bridge.kube_calls.plan(faults.Meanwhile(die), method="*", target="", times=9999)
    gang(bridge, size=3)
    try:
        bridge.run(6)
    except Dead:
        bridge.start()
    bridge.until(lambda: all(bound(bridge, pods)))
    assert len(living(bridge)) == 1
    bridge.slurm.control.end(job_of(bridge).job_id, "CANCELLED")
    bridge.until(lambda: not any(bridge.exists(name) for name in pods))


def test_t12_a_forgotten_pending_job_of_a_group_is_asked_for_under_its_id(bridge: Bridge) -> None:
    """Should it turn up after all, the id that is taken tells."""
    pending(bridge)
    job = job_of(bridge)
    bridge.run(5)
    bridge.world.crash_slurm(30.0)
    bridge.run(10)
    assert job_of(bridge).job_id == job.job_id
