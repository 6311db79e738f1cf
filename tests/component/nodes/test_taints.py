"""The taint of managed nodes: set where one is configured, and taken away again, without touching others."""

from slurm_bridge.controllers.nodes.options import Managed
from slurm_bridge.model import kinds, names
from slurm_bridge.model.node import Taint
from slurm_bridge.sim import faults
from tests.component.nodes.node_world import NodeWorld

TAINT = Taint.parse("slinky.slurm.net/managed-node=slurm-bridge-scheduler:NoExecute")
OTHER = Taint.parse("slinky.slurm.net/managed-node=slurm-bridge-scheduler:NoSchedule")


def taints(world: NodeWorld, name: str) -> list[str]:
    found = world.kube.get(kinds.NODES, "", name)
    assert found is not None
    return [f"{one['key']}={one.get('value', '')}:{one['effect']}" for one in found["spec"].get("taints", [])]


def patches(world: NodeWorld) -> int:
    return world.kube_line.faults.count(method="PATCH", target="/nodes/")


def test_t53_no_node_is_tainted_unless_it_is_configured(world: NodeWorld) -> None:
    """Not one patch."""
    world.add("w1")
    world.settle(30)
    assert (taints(world, "w1"), patches(world)) == ([], 0)


def test_t53_a_managed_node_gets_the_taint_once(world: NodeWorld) -> None:
    """As soon as it is in Slurm; nodes that are not managed get none."""
    world.restart(taint=TAINT)
    world.add("w1")
    world.add("plain", labels={})
    world.settle(30)
    world.settle(30)
    assert (taints(world, "w1"), taints(world, "plain")) == ([str(TAINT)], [])
    assert patches(world) == 1


def test_another_taint_takes_the_place_of_the_first_and_none_removes_it(world: NodeWorld) -> None:
    """Only what this bridge has set; the taints of others stay, in the same patch."""
    world.restart(taint=TAINT)
    world.add("w1")
    world.settle()
    world.change("w1", spec={"taints": [{"key": "disk", "effect": "NoSchedule"}, _written(TAINT)]})
    world.restart(taint=OTHER)
    world.settle()
    assert taints(world, "w1") == ["disk=:NoSchedule", str(OTHER)]
    world.restart(taint=None)
    world.settle()
    assert taints(world, "w1") == ["disk=:NoSchedule"]
    found = world.kube.get(kinds.NODES, "", "w1")
    assert names.ANNOTATION_MANAGED_TAINT not in found["metadata"].get("annotations", {})


def test_an_administrators_equal_taint_is_never_removed(world: NodeWorld) -> None:
    """It was there before, so it is not the bridge's."""
    world.add("w1")
    world.change("w1", spec={"taints": [_written(TAINT)]})
    for taint in (TAINT, None):
        world.restart(taint=taint)
        world.settle(10)
    assert taints(world, "w1") == [str(TAINT)]
    assert patches(world) == 0


def test_another_bridges_taint_stays(world: NodeWorld) -> None:
    """The annotation names the bridge."""
    world.add("w1")
    world.annotate("w1", names.ANNOTATION_MANAGED_TAINT, f"k2 {OTHER}")
    world.change("w1", spec={"taints": [_written(OTHER)]})
    world.restart(taint=TAINT, managed=Managed.ALL)
    world.settle(10)
    assert taints(world, "w1") == [str(OTHER)]


def test_a_change_in_between_is_not_overwritten(world: NodeWorld) -> None:
    """The patch is refused, and made anew from the node as it is then."""
    world.restart(taint=TAINT)
    world.add("w1")
    disk = {"spec": {"taints": [{"key": "disk", "effect": "NoSchedule"}]}}
    world.kube_line.faults.plan(faults.Meanwhile(lambda: world.change("w1", **disk)), method="PATCH")
    world.settle(10)
    assert taints(world, "w1") == ["disk=:NoSchedule", str(TAINT)]


def _written(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}
