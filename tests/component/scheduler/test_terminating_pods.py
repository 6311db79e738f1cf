"""Pods that are still on a node when Slurm gives the node to the next job: what newcomers do beside them."""

import pathlib

import pytest

from slurm_bridge.sim.slurm import state
from tests.component.scheduler import gang_scenes
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import fleet
from tests.simulation.world import World

HOSTNAME = "kubernetes.io/hostname"
EXCLUSIVE = {"slurmjob.slinky.slurm.net/exclusive": "true"}
GPU = "nvidia.com/gpu"
NEWCOMERS = ("new-0", "new-1", "new-2")


def on(node: str) -> dict[str, object]:
    """Only there."""
    return {"nodeSelector": {HOSTNAME: node}}


def wide(folder: pathlib.Path) -> Bridge:
    """Eight nodes of four cpus, which Slurm fills in this order; others have three cpus of n1 and one of n3."""
    return Bridge(folder, world=World(1, folder / "token", fleet=fleet.WIDE))


def container(**requests: str) -> dict[str, object]:
    """The one container of a pod, with other requests or ports."""
    return {
        "name": "main",
        "image": "none",
        "resources": {"requests": {"cpu": "1", **requests}, "limits": {**requests}},
    }


def hanging(bridge: Bridge, node: str, word: str = "CANCELLED", **changes: object) -> None:
    """A pod whose job has ended, and that does not end."""
    changes["spec"] = {**on(node), **changes.pop("spec", {})}  # type: ignore[dict-item]
    old = bridge.bound("old", annotations={"kwok.local/terminating": "hang"}, **changes)
    bridge.slurm.control.end(old.job_id, word)
    bridge.until(lambda: bridge.leaving("old"), 20)


def jobs_of(bridge: Bridge, name: str) -> list[state.SlurmJob]:
    """All jobs of a pod, the oldest first."""
    return bridge.jobs(bridge.uid(name))


def nodes_of(bridge: Bridge, name: str) -> list[str]:
    """The nodes that Slurm gave to the jobs of a pod, one after the other."""
    return [node for job in jobs_of(bridge, name) if job.grant is not None for node in job.grant.nodes]


def test_a_pod_is_bound_beside_one_that_does_not_end_when_the_node_has_room_for_both(bridge: Bridge) -> None:
    """It takes no minute, and no second job."""
    hanging(bridge, "n4")
    bridge.pod("new", spec=on("n4"))
    bridge.run(5)
    assert bridge.node_of("new") == "n4"
    assert len(jobs_of(bridge, "new")) == 1


def test_newcomers_leave_a_full_node_at_once_when_others_have_room(tmp_path: pathlib.Path) -> None:
    """All of them are bound within seconds, and none on that node."""
    bridge = wide(tmp_path)
    hanging(bridge, "n2", cpu="3")
    for name in NEWCOMERS:
        bridge.pod(name, cpu="3")
    bridge.run(5)
    assert {bridge.node_of(name) for name in NEWCOMERS} == {"n3", "n4", "n5"}
    given_back = [job for name in NEWCOMERS for job in jobs_of(bridge, name) if job.over]
    assert [job.grant.nodes for job in given_back if job.grant is not None] == [("n2",)]
    assert "still runs pod default/old" in bridge.note(given_back[0])


def test_all_nodes_with_such_pods_are_left_in_one_step(tmp_path: pathlib.Path) -> None:
    """Slurm would give one after the other, and each would cost a job."""
    bridge = wide(tmp_path)
    names = [f"old-{number}" for number in range(4)]
    for name in names:
        bridge.bound(name, cpu="3", annotations={"kwok.local/terminating": "hang"})
    for name in names:
        bridge.slurm.control.end(bridge.job(name).job_id, "TIMEOUT")
    bridge.until(lambda: all(bridge.leaving(name) for name in names), 20)
    bridge.pod("new", cpu="3")
    bridge.run(5)
    assert bridge.node_of("new")
    assert len(jobs_of(bridge, "new")) == 2


def test_a_node_is_avoided_for_as_long_as_the_pod_is_there_and_not_longer(bridge: Bridge) -> None:
    """Hours later no job has been submitted for the node; the end of the pod brings it at once."""
    hanging(bridge, "n4", cpu="4")
    bridge.pod("new", cpu="4", spec=on("n4"))
    bridge.until(lambda: bool(jobs_of(bridge, "new")) and jobs_of(bridge, "new")[0].over, 90)
    bridge.run(4000, step=10)
    assert bridge.submits() == 2
    bridge.delete("old", grace=0)
    bridge.run(2)
    assert bridge.node_of("new") == "n4"


def test_a_full_cluster_loses_no_job_to_a_pod_that_takes_its_time(tmp_path: pathlib.Path) -> None:
    """There is nothing to be had elsewhere: the job keeps its place, and its node as soon as the pod is gone."""
    bridge = wide(tmp_path)
    for number in range(2, 8):
        bridge.bound(f"full-{number}", cpu="3", spec=on(f"n{number}"))
    old = bridge.bound("old", cpu="3", spec=on("n8"), annotations={"kwok.local/terminating": "20s"})
    bridge.pod("new", cpu="3")
    bridge.settle()
    bridge.slurm.control.end(old.job_id, "CANCELLED")
    bridge.until(lambda: bridge.node_of("new"), 40)
    assert bridge.node_of("new") == "n8"
    assert len(jobs_of(bridge, "new")) == 1


def test_a_job_for_which_slurm_has_preempted_another_keeps_its_node(tmp_path: pathlib.Path) -> None:
    """Whatever it left, Slurm would preempt the next job for it."""
    bridge = wide(tmp_path)
    hanging(bridge, "n2", "PREEMPTED", cpu="4")
    bridge.pod("new", cpu="4")
    bridge.until(lambda: bridge.condition("new")[0] == "NodeNotVacated", 10)
    bridge.run(20)
    assert len(jobs_of(bridge, "new")) == 1
    bridge.delete("old", grace=0)
    bridge.run(2)
    assert bridge.node_of("new") == "n2"


def test_an_exclusive_job_leaves_a_node_with_an_earlier_pod_though_there_is_room(tmp_path: pathlib.Path) -> None:
    """Slurm gave it the whole node."""
    bridge = wide(tmp_path)
    hanging(bridge, "n2")
    bridge.pod("new", annotations=EXCLUSIVE)
    bridge.run(5)
    assert bridge.node_of("new") == "n3"
    assert nodes_of(bridge, "new") == ["n2", "n3"]


def test_an_exclusive_job_waits_when_no_other_node_is_empty(bridge: Bridge) -> None:
    """It waits for the pod's end."""
    hanging(bridge, "n4")
    bridge.pod("new", annotations=EXCLUSIVE, spec=on("n4"))
    bridge.until(lambda: bridge.condition("new")[0] == "NodeNotVacated", 20)
    bridge.run(20)
    assert not bridge.node_of("new")
    assert len(jobs_of(bridge, "new")) == 1


def test_devices_that_are_still_in_use_send_newcomers_to_another_node(tmp_path: pathlib.Path) -> None:
    """The node has cpus and memory for both; its kubelet has no device left."""
    bridge = Bridge(tmp_path, world=World(1, tmp_path / "token", fleet=fleet.hall(6)))
    hanging(bridge, "n01", spec={"containers": [container(**{GPU: "4"})]})
    bridge.pod("new", spec={"containers": [container(**{GPU: "1"})]})
    bridge.run(5)
    assert nodes_of(bridge, "new") == ["n01", "n03"]
    assert bridge.node_of("new") == "n03"


def test_a_host_port_that_is_still_taken_sends_the_newcomer_to_another_node(tmp_path: pathlib.Path) -> None:
    """Slurm does not count ports, and the kubelet refuses the pod."""
    bridge = Bridge(tmp_path, world=World(1, tmp_path / "token", fleet=fleet.WIDE), unhonoured="ignore")
    spec = {"containers": [{**container(), "ports": [{"containerPort": 80, "hostPort": 8080}]}]}
    hanging(bridge, "n2", spec=spec)
    bridge.pod("new", cpu="4", spec={"containers": [{**spec["containers"][0], **container(cpu="3")}]})
    bridge.run(5)
    assert bridge.node_of("new") == "n3"


def test_a_gang_leaves_as_a_whole(tmp_path: pathlib.Path) -> None:
    """One of its nodes is still in use: none of its pods is bound there, nor on the other nodes of that job."""
    bridge = wide(tmp_path)
    hanging(bridge, "n3", cpu="3")
    pods = gang_scenes.gang(bridge, 3, cpu="3")
    bridge.until(lambda: all(gang_scenes.bound(bridge, pods)), 10)
    assert set(gang_scenes.bound(bridge, pods)) == {"n2", "n4", "n5"}
    assert len(bridge.jobs("Group:default/g")) == 2


def test_a_heterogeneous_gang_leaves_as_a_whole(tmp_path: pathlib.Path) -> None:
    """All components go with the one whose node is still in use."""
    bridge = wide(tmp_path)
    hanging(bridge, "n2", cpu="4")
    pods = gang_scenes.pair(bridge, leader="4", worker="3")
    bridge.until(lambda: all(gang_scenes.bound(bridge, pods)), 60)
    assert "n2" not in gang_scenes.bound(bridge, pods)


def test_a_pod_whose_ended_job_slurm_has_forgotten_is_still_there(tmp_path: pathlib.Path) -> None:
    """Slurm remembers ended jobs for a while only: some pods end later."""
    bridge = wide(tmp_path)
    hanging(bridge, "n2", cpu="4")
    bridge.run(900, step=10)
    bridge.pod("new", cpu="3")
    bridge.run(5)
    assert bridge.node_of("new") == "n3"


def test_a_restart_forgets_the_nodes_and_finds_them_out_again(tmp_path: pathlib.Path) -> None:
    """What is known of bad nodes is lost with the process, and costs one more job."""
    bridge = wide(tmp_path)
    hanging(bridge, "n2", cpu="4")
    bridge.pod("first", cpu="4")
    bridge.run(5)
    bridge.start()
    bridge.pod("new", cpu="4")
    bridge.run(6)
    assert bridge.node_of("new")
    assert "n2" not in (bridge.node_of("first"), bridge.node_of("new"))


@pytest.mark.parametrize("label", ["1", "4294967295", "-7"])
def test_a_forged_job_on_a_pod_that_does_not_end_keeps_no_room(tmp_path: pathlib.Path, label: str) -> None:
    """A stranger's pod without requests names a job that is not its own: newcomers are bound beside it."""
    bridge = wide(tmp_path)
    spec = {**on("n2"), "nodeName": "n2", "containers": [{"name": "main", "image": "none"}]}
    labels = {"scheduler.slinky.slurm.net/slurm-jobid": label}
    bridge.pod("forged", labels=labels, spec=spec, finalizers=["example.com/hold"])
    bridge.delete("forged")
    bridge.pod("new", cpu="4")
    bridge.run(5)
    assert bridge.node_of("new") == "n2"
    assert len(jobs_of(bridge, "new")) == 1


def forgotten(bridge: Bridge, node: str, cpu: str) -> state.SlurmJob:
    """A running pod whose job slurmctld has lost, and that is submitted again, but cannot start yet."""
    old = bridge.bound("old", cpu=cpu, spec=on(node))
    bridge.run(3)
    bridge.slurm.control.pause()
    bridge.world.crash_slurm(1e6)
    bridge.run(8)
    bridge.slurm.control.hold(old.job_id)
    bridge.slurm.control.unpause()
    return old


def test_a_newcomer_gives_way_at_once_to_a_restored_job(tmp_path: pathlib.Path) -> None:
    """Its allocation is what keeps the restored job from its node; it goes elsewhere, and the running pod stays."""
    bridge = wide(tmp_path)
    old = forgotten(bridge, "n1", "1")
    bridge.pod("new", cpu="4")
    bridge.run(4)
    assert nodes_of(bridge, "new") == ["n1", "n2"]
    assert bridge.node_of("new") == "n2"
    bridge.slurm.control.release(old.job_id)
    bridge.until(lambda: bridge.of(old).running, 5)
    assert not bridge.leaving("old")


def test_a_newcomer_waits_a_moment_where_both_have_room(bridge: Bridge) -> None:
    """Slurm can start the restored job beside it, and its start wakes the newcomer."""
    old = forgotten(bridge, "n4", "1")
    bridge.pod("new", spec=on("n4"))
    bridge.until(lambda: bridge.condition("new")[0] == "NodeNotVacated", 5)
    bridge.slurm.control.release(old.job_id)
    bridge.until(lambda: bridge.node_of("new") == "n4", 6)
    assert bridge.of(old).running
    assert len(jobs_of(bridge, "new")) == 1


def test_a_node_that_waits_for_a_restored_job_is_avoided_until_that_job_has_it(bridge: Bridge) -> None:
    """Then the newcomer may have what is left of it, at once."""
    old = forgotten(bridge, "n4", "3")
    bridge.pod("new", cpu="2", spec=on("n4"))
    bridge.pod("small", cpu="1", spec=on("n4"))
    bridge.run(60)
    assert [bridge.node_of(name) for name in ("new", "small")] == ["", ""]
    bridge.slurm.control.release(old.job_id)
    bridge.run(10)
    assert bridge.node_of("small") == "n4"
    assert not bridge.node_of("new")
    assert not bridge.leaving("old")
