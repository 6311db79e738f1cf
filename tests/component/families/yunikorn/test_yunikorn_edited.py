"""A pod that is edited while its job waits in Slurm: what the job stands for counts until a queue takes the pod."""

import pathlib

import pytest

from slurm_bridge.model.names import JOB_PREFIX
from tests.component.families.yunikorn.test_yunikorn_partitions import both
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.whole_core import Bridge

ONE = {"max": {"vcore": "1"}}


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus."""
    return Bridge(tmp_path)


@pytest.fixture
def halves(bridge: Bridge) -> Bridge:
    """Each partition of Slurm has two of the nodes."""
    bridge.slurm.control.set_partition("debug", nodes=("n1", "n2"))
    bridge.slurm.control.set_partition("batch", nodes=("n3", "s4"))
    return bridge


def used(queues: Queues) -> int:
    """What counts in all queues, in thousandths of a cpu."""
    shown = queues.hook.picture()
    assert shown is not None
    found: int = shown["queues"]["used"].get("vcore", 0)
    return found


def waiting(bridge: Bridge, name: str, cpu: str = "1", **annotations: str) -> None:
    """Its job, if a queue lets it in, does not start."""
    bridge.waiting(name, annotations={JOB_PREFIX + key: value for key, value in annotations.items()}, cpu=cpu)


def test_a_job_counts_although_its_pod_asks_for_a_queue_that_there_is_not(bridge: Bridge) -> None:
    """No annotation lets a neighbour into a full queue; the job counts once it runs, and no longer once it is over."""
    queues = Queues(bridge, queue("a", resources=ONE))
    waiting(bridge, "sly", queue="root.a")
    bridge.annotate("sly", queue="root.nowhere")
    bridge.run(5)
    assert queues.said("sly")[0] == "QueueRejected"
    assert (queues.submitted(), used(queues)) == (["sly"], 1_000)
    queues.pod("next")
    bridge.run(5)
    assert queues.submitted() == ["sly"]
    bridge.slurm.control.unpause()
    bridge.run(10)
    assert (queues.running("sly", "next"), used(queues)) == (["sly"], 1_000)
    bridge.delete("sly", grace=0)
    bridge.run(10)
    assert queues.running("next") == ["next"]


@pytest.mark.parametrize("other", ["root.b", "root.a"])
def test_a_pod_that_asks_for_a_queue_again_is_let_in_there(bridge: Bridge, other: str) -> None:
    """Its job counts once."""
    queues = Queues(bridge, queue("a", resources=ONE), queue("b", resources=ONE))
    waiting(bridge, "mine", queue="root.a")
    for name in ("root.nowhere", other):
        bridge.annotate("mine", queue=name)
        bridge.run(5)
    assert used(queues) == 1_000
    bridge.slurm.control.unpause()
    bridge.run(10)
    assert (queues.running("mine"), used(queues)) == (["mine"], 1_000)


def test_a_job_counts_although_its_pod_asks_for_several_partitions(halves: Bridge) -> None:
    """It is in the queues of the partition that it had, until Slurm would start it, and it is withdrawn."""
    queues = both(halves)
    waiting(halves, "sly", cpu="2", queue="root.a", partition="debug")
    halves.annotate("sly", partition="debug,batch")
    halves.run(5)
    assert queues.said("sly")[0] == "QueueRejected"
    assert queues.used("debug") == 2_000
    queues.to("next", "debug", cpu="2")
    halves.run(5)
    assert queues.submitted() == ["sly"]
    halves.slurm.control.unpause()
    halves.run(20)
    assert (queues.running("sly", "next"), queues.used("debug")) == (["next"], 2_000)


def test_a_job_counts_although_partitions_of_slurm_overlap_meanwhile(halves: Bridge) -> None:
    """Its user has no part in it."""
    queues = both(halves)
    waiting(halves, "mine", cpu="2", queue="root.a", partition="debug")
    halves.slurm.control.set_partition("batch", nodes=("n2", "n3", "s4"))
    halves.run(40)
    assert queues.used("debug") == 2_000
    halves.slurm.control.unpause()
    halves.run(20)
    assert (queues.running("mine"), queues.used("debug")) == (["mine"], 2_000)
