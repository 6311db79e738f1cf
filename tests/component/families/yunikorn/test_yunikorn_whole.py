"""A workload with `exclusive` takes whole nodes of its queue: before Slurm has chosen them, and after."""

import pathlib

import pytest

from slurm_bridge.model.names import JOB_PREFIX
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.whole_core import Bridge

EXCLUSIVE = {f"{JOB_PREFIX}exclusive": "true"}


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus."""
    return Bridge(tmp_path)


def used(queues: Queues, path: str = "root.a", kind: str = "vcore") -> int:
    """What the page shows of a queue."""
    shown = queues.hook.picture()
    assert shown is not None
    return int(next(one for one in shown["queues"]["queues"] if one["path"] == path)["used"].get(kind, 0))


def test_an_exclusive_pod_counts_as_its_whole_node(bridge: Bridge) -> None:
    """It asks for one cpu, and no other job gets one of the other three."""
    queues = Queues(bridge, queue("a"))
    queues.pod("whole", annotations=EXCLUSIVE)
    bridge.run(3)
    assert queues.running("whole")
    assert used(queues) == 4_000
    assert used(queues, kind="pods") == 1


def test_an_exclusive_pod_does_not_pass_a_maximum_with_what_it_asks_for(bridge: Bridge) -> None:
    """It is refused before Slurm hears of it; the pod beside it shares a node, and starts."""
    queues = Queues(bridge, queue("a", resources={"max": {"vcore": "2"}}))
    queues.pod("whole", annotations=EXCLUSIVE)
    queues.pod("shares")
    bridge.run(3)
    assert queues.running("whole", "shares") == ["shares"]
    assert queues.said("whole")[0] == "QueueTooSmall"
    assert queues.said("whole")[1].startswith("asks for 4 vcore, and queue root.a never has more than 2")


def test_a_second_exclusive_pod_waits_for_the_first(bridge: Bridge) -> None:
    """Both ask for one of the four cpus that their queue has."""
    queues = Queues(bridge, queue("a", resources={"max": {"vcore": "4"}}))
    queues.pod("first", annotations=EXCLUSIVE)
    bridge.run(3)
    queues.pod("second", annotations=EXCLUSIVE)
    bridge.run(3)
    assert queues.running("first", "second") == ["first"]
    bridge.status("first", phase="Succeeded")
    bridge.run(5)
    assert queues.running("second")


def test_a_restart_counts_the_nodes_that_it_has(bridge: Bridge) -> None:
    """They are on the pods."""
    queues = Queues(bridge, queue("a"))
    queues.pod("whole", annotations=EXCLUSIVE)
    bridge.run(3)
    bridge.start()
    again = Queues(bridge, queue("a"))
    bridge.run(3)
    assert used(again) == 4_000


def test_an_annotation_that_is_added_while_the_job_waits_counts(bridge: Bridge) -> None:
    """A small request first is no way around a maximum: the workload has to be admitted again."""
    queues = Queues(bridge, queue("a", resources={"max": {"vcore": "2"}}))
    bridge.waiting("sly", annotations={f"{JOB_PREFIX}queue": "root.a"})
    assert used(queues) == 1_000
    bridge.annotate("sly", exclusive="true")
    bridge.run(5)
    assert queues.said("sly")[0] == "QueueTooSmall"
    assert used(queues) == 0
