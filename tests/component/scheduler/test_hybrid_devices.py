"""Device plugins beside native jobs: a pod never gets a device of which Slurm may have given it to a native job."""

import dataclasses
import pathlib
from typing import Any

import pytest

from slurm_bridge.model import kinds
from tests.component.scheduler.gang_scenes import member
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import fleet
from tests.simulation.world import World

GPU = "nvidia.com/gpu"
#: GPUs are on the node that native jobs share, and nowhere else.
SHARED_ONLY = dataclasses.replace(fleet.PLUGGED, gpus={"n1": 4})


def bridge_of(folder: pathlib.Path, machines: fleet.Fleet, **settings: Any) -> Bridge:
    """A daemon on these machines."""
    return Bridge(folder, world=World(1, folder / "token", fleet=machines), **settings)


def asking(amount: int = 1, where: str = "containers", kind: str = "limits") -> dict[str, object]:
    """The spec of a pod that asks for GPUs there."""
    main = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "500Mi"}}}
    first = {"name": "first", "image": "none", "resources": {kind: {GPU: str(amount)}}}
    if where == "containers":
        return {"containers": [main, first]}
    return {"containers": [main], where: [first]}


def emptied(bridge: Bridge) -> Bridge:
    """The jobs that were there before have ended."""
    for job in list(bridge.slurm.world.jobs.values()):
        bridge.slurm.control.end(job.job_id)
    return bridge


def native(bridge: Bridge) -> int:
    """A job of another user that has a GPU of the shared node."""
    job_id = bridge.world.submit("training", flags=[], required_nodes="n1", tres_per_node="gres/gpu:1")
    bridge.until(lambda: bridge.slurm.world.jobs[job_id].running)
    return job_id


@pytest.mark.security("neighbours")
@pytest.mark.parametrize(
    "spec", [asking(), asking(where="initContainers"), asking(kind="requests")], ids=["limits", "init", "requests"]
)
def test_a_pod_goes_where_only_pods_are(tmp_path: pathlib.Path, spec: dict[str, object]) -> None:
    """Wherever its spec asks for the device."""
    bridge = bridge_of(tmp_path, fleet.PLUGGED)
    for number in range(3):
        bridge.bound(f"p{number}", spec=spec)
    assert {bridge.node_of(f"p{number}") for number in range(3)} == {"n2"}
    assert "n1" in bridge.job("p0").ask.excluded


def test_where_nothing_else_is_left_the_pod_is_told(tmp_path: pathlib.Path) -> None:
    """Nothing is submitted; a pod without devices shares the node."""
    bridge = bridge_of(tmp_path, SHARED_ONLY)
    bridge.pod("a", spec=asking())
    bridge.run(5)
    reason, message = bridge.condition("a")
    assert (reason, bridge.jobs(bridge.uid("a"))) == ("Unschedulable", [])
    assert "1 node(s) had nvidia.com/gpu that native Slurm jobs may hold" in message
    assert "hybrid_devices: refuse" in message
    bridge.bound("b", spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}})


def test_a_pod_has_the_node_for_itself(tmp_path: pathlib.Path) -> None:
    """It waits for the native job, and the next native job waits for it."""
    bridge = emptied(bridge_of(tmp_path, SHARED_ONLY, hybrid_devices="whole-node"))
    before = native(bridge)
    bridge.pod("a", spec=asking())
    bridge.run(10)
    assert (bridge.node_of("a"), bridge.job("a").pending) == ("", True)
    bridge.slurm.control.end(before)
    bridge.until(lambda: bridge.node_of("a") == "n1")
    after = bridge.world.submit("more", flags=[], required_nodes="n1")
    bridge.run(5)
    assert bridge.slurm.world.jobs[after].pending
    bridge.delete("a", grace=0)
    bridge.until(lambda: bridge.slurm.world.jobs[after].running)
    assert bridge.slurm.world.jobs[before].over


def test_the_pods_of_a_gang_share_their_node(tmp_path: pathlib.Path) -> None:
    """No other job is there; among themselves the device plugin decides."""
    bridge = emptied(bridge_of(tmp_path, SHARED_ONLY, hybrid_devices="whole-node"))
    for number in range(2):
        member(bridge, f"g-{number}", size=2, spec=asking())
    bridge.until(lambda: all(bridge.node_of(f"g-{number}") for number in range(2)))
    assert {bridge.node_of(f"g-{number}") for number in range(2)} == {"n1"}


def test_a_change_of_the_setting_reaches_pods_that_wait(tmp_path: pathlib.Path) -> None:
    """The next daemon does what is configured then; a native job is not touched."""
    bridge = bridge_of(tmp_path, SHARED_ONLY)
    job_id = native(bridge)
    bridge.pod("a", spec=asking())
    bridge.run(5)
    later = Bridge(tmp_path, world=bridge.world, hybrid_devices="whole-node")
    later.until(lambda: later.jobs(later.uid("a")))
    assert later.job("a").ask.exclusive
    assert later.slurm.world.jobs[job_id].running


def test_a_pod_that_waits_keeps_its_job_while_nodes_come_and_go(tmp_path: pathlib.Path) -> None:
    """It would lose its place in the queue each time that the shared node is cordoned."""
    bridge = emptied(bridge_of(tmp_path, fleet.PLUGGED, hybrid_devices="whole-node"))
    for name in ("n1", "n2"):
        bridge.bound(f"on-{name}", spec={**asking(4), "nodeSelector": {"kubernetes.io/hostname": name}})
    bridge.pod("a", spec=asking())
    bridge.until(lambda: bridge.jobs(bridge.uid("a")))
    for cordoned in (True, False):
        bridge.kube.merge(kinds.NODES, ("", "n1"), {"spec": {"unschedulable": cordoned}})
        bridge.run(20)
    assert [job.pending for job in bridge.jobs(bridge.uid("a"))] == [True]


@pytest.mark.security("neighbours")
def test_a_job_that_slurm_forgot_gets_the_whole_node_again(tmp_path: pathlib.Path) -> None:
    """No native job starts beside the pod, which runs on with its device."""
    bridge = emptied(bridge_of(tmp_path, SHARED_ONLY, hybrid_devices="whole-node"))
    job = bridge.bound("a", spec=asking())
    bridge.world.crash_slurm(1e6)
    bridge.until(lambda: job.job_id in bridge.slurm.world.jobs and bridge.of(job).running)
    after = bridge.world.submit("more", flags=[], required_nodes="n1")
    bridge.run(5)
    assert (bridge.of(job).ask.exclusive, bridge.node_of("a")) == (True, "n1")
    assert bridge.slurm.world.jobs[after].pending


def test_a_pod_waits_until_an_earlier_one_has_left(tmp_path: pathlib.Path) -> None:
    """Although there is room for both: no device of that one may be taken for free."""
    bridge = emptied(bridge_of(tmp_path, SHARED_ONLY, hybrid_devices="whole-node"))
    old = bridge.bound("old", spec=asking(), annotations={"kwok.local/terminating": "hang"})
    bridge.slurm.control.end(old.job_id, "CANCELLED")
    bridge.until(lambda: bridge.leaving("old"), 20)
    bridge.pod("new", spec=asking())
    bridge.until(lambda: bridge.condition("new")[0] == "NodeNotVacated", 20)
    assert bridge.node_of("new") == ""
