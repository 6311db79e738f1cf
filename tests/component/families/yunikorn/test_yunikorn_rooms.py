"""Queues evict what leaves nodes for the workload that asks, and nothing where no node would have room for it."""

import pathlib
from typing import Any

import pytest

from slurm_bridge.families.yunikorn.hook import Yunikorn
from slurm_bridge.model import kinds, names
from tests.component.families.yunikorn.yunikorn_scenes import document, queue, until
from tests.component.scheduler.queue_evictions import evictions, left
from tests.component.scheduler.whole_core import Bridge

SOON = {"preemption.delay": "5s"}
A = queue("a", resources={"guaranteed": {"vcore": "4"}}, properties=SOON)


class Packed:
    """Four nodes of four cpus, full of queue b's pods; the newest four are on three nodes."""

    def __init__(self, folder: pathlib.Path, *queues: Any, hooks: tuple[Any, ...] = ()) -> None:
        options = {"configuration": document(*(queues or (A, queue("b")))), "evict_seconds": 20}
        self.bridge = Bridge(folder, hooks=[{"name": "yunikorn", "options": options}, *hooks])
        for job_id in self.bridge.slurm.control.jobs():
            self.bridge.slurm.control.end(job_id)

    def pod(self, name: str, queue: str, cpu: str, node: str = "", **changes: Any) -> None:
        """One that may run on this node only."""
        spec = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
        spec |= changes.pop("spec", {})
        annotations = {names.JOB_PREFIX + "queue": f"root.{queue}", **changes.pop("annotations", {})}
        self.bridge.pod(name, cpu=cpu, spec=spec, annotations=annotations, **changes)

    def fill(self, *pods: tuple[str, str, str]) -> None:
        """Each of queue b: its name, its cpus and its node."""
        for name, cpu, node in pods:
            self.pod(name, "b", cpu, node)
            until(self.bridge, lambda name=name: self.bridge.node_of(name))

    def go(self, seconds: float) -> None:
        """Time passes, with a look at what has to leave."""
        end = self.bridge.clock.now() + seconds
        until(self.bridge, lambda: self.bridge.clock.now() >= end, seconds + 10)

    def left(self) -> list[str]:
        """The pods of queue b that have gone."""
        return left(self.bridge, *(name for name, _, _ in PODS))

    @property
    def roomless(self) -> list[str]:
        """The workloads for which no eviction would help."""
        hook = next(one.hook for one in self.bridge.core.context.config.chain.hooks if one.name == "yunikorn")
        assert isinstance(hook, Yunikorn)
        assert hook._manager is not None
        return [one.demand.title for one in hook._manager.members.values() if one.roomless]


#: n3 has a pod of another scheduler, too.
PODS = (
    *(("f1", "2", "n1"), ("old1", "2", "n2"), ("old2", "2", "n2"), ("f3", "2", "n3"), ("f4", "2", "n4")),
    *(("s1", "1", "n1"), ("s2", "1", "n1"), ("s3", "1", "n3"), ("s4", "1", "n4"), ("s5", "1", "n4")),
)


@pytest.fixture
def packed(tmp_path: pathlib.Path) -> Packed:
    """Full."""
    packed = Packed(tmp_path)
    packed.fill(*PODS)
    return packed


def test_two_pods_of_one_node_are_evicted_and_not_four_of_three_nodes(packed: Packed) -> None:
    """The newest four have four cpus together, and on no node as many as the pod asks for."""
    packed.pod("mine", "a", "4")
    until(packed.bridge, lambda: packed.bridge.node_of("mine"))
    assert packed.bridge.node_of("mine") == "n2"
    assert packed.left() == ["old1", "old2"]
    assert evictions(packed.bridge) == 2


def test_a_native_job_of_slurm_keeps_its_part_of_a_node(packed: Packed) -> None:
    """What it has cannot be evicted: another node is cleared, though more pods leave it."""
    packed.bridge.delete("old2", grace=0)
    packed.go(3)
    packed.bridge.world.submit("native", cpus_per_task=2)
    packed.go(10)
    packed.pod("mine", "a", "4")
    until(packed.bridge, lambda: packed.bridge.node_of("mine"))
    assert packed.bridge.node_of("mine") in ("n1", "n4")
    assert not packed.bridge.leaving("old1")
    assert evictions(packed.bridge) == 3


def test_nothing_is_evicted_where_no_node_would_have_room(packed: Packed) -> None:
    """A pod of another scheduler stays on the only node that it may use."""
    packed.pod("mine", "a", "4", "n3")
    packed.go(40)
    assert evictions(packed.bridge) == 0
    assert packed.roomless == ["default/mine"]
    assert not packed.bridge.node_of("mine")


def test_who_waits_for_a_maximum_reads_that_no_node_would_have_room(tmp_path: pathlib.Path) -> None:
    """The queue keeps it, and evicts nothing."""
    team = queue("team", A, queue("b"), resources={"max": {"vcore": "15"}})
    packed = Packed(tmp_path, team)
    for name, cpu, node in PODS:
        packed.pod(name, "team.b", cpu, node)
        until(packed.bridge, lambda name=name: packed.bridge.node_of(name))
    packed.pod("mine", "team.a", "4", "n3")
    packed.go(20)
    reason, message = packed.bridge.condition("mine")
    assert reason == "QueueWaiting"
    assert message.endswith("; no workload is evicted for this, because no node would have room for it then")
    assert evictions(packed.bridge) == 0


def test_each_pod_of_a_gang_gets_a_node(packed: Packed) -> None:
    """Two pods of two cpus: two pods leave, and these are on nodes that take one pod of the gang each, or both."""
    for number in range(2):
        labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
        packed.pod(f"g-{number}", "a", "2", labels=labels)
    until(packed.bridge, lambda: packed.bridge.node_of("g-0") and packed.bridge.node_of("g-1"))
    assert evictions(packed.bridge) == 2


def test_what_the_filters_of_hooks_refuse_is_not_cleared(tmp_path: pathlib.Path) -> None:
    """A pod that stays repels the one that asks: its node is not taken although two pods would do there."""
    packed = Packed(tmp_path, hooks=({"name": "kube-scheduler", "options": {"priorities": []}},))
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "mine"}}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    container = {"name": "c", "image": "none", "resources": {"requests": {"memory": "100Mi"}}}
    spec = {"nodeName": "n2", "affinity": anti, "containers": [container]}
    packed.bridge.kube.create(kinds.PODS, {"metadata": {"name": "hermit"}, "spec": spec})
    packed.fill(*PODS)
    packed.pod("mine", "a", "4", labels={"app": "mine"})
    until(packed.bridge, lambda: packed.bridge.node_of("mine"))
    assert packed.bridge.node_of("mine") in ("n1", "n4")
    assert not {"old1", "old2"} & set(packed.left())


def test_a_queue_within_its_guarantee_loses_nothing_although_its_node_would_be_the_cheapest(
    tmp_path: pathlib.Path,
) -> None:
    """The pods of n2 belong to it."""
    own = queue("c", resources={"guaranteed": {"vcore": "4"}})
    packed = Packed(tmp_path, A, queue("b"), own)
    for name, cpu, node in PODS:
        packed.pod(name, "c" if name.startswith("old") else "b", cpu, node)
        until(packed.bridge, lambda name=name: packed.bridge.node_of(name))
    packed.pod("mine", "a", "4")
    until(packed.bridge, lambda: packed.bridge.node_of("mine"))
    assert not {"old1", "old2"} & set(packed.left())
    assert evictions(packed.bridge) == 3
