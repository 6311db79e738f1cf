"""A made-up cluster of any size: nodes of several kinds on both sides, a pod on each, and a keeper that follows."""

import bisect
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from slurm_bridge.cluster import facts
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.model.meta import Condition, ObjectMeta
from slurm_bridge.model.node import ContainerImage, Node, NodeSpec, NodeStatus, Taint
from slurm_bridge.model.pod import Container, Pod, PodSpec, PodStatus, ResourceNeeds
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.translate import resources

ZONES = 16
#: Nodes of a rack, and of a block of racks.
RACK, BLOCK = 40, 1000
#: Cpus and GiB of the kinds of nodes.
SIZES = ((16, 64), (32, 128), (64, 256), (128, 512))
IMAGES = tuple(f"registry.example/image-{number}:v1" for number in range(20))
APPS = 50

_GIB = 1024
#: One pod of ours for so many nodes: small clusters must not fill up.
_BUSY = 10
#: So many nodes are looked at for room where all will do.
_LOOKED_AT = 3
#: One node in so many is tainted for other pods, or cordoned.
_DEDICATED = 10
_CORDONED = 100


class World:
    """A cluster that changes with every workload that is placed."""

    def __init__(self, size: int) -> None:
        self.keeper = ClusterCache(resources.requests_of)
        self.names = tuple(f"node-{number:05}" for number in range(size))
        for number, name in enumerate(self.names):
            self.keeper.on_node(None, _node(number, name))
            self.keeper.on_pod(None, _running(number, name))
        self.keeper.set_slurm((_slurm(number, name) for number, name in enumerate(self.names)), (self._partition(),))
        self._turn = itertools.cycle(self.names)
        self._placed: dict[str, str] = {}

    def seat(self, pods: Sequence[Pod], among: Collection[str] | None, excluded: Sequence[str]) -> Mapping[str, str]:
        """The node of each pod of a workload, which has one here, by its uid."""
        (pod,) = pods
        return {pod.uid: self.choose(pod, among, excluded)}

    def settle(self, pods: Sequence[Pod], placement: Mapping[str, str]) -> None:
        """All of them count where they have been seated."""
        for pod in pods:
            self.place(pod, placement[pod.uid])

    def choose(self, pod: Pod, among: Collection[str] | None, excluded: Sequence[str]) -> str:
        """A node that Slurm might take: one of these, or the next in turn that is not excluded (sorted).

        One with room, or the first that has room once our pods there have ended: that is what Slurm waits for.
        """
        nodes, requests = self.keeper.snapshot().nodes, resources.requests_of(pod)
        turn = (name for name in itertools.islice(self._turn, len(self.names)) if not _has(excluded, name))
        found = among or list(itertools.islice(turn, _LOOKED_AT))
        for name in found:
            if not facts.lacking(nodes[name], requests, free=True):
                return name
        # The others of the turn, too: the first few may all be too small for it.
        for name in itertools.chain(found, () if among else turn):
            self._end([uid for uid, node in self._placed.items() if node == name])
            if not facts.lacking(self.keeper.snapshot().nodes[name], requests, free=True):
                return name
        # Another pod is in the way, which the hooks may know to leave.
        return next(iter(found))

    def place(self, pod: Pod, node: str) -> None:
        """The pod counts there from now on; on a cluster that has as many as it keeps, the oldest one ends."""
        self.keeper.assume(pod.uid, node, resources.requests_of(pod), pod)
        self._placed[pod.uid] = node
        if len(self._placed) > len(self.names) // _BUSY:
            self._end([next(iter(self._placed))])

    def _end(self, uids: Iterable[str]) -> None:
        for uid in uids:
            del self._placed[uid]
            self.keeper.forget(uid)

    def _partition(self) -> Partition:
        return Partition(name="main", states=frozenset({"UP"}), nodes=self.names, default=True)


def _has(ordered: Sequence[str], name: str) -> bool:
    place = bisect.bisect_left(ordered, name)
    return place < len(ordered) and ordered[place] == name


def _size(number: int) -> tuple[int, int]:
    return SIZES[number % len(SIZES)]


def _node(number: int, name: str) -> Node:
    cpus, gib = _size(number)
    room: dict[str, str | int | float] = {
        "cpu": str(cpus),
        "memory": f"{gib}Gi",
        "pods": "110",
        "ephemeral-storage": "100Gi",
    }
    return Node(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", resource_version="1", labels=_labels(number, name)),
        spec=NodeSpec(unschedulable=number % _CORDONED == _CORDONED - 1, taints=tuple(_taints(number))),
        status=NodeStatus(
            allocatable=room,
            capacity=room,
            conditions=(Condition(type="Ready", status="True"), Condition(type="MemoryPressure", status="False")),
            images=tuple(_image(number + step) for step in range(3)),
        ),
    )


def _labels(number: int, name: str) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": f"zone-{number % ZONES}",
        "node.kubernetes.io/instance-type": f"kind-{number % len(SIZES)}",
        "disk": "ssd" if number % 2 else "hdd",
        "rack": f"rack-{number // RACK:03}",
        "block": f"block-{number // BLOCK:02}",
    }


def _taints(number: int) -> Iterator[Taint]:
    if number % _DEDICATED == 0:
        yield Taint(key="dedicated", value="team", effect="NoSchedule")
    if number % _DEDICATED == 1:
        yield Taint(key="spot", value="yes", effect="PreferNoSchedule")


def _image(number: int) -> ContainerImage:
    return ContainerImage(names=(IMAGES[number % len(IMAGES)],), size_bytes=(200 + number % 7 * 100) * _GIB * _GIB)


def _running(number: int, name: str) -> Pod:
    """A pod of another owner that is there already."""
    requests: dict[str, str | int | float] = {"cpu": f"{100 + number % 10 * 100}m", "memory": f"{1 + number % 4}Gi"}
    return Pod(
        metadata=ObjectMeta(
            name=f"old-{number}",
            namespace="bench",
            uid=f"uid-old-{number}",
            labels={"app": f"app-{number % APPS}"},
            creation_timestamp="2026-01-01T00:00:00Z",
        ),
        spec=PodSpec(
            node_name=name,
            scheduler_name="default-scheduler",
            containers=(Container(name="c", image=IMAGES[0], resources=ResourceNeeds(requests=requests)),),
        ),
        status=PodStatus(phase="Running"),
    )


def _slurm(number: int, name: str) -> SlurmNode:
    cpus, gib = _size(number)
    states = frozenset({"IDLE", "EXTERNAL"})
    return SlurmNode(name=name, states=states, cpus=cpus, memory_mib=gib * _GIB, partitions=("main",))
