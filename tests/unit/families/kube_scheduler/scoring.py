"""Nodes with pods on them, a pass over them, and scores by name."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler import scene
from slurm_bridge.families.kube_scheduler.matrix import Prioritized
from slurm_bridge.families.kube_scheduler.priorities import table
from slurm_bridge.families.kube_scheduler.priority_chain import Prioritizer
from slurm_bridge.families.kube_scheduler.scene import Lookup
from slurm_bridge.hooks.calls import HookCaller, Unobserved
from slurm_bridge.hooks.pass_context import Layers
from slurm_bridge.hooks.services import Silent
from slurm_bridge.hooks.session import Session
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.node import ContainerImage, Node, NodeSpec, NodeStatus, Taint
from slurm_bridge.model.pod import Container, Pod, PodSpec, ResourceNeeds
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.translate import resources

Requests = Mapping[str, Any]


def machine(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    annotations: Mapping[str, str] | None = None,
    images: Mapping[str, int] | None = None,
    **allocatable: Any,
) -> Node:
    """A node; keywords are what it has."""
    held = tuple(ContainerImage(names=(image,), size_bytes=size) for image, size in (images or {}).items())
    return Node(
        metadata=ObjectMeta(
            name=name, uid=f"uid-{name}", labels=dict(labels or {}), annotations=dict(annotations or {})
        ),
        spec=NodeSpec(taints=tuple(taints)),
        status=NodeStatus(allocatable=allocatable, images=held),
    )


def asking(
    name: str = "p",
    *containers: Requests,
    node: str = "",
    labels: Mapping[str, str] | None = None,
    namespace: str = "team",
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """A pod with a container for each of these requests; keywords go into its spec."""
    each = tuple(
        Container(name=f"c{number}", resources=ResourceNeeds(requests=dict(one)))
        for number, one in enumerate(containers)
    )
    given = {"containers": each, "node_name": node, **spec}
    return Pod(
        metadata=ObjectMeta(
            name=name, namespace=namespace, uid=f"uid-{name}", labels=dict(labels or {}), **(metadata or {})
        ),
        spec=PodSpec(**given),
    )


def there(nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> ClusterCache:
    """A cluster of these nodes and pods."""
    keeper = ClusterCache(resources.requests_of)
    for one in nodes:
        keeper.on_node(None, one)
    for pod in pods:
        keeper.on_pod(None, pod)
    return keeper


def machines(*names: str) -> ClusterSnapshot:
    """Nodes of which only the names matter."""
    return there(machine(name) for name in names).snapshot()


def a_pass(snapshot: ClusterSnapshot) -> Session:
    """A pass over a chain without hooks."""
    caller = HookCaller(VirtualClock(), Unobserved())
    return Session(Layers((), caller, lambda _: Silent(), random.Random(0)), snapshot, now=0.0)


def by_name(found: Prioritized) -> dict[str, int]:
    """The sums."""
    return {name: int(score) for name, score in found.by_name.items()}


def run(
    prioritizer: Prioritizer,
    snapshot: ClusterSnapshot,
    pod: Pod | None = None,
    *,
    lookup: Lookup | None = None,
    nodes: Iterable[str] | None = None,
    **others: Any,
) -> Prioritized:
    """The priorities over all nodes, or some."""
    seen = scene.scene(snapshot, pod or asking(), lookup=lookup or Lookup())
    chosen = snapshot.names if nodes is None else frozenset(nodes)
    return prioritizer.run(seen, a_pass(snapshot), chosen, **others)


def rated(
    name: str,
    nodes: Sequence[Node],
    pod: Pod,
    pods: Iterable[Pod] = (),
    args: Mapping[str, Any] | None = None,
    **others: Any,
) -> dict[str, int]:
    """What one priority gives."""
    return by_name(run(Prioritizer([table.configured(name, 1, args)]), there(nodes, pods).snapshot(), pod, **others))
