"""Small clusters for predicates and priorities: nodes by what is special about them, pods, and who runs where."""

from collections.abc import Iterable, Mapping
from typing import Any

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.rules.volumes import Storage
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler import filters, scene
from slurm_bridge.families.kube_scheduler.predicates import standard
from slurm_bridge.families.kube_scheduler.scene import Lookup, Scene
from slurm_bridge.model.meta import Condition, ObjectMeta
from slurm_bridge.model.node import Node, NodeSpec, NodeStatus
from slurm_bridge.model.pod import Container, Pod, PodSpec, PodStatus, ResourceNeeds
from slurm_bridge.model.storage import Claim, StorageClass, Volume
from slurm_bridge.translate import resources

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, Any] | None = None,
    conditions: Mapping[str, str] | None = None,
    **spec: Any,
) -> Node:
    """A node that is labelled with its name; keywords go into its spec."""
    said = {"Ready": "True", **(conditions or {})}
    return Node(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", labels={HOST: name, **(labels or {})}),
        spec=NodeSpec(**spec),
        status=NodeStatus(
            allocatable={"cpu": 8, "memory": 1024, "pods": 10, **(allocatable or {})},
            conditions=tuple(Condition(type=kind, status=status) for kind, status in said.items()),
        ),
    )


def pod(
    name: str = "new",
    *,
    on: str = "",
    labels: Mapping[str, str] | None = None,
    namespace: str = "team",
    requests: Mapping[str, Any] | None = None,
    nominated: str | None = None,
    leaving: bool = False,
    **spec: Any,
) -> Pod:
    """A pod, on a node when it is given one; keywords go into its spec."""
    containers = (Container(name="c", resources=ResourceNeeds(requests=dict(requests or {}))),)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{name}",
            labels=dict(labels or {}),
            deletion_timestamp="2026-01-01T00:00:00Z" if leaving else None,
        ),
        spec=PodSpec(**{"containers": containers, "node_name": on, **spec}),
        status=PodStatus(nominated_node_name=nominated),
    )


def keeper(nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> ClusterCache:
    """Follows this cluster."""
    made = ClusterCache(resources.requests_of)
    for one in nodes:
        made.on_node(None, one)
    for other in pods:
        made.on_pod(None, other)
    return made


def snapshot(nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> ClusterSnapshot:
    """The cluster at one moment."""
    return keeper(nodes, pods).snapshot()


def seen(subject: Pod, nodes: Iterable[Node], pods: Iterable[Pod] = (), **others: Any) -> Scene:
    """What is looked at for one pod; keywords are those of `scene.scene`."""
    return scene.scene(snapshot(nodes, pods), subject, **others)


def said(name: str, at: Scene, **args: Any) -> dict[str, tuple[str, ...]]:
    """The nodes that one predicate denies, with its reasons."""
    return dict(filters.evaluate(at, {name: standard.build(name, args, {})}))


def near(kind: str, *terms: Mapping[str, Any]) -> dict[str, Any]:
    """Required podAffinity or podAntiAffinity."""
    return {kind: {REQUIRED: list(terms)}}


def term(key: str, labels: Mapping[str, str], **others: Any) -> dict[str, Any]:
    """Pods with these labels, in a domain of this key."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}, **others}


def spread(key: str, labels: Mapping[str, str], *, skew: int = 1, **others: Any) -> dict[str, Any]:
    """A constraint that must hold."""
    selector = {"matchLabels": dict(labels)}
    hard = {"whenUnsatisfiable": "DoNotSchedule"}
    return {"topologyKey": key, "maxSkew": skew, "labelSelector": selector, **hard, **others}


def claiming(*names: str) -> tuple[dict[str, object], ...]:
    """Volumes of a pod that uses these claims."""
    return tuple({"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names)


def lookup(
    claims: Iterable[Claim] = (), volumes: Iterable[Volume] = (), kinds: Iterable[StorageClass] = (), **others: Any
) -> Lookup:
    """Where these objects are found; keywords are the other fields."""
    by_claim = {one.key: one for one in claims}
    by_volume = {one.metadata.name: one for one in volumes}
    by_class = {one.metadata.name: one for one in kinds}
    storage = Storage(
        claim=lambda namespace, name: by_claim.get((namespace, name)),
        volume=by_volume.get,
        storage_class=by_class.get,
        every_volume=by_volume.values,
    )
    return Lookup(storage=storage, **others)
