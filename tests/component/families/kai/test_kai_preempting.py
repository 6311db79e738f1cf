"""Room is made within one set of nodes where one is required: two half-empty racks help nobody."""

import pathlib
from typing import Any

from slurm_bridge.model import names
from tests.component.families.kai.test_kai_windows import CPUS, HOOKS, NODES, RACKS, where
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.fleet import Fleet
from tests.simulation.world import World
from tests.unit.families.kai.racks import REQUIRED

#: In each rack one pod that is easily sent away; those of the last one are the least important together.
PRIORITIES = {"n0": 1, "n1": 500, "n2": 2, "n3": 500, "n4": 30, "n5": 40}


def bridge_of(folder: pathlib.Path, **options: Any) -> Bridge:
    """Three racks, all of whose machines have a pod of ours each."""
    world = World(1, folder / "token", fleet=Fleet(nodes={name: name for name in NODES}, cpus=CPUS))
    for other in world.slurm.control.jobs().values():
        world.slurm.control.end(other.job_id, "CANCELLED")
    preemption = {"name": "preemption", "options": {"after_seconds": 10.0, **options}}
    bridge = Bridge(folder, world=world, hooks=[*HOOKS, preemption], attempts={"window_seconds": 5.0})
    for node, priority in PRIORITIES.items():
        spec = {"priority": priority, "nodeSelector": {"kubernetes.io/hostname": node}}
        bridge.pod(f"on-{node}", cpu="3", spec=spec)
    bridge.until(lambda: all(bridge.node_of(f"on-{node}") for node in NODES))
    return bridge


def until(bridge: Bridge, condition: Any, seconds: float = 240.0) -> None:
    """Let time pass, with a look at who has to make room."""
    end = bridge.clock.now() + seconds
    while not condition():
        assert bridge.clock.now() < end, "it never came to that:\n" + "\n".join(bridge.world.journal[-30:])
        bridge.step(0.5)
        bridge.core.preempt_step()


def test_victims_are_of_one_rack(tmp_path: pathlib.Path) -> None:
    """Not the least important pods of all, which are in two racks."""
    bridge = bridge_of(tmp_path)
    labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    pods = ["g-0", "g-1"]
    for name in pods:
        bridge.pod(name, labels=labels, annotations={REQUIRED: "rack"}, cpu="4", spec={"priority": 1000})
    until(bridge, lambda: all(map(bridge.node_of, pods)))
    assert where(bridge, pods) in [set(nodes) for nodes in RACKS.values()]
    gone = {node for node in NODES if bridge.leaving(f"on-{node}")}
    assert gone == where(bridge, pods)
