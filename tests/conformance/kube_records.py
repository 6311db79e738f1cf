"""Nodes and pods of the kube files about priorities, as records of the cluster that the hooks look at."""

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks.calls import HookCaller, Unobserved
from slurm_bridge.hooks.pass_context import Layers
from slurm_bridge.hooks.services import Silent
from slurm_bridge.hooks.session import Session
from slurm_bridge.model.meta import ObjectMeta, OwnerReference
from slurm_bridge.model.node import ContainerImage, Node, NodeSpec, NodeStatus, Taint
from slurm_bridge.model.pod import Container, Pod, PodSpec, ResourceNeeds, Toleration
from slurm_bridge.model.storage import Claim
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.translate import resources
from tests.conformance.fields import Fields

_NAMESPACE = "default"
_ZONE = "topology.kubernetes.io/zone"
_AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_VOLUMES = "attachable-volumes-csi"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_MIB = 2**20

Term = dict[str, Any]


def cluster(nodes: Iterable[Fields], pods: Iterable[Fields]) -> ClusterSnapshot:
    """These nodes with these pods on them."""
    keeper = ClusterCache(resources.requests_of)
    for given in nodes:
        keeper.on_node(None, _node(given))
        for attached in _attached(given):
            keeper.on_pod(None, attached)
    for number, given in enumerate(pods):
        keeper.on_pod(None, pod(given, name=f"existing-{number}"))
    return keeper.snapshot()


def named(names: Iterable[str]) -> ClusterSnapshot:
    """Nodes of which only the names matter."""
    keeper = ClusterCache(resources.requests_of)
    for name in names:
        keeper.on_node(None, Node(metadata=ObjectMeta(name=name, uid=f"uid-{name}")))
    return keeper.snapshot()


def claims(written: Mapping[str, Fields]) -> dict[str, Claim]:
    """Volume claims by name."""
    return {
        name: Claim(
            metadata=ObjectMeta(
                name=name,
                namespace=_NAMESPACE,
                deletion_timestamp="2026-01-01T00:00:00Z" if given.flag("deleting", False) else None,
            )
        )
        for name, given in written.items()
    }


def session(snapshot: ClusterSnapshot) -> Session:
    """A pass over a chain without hooks."""
    caller = HookCaller(VirtualClock(), Unobserved())
    return Session(Layers((), caller, lambda _: Silent(), random.Random(0)), snapshot, now=0.0)


def pod(given: Fields, name: str = "pod") -> Pod:
    """The pod to place, or one that is there."""
    name = given.text("name", name)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=given.text("namespace", _NAMESPACE),
            uid=f"uid-{name}",
            labels=given.mapping("labels", {}),
            deletion_timestamp="2026-01-01T00:00:00Z" if given.flag("deleting", False) else None,
            owner_references=_owners(given.fields("owner", None)),
        ),
        spec=PodSpec(
            node_name=given.text("node", ""),
            containers=(*_containers(given), *_images(given)),
            tolerations=tuple(_toleration(one) for one in given.records("tolerations", ())),
            affinity=_affinity(given),
            volumes=tuple(_claim(one) for one in given.texts("claims", ())),
        ),
    )


def labels(given: Fields) -> dict[str, str]:
    """A selector that is nothing but labels."""
    return {key: given.text(key) for key in given.names}


def _node(given: Fields) -> Node:
    name, zone, volumes = given.text("name"), given.text("zone", None), given.fields("volumes", None)
    limits = {_VOLUMES: volumes.whole("allocatable")} if volumes else {}
    avoid = [_signature(one) for one in given.records("prefer_avoid", ())]
    return Node(
        metadata=ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            labels={**given.mapping("labels", {}), **({_ZONE: zone} if zone else {})},
            annotations={_AVOID: _written({"preferAvoidPods": avoid})} if avoid else {},
        ),
        spec=NodeSpec(taints=tuple(_taint(one) for one in given.records("taints", ()))),
        status=NodeStatus(
            allocatable={**_amounts(given), **limits},
            images=tuple(_image(one) for one in given.records("images", ())),
        ),
    )


def _attached(given: Fields) -> Iterable[Pod]:
    """What a node has attached already belongs to some pod there that asks for nothing else."""
    volumes, name = given.fields("volumes", None), given.text("name")
    if not volumes:
        return ()
    claims = tuple(_claim(f"{name}-{number}") for number in range(volumes.whole("requested")))
    metadata = ObjectMeta(name=f"volumes-{name}", namespace=_NAMESPACE, uid=f"uid-volumes-{name}")
    return (Pod(metadata=metadata, spec=PodSpec(node_name=name, volumes=claims)),)


def _amounts(given: Fields) -> dict[str, str | int | float]:
    found: dict[str, str | int | float] = dict(given.mapping("scalars", {}))
    if given.has("cpu_milli"):
        found["cpu"] = f"{given.whole('cpu_milli')}m"
    if given.has("memory"):
        found["memory"] = given.whole("memory")
    return found


def _containers(given: Fields) -> tuple[Container, ...]:
    each = enumerate(given.records("containers", ()))
    return tuple(Container(name=f"c{number}", resources=ResourceNeeds(requests=_amounts(one))) for number, one in each)


def _images(given: Fields) -> tuple[Container, ...]:
    return tuple(Container(name=f"i{number}", image=one) for number, one in enumerate(given.texts("images", ())))


def _affinity(given: Fields) -> Term | None:
    nodes = [
        {"weight": one.whole("weight"), "preference": _expressions(one)}
        for one in given.records("preferred_node_affinity", ())
    ]
    near, far = (
        [{"weight": one.whole("weight"), "podAffinityTerm": _term(one)} for one in given.records(key, ())]
        for key in ("preferred_affinity", "preferred_anti_affinity")
    )
    required = [_term(one) for one in given.records("required_affinity", ())]
    return {
        "nodeAffinity": {_PREFERRED: nodes},
        "podAffinity": {_PREFERRED: near, _REQUIRED: required},
        "podAntiAffinity": {_PREFERRED: far},
    }


def _term(given: Fields) -> Term:
    return {
        "labelSelector": _expressions(given.fields("selector")),
        "topologyKey": given.text("topology_key"),
        "namespaces": list(given.texts("namespaces", ())),
    }


def _expressions(given: Fields) -> Term:
    rows = [
        {"key": one.text("key"), "operator": one.text("operator"), "values": list(one.texts("values", ()))}
        for one in given.records("match_expressions", ())
    ]
    return {"matchLabels": given.mapping("match_labels", {}), "matchExpressions": rows}


def _toleration(given: Fields) -> Toleration:
    return Toleration(
        key=given.text("key", ""),
        operator=given.text("operator", ""),
        value=given.text("value", ""),
        effect=given.text("effect", ""),
    )


def _taint(given: Fields) -> Taint:
    return Taint(key=given.text("key"), value=given.text("value", ""), effect=given.text("effect"))


def _image(given: Fields) -> ContainerImage:
    return ContainerImage(names=given.texts("names"), size_bytes=given.whole("size_mib") * _MIB)


def _owners(given: Fields | None) -> tuple[OwnerReference, ...]:
    if given is None:
        return ()
    kind, uid, controls = given.text("kind"), given.text("uid"), given.flag("controller", False)
    return (OwnerReference(api_version="v1", kind=kind, name="owner", uid=uid, controller=controls),)


def _signature(given: Fields) -> Term:
    controller = {"kind": given.text("kind"), "uid": given.text("uid"), "controller": True}
    return {"podSignature": {"podController": controller}}


def _claim(name: str) -> Term:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def _written(value: Term) -> str:
    return json.dumps(value)
