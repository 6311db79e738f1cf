"""A small cluster on both sides, pods, and hooks that say what a test wrote down."""

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks import calls
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model.job import JobRequest, Memory
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.meta import Condition, ObjectMeta, OwnerReference
from slurm_bridge.model.node import Node, NodeSpec, NodeStatus, Taint
from slurm_bridge.model.pod import Container, NamedThing, Pod, PodSpec, PodStatus, ResourceNeeds, Toleration
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.model.workload import Gang, Root, Workload
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.translate import resources
from slurm_bridge.translate.shapes import Shape
from slurm_bridge.translate.translator import Translated, Value

SCHEDULER = "slurm-bridge-scheduler"
ROOMY = {"cpu": "16", "memory": "64Gi", "pods": "110"}


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    allocatable: Mapping[str, Any] | None = None,
    ready: bool = True,
    unschedulable: bool = False,
    deleting: bool = False,
    uid: str = "",
    version: str = "1",
) -> Node:
    """A Kubernetes node, ready and roomy unless the test says otherwise."""
    return Node(
        metadata=ObjectMeta(
            name=name,
            uid=uid or f"uid-{name}",
            resource_version=version,
            labels=dict(labels or {}),
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
        ),
        spec=NodeSpec(unschedulable=unschedulable, taints=tuple(taints)),
        status=NodeStatus(
            allocatable={**ROOMY, **(allocatable or {})},
            conditions=(Condition(type="Ready", status="True" if ready else "False"),),
        ),
    )


def slurm_node(
    name: str, *, states: str = "IDLE EXTERNAL", partitions: tuple[str, ...] = ("debug",), **fields: Any
) -> SlurmNode:
    """Its counterpart in Slurm."""
    usual = {"cpus": 16, "memory_mib": 64000}
    return SlurmNode(name=name, states=frozenset(states.split()), partitions=partitions, **{**usual, **fields})


def partition(name: str, *nodes: str, default: bool = False, **fields: Any) -> Partition:
    """A partition of these Slurm nodes."""
    return Partition(**{"name": name, "states": frozenset({"UP"}), "nodes": nodes, "default": default, **fields})


def pod(
    name: str = "p",
    *,
    requests: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    phase: str = "Pending",
    gates: Iterable[str] = (),
    **spec: Any,
) -> Pod:
    """One of our pods; keywords go into its spec."""
    given = {"scheduler_name": SCHEDULER, **spec}
    containers = (Container(name="c", resources=ResourceNeeds(requests=dict(requests or {}))),)
    return Pod(
        metadata=ObjectMeta(name=name, namespace="team", uid=f"uid-{name}", **(metadata or {})),
        spec=PodSpec(containers=containers, scheduling_gates=tuple(NamedThing(name=gate) for gate in gates), **given),
        status=PodStatus(phase=phase),
    )


def owned_by(kind: str) -> OwnerReference:
    """A controller of this kind."""
    return OwnerReference(api_version="apps/v1", kind=kind, name="owner", uid="uid-owner", controller=True)


def workload(*pods: Pod, namespace: str = "team") -> Workload:
    """These pods as one workload, in this namespace."""
    chosen = tuple(_moved(one, namespace) for one in pods or (pod(),))
    first = chosen[0].metadata
    root = Root(kind="Pod", namespace=namespace, name=first.name, uid=first.uid)
    return Workload(root=root, pods=chosen, sources=(), job_name=first.name)


def _moved(one: Pod, namespace: str) -> Pod:
    metadata = msgspec.structs.replace(one.metadata, namespace=namespace)
    return one if one.metadata.namespace == namespace else msgspec.structs.replace(one, metadata=metadata)


def gang(*pods: Pod) -> Workload:
    """These pods as a group that starts together."""
    root = Root(kind="JobSet", namespace="team", name="train", uid="uid-train:0")
    return Workload(root=root, pods=pods, sources=(), job_name="train", gang=Gang(minimum=len(pods)))


def shape(*pods: Pod) -> Shape:
    """Pods that ask the same."""
    return Shape(pods=pods, cpus=1, memory_mib=512)


def request(**fields: Any) -> JobRequest:
    """A job request; keywords are its fields."""
    owner = Owner(cluster="c", kind="Pod", namespace="team", name="p", uid="uid-p")
    return JobRequest(**{"name": "p", "owner": owner, "memory": Memory(mib=512), **fields})


def annotated(field: str, value: str, key: str = "") -> Value:
    """A value that the user wrote on the pod."""
    key = key or field
    return Value(field=field, value=value, source=f"annotation {key} of Pod team/p", key=key, subject="Pod team/p")


def translated(
    *values: Value, hints: Mapping[str, str] | None = None, shapes: tuple[Shape, ...] = (), **fields: Any
) -> Translated:
    """A translated request."""
    return Translated(request=request(**fields), values=values, hints=hints or {}, shapes=shapes)


def cluster(
    nodes: Iterable[Node], *partitions: Partition, slurm: Iterable[str] | None = None, native: Collection[str] = ()
) -> ClusterSnapshot:
    """A snapshot of nodes that Slurm knows too, all in partition debug unless partitions are given.

    Jobs of Slurm itself run on those that are `native`; the others are external.
    """
    known = tuple(nodes)
    names = tuple(one.slurm_name for one in known) if slurm is None else tuple(slurm)
    made = cluster_cache.ClusterCache(resources.requests_of)
    for one in known:
        made.on_node(None, one)
    machines = [slurm_node(one, states="IDLE", native=True) if one in native else slurm_node(one) for one in names]
    made.set_slurm(machines, partitions or (partition("debug", *names, default=True),))
    return made.snapshot()


class Says:
    """A hook whose methods are the test's."""

    def __init__(self, **methods: Any) -> None:
        for phase, answer in methods.items():
            setattr(self, phase, answer if callable(answer) else lambda *_, said=answer: said)


def hook(name: str = "h", on_error: str = "hold", *, needs: Iterable[Any] = (), **methods: Any) -> calls.Hook:
    """A hook with these phases: a value is its answer, a function is asked."""
    return calls.Hook(
        name=name, hook=Says(**methods), on_error=calls.OnError(on_error), needs=frozenset(needs), budget_seconds=60
    )


class Counted:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []

    def called(self, name: str, phase: str, outcome: str, seconds: float) -> None:
        assert seconds >= 0
        self.calls.append((name, phase, outcome))


class Lines:
    """A log that can be read."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []

    def __call__(self, name: str) -> "_Log":
        return _Log(name, self.said)


class _Log:
    def __init__(self, name: str, said: list[tuple[str, str, str]]) -> None:
        self._name = name
        self._said = said

    def __getattr__(self, level: str) -> Callable[[str], None]:
        return lambda message: self._said.append((self._name, level, str(message)))


class Around:
    """The surroundings of a chain, with everything that it tells kept."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.observer = Counted()
        self.log = Lines()

    def make(self, **others: Any) -> ChainServices:
        return ChainServices(clock=self.clock, dice=random.Random(0), observer=self.observer, logs=self.log, **others)


def tolerate(key: str = "", operator: str = "Exists", **others: Any) -> Toleration:
    """A toleration, of every effect unless told."""
    return Toleration(key=key, operator=operator, **others)
