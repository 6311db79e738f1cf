"""What native jobs hold is no part of a partition; what jobs of the bridge hold for a moment without a pod is."""

from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.families.yunikorn import partition_check, setup
from slurm_bridge.families.yunikorn.node_scores import EVERY
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.partition_size import STANDS, PartitionMeasure
from slurm_bridge.model.job import Gres
from slurm_bridge.translate import resources
from tests.component.families.yunikorn.test_yunikorn_partitions import partition
from tests.component.families.yunikorn.yunikorn_scenes import queue
from tests.unit.hooks import builders as scene

GPU = "nvidia.com/gpu"
READ = 30.0


class Measured:
    """Partition mine has the nodes a and b of sixteen cpus and four GPUs, and partition other the node c."""

    def __init__(self) -> None:
        parts = [partition(name, queue("a", resources={"guaranteed": {GPU: "1"}})) for name in ("mine", "other")]
        options = {"configuration": {"partitions": parts}, "partitions": "slurm"}
        made = setup.make_all(YunikornOptions.model_validate(options))["mine"]
        self.running: dict[str, int] = {}
        self.measure = PartitionMeasure(made, lambda: self.running)
        self.known = cluster_cache.ClusterCache(resources.requests_of)
        for name in ("a", "b", "c"):
            self.known.on_node(None, scene.node(name, allocatable={GPU: "4"}))
        self.now = 0.0

    def bind(self, pod: str, cpu: str) -> None:
        """A pod of the bridge is on node a."""
        spec = {"node_name": "a", "requests": {"cpu": cpu}, "metadata": {"labels": {"slurmjob": "1"}}}
        made = scene.pod(pod, **spec)
        self.known.assume(made.metadata.uid, "a", resources.requests_of(made), made)

    def read(self, **nodes: Mapping[str, Any]) -> None:
        """Slurm says so of these nodes; half a minute has passed."""
        self.now += READ
        listed = [scene.slurm_node(name, **nodes.get(name, {})) for name in ("a", "b", "c")]
        self.known.set_slurm(listed, (scene.partition("mine", "a", "b"), scene.partition("other", "c")))

    def size(self, kind: str = "vcore") -> int:
        """In whole cpus, or in devices."""
        self.now += EVERY
        found = self.measure.news(self.known.snapshot(), self.now)[kind]
        return found // 1000 if kind == "vcore" else found


def test_only_nodes_of_the_partition_count() -> None:
    """Whatever native jobs hold in another one."""
    made = Measured()
    for cpus in (15, 16):
        made.read(c={"used_cpus": cpus})
        assert (made.size(), made.size(GPU)) == (32, 8)


def test_a_native_job_counts_when_two_reads_have_found_it() -> None:
    """With its cpus and its devices; the smaller number of two counts, and none when it is gone."""
    made, gpus = Measured(), (Gres(name="gpu", count=3, type="a100"),)
    made.read(b={"used_cpus": 8, "used_gres": gpus})
    assert (made.size(), made.size(GPU)) == (32, 8)
    made.read(b={"used_cpus": 6, "used_gres": gpus})
    assert (made.size(), made.size(GPU)) == (26, 5)
    made.read()
    assert (made.size(), made.size(GPU)) == (32, 8)


def test_a_native_job_counts_when_it_has_stood_for_a_while() -> None:
    """A read that finds nothing new is none to be seen; the measure is due by itself then."""
    made = Measured()
    made.read(b={"used_cpus": 8})
    assert made.size() == 32
    version = made.known.snapshot().use_version
    assert not made.measure.is_due(version, made.now + STANDS / 2)
    made.now += STANDS
    assert made.measure.is_due(version, made.now)
    assert made.size() == 24


def test_a_job_of_the_bridge_that_just_starts_or_ends_is_not_native() -> None:
    """Slurm has given it a node before its pod is there; another one has it still after its pod."""
    made = Measured()
    for node in ("a", "b", "a", "b"):
        made.read(**{node: {"used_cpus": 8}})
        assert made.size() == 32


def test_what_pods_of_the_bridge_have_is_not_native() -> None:
    """Nor what their jobs hold beyond that, as far as queues count it."""
    made = Measured()
    made.bind("mine", "4")
    made.running = {"vcore": 4_000}
    for cpus in (6, 7):
        made.read(a={"used_cpus": cpus})
        found = made.size()
    assert found == 30
    made.running = {"vcore": 16_000}
    for cpus in (16, 15):
        made.read(a={"used_cpus": cpus})
        found = made.size()
    assert found == 32


@pytest.mark.parametrize("states", ["MIXED DRAIN", "DOWN"])
def test_native_jobs_on_a_closed_node_are_not_subtracted_again(states: str) -> None:
    """The node itself is no part of the partition any more."""
    made = Measured()
    for cpus in (8, 9):
        made.read(b={"used_cpus": cpus, "states": states})
        found = made.size()
    assert found == 16


def test_more_than_a_partition_has_leaves_nothing() -> None:
    """Whatever Slurm says."""
    made = Measured()
    for cpus in (10**6, 10**6 + 1):
        made.read(a={"used_cpus": cpus}, b={"used_cpus": cpus})
        found = made.size()
    assert found == 0


def test_nodes_may_come_and_go_between_two_reads() -> None:
    """Of a new one nothing counts before it was read twice."""
    made = Measured()
    made.read(b={"used_cpus": 8})
    made.size()
    made.known.on_node(None, scene.node("d"))
    listed = [scene.slurm_node(name, used_cpus=8) for name in ("b", "d")]
    made.known.set_slurm(listed, (scene.partition("mine", "b", "d"), scene.partition("other", "c")))
    made.now += READ
    assert made.size() == 24


def test_partitions_that_share_nodes_are_named_with_one_of_them() -> None:
    """Three share some, and a fourth has its own."""
    shared = partition_check.overlaps(
        [
            scene.partition("x", "n1", "n2", "n3"),
            scene.partition("y", "n2", "n3", "n4"),
            scene.partition("z", "n4"),
            scene.partition("w", "n5"),
        ]
    )
    assert set(shared) == {"x", "y", "z"}
    assert shared["x"].startswith("Slurm partitions x and y share node n2 and 1 more: ")
    assert shared["z"].startswith("Slurm partitions y and z share node n4: ")
    assert not partition_check.overlaps([scene.partition("v")])
