"""kube: what predicates say of one node, in which order they are asked, and the error of a pod that fits nowhere."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.families.kube_scheduler import filters, scene
from slurm_bridge.families.kube_scheduler.predicates import reasons, standard
from slurm_bridge.families.kube_scheduler.predicates.base import Failures
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model.meta import Condition, ObjectMeta
from slurm_bridge.model.node import Node, NodeSpec, NodeStatus, Taint
from slurm_bridge.model.pod import Container, ContainerPort, Pod, PodSpec, ResourceNeeds, Toleration
from slurm_bridge.translate import resources
from tests.conformance import kube_priorities
from tests.conformance.fields import Fields
from tests.conformance.kube_cycle import fiterror, one_node

_NODE = "node"
_AMOUNTS = {"cpu_milli": "cpu", "memory": "memory", "ephemeral_storage": "ephemeral-storage", "pods": "pods"}
_LITTLE: dict[str, str | int | float] = {"cpu": "1m", "memory": 1}
_QUALITIES = {
    "BestEffort": ResourceNeeds(),
    "Burstable": ResourceNeeds(requests=_LITTLE),
    "Guaranteed": ResourceNeeds(requests=_LITTLE, limits=_LITTLE),
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _scene(node: Node, pod: Pod, running: Iterable[Pod] = ()) -> Scene:
    """A cluster of one node, on which some pods run."""
    keeper = ClusterCache(resources.requests_of)
    keeper.on_node(None, node)
    for one in running:
        keeper.on_pod(None, one)
    return scene.scene(keeper.snapshot(), pod)


def _named(number: int, spec: PodSpec) -> Pod:
    return Pod(metadata=ObjectMeta(namespace="default", name=f"running-{number}", uid=f"running-{number}"), spec=spec)


def _subject(spec: PodSpec) -> Pod:
    return Pod(metadata=ObjectMeta(namespace="default", name="pod", uid="pod"), spec=spec)


def _requested(given: Fields) -> ResourceNeeds:
    amounts = _amounts(given)
    return ResourceNeeds(requests={**amounts, **given.mapping("scalars", {})})


def _amounts(given: Fields) -> dict[str, str | int | float]:
    """Amounts as manifests write them: cpu in milli cores has a suffix."""
    found = {name: given.whole(key) for key, name in _AMOUNTS.items() if given.has(key)}
    return {name: f"{amount}m" if name == "cpu" else amount for name, amount in found.items()}


def _containers(given: Sequence[Fields]) -> tuple[Container, ...]:
    return tuple(Container(name=f"c{number}", resources=_requested(one)) for number, one in enumerate(given))


def _resource_pod(given: Fields, node: str = "") -> PodSpec:
    return PodSpec(
        node_name=node,
        containers=_containers(given.records("containers")),
        init_containers=_containers(given.records("init_containers", ())),
    )


def _resources(given: Fields, expect: Fields) -> None:
    there = given.fields("node")
    allocatable = {**_amounts(there), **there.mapping("scalars", {})}
    node = Node(metadata=ObjectMeta(name=_NODE, uid=_NODE), status=NodeStatus(allocatable=allocatable))
    ignored = given.texts("ignored_resources", ())
    running = [_named(number, _resource_pod(one, _NODE)) for number, one in enumerate(given.records("running"))]
    seen = _scene(node, _subject(_resource_pod(given.fields("pod"))), running)
    said = filters.reasons_at(seen, _NODE, {"": standard.build("PodFitsResources", {"ignored_resources": ignored}, {})})
    short = one_node.shortages(seen, _NODE, frozenset(ignored))
    assert list(said) == [reasons.insufficient(one.resource) for one in short]
    expect.compare(
        {
            "fits": not said,
            "insufficient": [
                {"resource": one.resource, "requested": one.requested, "used": one.used, "capacity": one.capacity}
                for one in short
            ],
        }
    )


def _node(given: Fields, expect: Fields) -> None:
    name, node, pod = given.text("op"), given.fields("node"), given.fields("pod")
    used = _named(
        0, PodSpec(node_name=node.text("name", _NODE), containers=_claiming(node.texts("used_host_ports", ())))
    )
    said = filters.reasons_at(
        _scene(_described(node), _subject(_asking(pod)), [used]),
        node.text("name", _NODE),
        {name: standard.build(name, {}, {})},
    )
    expect.compare({"fits": not said, "reasons": list(said)})


def _described(given: Fields) -> Node:
    name = given.text("name", _NODE)
    conditions = given.mapping("conditions", {})
    return Node(
        metadata=ObjectMeta(name=name, uid=name, labels=given.mapping("labels", {})),
        spec=NodeSpec(
            unschedulable=given.flag("unschedulable", False),
            taints=tuple(
                Taint(key=one.text("key"), value=one.text("value", ""), effect=one.text("effect"))
                for one in given.records("taints", ())
            ),
        ),
        status=NodeStatus(conditions=tuple(Condition(type=kind, status=state) for kind, state in conditions.items())),
    )


def _asking(given: Fields) -> PodSpec:
    asked = given.choice("qos", _QUALITIES) if given.has("qos") else ResourceNeeds()
    return PodSpec(
        node_name=given.text("node_name", ""),
        node_selector=given.mapping("node_selector", {}),
        affinity=_affinity(given) if given.has("required_node_affinity") else None,
        tolerations=tuple(_toleration(one) for one in given.records("tolerations", ())),
        containers=(
            Container(name="asking", resources=asked),
            *_claiming(given.texts("host_ports", ())),
        ),
    )


def _toleration(given: Fields) -> Toleration:
    return Toleration(
        key=given.text("key", ""),
        operator=given.text("operator", "Equal"),
        value=given.text("value", ""),
        effect=given.text("effect", ""),
    )


def _affinity(given: Fields) -> dict[str, object]:
    terms = None if given.null("required_node_affinity") else given.records("required_node_affinity")
    written = terms if terms is None else [_term(one) for one in terms]
    return {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": written}}}


def _term(given: Fields) -> dict[str, object]:
    return {
        "matchExpressions": [_requirement(one) for one in given.records("match_expressions", ())],
        "matchFields": [_requirement(one) for one in given.records("match_fields", ())],
    }


def _requirement(given: Fields) -> dict[str, object]:
    return {"key": given.text("key"), "operator": given.text("operator"), "values": list(given.texts("values", ()))}


def _claiming(written: Iterable[str]) -> tuple[Container, ...]:
    """PROTOCOL/address/port each."""
    ports = (one.split("/") for one in written)
    return tuple(
        Container(name=f"p{port}", ports=(ContainerPort(protocol=protocol, host_ip=address, host_port=int(port)),))
        for protocol, address, port in ports
    )


def _saying(reasons: Iterable[str]) -> Callable[[Scene], Failures]:
    """A predicate that says this of every node."""
    said = tuple(reasons)
    return lambda seen: tuple((seen.columns.present, reason) for reason in said)


def _filter_order(given: Fields) -> Mapping[str, Any]:
    predicates = given.fields("predicates")
    stubs = {name: _saying(predicates.texts(name)) for name in predicates.names}
    said = filters.reasons_at(
        _scene(_bare(_NODE), _subject(PodSpec())),
        _NODE,
        {name: stubs[name] for name in given.texts("order") if name in stubs},
        always_check_all=given.flag("always_check_all", False),
    )
    return {"fits": not said, "reasons": list(said)}


def _filter_twice(given: Fields) -> Mapping[str, Any]:
    passes = {True: given.flag("with_nominated"), False: given.flag("without_nominated")}
    nominated = {_NODE: [_named(0, PodSpec())]} if given.flag("has_nominated") else {}
    asked: list[bool] = []

    def predicate(seen: Scene) -> Failures:
        crowded = bool(seen.columns.pods.present.any())
        asked.append(crowded)
        return () if passes[crowded] else ((seen.columns.present, "no"),)

    seen = _scene(_bare(_NODE), _subject(PodSpec()))
    said = one_node.check(seen, _NODE, {"predicate": predicate}, nominated)
    return {"fits": not said, "evaluations": len(asked)}


def _fit_error(given: Fields) -> Mapping[str, Any]:
    failures = given.fields("failures")
    reasons = {name: failures.texts(name) for name in failures.names}
    return {"message": fiterror.FitError(nodes=given.whole("num_nodes"), reasons=reasons).message}


def _bare(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, uid=name))


_OPERATIONS: Mapping[str, Callable[[Fields], Mapping[str, Any]]] = {
    "filter_order": _filter_order,
    "filter_twice": _filter_twice,
    "fit_error": _fit_error,
    **kube_priorities.COMBINE,
}


def _combine_and_select(given: Fields, expect: Fields) -> None:
    expect.compare(given.choice("op", _OPERATIONS)(given))


FILES: Mapping[str, Callable[[Fields, Fields], None]] = {
    "predicates_resources": _resources,
    "predicates_node": _node,
    "combine_and_select": _combine_and_select,
}
