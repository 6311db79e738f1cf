"""kai: which domains take a workload, in which order they are tried, and what nodes are worth."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from slurm_bridge.cluster.columns import Whole
from slurm_bridge.families.kai import domain_order, fit, nodesets, topology
from slurm_bridge.families.kai.domain_order import Branch
from slurm_bridge.families.kai.fit import DomainRoom, DomainScope, TaskDemand
from slurm_bridge.families.kai.nodesets import NodeSetQuestion
from slurm_bridge.families.kai.stock import StockNode, StockNodes
from slurm_bridge.families.kai.topology import (
    WHOLE,
    Amounts,
    Domain,
    InvalidConstraint,
    TaskOwner,
    Topology,
    TopologyConstraint,
)
from slurm_bridge.families.kai.tree import Tree
from tests.conformance.fields import Fields
from tests.conformance.kai_arithmetic import scores
from tests.conformance.kai_arithmetic.scores import Has

Result = Mapping[str, Any]
Operation = Callable[[Fields], Result]


def constraint(given: Fields) -> TopologyConstraint:
    """What is asked of a topology."""
    return TopologyConstraint(
        topology=given.text("topology", None),
        required=given.text("required", None),
        preferred=given.text("preferred", None),
    )


def job(given: Fields) -> TaskOwner:
    """Whose tasks they are."""
    return TaskOwner(namespace=given.text("namespace"), name=given.text("name"))


def topologies(given: Fields) -> list[Topology]:
    """Those of a case, in its order."""
    written = given.fields("topologies")
    return [Topology(name=name, levels=written.texts(name)) for name in written.names]


def _topology(given: Fields) -> Topology:
    return Topology(name=given.text("topology", ""), levels=given.texts("levels"))


def _node(given: Fields) -> StockNode:
    return StockNode(
        name=given.text("name"),
        labels=given.mapping("labels"),
        idle=given.mapping("idle"),
        releasing=given.mapping("releasing", {}),
        free_pods=given.whole("free_pods", None),
    )


def _tasks(given: Fields) -> tuple[Amounts, ...]:
    return tuple(_amounts(one) for one in given.records("tasks"))


def _amounts(given: Fields) -> Amounts:
    return {kind: given.whole(kind) for kind in given.names}


# -- topology_fit ----------------------------------------------------------------------------------------------------


def _lowest_common_domain(given: Fields) -> Result:
    where = _topology(given)
    nodes = [StockNode(name=name, labels=_labels(one), idle={}) for name, one in given.named("nodes").items()]
    tree = Tree.of(where, StockNodes.of(nodes))
    cut = tree.cut(tree.stock.members.every, len(where.levels))
    domain = topology.lowest_common_domain(where, cut.ends(), constraint(given))
    return {"domain": domain, "level": where.level(domain), "nodes": sorted(cut.nodes(0))}


def _labels(given: Fields) -> dict[str, str]:
    return {key: given.text(key) for key in given.names}


def _relevant_levels(given: Fields) -> Result:
    return {"levels": topology.relevant_levels(_topology(given), constraint(given), given.text("subgroup"))}


def _accounting(given: Fields) -> Result:
    return {"mode": "pods" if TaskDemand.of(_tasks(given)).by_pods else "sums"}


def _allocatable_pods(given: Fields) -> Result:
    tree = Tree.of(_topology(given), StockNodes.of(map(_node, given.records("nodes"))))
    cut = tree.cut(tree.stock.members.every, len(tree.topology.levels))
    room = nodesets.room_in(tree, cut, TaskDemand.of(_tasks(given)))
    assert room.pods is not None
    names = ("/".join(domain) or topology.ROOT for domain in cut.outline.domains)
    return {"pods": dict(zip(names, room.pods.tolist(), strict=True))}


def _ratio(given: Fields) -> Result:
    demand = TaskDemand(count=0, requested=given.mapping("requested"), by_pods=False)
    room = DomainRoom(free=_columns(demand.requested, [given.mapping("free")]), number=1)
    return {"ratio": room.ratios(demand.requested)[0], "fits": bool(room.fits(demand)[0])}


def _columns(requested: Amounts, free: Sequence[Amounts]) -> dict[str, Whole]:
    return {kind: np.array([one.get(kind, 0) for one in free], np.int64) for kind in requested}


def _candidates(given: Fields) -> Result:
    where, asked, subgroup = _topology(given), constraint(given), given.text("subgroup", WHOLE)
    question = NodeSetQuestion(job=job(given.fields("job")), tasks=(), constraint=asked, subgroup=subgroup)
    demand = TaskDemand(count=given.whole("task_count"), requested=given.mapping("requested", {}))
    written, active = given.records("domains"), given.texts("active_nodes", ())
    domains: list[Domain] = [one.texts("domain") for one in written]
    room = _room(written, demand)
    nodes = list(zip(domains, [one.texts("nodes", ()) for one in written], strict=True))
    levels = topology.relevant_levels(where, asked, subgroup)
    scope = DomainScope(topology=where, levels=levels, held=fit.binding(where, asked, nodes, active))
    found = fit.candidates(scope, domains, room.fits(demand).tolist())
    lines = fit.shortages(scope, domains, room, demand)
    return {"domains": found, "errors": nodesets.no_room(where, question, lines)}


def _room(written: Sequence[Fields], demand: TaskDemand) -> DomainRoom:
    if all(one.has("pods") for one in written):
        return DomainRoom(free={}, pods=np.array([one.whole("pods") for one in written], np.int64), number=len(written))
    free = [one.mapping("free") for one in written]
    return DomainRoom(free=_columns(demand.requested, free), number=len(written))


def _node_sets(given: Fields) -> Result:
    stock = StockNodes.of(map(_node, given.records("nodes")))
    trees = {one.name: Tree.of(one, stock) for one in topologies(given)}
    asked = given.fields("constraint", None)
    question = NodeSetQuestion(
        job=job(given.fields("job")),
        tasks=_tasks(given),
        constraint=None if asked is None else constraint(asked),
        subgroup=given.text("subgroup", WHOLE),
        active_nodes=frozenset(given.texts("active_nodes", ())),
    )
    incoming = frozenset(given.texts("node_set")) if given.has("node_set") else stock.members.every
    found = nodesets.node_sets(trees, question, incoming)
    return {"sets": [sorted(one.nodes) for one in found.sets], "errors": found.errors}


# -- topology_ordering -----------------------------------------------------------------------------------------------


class _Drawn:
    """A tree as it is written; domains are numbered as they are read."""

    def __init__(self, given: Fields | None) -> None:
        self.free: list[Amounts] = []
        self.nodes: list[Sequence[str]] = []
        self.tree = None if given is None else self._branch(given, ())

    def _branch(self, given: Fields, above: Domain) -> Branch:
        domain, number = (*above, given.text("name")), len(self.free)
        self.free.append(given.mapping("free", {}))
        self.nodes.append(given.texts("nodes", ()))
        children = tuple(self._branch(one, domain) for one in given.records("children", ()))
        return Branch(number=number, domain=domain, level=given.text("level"), children=children)


def _names(branches: Iterable[Branch]) -> list[str]:
    return [one.domain[-1] for one in branches]


def _shown(tree: Branch | None) -> Any:
    if tree is None or not tree.children:
        return None if tree is None else tree.domain[-1]
    return {tree.domain[-1]: [_shown(one) for one in tree.children]}


def _sort_tree(given: Fields) -> Result:
    drawn, requested = _Drawn(given.fields("tree", None)), given.mapping("requested")
    room = DomainRoom(free=_columns(requested, drawn.free), number=len(drawn.free))
    ratios = room.ratios(requested).tolist()
    lowest = given.text("max_depth", None)
    return {"tree": _shown(domain_order.sort_tree(drawn.tree, lambda one: ratios[one.number], lowest))}


def _reverse_level_order(given: Fields) -> Result:
    return {"order": _names(domain_order.reverse_level_order(_Drawn(given.fields("tree", None)).tree))}


def _level_domains(given: Fields) -> Result:
    drawn = _Drawn(given.fields("tree"))
    return {"domains": _names(domain_order.level_domains(drawn.tree, given.text("level")))}


def _domain_scores(given: Fields) -> Result:
    drawn = _Drawn(given.fields("tree"))
    scores = domain_order.domain_scores(drawn.tree, given.text("preferred"))
    return {"scores": {name: score for number, score in scores.items() for name in drawn.nodes[number]}}


# -- node_scores -----------------------------------------------------------------------------------------------------


def _having(given: Fields) -> dict[str, Has]:
    return {one.text("name"): Has(total=one.number("total"), free=one.number("free")) for one in given.records("nodes")}


def _pack(given: Fields) -> Result:
    return {"scores": scores.pack(_having(given))}


def _spread(given: Fields) -> Result:
    return {"scores": scores.spread(_having(given))}


def _resource_type(given: Fields) -> Result:
    uses, has = given.flag("task_uses_gpu"), given.flag("node_has_gpu")
    return {"score": scores.resource_type(task_uses_gpu=uses, node_has_gpu=has)}


def _total(given: Fields) -> Result:
    totals = scores.total({one.text("name"): one.mapping("scores") for one in given.records("nodes")})
    return {"totals": totals, "order": scores.ordered(totals)}


_FIT: Mapping[str, Operation] = {
    "lowest_common_domain": _lowest_common_domain,
    "relevant_levels": _relevant_levels,
    "accounting": _accounting,
    "allocatable_pods": _allocatable_pods,
    "ratio": _ratio,
    "candidates": _candidates,
    "node_sets": _node_sets,
}
_ORDER: Mapping[str, Operation] = {
    "sort_tree": _sort_tree,
    "reverse_level_order": _reverse_level_order,
    "level_domains": _level_domains,
    "domain_scores": _domain_scores,
}
_SCORES: Mapping[str, Operation] = {
    "pack": _pack,
    "spread": _spread,
    "resource_type": _resource_type,
    "total": _total,
}


def _check(operations: Mapping[str, Operation]) -> Callable[[Fields, Fields], None]:
    def check(given: Fields, expect: Fields) -> None:
        operation = given.choice("op", operations)
        try:
            result = operation(given)
        except InvalidConstraint as invalid:
            result = {"error": str(invalid)}
        expect.compare(result)

    return check


FILES = {"topology_fit": _check(_FIT), "topology_ordering": _check(_ORDER), "node_scores": _check(_SCORES)}
