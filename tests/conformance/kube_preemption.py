"""kube/preemption: which nodes are worth trying, who would have to go, which node is taken."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slurm_bridge.cluster import parties
from slurm_bridge.cluster.parties import Fits, Party, Victims
from slurm_bridge.cluster.rules import budgets
from slurm_bridge.cluster.rules.budgets import Budget
from slurm_bridge.families.kube_scheduler.preemption import choice as choosing
from slurm_bridge.families.kube_scheduler.preemption import room
from slurm_bridge.hooks.services import NotAnswered
from slurm_bridge.model import selectors
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Container, Pod, PodSpec, PodStatus, ResourceNeeds
from slurm_bridge.translate import resources
from tests.conformance.fields import Fields

_NAMESPACE = "default"
_PREEMPTOR = {"role": "preemptor"}
_AWAY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": _PREEMPTOR}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}

#: Failures that no eviction changes. The hook asks the chain about emptied nodes in their place.
_UNRESOLVABLE = frozenset(
    {
        "NodeSelectorNotMatch",
        "PodAffinityRulesNotMatch",
        "PodNotMatchHostName",
        "TaintsTolerationsNotMatch",
        "NodeLabelPresenceViolated",
        "NodeNotReady",
        "NodeNetworkUnavailable",
        "NodeUnderDiskPressure",
        "NodeUnderPIDPressure",
        "NodeUnderMemoryPressure",
        "NodeUnschedulable",
        "NodeUnknownCondition",
        "VolumeZoneConflict",
        "VolumeNodeConflict",
        "VolumeBindConflict",
    }
)


def _pod(given: Fields, labels: Mapping[str, str] | None = None) -> Pod:
    needs = {"cpu": f"{given.whole('cpu_milli', 0)}m", "memory": given.whole("memory", 0)}
    name = given.text("name", "")
    return Pod(
        metadata=ObjectMeta(
            namespace=given.text("namespace", _NAMESPACE),
            name=name,
            uid=name,
            labels=dict(labels or given.mapping("labels", {})),
            deletion_timestamp="2026-01-01T00:00:00Z" if given.flag("terminating", False) else None,
        ),
        spec=PodSpec(
            priority=given.whole("priority"),
            node_name=given.text("node", ""),
            containers=(Container(name="main", resources=ResourceNeeds(requests=needs)),),
            affinity=_AWAY if given.flag("anti_affinity_to_preemptor", False) else None,
        ),
        status=PodStatus(nominated_node_name=given.text("nominated_node", None)),
    )


def _of_priority(priority: int) -> Pod:
    return Pod(metadata=ObjectMeta(), spec=PodSpec(priority=priority))


def _fits(given: Fields, pod: Pod, nodes: tuple[Fields, ...]) -> Fits:
    amounts = {node.text("name"): _amounts(node) for node in nodes}

    def by_resources(node: str, others: Any) -> bool:
        return room.fits(pod, others, amounts[node])

    table: dict[str, Fits] = {
        "resources": by_resources,
        "never": lambda _node, _others: False,
        "always": lambda _node, _others: True,
        "name_equals_node": lambda node, _others: node == pod.metadata.name,
    }
    return given.choice("predicate", table) if given.has("predicate") else by_resources


def _amounts(node: Fields) -> Mapping[str, Any]:
    needs = {"cpu": f"{node.whole('cpu_milli')}m", "memory": node.whole("memory")}
    one = Container(name="node", resources=ResourceNeeds(requests=needs))
    return {
        **resources.requests_of(Pod(metadata=ObjectMeta(), spec=PodSpec(containers=(one,)))),
        "pods": node.whole("pods", 100),
    }


def _by_node(given: Fields, names: tuple[str, ...]) -> dict[str, tuple[Party, ...]]:
    pods = [_pod(one) for one in given.records("pods", ())]
    return {name: parties.alone(pod for pod in pods if pod.spec.node_name == name) for name in names}


def _budgets(given: Fields) -> tuple[Budget, ...]:
    return tuple(
        Budget(
            namespace=one.text("namespace", _NAMESPACE),
            requirements=selectors.read({"matchLabels": one.mapping("selector")}) or None,
            allowed=one.whole("disruptions_allowed"),
        )
        for one in given.records("pdbs", ())
    )


def _names(victims: Victims) -> list[str]:
    return [pod.metadata.name for pod in victims.pods]


def _eligible(given: Fields) -> Mapping[str, Any]:
    pod = _pod(given.fields("pod"))
    there = given.fields("pods_on_node")
    on_node = {name: tuple(_pod(one) for one in there.records(name)) for name in there.names}
    eligible = choosing.eligible(parties.priority_of(pod), pod.status.nominated_node_name, lambda node: on_node[node])
    return {"eligible": eligible}


def _might_help(given: Fields) -> Mapping[str, Any]:
    return {"nodes": _worth(given.texts("nodes"), given.fields("failures"))}


def _worth(nodes: Iterable[str], failures: Fields) -> list[str]:
    """Nodes without a failure that would remain after any eviction."""
    codes = {name: failures.texts(name) for name in failures.names}
    return [node for node in nodes if _UNRESOLVABLE.isdisjoint(codes.get(node, ()))]


def _select(given: Fields) -> Mapping[str, Any]:
    pod, nodes = _pod(given.fields("pod"), _PREEMPTOR), given.records("nodes")
    by_node = _by_node(given, tuple(node.text("name") for node in nodes))
    known = _budgets(given)
    found = parties.select_all(
        parties.priority_of(pod), by_node, _fits(given, pod, nodes), lambda one: budgets.guards(known, one)
    )
    return {
        "victims": {node: _names(victims) for node, victims in found.items()},
        "pdb_violations": {node: victims.violations for node, victims in found.items()},
    }


def _pick(given: Fields) -> Mapping[str, Any]:
    candidates = {
        node: Victims(
            parties=parties.alone(map(_of_priority, one.wholes("victim_priorities"))),
            violations=one.whole("pdb_violations", 0),
        )
        for node, one in given.named("candidates").items()
    }
    return {"node": choosing.pick(candidates)}


def _extender(given: Fields) -> choosing.Extender:
    allowed, fails = given.texts("allow", None), given.flag("error", False)

    def ask(candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        if fails:
            raise NotAnswered("it does not answer")
        return {node: one for node, one in candidates.items() if allowed is None or node in allowed}

    return choosing.Extender(
        name=given.where,
        ask=ask,
        interested=given.flag("interested", True),
        ignorable=given.flag("ignorable", False),
    )


def _preempt(given: Fields) -> Mapping[str, Any]:
    pod, nodes = _pod(given.fields("pod"), _PREEMPTOR), given.records("nodes")
    worth = _worth([node.text("name") for node in nodes], given.fields("failures"))
    known = _budgets(given)
    try:
        choice = choosing.preempt(
            parties.priority_of(pod),
            _by_node(given, tuple(worth)),
            _fits(given, pod, nodes),
            lambda one: budgets.guards(known, one),
            [_extender(one) for one in given.records("extenders", ())],
        )
    except NotAnswered:
        return {"error": True}
    return {"node": choice.node if choice else None, "victims": _names(choice.victims) if choice else []}


def _clear(given: Fields) -> Mapping[str, Any]:
    """Pods that the node was nominated for and that have to look elsewhere: those of a lower priority."""
    priority = given.fields("pod").whole("priority")
    nominated = [_pod(one) for one in given.records("nominated")]
    return {"pods": [pod.metadata.name for pod in nominated if parties.priority_of(pod) < priority]}


_OPERATIONS: Mapping[str, Callable[[Fields], Mapping[str, Any]]] = {
    "eligible": _eligible,
    "nodes_where_preemption_might_help": _might_help,
    "select_victims": _select,
    "pick_one_node": _pick,
    "preempt": _preempt,
    "nominations_to_clear": _clear,
}


def _check(given: Fields, expect: Fields) -> None:
    expect.compare(given.choice("op", _OPERATIONS)(given))


FILES: Mapping[str, Callable[[Fields, Fields], None]] = {"preemption": _check}
