"""The state of Slurm's nodes is written on Kubernetes nodes, once for each change, and only where it may be."""

import pytest

from slurm_bridge import errors, ports
from slurm_bridge.controllers.nodes import views
from slurm_bridge.controllers.nodes.availability import CONDITION, HOLDS, LABEL_REASON, LABEL_STATE, TAINT, Marking
from slurm_bridge.controllers.nodes.options import Managed, NodeOptions
from slurm_bridge.controllers.nodes.state_writer import MOST, REFUSED_SECONDS, SILENT, StateWriter
from slurm_bridge.model import kinds
from slurm_bridge.model.node import Node
from slurm_bridge.model.reservation import Reservation
from slurm_bridge.model.slurmnode import NodeListing, SlurmNode
from slurm_bridge.sim import faults
from slurm_bridge.sim.kube.access import AccessRule
from tests.pocketkube import Scene

ALL = Marking(taint="NoSchedule", cordon=True, hold=True)


class Bridge:
    """A writer, what it has been told of Slurm, and the events that it made."""

    def __init__(self, scene: Scene, marking: Marking | None = ALL, managed: Managed = Managed.ALL) -> None:
        self.scene, self.notes = scene, list[ports.Note]()
        options = NodeOptions(cluster_id="c1", managed=managed, marking=marking)
        self.writer = StateWriter(options, scene.cluster, scene.clock, self.notes.append)

    def look(
        self,
        *slurm: SlurmNode,
        unreadable: frozenset[str] = frozenset(),
        reservations: tuple[Reservation, ...] = (),
    ) -> bool:
        """One pass over the nodes as they are now."""
        listing = NodeListing(nodes=slurm, stamp=1, unreadable=unreadable)
        nodes = self.scene.cluster.list(kinds.NODES).items
        return self.writer.step(views.of(nodes, listing, {}, reservations))


def slurm(name: str, *states: str, reason: str = "", used: int = 0) -> SlurmNode:
    return SlurmNode(
        name=name,
        states=frozenset(states or ("IDLE",)) | {"EXTERNAL"},
        cpus=4,
        memory_mib=1,
        reason=reason,
        used_cpus=used,
    )


@pytest.fixture
def scene() -> Scene:
    return Scene()


def node(scene: Scene, name: str = "n1") -> Node:
    found = scene.cluster.get(kinds.NODES, "", name)
    assert found is not None
    return found


def test_a_drain_of_an_administrator_is_shown_and_ends(scene: Scene) -> None:
    """Label, taint, cordon, condition and an event come and go with the drain; the other node is as before."""
    bridge, before = Bridge(scene), node(scene, "n2")
    drained = slurm("n1", "IDLE", "DRAIN", reason="bad disk")
    assert bridge.look(drained, slurm("n2"))
    assert not bridge.look(drained, slurm("n2"))
    shown = node(scene)
    assert shown.metadata.labels[LABEL_STATE] == "DRAIN"
    assert [one.key for one in shown.spec.taints] == [TAINT]
    assert shown.spec.unschedulable
    assert {one.type: one.status for one in shown.status.conditions}[CONDITION] == "True"
    assert bridge.look(slurm("n1"), slurm("n2"))
    freed = node(scene)
    assert (freed.spec.taints, freed.spec.unschedulable, freed.metadata.labels.get(LABEL_STATE)) == ((), False, None)
    assert [(one.name, one.reason) for one in bridge.notes] == [
        ("n1", "SlurmNodeUnavailable"),
        ("n1", "SlurmNodeInService"),
    ]
    assert node(scene, "n2") == before


def test_reservations_of_bridges_are_not_shown(scene: Scene) -> None:
    """A node that a bridge keeps for a large job shows nothing; one that an administrator has reserved names it."""
    bridge = Bridge(scene)
    held = Reservation(name="slurm-bridge-0a1b2c3d-x", nodes=("n1",))
    assert not bridge.look(slurm("n1", "IDLE", "RESERVED"), reservations=(held,))
    assert bridge.look(slurm("n1", "IDLE", "RESERVED"), reservations=(held, Reservation(name="course", nodes=("n1",))))
    assert node(scene).metadata.labels[LABEL_REASON] == "course"


def test_t53_nothing_is_written_while_nothing_changes(scene: Scene) -> None:
    """Nodes in service, and nodes that show their state, cost no call."""
    bridge = Bridge(scene)
    drained = slurm("n1", "DOWN")
    bridge.look(drained, slurm("n2"))
    before = scene.kube.store.version
    for _ in range(3):
        assert not bridge.look(drained, slurm("n2"))
    assert scene.kube.store.version == before


def test_t52_a_node_that_slurm_does_not_know_is_left_alone(scene: Scene) -> None:
    """Neither a node outside of Slurm nor one of which Slurm's answer cannot be read is written."""
    bridge = Bridge(scene)
    assert not bridge.look()
    bridge.look(slurm("n1", "DRAIN"))
    assert not bridge.look(unreadable=frozenset({"n1"}))
    assert node(scene).spec.unschedulable


def test_nodes_that_the_controller_does_not_look_after_lose_their_marks(scene: Scene) -> None:
    """Without a label of the bridge a node shows nothing, also if it did before."""
    assert Bridge(scene).look(slurm("n1", "DRAIN"))
    labelled = Bridge(scene, managed=Managed.LABELLED)
    assert labelled.look(slurm("n1", "DRAIN"))
    assert not node(scene).spec.unschedulable
    assert LABEL_STATE not in node(scene).metadata.labels


def test_autoscalers_keep_nodes_with_jobs(scene: Scene) -> None:
    """The marks are there while a job runs; one that an administrator has set stays."""
    scene.cluster.patch(kinds.NODES, node(scene), {"metadata": {"annotations": {HOLDS[0]: "true"}}})
    bridge = Bridge(scene)
    assert bridge.look(slurm("n1", "MIXED", used=1))
    assert {key for key in HOLDS if key in node(scene).metadata.annotations} == set(HOLDS)
    assert bridge.look(slurm("n1"))
    assert node(scene).metadata.annotations == {HOLDS[0]: "true"}


def test_a_refused_write_is_not_repeated_at_once() -> None:
    """Without the right to patch nodes the daemon says so and waits."""
    scene = Scene(rights=(AccessRule(verbs=("get", "list"), resources=("nodes",)),))
    bridge = Bridge(scene)
    bridge.look(slurm("n1", "DRAIN"))
    assert not bridge.look(slurm("n1", "DRAIN"))
    scene.clock.advance(REFUSED_SECONDS)
    assert bridge.look(slurm("n1", "DRAIN"))
    assert not bridge.notes


def test_a_pass_writes_a_bounded_number_of_nodes(scene: Scene) -> None:
    """A thousand nodes that are drained at once are written in several passes."""
    names = [f"many-{number:03}" for number in range(MOST + 5)]
    scene.kube.add_nodes(*names)
    bridge = Bridge(scene, Marking())
    down = [slurm(name, "DOWN") for name in names]
    assert bridge.look(*down)
    assert sum(LABEL_STATE in one.metadata.labels for one in scene.cluster.list(kinds.NODES).items) == MOST
    assert bridge.look(*down)
    assert not bridge.look(*down)


def test_an_api_server_that_does_not_answer_ends_the_pass(scene: Scene) -> None:
    """The pass is tried again as a whole."""
    bridge = Bridge(scene)
    names = [f"many-{number}" for number in range(SILENT)]
    scene.kube.add_nodes(*names)
    scene.line.faults.plan(faults.Reset(), method="PATCH", times=100)
    with pytest.raises(errors.TryLater):
        bridge.look(*(slurm(name, "DRAIN") for name in names))


def test_a_node_that_cannot_be_written_stops_no_other(scene: Scene) -> None:
    """One without an answer is tried again after a pause; the next one is written at once."""
    bridge = Bridge(scene)
    scene.line.faults.plan(faults.Reset(), method="PATCH", target="/nodes/n1", times=100)
    down = slurm("n1", "DOWN"), slurm("n2", "DOWN")
    assert bridge.look(*down)
    assert node(scene, "n2").metadata.labels[LABEL_STATE] == "DOWN"
    scene.line.faults.clear()
    assert not bridge.look(*down)
    scene.clock.advance(REFUSED_SECONDS)
    assert bridge.look(*down)
    assert node(scene).metadata.labels[LABEL_STATE] == "DOWN"
