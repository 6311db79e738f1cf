"""A gang that has room on few nodes starts there, with one order; one that has lost the room starts on more."""

import pathlib

import pytest

from slurm_bridge.model import names
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.fleet import Fleet
from tests.simulation.world import NAMESPACE, World

CPUS = 16
GROUP = f"Group:{NAMESPACE}/g"

#: Free cpus of each node: Slurm would take the first two for eight tasks of one.
FRAGMENTS = (4, 4, 4, 8, 16)


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Nodes of which jobs of others leave fragments, and a daemon that has read them."""
    return fragmented(tmp_path, *FRAGMENTS)


def fragmented(folder: pathlib.Path, *free: int) -> Bridge:
    """Nodes n0, n1 ... with so many free cpus."""
    machines = {name: name for name in (f"n{number}" for number in range(len(free)))}
    world = World(1, folder / "token", fleet=Fleet(nodes=machines, cpus=CPUS, memory_mib=CPUS * 1000))
    bridge = Bridge(folder, world=world)
    bridge.delete("foreign", grace=0)
    for job in list(bridge.slurm.world.jobs.values()):
        bridge.slurm.control.end(job.job_id, "CANCELLED")
    for name, left in zip(machines, free, strict=True):
        occupy(bridge, name, CPUS - left)
    bridge.step()
    bridge.slurm_calls.forget()
    return bridge


def occupy(bridge: Bridge, name: str, cpus: int) -> int:
    """A job of somebody else takes cpus of a node at once."""
    if not cpus:
        return 0
    job_id = bridge.world.submit(f"on-{name}", tasks=cpus, required_nodes=[name])
    bridge.world.pass_time(1.0)
    assert bridge.slurm.world.jobs[job_id].running
    return job_id


def gang(bridge: Bridge, size: int = 8, of: int | None = None) -> list[str]:
    """A group of pods of one cpu; their names."""
    found = [f"g-{number}" for number in range(size)]
    for name in found:
        bridge.pod(name, labels={names.GROUP: "g", names.GROUP_SIZE: str(of or size)})
    return found


def nodes(bridge: Bridge, pods: list[str]) -> set[str]:
    """Where they are bound."""
    return {bridge.node_of(name) for name in pods}


def job_of(bridge: Bridge) -> state.SlurmJob:
    """The one job that was ever asked for."""
    (job,) = bridge.jobs(GROUP)
    return job


def updates(bridge: Bridge) -> int:
    """How often a job was changed."""
    return bridge.slurm_calls.count(method="POST", target=r"/job/\d+")


def test_a_gang_lands_on_the_one_node_with_room(bridge: Bridge) -> None:
    """One submit, no update; left alone Slurm would have spread it."""
    pods = gang(bridge)
    bridge.until(lambda: all(nodes(bridge, pods)))
    assert nodes(bridge, pods) == {"n3"}
    assert (bridge.submits(), updates(bridge)) == (1, 0)
    bridge.run(120, step=2)
    assert (bridge.submits(), updates(bridge)) == (1, 0)


def test_two_nodes_where_one_is_not_enough(bridge: Bridge) -> None:
    """Of twenty tasks, eight and twelve."""
    pods = gang(bridge, 20)
    bridge.until(lambda: all(nodes(bridge, pods)))
    assert nodes(bridge, pods) == {"n3", "n4"}
    assert (bridge.submits(), updates(bridge)) == (1, 0)


def test_one_gang_after_the_other(bridge: Bridge) -> None:
    """The second knows what the first has taken, though Slurm's nodes were not read again."""
    first = gang(bridge, 12)
    bridge.until(lambda: all(nodes(bridge, first)))
    second = [f"h-{number}" for number in range(8)]
    for name in second:
        bridge.pod(name, labels={names.GROUP: "h", names.GROUP_SIZE: "8"})
    bridge.until(lambda: all(nodes(bridge, second)))
    assert (nodes(bridge, first), nodes(bridge, second)) == ({"n4"}, {"n3"})
    assert (bridge.submits(), updates(bridge)) == (2, 0)


def test_a_gang_whose_room_was_taken_widens_once_and_starts(bridge: Bridge) -> None:
    """Within seconds, on two nodes of four free cpus, by one update of the same job."""
    occupy(bridge, "n3", 8)
    occupy(bridge, "n4", 16)
    pods = gang(bridge)
    began = bridge.clock.now()
    bridge.until(lambda: all(nodes(bridge, pods)))
    assert nodes(bridge, pods) == {"n0", "n1"}
    assert (bridge.submits(), updates(bridge)) == (1, 1)
    assert bridge.clock.now() - began < 10
    assert len(bridge.jobs(GROUP)) == 1


def test_a_gang_whose_room_does_not_come_back_waits_wide(bridge: Bridge) -> None:
    """One update, and then nothing, however the nodes change; it starts on whatever is free first."""
    taken = [occupy(bridge, name, left) for name, left in zip(("n0", "n1", "n3", "n4"), (4, 4, 8, 16), strict=True)]
    pods = gang(bridge)
    bridge.run(20)
    assert (job_of(bridge).ask.maximum_nodes, bridge.submits(), updates(bridge)) == (8, 1, 1)
    bridge.slurm.control.drain("n4")
    bridge.run(90, step=2)
    assert (bridge.submits(), updates(bridge)) == (1, 1)
    bridge.slurm.control.end(taken[1])
    bridge.until(lambda: all(nodes(bridge, pods)))
    assert nodes(bridge, pods) == {"n1", "n2"}
    assert (bridge.submits(), updates(bridge)) == (1, 1)


def test_a_busy_queue_costs_one_update_for_each_gang_that_lost_its_room(bridge: Bridge) -> None:
    """Ten gangs see the same room at once: those that do not get it widen once, and no job is made anew."""
    for number in range(10):
        for member in range(8):
            bridge.pod(f"q{number}-{member}", labels={names.GROUP: f"q{number}", names.GROUP_SIZE: "8"})
    bridge.run(90)
    assert bridge.submits() == 10
    assert updates(bridge) <= 10


def test_a_gang_without_room_is_asked_for_as_ever(tmp_path: pathlib.Path) -> None:
    """And gets no maximum when there is room later: it would have to be a new job."""
    bridge = fragmented(tmp_path, 2, 2, 2)
    occupy(bridge, "n0", 2)
    bridge.core.context.refresh_facts()
    pods = gang(bridge)
    bridge.run(10)
    assert job_of(bridge).ask.maximum_nodes is None
    bridge.slurm.control.pause()
    for job in list(bridge.slurm.world.jobs.values()):
        if job.running:
            bridge.slurm.control.end(job.job_id)
    bridge.run(90, step=2)
    assert (job_of(bridge).ask.maximum_nodes, bridge.submits(), updates(bridge)) == (None, 1, 0)
    bridge.slurm.control.unpause()
    bridge.until(lambda: all(nodes(bridge, pods)))


def test_before_slurm_has_looked_nothing_was_tried(bridge: Bridge) -> None:
    """However long that takes: a scheduler that stands still is no reason for an update."""
    bridge.slurm.control.pause()
    pods = gang(bridge)
    bridge.run(120, step=2)
    assert (job_of(bridge).ask.maximum_nodes, bridge.submits(), updates(bridge)) == (1, 1, 0)
    bridge.slurm.control.unpause()
    bridge.until(lambda: all(nodes(bridge, pods)))
    assert nodes(bridge, pods) == {"n3"}
    assert updates(bridge) == 0


def test_a_restart_goes_on_where_it_was(bridge: Bridge) -> None:
    """The record of the job says which attempt runs: no new job, and one update in all."""
    occupy(bridge, "n3", 8)
    occupy(bridge, "n4", 16)
    occupy(bridge, "n0", 4)
    occupy(bridge, "n1", 4)
    gang(bridge)
    bridge.step()
    for _ in range(3):
        bridge.start()
        bridge.run(2)
    bridge.run(20)
    assert (job_of(bridge).ask.maximum_nodes, len(bridge.jobs(GROUP))) == (8, 1)
    before = bridge.of(job_of(bridge))
    bridge.start()
    bridge.run(60, step=2)
    assert (bridge.submits(), updates(bridge)) == (0, 0)
    assert bridge.of(before).ask == before.ask


def test_members_that_join_are_counted_anew(bridge: Bridge) -> None:
    """By the update that they need in any case: twelve have room on one node, twenty on two."""
    bridge.slurm.control.pause()
    gang(bridge, 12, of=8)
    bridge.run(5)
    assert (job_of(bridge).ask.tasks, job_of(bridge).ask.maximum_nodes) == (12, 1)
    pods = [f"g-{number}" for number in range(20)]
    for name in pods[12:]:
        bridge.pod(name, labels={names.GROUP: "g", names.GROUP_SIZE: "8"})
    bridge.run(10)
    assert (job_of(bridge).ask.tasks, job_of(bridge).ask.maximum_nodes) == (20, 2)
    assert (bridge.submits(), updates(bridge)) == (1, 1)
    bridge.slurm.control.unpause()
    bridge.until(lambda: all(nodes(bridge, pods)))
    assert nodes(bridge, pods) == {"n3", "n4"}


def test_a_second_job_of_a_gang_begins_anew(bridge: Bridge) -> None:
    """What was tried for the first one, which an administrator has cancelled, is not remembered for it."""
    occupy(bridge, "n3", 8)
    occupy(bridge, "n4", 16)
    occupy(bridge, "n0", 4)
    occupy(bridge, "n1", 4)
    pods = gang(bridge)
    bridge.run(20)
    first = job_of(bridge)
    assert first.ask.maximum_nodes == 8
    bridge.core.context.refresh_facts()
    bridge.slurm.control.end(first.job_id, "CANCELLED")
    bridge.run(5)
    bridge.annotate(pods[0], retry="1")
    bridge.run(20)
    last = bridge.jobs(GROUP)[-1]
    assert last.job_id != first.job_id
    assert (last.ask.maximum_nodes, bridge.submits()) == (None, 2)


def test_single_pods_are_asked_for_as_ever(bridge: Bridge) -> None:
    """One node is one node."""
    bridge.pod("alone", cpu="6")
    bridge.until(lambda: bridge.node_of("alone"))
    assert [job.ask.maximum_nodes for job in bridge.jobs()] == [None]
