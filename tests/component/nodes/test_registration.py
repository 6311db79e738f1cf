"""Labelled nodes of Kubernetes in Slurm: added, changed, deleted, exactly once, and only those."""

import dataclasses
import functools
import json
import pathlib

import pytest

from slurm_bridge.controllers.nodes import departures
from slurm_bridge.model import names
from slurm_bridge.sim import faults, wire
from slurm_bridge.sim.slurm import node_updates, state
from tests.component.nodes.node_world import EXTERNAL, PREFIX, NodeWorld

PARTITIONS, TOPOLOGY = names.ANNOTATION_EXTERNAL_PARTITIONS, names.ANNOTATION_NODE_TOPOLOGY


def registered(world: NodeWorld, *nodes: str, **capacity: str) -> None:
    """Nodes that are in Slurm, with an empty journal."""
    world.add(*nodes, **capacity)
    world.settle()
    assert all(world.node(name) for name in nodes)
    world.line.faults.forget()


def test_t45_a_labelled_node_is_added_with_all_that_it_has(world: NodeWorld) -> None:
    """Cores, threads, memory in whole MiB, GRES by the table, features; external, in service and with a record."""
    world.restart(gres={"nvidia.com/gpu": "gpu:a100"}, feature_labels=("pool",), threads_per_core=2)
    labels = {**EXTERNAL, "pool": "fast"}
    world.add("w1", labels=labels, cpu="7900m", memory="16383999Ki", **{"nvidia.com/gpu": "4"})
    world.settle()
    node = world.node("w1")
    assert node is not None
    assert (node.cpus, node.threads_per_core, node.memory_mib) == (6, 2, 15999)
    assert node.gres == (state.Gres(name="gpu", type="a100", count=4),)
    assert set(node.features) == {"slurm-bridge", "fast"}
    assert (node.external, node.drain, node.reason) == (True, False, "")
    assert node.comment.startswith('slurm-bridge/1 {"cluster":"k1"')


def test_hundreds_of_nodes_come_and_go_in_few_calls(world: NodeWorld) -> None:
    """One call adds 200 of a kind and one writes their records; one drains and one deletes them."""
    nodes = [f"w{number:03}" for number in range(200)]
    world.add(*nodes)
    world.settle()
    assert [order.split()[0] for order in world.orders()] == ["POST", "POST"]
    world.line.faults.forget()
    for name in nodes:
        world.delete(name)
    world.settle(departures.PAUSE_SECONDS)
    assert [order.split()[0] for order in world.orders()] == ["POST", "DELETE"]
    assert not any(world.node(name) for name in nodes)


def test_t53_nothing_is_sent_while_nothing_changes(world: NodeWorld) -> None:
    """Not to Slurm, not to Kubernetes, however long."""
    registered(world, "w1", "w2")
    world.kube_line.faults.forget()
    for _ in range(20):
        world.settle(30)
    assert world.orders() == []
    assert world.kube_line.faults.journal == ()
    assert world.notes == []


def test_t46_other_resources_are_drained_deleted_and_added_once(world: NodeWorld) -> None:
    """Not before the node is idle; each of the three is one call."""
    registered(world, "w1")
    job_id = world.occupy("w1")
    world.resize("w1", cpu="16")
    world.settle(60)
    assert world.drained("w1") == f"{PREFIX}added again as Kubernetes has it now, when it is idle"
    assert world.node("w1").cpus == 8
    world.slurm.control.end(job_id)
    world.settle()
    assert world.node("w1").cpus == 16
    assert world.drained("w1") is None
    verbs = [order.split()[0] for order in world.orders()]
    assert verbs.count("DELETE") == 1
    assert len([order for order in world.orders() if order.endswith("/new/node")]) == 1


def test_devices_that_vanish_for_a_moment_change_nothing(world: NodeWorld) -> None:
    """Kubelets report none while the plugin of the devices restarts; what lasts is taken over."""
    world.restart(gres={"nvidia.com/gpu": "gpu"}, settle_seconds=30.0)
    registered(world, "w1", **{"nvidia.com/gpu": "4"})
    world.resize("w1", **{"nvidia.com/gpu": "0"})
    world.settle(20)
    world.resize("w1", **{"nvidia.com/gpu": "4"})
    world.settle(60)
    assert world.orders() == []
    world.resize("w1", **{"nvidia.com/gpu": "0"})
    world.settle(31)
    assert world.node("w1").gres == ()


def test_t49_features_and_topology_change_in_place(world: NodeWorld) -> None:
    """One call; features that an administrator gave to the node stay."""
    world.restart(feature_labels=("pool",))
    registered(world, "w1")
    world.slurm.world.put_node(dataclasses.replace(world.node("w1"), features=("slurm-bridge", "by-hand")))
    world.label("w1", "pool", "fast")
    world.annotate("w1", TOPOLOGY, "racks:core:rack2")
    world.settle()
    node = world.node("w1")
    assert set(node.features) == {"slurm-bridge", "fast", "by-hand"}
    assert node.topology == "racks:core:rack2"
    assert world.orders() == ["POST /slurm/v0.0.45/nodes/"]
    world.annotate("w1", TOPOLOGY, None)
    world.label("w1", "pool", None)
    world.settle()
    assert set(world.node("w1").features) == {"slurm-bridge", "by-hand"}
    assert world.node("w1").topology == ""


def test_t50_a_node_joins_the_partitions_of_its_annotation(world: NodeWorld) -> None:
    """By the feature of that name; other partitions make a node anew, because Slurm moves none."""
    world.add("w1")
    world.annotate("w1", PARTITIONS, "dynamic")
    world.settle()
    assert "w1" in world.slurm.world.partitions["dynamic"].nodes
    world.annotate("w1", PARTITIONS, None)
    world.settle()
    assert "w1" not in world.slurm.world.partitions["dynamic"].nodes
    assert world.node("w1") is not None


def test_t50_a_wrong_partition_is_an_event_once(world: NodeWorld) -> None:
    """The node is added as soon as it is right."""
    world.add("w1")
    world.annotate("w1", PARTITIONS, "nowhere")
    world.settle(300)
    assert world.node("w1") is None
    assert world.told() == [("w1", "NotRegistered")]
    assert "nowhere" in world.notes[0].message
    world.annotate("w1", PARTITIONS, "dynamic")
    world.settle()
    assert world.node("w1") is not None


@pytest.mark.parametrize("goes", ["label", "node", "registration refused by label"])
def test_t48_a_node_that_leaves_is_drained_and_deleted_when_idle(world: NodeWorld, goes: str) -> None:
    """The label or the Node itself."""
    registered(world, "w1", "w2")
    job_id = world.occupy("w1")
    if goes == "node":
        world.delete("w1")
    else:
        world.label("w1", names.LABEL_EXTERNAL_NODE, None if goes == "label" else "false")
    world.settle(60)
    assert world.drained("w1") == f"{PREFIX}no longer registered in Kubernetes"
    world.slurm.control.end(job_id)
    world.settle()
    assert world.node("w1") is None
    assert world.drained("w2") is None


def test_a_node_that_comes_back_in_time_stays(world: NodeWorld) -> None:
    """It is undrained, and nothing is deleted."""
    registered(world, "w1")
    world.occupy("w1")
    world.label("w1", names.LABEL_EXTERNAL_NODE, None)
    world.settle()
    world.label("w1", names.LABEL_EXTERNAL_NODE, "true")
    world.settle()
    assert world.drained("w1") is None
    assert world.node("w1").reason == ""


def test_t25_a_renamed_node_has_one_name_at_a_time(world: NodeWorld) -> None:
    """Under its new name it is added when the old one is idle and gone."""
    registered(world, "w1")
    job_id = world.occupy("w1")
    world.label("w1", names.LABEL_SLURM_NODE_NAME, "rack7-n1")
    world.settle(60)
    assert world.node("rack7-n1") is None
    world.slurm.control.end(job_id)
    world.settle()
    assert world.node("w1") is None
    assert '"node":"w1"' in world.node("rack7-n1").comment


def test_two_nodes_of_one_name_change_nothing(world: NodeWorld) -> None:
    """Both are told, once; what is in Slurm stays as it is."""
    registered(world, "w1")
    world.add("w2")
    world.label("w2", names.LABEL_SLURM_NODE_NAME, "w1")
    world.cordon("w1")
    world.settle(60)
    assert world.orders() == []
    assert world.told() == [("w1", "SlurmNameTaken"), ("w2", "SlurmNameTaken")]


def test_a_name_that_two_others_claim_does_not_hold_back_the_node_that_gave_it_up(world: NodeWorld) -> None:
    """What was added for that node leaves Slurm when it is idle, as after every change of a name."""
    registered(world, "w1")
    job_id = world.occupy("w1")
    world.add("w2", "w3", labels={names.LABEL_SLURM_NODE_NAME: "w1"})
    world.label("w1", names.LABEL_SLURM_NODE_NAME, "rack7-n1")
    world.settle(60)
    assert world.drained("w1") == f"{PREFIX}no longer registered in Kubernetes"
    world.slurm.control.end(job_id)
    world.settle(60)
    assert world.node("w1") is None
    assert '"node":"w1"' in world.node("rack7-n1").comment
    assert world.told() == [("w2", "SlurmNameTaken"), ("w3", "SlurmNameTaken")]


@pytest.mark.parametrize("wrong", [None, "nowhere:x"])
def test_a_name_that_another_node_takes_belongs_to_that_node_only_when_the_former_is_gone(
    world: NodeWorld, wrong: str | None
) -> None:
    """Jobs run on the machine that they were given; what the other one asks for wrongly keeps only that one waiting."""
    registered(world, "w1")
    job_id = world.occupy("w1")
    world.add("w2", labels={**EXTERNAL, names.LABEL_SLURM_NODE_NAME: "w1"})
    world.annotate("w2", names.ANNOTATION_NODE_TOPOLOGY, wrong)
    world.label("w1", names.LABEL_SLURM_NODE_NAME, "rack7-n1")
    world.settle(60)
    assert world.drained("w1") == f"{PREFIX}added again as Kubernetes has it now, when it is idle"
    assert world.node("rack7-n1") is None
    world.slurm.control.end(job_id)
    world.settle(60)
    assert '"node":"w1"' in world.node("rack7-n1").comment
    if wrong is None:
        assert '"node":"w2"' in world.node("w1").comment
    else:
        assert world.node("w1") is None
        assert world.told() == [("w2", "SlurmRefused")]


def test_a_drain_of_an_administrator_is_not_ended_by_a_node_that_takes_the_name(world: NodeWorld) -> None:
    """Neither by adding the node anew: both wait for the administrator."""
    registered(world, "w1")
    node_updates.change(world.slurm.world, "w1", ["DRAIN"], "disk")
    world.add("w2", labels={**EXTERNAL, names.LABEL_SLURM_NODE_NAME: "w1"})
    world.label("w1", names.LABEL_SLURM_NODE_NAME, "rack7-n1")
    world.settle(60)
    assert (world.drained("w1"), world.node("rack7-n1")) == ("disk", None)
    world.slurm.control.resume("w1")
    world.settle(60)
    assert '"node":"w1"' in world.node("rack7-n1").comment
    assert '"node":"w2"' in world.node("w1").comment


@pytest.mark.parametrize("name", ["ALL", "default", "a,b", "x" * 64, "n[1-3]"])
def test_a_name_that_slurm_takes_for_others_is_an_event(world: NodeWorld, name: str) -> None:
    """Whatever a label can hold, and more."""
    world.add("w1")
    world.slurm.control.drain("ext001", "disk")
    world.label("w1", names.LABEL_SLURM_NODE_NAME, name)
    world.settle()
    assert world.orders() == []
    assert world.told() == [("w1", "NotRegistered")]


def test_a_node_that_is_not_complete_yet_waits_in_silence(world: NodeWorld) -> None:
    """Kubelets report addresses and resources some time after the node appears."""
    world.kube.add_nodes("w1", labels=EXTERNAL)
    world.settle(30)
    assert (world.node("w1"), world.notes) == (None, [])


# What others have made.


def test_t47_static_and_foreign_nodes_are_not_deleted_and_not_adopted(world: NodeWorld, tmp_path: pathlib.Path) -> None:
    """A node of the configuration, one that an administrator added, one of another cluster's bridge: told, kept."""
    (tmp_path / "other").mkdir()
    other = NodeWorld(tmp_path / "other", world.slurm, cluster_id="k2")
    other.add("shared")
    other.settle()
    line = {"node_conf": "NodeName=by-hand CPUs=4 RealMemory=4000 State=EXTERNAL"}
    assert world.port is not None
    _operator(world, "POST", "new/node", line)
    before = {name: world.node(name) for name in ("ext001", "by-hand", "shared")}
    world.add("ext001", "by-hand", "shared")
    world.settle(60)
    for name in ("ext001", "by-hand", "shared"):
        world.delete(name)
    world.settle(60)
    assert {name: world.node(name) for name in before} == before
    assert world.orders() == []
    assert sorted(world.told()) == [(name, "NotRegistered") for name in ("by-hand", "ext001", "shared")]


def test_t52a_nodes_without_a_label_of_the_bridge_change_nothing(world: NodeWorld) -> None:
    """Kubernetes nodes of the same names as Slurm's, cordoned or deleted: not one call."""
    world.add("ext001", "ext002", labels={})
    world.cordon("ext001")
    world.settle()
    world.delete("ext002")
    world.settle(60)
    assert (world.orders(), world.notes) == ([], [])


def test_an_administrators_drain_outlives_other_resources(world: NodeWorld) -> None:
    """The node is not added anew, which would end the drain, before the administrator ends it."""
    registered(world, "w1")
    world.slurm.control.drain("w1", "bad memory")
    world.resize("w1", cpu="16")
    world.settle(60)
    assert world.drained("w1") == "bad memory"
    assert world.node("w1").cpus == 8
    world.slurm.control.resume("w1")
    world.settle()
    assert world.node("w1").cpus == 16


@pytest.mark.parametrize(
    "comment", ["slurm-bridge/1 {", 'slurm-bridge/1 {"cluster":"k1"}', "slurm-bridge/1 null", "x" * 100_000, '{"a":1}']
)
def test_a_forged_record_is_none(world: NodeWorld, comment: str) -> None:
    """What cannot be read, or has no shape, is a comment of somebody else."""
    line = {"node_conf": "NodeName=by-hand CPUs=4 RealMemory=4000 State=EXTERNAL"}
    _operator(world, "POST", "new/node", line)
    _operator(world, "POST", "nodes/", {"name": ["by-hand"], "comment": comment})
    world.settle(60)
    assert world.orders() == []
    assert world.node("by-hand") is not None


def test_a_record_on_a_static_node_means_nothing(world: NodeWorld) -> None:
    """Only a node that is dynamic and external can be one that the bridge has added."""
    record = 'slurm-bridge/1 {"cluster":"k1","shape":"0123456789abcdef"}'
    _operator(world, "POST", "nodes/", {"name": ["ext003"], "comment": record})
    world.settle(60)
    assert world.orders() == []


# Answers that are lost, and processes that die.


@pytest.mark.parametrize("fault", [faults.Drop(), faults.Reset(), faults.Hang(acted=True), faults.Answer(status=502)])
@pytest.mark.parametrize("target", ["new/node", "/nodes/$", "/node/"])
def test_a_lost_answer_is_read_back_and_not_repeated_blindly(
    world: NodeWorld, fault: faults.Fault, target: str
) -> None:
    """Whichever order it is: the end is the same, and no node is added or deleted twice."""
    world.line.faults.plan(fault, method="*" if target != "/nodes/$" else "POST", target=target)
    world.add("w1", "w2")
    for _ in range(4):
        world.settle(45)
    world.cordon("w1")
    world.delete("w2")
    for _ in range(4):
        world.settle(45)
    assert world.drained("w1") == f"{PREFIX}cordoned in Kubernetes"
    assert world.node("w2") is None
    answered = [call for call in world.line.faults.journal if call.target.endswith("new/node") and call.status == 200]
    assert len(answered) <= 1


def test_a_restart_after_any_call_ends_the_same(tmp_path: pathlib.Path) -> None:
    """The process dies after its n-th order, for every n."""
    for number in range(1, 9):
        (tmp_path / str(number)).mkdir()
        world = NodeWorld(tmp_path / str(number))
        world.add("w1", "w2", "w3")
        changes = (world.seen, functools.partial(world.resize, "w1", cpu="4"), functools.partial(world.delete, "w2"))
        for change in changes:
            change()
            world.line.faults.plan(faults.Meanwhile(_die), method="POST", nth=number)
            world.line.faults.plan(faults.Meanwhile(_die), method="DELETE", nth=number)
            try:
                world.settle()
            except _DeadError:
                world.line.faults.clear()
                world.restart()
            world.line.faults.clear()
            world.settle(60)
        assert world.node("w1").cpus == 4
        assert world.node("w2") is None
        assert world.drained("w3") is None


class _DeadError(BaseException):
    """The process is no more."""


def _die() -> None:
    raise _DeadError


def test_a_slurmctld_that_forgets_new_nodes_gets_them_again(world: NodeWorld) -> None:
    """It saves its state every few seconds; what came later is lost with it."""
    world.add("w1")
    world.settle()
    world.slurm.control.crash(lose_seconds=5)
    assert world.node("w1") is None
    world.settle(10)
    assert world.node("w1") is not None


def test_one_refused_node_does_not_keep_the_others_out(world: NodeWorld) -> None:
    """A batch that is refused is tried one by one; the node that Slurm refuses gets an event in Slurm's words."""
    world.add("w1", "w2", "w3")
    world.annotate("w2", TOPOLOGY, "nowhere:x")
    world.settle(5)
    assert world.node("w1")
    assert world.node("w3")
    assert world.node("w2") is None
    assert world.told() == [("w2", "SlurmRefused")]
    before = len(world.orders())
    world.settle(5)
    assert len(world.orders()) == before
    world.annotate("w2", TOPOLOGY, "racks:core:rack1")
    world.settle(120)
    assert world.node("w2")


def _operator(world: NodeWorld, method: str, path: str, body: dict[str, object]) -> None:
    """An administrator's own call."""
    request = wire.Request(
        method=method,
        path=f"/slurm/v0.0.45/{path}",
        query={},
        headers={"x-slurm-user-token": world.slurm.secret, "content-type": "application/json"},
        body=json.dumps(body).encode(),
        target=f"/slurm/v0.0.45/{path}",
        patient=False,
    )
    assert world.slurm.handler(request).status == 200


def test_t52_nodes_that_only_one_side_has_cost_nothing(world: NodeWorld) -> None:
    """However many there are: one list of Slurm's nodes in a pass, and no question about a single one."""
    world.add(*(f"k{number}" for number in range(30)), labels={})
    world.settle()
    world.line.faults.forget()
    world.settle()
    world.settle()
    assert {call.target.partition("?")[0] for call in world.line.faults.journal} <= {
        "/slurm/v0.0.45/nodes/",
        "/slurm/v0.0.45/partitions/",
    }
    assert len(world.line.faults.journal) <= 4


def test_t52_a_deleted_node_object_is_deleted_in_slurm(world: NodeWorld) -> None:
    """The label needs not be removed before."""
    registered(world, "w1")
    world.delete("w1")
    world.settle()
    assert world.node("w1") is None
