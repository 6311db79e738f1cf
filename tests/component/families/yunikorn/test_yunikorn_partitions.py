"""Each partition of Slurm with queues of its own: which of them a workload is in, and how large each partition is."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge import errors
from slurm_bridge.daemon import queue_view
from slurm_bridge.families.yunikorn import partition_size, text
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.partitions import YunikornPartitions, builder
from slurm_bridge.model.names import JOB_PREFIX
from slurm_bridge.telemetry.metrics import Metrics
from tests.component.families.yunikorn.yunikorn_scenes import PROVIDED, Queues, queue, until
from tests.component.scheduler.whole_core import Bridge

MOST = {"max": {"vcore": "2"}}


def partition(name: str, *queues: Any) -> dict[str, Any]:
    """A partition of a configuration, in which everybody may submit everywhere."""
    root = {"name": "root", "submitacl": "*", "queues": list(queues)}
    return {"name": name, "queues": [root], "placementrules": PROVIDED}


class Partitions(Queues):
    """The hook with queues for each partition of Slurm; debug has the nodes n1 and n2, batch the other two."""

    def __init__(self, bridge: Bridge, *partitions: Any, **options: Any) -> None:
        super().__init__(bridge, *partitions, **options)

    def configure(self, *partitions: Any, **options: Any) -> None:
        given = {"configuration": {"partitions": list(partitions)}, "partitions": "slurm", **options}
        found = builder(YunikornOptions.model_validate(given), self.around.services_of("yunikorn"))
        assert isinstance(found, YunikornPartitions)
        self.parts = found
        self.install(found)

    def of(self, name: str) -> Mapping[str, Any]:
        """What the page shows of a partition."""
        shown = self.parts.picture()
        assert shown is not None
        found: Mapping[str, Any] = next(one for one in shown["partitions"] if one["partition"] == name)
        return found

    def used(self, name: str, kind: str = "vcore") -> int:
        """In all queues of a partition."""
        return int(self.of(name)["queues"]["used"].get(kind, 0))

    def size(self, name: str) -> int:
        """Of a partition, in cpus."""
        return int(self.of(name)["size"].get("vcore", 0)) // 1000

    def to(self, name: str, place: str, **changes: Any) -> str:
        """A pod that asks for a partition of Slurm."""
        return self.pod(name, annotations={f"{JOB_PREFIX}partition": place}, **changes)


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus; each partition of Slurm has two of them."""
    made = Bridge(tmp_path)
    made.slurm.control.set_partition("debug", nodes=("n1", "n2"))
    made.slurm.control.set_partition("batch", nodes=("n3", "s4"))
    return made


def both(bridge: Bridge, **options: Any) -> Partitions:
    """Queue a is in both, and has two cpus in debug."""
    return Partitions(bridge, partition("debug", queue("a", resources=MOST)), partition("batch", queue("a")), **options)


def test_a_workload_is_in_the_queues_of_the_partition_that_it_asks_for(bridge: Bridge) -> None:
    """Or of Slurm's default; a maximum of one of them is none of the other."""
    queues = both(bridge)
    queues.pod("default", cpu="2")
    bridge.run(2)
    queues.to("second", "debug")
    queues.to("other", "batch", cpu="3")
    bridge.run(3)
    assert queues.running("default", "second", "other") == ["default", "other"]
    assert "queue root.a uses 2 of 2 vcore" in queues.said("second")[1]
    assert (queues.used("debug"), queues.used("batch")) == (2_000, 3_000)
    assert bridge.node_of("other") in ("n3", "n4")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            "debug,batch",
            (
                "asks for the Slurm partitions debug, batch, and a workload is in the queues of one: "
                "name one of batch, debug in the annotation slurmjob.slinky.slurm.net/partition"
            ),
        ),
        ("nowhere", "Slurm partition nowhere has no queues: partitions with queues are batch, debug"),
    ],
)
def test_a_workload_without_one_partition_with_queues_is_refused(bridge: Bridge, asked: str, words: str) -> None:
    """Nothing is submitted; its user reads which it may name, and a workload beside it starts."""
    queues = both(bridge)
    queues.to("lost", asked)
    queues.pod("neighbour")
    bridge.run(3)
    assert queues.said("lost") == ("QueueRejected", words)
    assert queues.submitted() == ["neighbour"]


def test_a_workload_that_asks_for_another_partition_leaves_the_queues_of_the_first(bridge: Bridge) -> None:
    """It counts once."""
    queues = both(bridge)
    queues.pod("large", cpu="2")
    bridge.run(2)
    queues.to("moves", "debug")
    bridge.run(2)
    bridge.annotate("moves", partition="batch")
    bridge.run(3)
    assert queues.running("moves")
    assert (queues.used("debug"), queues.used("batch"), queues.of("debug")["waiting"]) == (2_000, 1_000, [])


@pytest.mark.parametrize("edited", ["nowhere", "batch", "batch,nowhere"])
def test_after_a_restart_what_runs_counts_where_its_nodes_are(bridge: Bridge, edited: str) -> None:
    """Its annotation may say something else by then; no neighbour gets beyond the maximum, nor less than it."""
    queues = both(bridge)
    queues.to("mine", "debug", cpu="2")
    bridge.run(3)
    bridge.annotate("mine", partition=edited)
    bridge.run(3)
    bridge.start()
    queues = both(bridge)
    bridge.run(3)
    assert (queues.used("debug"), queues.used("batch")) == (2_000, 0)
    queues.to("next", "debug", cpu="2")
    queues.to("other", "batch", cpu="2")
    bridge.run(5)
    assert queues.running("mine", "next", "other") == ["mine", "other"]


def test_a_restart_and_a_reload_keep_each_workload_in_its_partition(bridge: Bridge) -> None:
    """What runs counts where it was let in; what waits goes on waiting there."""
    queues = both(bridge)
    queues.pod("runs", cpu="2")
    queues.to("other", "batch")
    bridge.run(3)
    queues.to("waits", "debug")
    bridge.run(2)
    queues.configure(partition("debug", queue("a", resources={"max": {"vcore": "3"}})), partition("batch", queue("a")))
    bridge.run(3)
    assert (queues.used("debug"), queues.used("batch")) == (3_000, 1_000)
    bridge.start()
    again = both(bridge)
    bridge.run(3)
    assert (again.used("debug"), again.used("batch")) == (3_000, 1_000)


def test_a_reload_may_turn_one_set_of_queues_into_several_and_back(bridge: Bridge) -> None:
    """What runs is counted by each of them in turn, and by none twice."""
    queues = both(bridge)
    queues.pod("runs", cpu="2")
    queues.to("other", "batch")
    bridge.run(3)
    Queues.configure(queues, queue("a"))
    bridge.run(2)
    shown = queues.hook.picture()
    assert shown is not None
    assert shown["queues"]["used"]["vcore"] == 3_000
    queues.configure(partition("debug", queue("a")), partition("batch", queue("a")))
    bridge.run(2)
    assert (queues.used("debug"), queues.used("batch")) == (2_000, 1_000)
    queues.to("late", "batch")
    bridge.run(3)
    assert queues.running("late")
    assert queues.used("batch") == 2_000


def test_a_partition_in_use_cannot_go(bridge: Bridge) -> None:
    """The configuration is refused as a whole, also in a dry run; once the workload has ended it is applied."""
    queues = both(bridge)
    queues.to("runs", "batch")
    bridge.run(3)
    words = "partition batch: cannot go while 1 workloads are in its queues"
    only = [partition("debug", queue("a"))]
    with pytest.raises(errors.BadConfiguration, match=words):
        queues.configure(*only)
    assert queues.parts.desk.problems(json.dumps({"partitions": only}).encode()) == (words,)
    bridge.delete("runs", grace=0)
    bridge.run(10)
    queues.configure(*only)


def measured(queues: Partitions) -> None:
    """Both sides were read, and what is read counts."""
    for _ in range(2):
        queues.bridge.run(partition_size.STANDS)
        queues.bridge.core.preempt_step()


def test_a_partition_is_as_large_as_its_own_nodes_without_native_jobs(bridge: Bridge) -> None:
    """The world has two native jobs of a cpu in debug, and a pod of another scheduler on n3."""
    queues = both(bridge)
    measured(queues)
    assert (queues.size("debug"), queues.size("batch")) == (6, 7)
    native = bridge.world.submit("native2", partition="batch", cpus_per_task=3)
    measured(queues)
    assert (queues.size("debug"), queues.size("batch")) == (6, 4)
    queues.to("mine", "batch", cpu="2")
    measured(queues)
    assert (queues.size("batch"), queues.used("batch")) == (4, 2_000)
    bridge.slurm.control.end(native)
    measured(queues)
    assert queues.size("batch") == 7


def test_whole_nodes_of_the_bridge_are_not_native(bridge: Bridge) -> None:
    """Slurm says that all four cpus are taken, of which its pod has one."""
    queues = both(bridge)
    queues.pod("whole", annotations={f"{JOB_PREFIX}partition": "batch", f"{JOB_PREFIX}exclusive": "true"})
    measured(queues)
    assert queues.running("whole")
    assert (queues.size("batch"), queues.used("batch")) == (7, 4_000)


def test_a_drained_node_is_no_longer_part_of_its_partition(bridge: Bridge) -> None:
    """And of no other one."""
    queues = both(bridge)
    measured(queues)
    bridge.slurm.control.drain("s4", "broken")
    measured(queues)
    assert (queues.size("debug"), queues.size("batch")) == (6, 3)


def test_a_guarantee_holds_in_its_own_partition(bridge: Bridge) -> None:
    """What is borrowed in one partition makes room there; workloads of the other one stay."""
    entitled = queue("mine", resources={"guaranteed": {"vcore": "4"}}, properties={"preemption.delay": "5s"})
    queues = Partitions(bridge, partition("debug", queue("a")), partition("batch", entitled, queue("b")))
    measured(queues)
    for name in ("b1", "b2", "b3", "b4", "b5", "b6", "b7"):
        queues.to(name, "batch", queue="root.b")
    queues.to("neighbour", "debug")
    bridge.run(5)
    assert len(queues.running("b1", "b2", "b3", "b4", "b5", "b6", "b7", "neighbour")) == 8
    queues.to("asker", "batch", queue="root.mine")
    bridge.run(2)
    assert "Slurm partition batch is full (7 of 7 vcore are given out)" in queues.said("asker")[1]
    until(bridge, lambda: queues.running("asker"))
    left = [name for name in ("b1", "b2", "b3", "b4", "b5", "b6", "b7") if bridge.exists(name)]
    assert (len(left), queues.running("neighbour")) == (6, ["neighbour"])


OVERLAP = (
    "Slurm partitions debug and batch share node n2: each node belongs to the queues of one partition: take it out of "
    "one of the two, or use `partitions: one`"
)


def test_partitions_that_share_a_node_take_no_new_workloads(bridge: Bridge) -> None:
    """Their sizes would count it twice. What runs goes on, and the next one starts when Slurm has been changed."""
    queues = both(bridge)
    queues.pod("before")
    bridge.run(3)
    bridge.slurm.control.set_partition("batch", nodes=("n2", "n3", "s4"))
    bridge.run(40)
    queues.to("waits", "batch")
    bridge.run(3)
    assert queues.running("before", "waits") == ["before"]
    assert queues.said("waits") == ("QueueWaiting", OVERLAP)
    shown = queues.parts.picture()
    assert shown is not None
    assert shown["problems"] == (OVERLAP,)
    bridge.slurm.control.set_partition("batch", nodes=("n3", "s4"))
    bridge.run(180)
    assert queues.running("waits")


def test_a_configuration_for_partitions_that_share_nodes_is_refused(bridge: Bridge) -> None:
    """Where it is known: when it is read again, and in a dry run; a partition that Slurm does not have is a warning."""
    queues = Partitions(bridge, partition("debug", queue("a")))
    bridge.slurm.control.set_partition("batch", nodes=("n2", "n3", "s4"))
    bridge.run(40)
    configuration = [partition(name, queue("a")) for name in ("debug", "batch", "lost")]
    with pytest.raises(errors.BadConfiguration, match="debug and batch share node n2"):
        queues.configure(*configuration)
    body = json.dumps({"partitions": configuration}).encode()
    assert queues.parts.desk.problems(body) == (OVERLAP,)
    lost = "partition lost: Slurm has no partition of this name, and no workload enters its queues; "
    assert queues.parts.desk.warnings(body) == (f"{lost}there are batch, debug",)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"partition": "debug"}, "all partitions of the configuration are used; leave it out"),
        ({"map": {"root.a": {"partition": "batch"}}}, r"map\.root\.a\.partition: with `partitions: slurm`"),
    ],
)
def test_options_that_contradict_it_are_refused(bridge: Bridge, given: Any, words: str) -> None:
    """With the key, and what to do."""
    with pytest.raises(ValueError, match=words):
        both(bridge, **given)


def test_an_entry_of_the_map_is_for_the_partitions_that_have_its_queue(bridge: Bridge) -> None:
    """One that none of them has is refused."""
    parts = (partition("debug", queue("a")), partition("batch", queue("b")))
    queues = Partitions(bridge, *parts, map={"root.b": {"account": "physics"}})
    assert queues.parts.desk.in_force.partition == "debug, batch"
    with pytest.raises(errors.BadConfiguration, match=r"map: 'root\.a\.c' is no queue"):
        both(bridge, map={"root.a.c": {"account": "physics"}})


def test_all_partitions_are_shown(bridge: Bridge) -> None:
    """As text with the size of each, and as metrics by the partition's name."""
    queues = both(bridge)
    queues.pod("runs")
    measured(queues)
    shown = queues.parts.picture()
    assert shown is not None
    lines = list(text.lines(shown))
    assert [line for line in lines if line.startswith(("mode", "size"))] == [
        "mode local, partition debug, ahead in Slurm 0 of 16",
        "size memory 15800Mi, vcore 6",
        "mode local, partition batch, ahead in Slurm 0 of 16",
        "size memory 15500Mi, vcore 7",
    ]
    metrics = Metrics(version="test")
    queue_view.refresh(metrics, bridge.core.context.config.chain)
    assert metrics.queue_running.labels("[debug]root.a")._value.get() == 1
    assert metrics.queue_running.labels("[batch]root.a")._value.get() == 0
