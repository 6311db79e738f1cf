"""Keeps components of a job away from nodes that another component cannot do without.

Slurm chooses the nodes of each component by itself, one after the other. A leader that comes first and is offered the
only node that is large enough for its workers may take it: then they find no room, and the job never starts, although
the leader would fit elsewhere.

    node    kept from a component      because without it
    large   the leader                 the pods of the workers do not fit on all of their other nodes together
    small   the workers                the leader has no node left

What is free does not count: no way in which the job could ever start is lost.
"""

from collections.abc import Callable

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks.base import Nodes
from slurm_bridge.hooks.usable_nodes import FilterResult, only
from slurm_bridge.translate import layout
from slurm_bridge.translate.layout import LayoutTerms
from slurm_bridge.translate.shapes import Shape
from slurm_bridge.translate.translator import Translated

_NEEDED = "node(s) are needed for other pods of the workload"


def divided(
    snapshot: ClusterSnapshot,
    settled: Translated,
    found: tuple[FilterResult, ...],
    reach: Callable[[Nodes], Nodes],
) -> tuple[FilterResult, ...]:
    """The nodes of each shape. `reach` are those of them that the partitions have.

    A node that is kept from one shape may be the reason why another node is kept from others: it is repeated until
    nothing changes. Where one would have none left, the job can never start, and it is told why elsewhere.
    """
    terms = LayoutTerms(one_per_node=settled.one_per_node, node_memory_mib=settled.node_memory_mib)
    left, before = found, None
    while left != before:
        before = left
        for number, shape in enumerate(settled.shapes):
            if needed := _needed(snapshot, shape, reach(left[number].nodes), terms):
                others = (only(one, one.nodes - needed, _NEEDED) for one in left)
                left = tuple([left[number] if place == number else one for place, one in enumerate(others)])
    return left if all(one.nodes for one in left) else found


def _needed(snapshot: ClusterSnapshot, shape: Shape, nodes: Nodes, terms: LayoutTerms) -> Nodes:
    """Those without which the pods do not fit: none where others have room for as many again, so few are looked at."""
    count, rooms = len(shape.pods), dict[str, int]()
    total = 0
    for name in nodes:
        there = snapshot.nodes[name].slurm
        rooms[name] = min(count, layout.room(shape.needs, there, terms)) if there is not None else 0
        total += rooms[name]
        if total >= 2 * count:
            return frozenset()
    return frozenset(name for name, room in rooms.items() if total - room < count <= total)
