"""What whole nodes are: of the largest that may be chosen before they are, and then of those that were."""

import dataclasses
from typing import Any

import pytest

from slurm_bridge.cluster.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.families.yunikorn import demands, setup, whole_nodes
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.members import Stage
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.hooks.base import Ask
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.runtime.clock import VirtualClock
from tests.component.families.yunikorn.yunikorn_scenes import document, queue
from tests.unit.families.yunikorn.test_yunikorn_evicting import demand
from tests.unit.hooks import builders as scene

OPTIONS = YunikornOptions.model_validate({"configuration": document(queue("a"))})
GPU = "nvidia.com/gpu"


def cluster(**partitions: Any) -> ClusterSnapshot:
    """A small node, a large one with devices, and one of another partition that is larger still."""
    nodes = [
        scene.node("small", allocatable={"cpu": "8", "memory": "32Gi"}, labels={"kind": "small"}),
        scene.node("large", allocatable={"cpu": "16", "memory": "64Gi", GPU: "4"}),
        scene.node("huge", allocatable={"cpu": "64", "memory": "256Gi"}),
    ]
    return scene.cluster(
        nodes,
        scene.partition("debug", "small", "large", default=True, **partitions),
        scene.partition("other", "huge"),
    )


def ask(*pods: Any, values: Any = (), **fields: Any) -> Ask:
    """A workload with nodes of its own, where nothing else is said."""
    request = scene.request(**{"exclusive": True, **fields})
    return Ask(workload=scene.gang(*pods or (scene.pod(requests={"cpu": "1"}),)), request=request, values=values)


def total(asked: Ask, snapshot: ClusterSnapshot | None = None) -> Any:
    """What its queue counts."""
    return demands.demand(asked, OPTIONS, None, cluster() if snapshot is None else snapshot).total


def pods(count: int, cpu: str, **more: Any) -> list[Any]:
    """Equal pods."""
    return [scene.pod(f"p{number}", requests={"cpu": cpu}, **more) for number in range(count)]


def test_before_it_has_nodes_the_largest_of_its_partition_counts() -> None:
    """With its processors, its memory and its devices; pods count as they are."""
    assert total(ask()) == {"vcore": 16_000, "memory": 64 << 30, GPU: 4, "pods": 1}


def test_only_nodes_that_it_may_go_to_count() -> None:
    """By its node selector, by what a pod asks for, and by its partition."""
    assert total(ask(*pods(1, "1", node_selector={"kind": "small"})))["vcore"] == 8_000
    assert total(ask(partition="other"))["vcore"] == 64_000
    assert total(ask(scene.pod(requests={"cpu": "1", GPU: "1"})))[GPU] == 4


@pytest.mark.parametrize(("count", "cpu", "nodes"), [(2, "8", 1), (3, "8", 2), (2, "9", 2), (17, "1", 2)])
def test_it_counts_as_many_nodes_as_it_needs(count: int, cpu: str, nodes: int) -> None:
    """If all are the largest."""
    assert total(ask(*pods(count, cpu)))["vcore"] == nodes * 16_000


def test_it_counts_as_many_nodes_as_it_asks_for() -> None:
    """By annotation."""
    asked = ask(values=(scene.annotated("minimum_nodes", "3"),), minimum_nodes=3)
    assert total(asked)["vcore"] == 48_000


def test_once_it_has_nodes_these_count() -> None:
    """Each once, however many of its pods are there."""
    there = [scene.pod(name, requests={"cpu": "1"}, node_name="small") for name in ("a", "b")]
    assert total(ask(*there)) == {"vcore": 8_000, "memory": 32 << 30, "pods": 2}
    both = whole_nodes.of_nodes(["small", "large", "gone"], {"vcore": 1}, cluster())
    assert both == {"vcore": 24_000, "memory": 96 << 30, GPU: 4}


def test_a_partition_without_sharing_counts_the_same() -> None:
    """Slurm gives whole nodes there without being asked, also to workloads that name no partition."""
    asked = ask(exclusive=False)
    assert total(asked)["vcore"] == 1_000
    assert total(asked, cluster(exclusive=True))["vcore"] == 16_000
    assert total(ask(exclusive=False, partition="other,debug"), cluster(exclusive=True))["vcore"] == 64_000


def test_without_a_node_for_it_what_it_asks_for_counts() -> None:
    """Nothing is known of any node yet, or none is large enough; and no column is made for a name of its user's."""
    seen = cluster()
    assert total(ask(), EMPTY)["vcore"] == 1_000
    assert total(ask(*pods(1, "1e30")), seen)["vcore"] > 10**20
    assert total(ask(scene.pod(requests={"cpu": "1", "forged.example/x": "9" * 30})), seen)["vcore"] == 1_000
    assert total(ask(partition="unknown"))["vcore"] == 64_000


def test_what_nodes_have_may_move_without_a_new_place_in_the_queue() -> None:
    """A larger node comes: a workload that was let in keeps its place, one that waits is counted anew."""
    before = demands.demand(ask(), OPTIONS, None, cluster())
    after = dataclasses.replace(before, total={**before.total, "vcore": 32_000})
    shared = demands.demand(ask(exclusive=False), OPTIONS, None, cluster())
    assert before.same(after)
    assert not before.same(shared)
    assert not before.same(dataclasses.replace(before, asked={"vcore": 2_000}))


class Queue:
    """Queue a has eight cpus, of which a workload that asks for one is counted as so many."""

    def __init__(self, cpus: int) -> None:
        options = {"configuration": document(queue("a", resources={"max": {"vcore": "8"}}))}
        made = setup.make(YunikornOptions.model_validate(options))
        self.manager = Manager(made, HookServices(clock=VirtualClock(), threads=False))
        self.manager.begin(())
        self.mine = dataclasses.replace(demand("mine", "root.a", cpus=cpus), asked={"vcore": 1_000, "pods": 1})
        self.member = self.manager.enter(self.mine)

    def recount(self, cpus: int) -> None:
        """It has its nodes."""
        self.manager.recount(dataclasses.replace(self.mine, total={"vcore": 1_000 * cpus, "pods": 1}))

    @property
    def used(self) -> object:
        """Of the queue."""
        return self.manager.engine.committed(lambda partition: partition.root.allocated.get("vcore", 0))


def test_a_workload_counts_as_the_nodes_that_it_was_given() -> None:
    """They are larger than its queue is: nothing is taken from it; others wait, and start when it is gone."""
    made = Queue(4)
    made.recount(12)
    assert (made.used, made.member.stage, made.manager.ahead.count(0.0)) == (12_000, Stage.GIVEN, 1)
    other = made.manager.enter(demand("other", "root.a"))
    assert other.stage is Stage.ASKED
    made.manager.started("mine")
    assert made.manager.ahead.count(0.0) == 0
    made.manager.leave("mine")
    assert (made.used, other.stage) == (1_000, Stage.GIVEN)


def test_no_other_workload_gets_between_the_two_counts() -> None:
    """One waits for what is free the moment before and after."""
    made = Queue(6)
    other = made.manager.enter(demand("other", "root.a", cpus=4))
    made.recount(7)
    assert (made.used, other.stage) == (7_000, Stage.ASKED)
    made.recount(3)
    assert (made.used, other.stage) == (7_000, Stage.GIVEN)


def test_a_workload_that_was_not_let_in_is_not_counted() -> None:
    """Nor one that is unknown, as after the end of its pods."""
    made = Queue(9)
    made.recount(4)
    made.manager.recount(demand("unknown", "root.a"))
    assert (made.used, made.member.stage) == (0, Stage.ASKED)
