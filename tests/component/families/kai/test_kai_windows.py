"""The daemon goes from one set of nodes to the next, tells the user in the user's own words, and survives restarts."""

import pathlib
from collections.abc import Iterable

from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.model import marks, names
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.fleet import Fleet
from tests.simulation.world import NAMESPACE, World
from tests.unit.families.kai.racks import REQUIRED, SUBGROUP

NODES = tuple(f"n{number}" for number in range(6))
RACKS = {"a": NODES[:2], "b": NODES[2:4], "c": NODES[4:]}
CONF = "\n".join(f"SwitchName={name} Nodes={','.join(nodes)}" for name, nodes in RACKS.items())
TOPOLOGY = {"name": "halls", "levels": ["rack"], "source": "copy", "conf": CONF}
HOOKS = [
    {"name": "policy"},
    {"name": "eligibility", "options": {"volumes": False}},
    {"name": "kai", "options": {"topologies": [TOPOLOGY]}},
]
CPUS = 4


def bridge_of(folder: pathlib.Path, taken: Iterable[str], **settings: object) -> Bridge:
    """Three racks of two machines, some of which jobs of others have wholly."""
    world = World(1, folder / "token", fleet=Fleet(nodes={name: name for name in NODES}, cpus=CPUS))
    for other in world.slurm.control.jobs().values():
        world.slurm.control.end(other.job_id, "CANCELLED")
    for name in taken:
        world.submit("neighbour", required_nodes=[name], cpus_per_task=CPUS)
    world.pass_time(2.0)
    return Bridge(folder, world=world, hooks=HOOKS, attempts={"window_seconds": 5.0}, **settings)


def free(bridge: Bridge, *nodes: str) -> None:
    """Their jobs end."""
    for job in bridge.slurm.control.jobs().values():
        if job.ask.name == "neighbour" and set(job.ask.required) & set(nodes):
            bridge.slurm.control.end(job.job_id, "COMPLETED")


def group(bridge: Bridge, size: int, cpu: str = "4") -> list[str]:
    """Pods that start together in one rack."""
    found = [f"g-{number}" for number in range(size)]
    labels = {names.GROUP: "g", names.GROUP_SIZE: str(size)}
    for name in found:
        bridge.pod(name, labels=labels, annotations={REQUIRED: "rack"}, cpu=cpu)
    return found


def living(bridge: Bridge) -> list[state.SlurmJob]:
    """Of the group; of a job of several components its leader."""
    mine = bridge.jobs(f"Group:{NAMESPACE}/g")
    return [one for one in mine if not one.over and not one.offset]


def attempt(bridge: Bridge) -> PlanState:
    """What the job's record says."""
    (job,) = living(bridge)
    owner = marks.read(job.ask.text("admin_comment"))
    assert owner is not None
    return PlanState.of_running(owner.plan)


def allowed(job: state.SlurmJob) -> set[str]:
    """The nodes that it may have."""
    return set(NODES) - set(job.ask.excluded)


def where(bridge: Bridge, pods: Iterable[str]) -> set[str]:
    """Their nodes."""
    return {bridge.node_of(name) for name in pods}


def test_a_full_rack_is_waited_for_and_another_that_empties_takes_it(tmp_path: pathlib.Path) -> None:
    """One job all the while, whose nodes are changed."""
    bridge = bridge_of(tmp_path, NODES)
    pods = group(bridge, 2)
    bridge.until(lambda: living(bridge))
    (first,) = living(bridge)
    bridge.run(30)
    assert allowed(bridge.of(first)) in map(set, RACKS.values())
    free(bridge, *RACKS["c"])
    bridge.until(lambda: all(where(bridge, pods)), seconds=120)
    assert where(bridge, pods) == set(RACKS["c"])
    assert bridge.submits() == 1


def test_who_was_tried_everywhere_says_so(tmp_path: pathlib.Path) -> None:
    """With what was asked for and Slurm's reason, and without any name of a set."""
    bridge = bridge_of(tmp_path, NODES)
    (pod, _) = group(bridge, 2)
    bridge.until(lambda: bridge.condition(pod)[1].startswith("unschedulable on cluster: "), seconds=60)
    reason, said = bridge.condition(pod)
    assert reason == "SlurmJobPending"
    assert f"Pod {NAMESPACE}/g-0 has required one rack for its 2 pods; Slurm job " in said
    assert "Resources" in said
    assert "halls" not in said


def test_what_no_rack_could_take_is_not_submitted(tmp_path: pathlib.Path) -> None:
    """The condition is the user's own words."""
    bridge = bridge_of(tmp_path, ())
    pods = group(bridge, 3)
    bridge.run(3)
    assert bridge.condition(pods[0]) == (
        "Unschedulable",
        f"unschedulable on cluster: Pod {NAMESPACE}/g-0 has required one rack for its 3 pods",
    )
    assert bridge.submits() == 0


def test_a_restart_goes_on_with_the_same_attempt(tmp_path: pathlib.Path) -> None:
    """Although other racks have room by then, and the order would be another one."""
    bridge = bridge_of(tmp_path, NODES)
    pods = group(bridge, 2)
    bridge.until(lambda: living(bridge) and attempt(bridge).attempt == 1, seconds=60)
    before = attempt(bridge)
    (job,) = living(bridge)
    nodes = allowed(job)
    free(bridge, NODES[0])
    bridge.start()
    bridge.step()
    assert attempt(bridge) == before
    assert allowed(bridge.of(job)) == nodes
    free(bridge, *NODES)
    bridge.until(lambda: all(where(bridge, pods)), seconds=60)


def pair(bridge: Bridge) -> list[str]:
    """Two large pods that want to be in one rack, and a small one anywhere."""
    group_ = {names.GROUP: "g", names.GROUP_SIZE: "3"}
    for number in range(2):
        labels = {**group_, SUBGROUP: "large"}
        bridge.pod(f"g-{number}", labels=labels, annotations={REQUIRED: "rack"}, cpu="4")
    bridge.pod("g-2", labels={**group_, SUBGROUP: "small"}, cpu="3")
    return ["g-0", "g-1", "g-2"]


def test_a_job_of_components_is_made_anew_for_its_next_set(tmp_path: pathlib.Path) -> None:
    """Slurm takes no update of it; the next job begins where the last one ended."""
    bridge = bridge_of(tmp_path, NODES)
    pods = pair(bridge)
    bridge.until(lambda: living(bridge))
    seen: list[set[str]] = []

    def all_racks() -> bool:
        for one in living(bridge):
            nodes = allowed(one)
            if not seen or seen[-1] != nodes:
                seen.append(nodes)
        return len(seen) > 2

    bridge.until(all_racks, seconds=120)
    assert sorted(map(sorted, seen[:3])) == sorted(map(sorted, RACKS.values()))
    assert bridge.submits() >= 3
    assert len(living(bridge)) == 1
    free(bridge, *NODES)
    bridge.until(lambda: all(where(bridge, pods)), seconds=60)
    assert where(bridge, pods[:2]) in map(set, RACKS.values())


def test_nobody_else_is_touched(tmp_path: pathlib.Path) -> None:
    """A pod that asks for no topology is offered all nodes, once."""
    bridge = bridge_of(tmp_path, NODES[:5])
    bridge.pod("a")
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.node_of("a") == NODES[5]
    assert bridge.job("a").ask.excluded == ()


def test_annotations_that_mean_nothing_are_told(tmp_path: pathlib.Path) -> None:
    """The pod is refused, in a condition."""
    bridge = bridge_of(tmp_path, ())
    bridge.pod("a", annotations={REQUIRED: "shelf"})
    bridge.run(2)
    reason, said = bridge.condition("a")
    assert reason == "InvalidTopology"
    assert said == f'annotation {REQUIRED}="shelf" of Pod {NAMESPACE}/a: use a level of topology halls: rack'
