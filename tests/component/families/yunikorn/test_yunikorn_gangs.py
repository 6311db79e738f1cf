"""A gang counts in its queue with all places that its job was asked for, whichever of its members are there."""

import pathlib
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from tests.component.families.yunikorn.yunikorn_scenes import document, queue
from tests.component.scheduler.gang_scenes import job_of
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import families

SIZE = 4
QUEUE = {names.JOB_PREFIX + "queue": "root.a"}


def queues(most: int = SIZE) -> Mapping[str, Any]:
    """The hook with one queue of so many CPUs, beside a hook that orders submissions."""
    configuration = document(queue("a", resources={"max": {"vcore": str(most)}}))
    return {"name": "yunikorn", "options": {"order": False, "configuration": configuration}}


ALL_FAMILIES = ({"name": "kube-scheduler"}, families.VELA, families.KAI)


@pytest.fixture(params=[(), ALL_FAMILIES], ids=["alone", "all families"])
def bridge(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus, and a queue for four."""
    return Bridge(tmp_path, hooks=[queues(), *map(dict, request.param)])


def member(bridge: Bridge, number: int, *, cpu: str = "1") -> str:
    """A pod of the gang."""
    name = f"g-{number}"
    labels = {names.GROUP: "g", names.GROUP_SIZE: str(SIZE)}
    bridge.pod(name, cpu=cpu, labels=labels, annotations=dict(QUEUE))
    return name


def gang(bridge: Bridge) -> list[str]:
    """All of them."""
    return [member(bridge, number) for number in range(SIZE)]


def running(bridge: Bridge) -> list[str]:
    """The same on nodes."""
    pods = gang(bridge)
    bridge.until(lambda: all(map(bridge.node_of, pods)))
    return pods


def restart(bridge: Bridge) -> None:
    """The next process, which knows nothing of the one before."""
    bridge.start()
    bridge.run(2)


def test_after_a_restart_a_gang_counts_with_the_places_of_members_that_are_missing(bridge: Bridge) -> None:
    """Its job keeps their nodes: no other workload is admitted for them, and a new member takes its place at once."""
    pods = running(bridge)
    bridge.delete(pods[1], grace=0)
    restart(bridge)
    bridge.pod("next", annotations=QUEUE)
    bridge.run(5)
    assert bridge.condition("next") == (
        "QueueWaiting",
        "in queue root.a: queue root.a uses 4 of 4 vcore, and this asks for 1; others in root.a have to end first",
    )
    member(bridge, 1)
    bridge.run(2)
    assert bridge.node_of("g-1")
    assert not bridge.node_of("next")


def test_a_member_takes_a_place_that_its_job_holds_while_others_wait_for_quota(bridge: Bridge) -> None:
    """The place is charged already; so it is when the daemon restarts before the member comes, and after."""
    pods = running(bridge)
    bridge.pod("next", annotations=QUEUE)
    for number in (0, 2, 3):
        bridge.delete(pods[number], grace=0)
        restart(bridge)
        member(bridge, number)
        bridge.run(2)
        assert bridge.node_of(pods[number])
        restart(bridge)
        assert bridge.condition("next")[0] == "QueueWaiting"


def test_a_pending_gang_is_not_admitted_again_when_a_missing_member_comes_back(bridge: Bridge) -> None:
    """It was admitted whole, and its job asks for all members all the time."""
    bridge.slurm.control.pause()
    pods = gang(bridge)
    bridge.run(2)
    bridge.delete(pods[1], grace=0)
    restart(bridge)
    bridge.pod("next", annotations=QUEUE)
    bridge.run(5)
    member(bridge, 1)
    bridge.run(5)
    assert bridge.condition("next")[0] == "QueueWaiting"
    assert bridge.condition("g-0")[0] == "SlurmJobPending"
    bridge.slurm.control.unpause()
    bridge.until(lambda: all(map(bridge.node_of, pods)))


def test_a_pending_workload_that_asks_for_less_keeps_what_it_was_given(tmp_path: pathlib.Path) -> None:
    """It need not line up behind those that wait for what it has; what it gives up is for others."""
    bridge = Bridge(tmp_path, hooks=[queues()])
    bridge.slurm.control.pause()
    bridge.pod("first", annotations={**QUEUE, names.JOB_PREFIX + "cpu-per-task": "2"})
    bridge.run(2)
    bridge.pod("large", cpu="4", annotations=QUEUE, spec={"priority": 1000})
    bridge.run(2)
    bridge.annotate("first", cpu_per_task="1")
    bridge.run(5)
    assert bridge.condition("first")[0] == "SlurmJobPending"
    assert bridge.condition("large")[0] == "QueueWaiting"
    bridge.pod("fits", cpu="3", annotations=QUEUE, spec={"priority": 2000})
    bridge.run(5)
    assert bridge.condition("fits")[0] == "SlurmJobPending"


def test_members_missing_from_one_gang_are_charged_to_no_other_workload(tmp_path: pathlib.Path) -> None:
    """A pod that names the group of another namespace's gang is none of its members, and pays for itself."""
    bridge = Bridge(tmp_path, hooks=[queues(SIZE + 2)])
    pods = running(bridge)
    bridge.delete(pods[1], grace=0)
    bridge.kube.create(kinds.NAMESPACES, {"metadata": {"name": "elsewhere"}})
    bridge.pod("g-9", "elsewhere", labels={names.GROUP: "g", names.GROUP_SIZE: "1"}, annotations=QUEUE)
    bridge.run(5)
    restart(bridge)
    bridge.pod("last", annotations=QUEUE)
    bridge.run(5)
    assert bridge.node_of("last")
    bridge.pod("over", annotations=QUEUE)
    bridge.run(5)
    assert "uses 6 of 6 vcore" in bridge.condition("over")[1]
    assert job_of(bridge).ask.tasks == SIZE
