"""Node sets once more, straight from the rule and as slowly as it likes; and clusters at random."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from slurm_bridge.families.kai.nodesets import NodeSetQuestion
from slurm_bridge.families.kai.stock import StockNode
from slurm_bridge.families.kai.topology import Amounts, Domain, TaskOwner, Topology, TopologyConstraint

RACKS = Topology(name="racks", levels=("zone", "block", "rack"))

_NAMES = tuple(f"n{number}" for number in range(9))
_LEVELS = (None, *RACKS.levels)
_AMOUNTS = st.dictionaries(st.sampled_from(["cpu_milli", "memory", "gpu", "nic"]), st.integers(0, 6), max_size=3)
_LABELS = st.fixed_dictionaries(
    {"zone": st.sampled_from("ab"), "block": st.sampled_from("xy")}, optional={"rack": st.sampled_from("123")}
)

#: Any node, in or out of the topology.
nodes = st.builds(
    StockNode,
    name=st.sampled_from(_NAMES),
    labels=_LABELS,
    idle=st.dictionaries(st.sampled_from(["cpu_milli", "memory", "gpu", "nic"]), st.integers(-2, 12)),
    releasing=_AMOUNTS,
    free_pods=st.none() | st.integers(0, 5),
)

#: Changes of a cluster: nodes as they are from then on, and the names of those that are gone.
changes = st.lists(st.tuples(st.lists(nodes, max_size=3), st.frozensets(st.sampled_from(_NAMES), max_size=2)))

#: What some workload asks for: a required level is never below the preferred one.
constraints = (
    st.tuples(st.sampled_from(_LEVELS), st.sampled_from(_LEVELS))
    .filter(lambda pair: any(pair) and (not all(pair) or _LEVELS.index(pair[0]) <= _LEVELS.index(pair[1])))
    .map(lambda pair: TopologyConstraint(topology="racks", required=pair[0], preferred=pair[1]))
)

questions = st.builds(
    NodeSetQuestion,
    job=st.just(TaskOwner(namespace="team", name="train")),
    tasks=st.lists(_AMOUNTS, min_size=1, max_size=4).map(tuple),
    constraint=constraints,
    active_nodes=st.frozensets(st.sampled_from(_NAMES), max_size=2),
)

#: An incoming set; some of its nodes may be unknown.
incoming = st.none() | st.frozensets(st.sampled_from(_NAMES))


def sets(
    cluster: Sequence[StockNode], question: NodeSetQuestion, within: frozenset[str]
) -> list[tuple[Domain, frozenset[str]]]:
    """The domains in the order in which they are tried, with their nodes."""
    where = {node.name: domain for node in cluster if (domain := RACKS.domain(node.labels)) is not None}
    valid = [node for node in cluster if node.name in within and node.name in where]
    asked = question.constraint
    assert asked is not None
    deepest = RACKS.depth(asked.preferred or asked.required or "root")
    start = _start([where[node.name] for node in valid], deepest)
    holding = {domain: [node for node in valid if where[node.name][: len(domain)] == domain] for domain in _all(where)}
    top = RACKS.depth(asked.required) if asked.required else 0
    order = [one for one in _walk(start, deepest, holding, question.tasks) if len(one) >= top]
    if asked.required and question.active_nodes:
        active = {where[name][:top] for name in question.active_nodes if name in where}
        order = [one for one in order if one[:top] in active]
    if not _fits(holding[start], question.tasks):
        return []
    return [
        (one, frozenset(node.name for node in holding[one])) for one in order if _fits(holding[one], question.tasks)
    ]


def _start(domains: list[Domain], deepest: int) -> Domain:
    start: Domain = ()
    while domains and len(start) < deepest and len({one[: len(start) + 1] for one in domains}) == 1:
        start = domains[0][: len(start) + 1]
    return start


def _all(where: Mapping[str, Domain]) -> set[Domain]:
    return {()} | {domain[:depth] for domain in where.values() for depth in range(1, len(domain) + 1)}


def _walk(
    start: Domain, deepest: int, holding: Mapping[Domain, Sequence[StockNode]], tasks: Sequence[Amounts]
) -> list[Domain]:
    """The deepest level first; within a level by the order of what is above."""
    layers = [[start]]
    for depth in range(len(start), deepest):
        below = sorted(one for one in holding if len(one) == depth + 1 and holding[one])
        layers.append(
            [
                child
                for parent in layers[-1]
                for child in sorted(
                    (one for one in below if one[:depth] == parent), key=lambda one: -_ratio(holding[one], tasks)
                )
            ]
        )
    return [one for layer in reversed(layers) for one in layer]


def _free(node: StockNode, kind: str) -> int:
    return max(0, node.idle.get(kind, 0) + node.releasing.get(kind, 0))


def _requested(tasks: Sequence[Amounts]) -> dict[str, int]:
    kinds = {kind for task in tasks for kind in task}
    return {kind: amount for kind in kinds if (amount := sum(task.get(kind, 0) for task in tasks))}


def _ratio(nodes: Sequence[StockNode], tasks: Sequence[Amounts]) -> float:
    parts = [0.0]
    for kind, amount in _requested(tasks).items():
        free = sum(_free(node, kind) for node in nodes)
        parts.append(amount / free if free else 1000.0)
    return max(parts)


def _fits(nodes: Sequence[StockNode], tasks: Sequence[Amounts]) -> bool:
    for kind in _requested(tasks).keys() - {"cpu_milli", "memory"}:
        if not all(task.get(kind, 0) for task in tasks):
            return _ratio(nodes, tasks) <= 1
    alike = sum(_copies(node, tasks) for node in nodes) >= len(tasks)
    return alike or (_differ(tasks) and any(_together(node, tasks) for node in nodes))


def _differ(tasks: Sequence[Amounts]) -> bool:
    kinds = _requested(tasks)
    return len({tuple(task.get(kind, 0) for kind in kinds) for task in tasks}) > 1


def _together(node: StockNode, tasks: Sequence[Amounts]) -> bool:
    """One node takes all of them."""
    pods = node.free_pods is None or node.free_pods >= len(tasks)
    return pods and all(_free(node, kind) >= amount for kind, amount in _requested(tasks).items())


def _copies(node: StockNode, tasks: Sequence[Amounts]) -> int:
    requested = _requested(tasks)
    room = [_free(node, kind) // max(task.get(kind, 0) for task in tasks) for kind in requested]
    room += [] if requested else [len(tasks)]
    return min(room) if node.free_pods is None else min(*room, node.free_pods)
