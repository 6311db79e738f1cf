"""Groups, their members and the nodes that these have."""

from collections.abc import Sequence

from slurm_bridge.model import names
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE


def member(
    bridge: Bridge, name: str, *, size: int = 4, group: str = "g", lost: str = "", asked: str = "", **changes: object
) -> str:
    """One pod of a group of that size; `asked` is whether it asks for Slurm's environment."""
    annotations = {names.ANNOTATION_MEMBER_LOST: lost} if lost else {}
    annotations |= {names.JOB_PREFIX + names.ENVIRONMENT: asked} if asked else {}
    labels = {names.GROUP: group, names.GROUP_SIZE: str(size)}
    return bridge.pod(name, labels=labels, annotations=annotations, **changes)


def gang(bridge: Bridge, size: int = 4, **changes: object) -> list[str]:
    """All pods of a group; their names."""
    found = [f"g-{number}" for number in range(size)]
    for name in found:
        member(bridge, name, size=size, **changes)
    return found


def job_of(bridge: Bridge, uid: str = f"Group:{NAMESPACE}/g") -> state.SlurmJob:
    """The one living job of the group; of a heterogeneous one its leader."""
    living = [job for job in bridge.jobs(uid) if not job.over and not job.offset]
    assert len(living) == 1, f"{len(living)} living jobs of {uid}: {living}"
    return living[0]


def bound(bridge: Bridge, pods: Sequence[str]) -> list[str]:
    """The nodes of these pods, in their order."""
    return [bridge.node_of(name) for name in pods]


def running(bridge: Bridge, size: int = 4, **changes: object) -> list[str]:
    """A group whose pods all have their nodes."""
    pods = gang(bridge, size, **changes)
    bridge.until(lambda: all(bound(bridge, pods)))
    return pods


def pending(bridge: Bridge, size: int = 4, **changes: object) -> list[str]:
    """A group whose job pends, because Slurm starts nothing."""
    bridge.slurm.control.pause()
    pods = gang(bridge, size, **changes)
    bridge.run(2)
    assert not any(bound(bridge, pods))
    return pods


def pair(bridge: Bridge, leader: str = "3", worker: str = "2") -> list[str]:
    """Two pods that ask for different amounts, and do not fit on one node together."""
    member(bridge, "g-0", size=2, cpu=leader)
    member(bridge, "g-1", size=2, cpu=worker)
    return ["g-0", "g-1"]


def parts(bridge: Bridge) -> list[state.SlurmJob]:
    """The components of the group's job, as they are."""
    leader = job_of(bridge)
    return [job for job in bridge.slurm.world.jobs.values() if job.leader == leader.job_id]
