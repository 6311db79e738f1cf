"""MultiBind's candidates: the sets of nodes that Slurm is offered one after the other."""

import heapq
from collections.abc import Sequence

import numpy as np

from slurm_bridge.cluster.columns import Mask, NodeColumns
from slurm_bridge.families.vela.scene import Rows
from slurm_bridge.hooks.base import Nodes

#: The ranking of one shape, best first, and how many pods it has.
Ranked = tuple[Sequence[str], int]


def candidates(shapes: Sequence[Ranked], nodes: Nodes, most: int) -> tuple[Nodes, ...]:
    """At most so many sets: for n pods the n best of these nodes, then the next n, and so on.

    A shape that has no further nodes keeps its last ones while others have some.
    """
    parts: list[list[Nodes]] = []
    for ranked, pods in shapes:
        kept, size = [name for name in ranked if name in nodes], max(1, pods)
        ends = range(0, min(len(kept), most * size), size)
        parts.append([frozenset(kept[begin : begin + size]) for begin in ends])
    if not all(parts):
        return ()
    if len(parts) == 1:
        return tuple(parts[0])
    number = max(map(len, parts))
    return tuple(frozenset().union(*(one[min(place, len(one) - 1)] for one in parts)) for place in range(number))


def among(rows: Rows, wanted: Mask) -> Mask:
    """Which of the nodes that were decided on, by place, are wanted (by row); those that are gone are not."""
    found: Mask = (rows >= 0) & wanted[rows]
    return found


def best(rows: Rows, nodes: NodeColumns, there: Mask, roomy: Mask, most: int) -> Sequence[str]:
    """So many of the nodes in these rows that are there, best first, those with room before all others.

    One that ceases to be eligible is replaced by the next, so that the number of candidates stays.
    """
    places = (there & roomy).nonzero()[0][:most]
    if len(places) < most:
        places = np.concatenate([places, (there & ~roomy).nonzero()[0][: most - len(places)]])
    found: list[str] = nodes.names[rows[places]].tolist()
    return found


def wanted(roomy: Mask, pods: int, most: int) -> int:
    """How many nodes so many candidates have: only those with room, as soon as these are enough for one candidate.

    A job that waits for a full node while others are idle waits for nothing. Where all are full all are as good.
    """
    room = int(np.count_nonzero(roomy))
    return min(pods * most, max(room, pods)) if room else pods * most


def any_of(nodes: Nodes, pods: int, most: int) -> tuple[Nodes, ...]:
    """Candidates in place of forgotten ones, once all of them have been tried."""
    return candidates([(heapq.nsmallest(pods * most, nodes), pods)], nodes, most)
