"""The node controller between the real servers: nodes come, change, are cordoned and go, in Slurm as in Kubernetes.

`make nodes` lets administrators of both sides work at random for ten minutes on 200 nodes.
"""

import secrets
from collections.abc import Iterator

import pytest

from slurm_bridge.controllers.nodes import departures
from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_nodes, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_nodes import Machines, NodeObserver, RandomAdmins
from tests.e2e.support_world import World

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]

#: The chosen partition, and room for one pod on a node.
PARTITION = {names.JOB_PREFIX + "partition": support_nodes.PARTITION}

#: A driver for Dynamic Resource Allocation.
DRIVER = "gpu.slurm-bridge.example.com"


@pytest.fixture(scope="module")
def machines(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Machines]:
    with support_nodes.machines(kube, slurm) as made:
        yield made


@pytest.fixture(scope="module")
def world(open_world: OpenWorld, machines: Machines) -> World:
    """A daemon with the node controller, in a cluster where it has its rights."""
    assert machines.word
    devices, labels = {DRIVER: "gpu"}, ["pool"]
    nodes = {"enabled": True, "poll_seconds": 1.0, "reserved_memory": "1000Mi", "device_gres": devices}
    return open_world("nodes", nodes={**nodes, "feature_labels": labels})


def prefix(world: World) -> str:
    return f"slurm-bridge({world.daemon.cluster_id}): "


def test_t45_labelled_nodes_are_in_slurm_and_run_pods(world: World, machines: Machines) -> None:
    """With CPUs, memory and GPUs, in the partition of the annotation; a pod that asks for that partition runs there."""
    machines.add(1, 2)
    machines.add(3, gpus=2)
    machines.until(lambda: len(machines.mine()) == 3 and not pending(machines), "three nodes in Slurm")
    found = machines.mine()
    for name, node in found.items():
        assert (node["cpus"], node["real_memory"]) == (4, 7000), name
        assert node["partitions"] == [support_nodes.PARTITION]
        assert {"EXTERNAL", "DYNAMIC_NORM", "IDLE"} <= set(node["state"])
    assert found[machines.name(3)]["gres"] == "gpu:2"
    pod = support_world.pod("on-new", world.daemon.scheduler, annotations={**PARTITION, **support_world.FOREVER})
    world.create(pod)
    world.await_pod("on-new", "a new node", support_world.is_bound)


def pending(machines: Machines, *others: str) -> list[str]:
    """Nodes whose record is not written yet, but for those of others."""
    found = machines.mine().items()
    return [name for name, node in found if name not in others and not node["comment"].startswith("slurm-bridge/1")]


def test_t46_other_resources_are_added_once(world: World, machines: Machines) -> None:
    """The node is drained, deleted when it is idle, and added as it is now; its neighbours stay as they are."""
    pod = world.pod("on-new")
    assert pod is not None
    idle = next(number for number in (1, 2, 3) if machines.name(number) != pod["spec"]["nodeName"])
    name, before = machines.name(idle), dict(machines.mine())
    machines.resize(idle, cpus=8)
    # Other resources have to last for `settle_seconds` first.
    machines.until(lambda: cpus(machines, name) == 8 and not pending(machines), "the node as it is now", 90.0)
    others = before.keys() - {name}
    assert {one: machines.mine()[one]["comment"] for one in others} == {one: before[one]["comment"] for one in others}
    machines.add(7)
    machines.until(lambda: machines.name(7) in machines.mine() and not pending(machines), "a node that came later")
    assert drains(world) == 1
    machines.delete(7)
    machines.until(lambda: machines.name(7) not in machines.mine(), "the end of the later node")


def drains(world: World) -> int:
    """Orders of the daemon to drain nodes."""
    return world.daemon.log.read_text().count(" drain of ")


def cpus(machines: Machines, name: str) -> int | None:
    """None while it is not there."""
    node = machines.mine().get(name)
    return None if node is None else int(node["cpus"])


def test_t47_a_node_that_an_administrator_added_is_never_deleted(world: World, machines: Machines) -> None:
    """Also when a Kubernetes node of its name is registered, and goes."""
    name = machines.name(8)
    machines.slurm.command("scontrol", "create", f"NodeName={name}", "CPUs=2", "RealMemory=1000", "State=EXTERNAL")
    before = machines.mine()[name]["comment"]
    machines.add(8)
    machines.until(lambda: "NotRegistered" in told(machines, name), "the word on the node")
    machines.delete(8)
    machines.add(9)
    machines.until(lambda: machines.name(9) in machines.mine() and not pending(machines, name), "a later node")
    assert (cpus(machines, name), machines.mine()[name]["comment"]) == (2, before)
    assert machines.drained(name) is None
    machines.slurm.command("scontrol", "delete", f"NodeName={name}")
    machines.delete(9)
    machines.until(lambda: machines.name(9) not in machines.mine(), "the end of the later node")
    assert world.daemon.alive


def told(machines: Machines, name: str) -> set[str]:
    """Reasons of the events about a node; the controllers of Kubernetes report theirs there, too."""
    path = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind%3DNode,involvedObject.name%3D{name}"
    return {one["reason"] for one in machines.kube.items(path)}


def test_t49_features_change_in_place(world: World, machines: Machines) -> None:
    """An administrator's feature stays, and nothing is drained or added again."""
    name, before = machines.name(1), drains(world)
    own = ",".join(machines.mine()[name]["features"])
    machines.slurm.command("scontrol", "update", f"NodeName={name}", f"AvailableFeatures={own},by-hand")
    machines.label(1, "pool", "fast")
    machines.until(lambda: {"fast", "by-hand"} <= set(machines.mine()[name]["features"]), "the feature")
    machines.label(1, "pool", None)
    machines.until(lambda: "fast" not in machines.mine()[name]["features"], "the end of the feature")
    assert "by-hand" in machines.mine()[name]["features"]
    assert drains(world) == before


def test_t50_a_wrong_partition_is_an_event_and_a_right_one_is_joined(world: World, machines: Machines) -> None:
    """The node is in Slurm as soon as its annotation is right."""
    name, key = machines.name(10), names.ANNOTATION_EXTERNAL_PARTITIONS
    machines.add(10, partition="nowhere")
    machines.until(lambda: "NotRegistered" in told(machines, name), "the word on the node")
    assert name not in machines.mine()
    machines.change(10, metadata={"annotations": {key: support_nodes.PARTITION}})
    machines.until(lambda: name in machines.mine() and not pending(machines), "the node in Slurm")
    assert machines.mine()[name]["partitions"] == [support_nodes.PARTITION]
    machines.delete(10)
    machines.until(lambda: name not in machines.mine(), "the end of the node")
    assert world.daemon.alive


def test_t53_no_node_is_tainted_unless_it_is_configured(machines: Machines) -> None:
    """Neither nodes of this bridge nor others."""
    taints = [one for node in machines.kube.items(support_nodes.NODES) for one in node["spec"].get("taints", ())]
    assert not [one for one in taints if "slinky" in one["key"] or "slurm" in one["key"]]
    assert machines.of_kubernetes()


def test_devices_of_a_driver_are_gpus_in_slurm(world: World, machines: Machines) -> None:
    """All slices of the pool count; the node waits until they are there."""
    name, others = machines.name(4), (5, 6)
    with machines.slices(4, DRIVER, of=2) as publish:
        publish(2)
        machines.add(5)
        machines.until(lambda: machines.name(5) in machines.mine(), "another node")
        machines.add(4, 6)
        machines.until(lambda: machines.name(6) in machines.mine(), "a node that came no earlier")
        assert name not in machines.mine()
        publish(1)
        machines.until(lambda: name in machines.mine() and not pending(machines), "the node in Slurm")
        assert machines.mine()[name]["gres"] == "gpu:3"
        for number in (4, *others):
            machines.delete(number)
        gone = {name, *map(machines.name, others)}
        machines.until(lambda: not gone & set(machines.mine()), "the end of these nodes")
    assert world.daemon.alive


def test_t51_a_cordon_drains_and_an_administrators_drain_stays(world: World, machines: Machines) -> None:
    """The bridge's drain ends with the cordon; one with another reason does not."""
    one, two = machines.name(1), machines.name(2)
    machines.order("DRAIN", two, reason="badfan")
    for number in (1, 2):
        machines.cordon(number)
    machines.until(lambda: machines.drained(one) == f"{prefix(world)}cordoned in Kubernetes", "the drain")
    assert machines.drained(two) == "badfan"
    for number in (1, 2):
        machines.cordon(number, wanted=False)
    machines.until(lambda: machines.drained(one) is None, "the end of the drain")
    assert machines.drained(two) == "badfan"
    machines.order("RESUME", two)


def test_t48_a_node_with_a_pod_is_deleted_when_the_pod_has_ended(world: World, machines: Machines) -> None:
    """Without its label it is drained at once; the pod and its job run on until the pod is deleted."""
    pod = world.pod("on-new")
    assert pod is not None
    name = pod["spec"]["nodeName"]
    number = int(name.rpartition("-")[2])
    machines.label(number, names.LABEL_EXTERNAL_NODE, None)
    machines.until(lambda: machines.drained(name) == f"{prefix(world)}no longer registered in Kubernetes", "the drain")
    assert world.placeholder(pod["metadata"]["uid"]) is not None
    world.delete("on-new")
    machines.until(lambda: name not in machines.mine(), "the end of the node")


def test_t52_deleted_nodes_are_deleted_in_slurm(world: World, machines: Machines) -> None:
    """All of them, and no other: those of slurm.conf are as they were."""
    observer = NodeObserver(machines)
    for name in machines.of_kubernetes():
        machines.kube.delete(f"{support_nodes.NODES}/{name}")
    machines.until(lambda: not machines.mine(), "the end of all nodes")
    observer.look({})
    assert world.daemon.alive


def test_random_administrators_of_both_sides(world: World, machines: Machines, request: pytest.FixtureRequest) -> None:
    """They cordon, drain, undrain, delete, rename and add: no decision of theirs is undone, and both sides agree."""
    minutes, count = request.config.getoption("--node-minutes"), request.config.getoption("--node-count")
    seed = secrets.randbelow(10**6)
    observer, admins = NodeObserver(machines), RandomAdmins(machines, seed, count)
    machines.add(*range(count))
    over = support_nodes.passed(60 * minutes)
    while not over():
        for _ in range(max(1, count // 20)):
            admins.act()
        observer.look(admins.decided)
    left: list[list[str]] = [[]]

    def agreed() -> bool:
        observer.look(admins.decided)
        left[0] = observer.disagreements()
        return not left[0]

    # When many nodes leave at once, the daemon waits whether they come back.
    longest = 90 + count / 2 + departures.PAUSE_SECONDS
    try:
        wait.until(agreed, "agreement of both sides", longest, every=0.5)
    except AssertionError as error:
        last = "\n".join((*left[0][:20], *admins.journal[-60:], world.daemon.last_words(30)))
        raise AssertionError(f"seed {seed}: {error}\n{last}") from error
