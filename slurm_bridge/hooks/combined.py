"""What the answers of several hooks are together: scores added, node sets within node sets, fields over fields."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Mask, NodeColumns, Numbers
from slurm_bridge.hooks.base import Ask, Nodes, NodeSet, Scores, Subsets, Tiers
from slurm_bridge.runtime import frozen_records
from slurm_bridge.translate.translator import Value, show

_Values = NDArray[np.float64]
_Rows = NDArray[np.intp]


def added(said: Sequence[Scores], nodes: Nodes) -> Scores:
    """The sum for each node, and how it is used: the first hook that says so decides."""
    said = [one for one in said if one.tiers is not None or one.note or one.nodes]
    if not said:
        return Scores(nodes={})
    if len(said) == 1:
        return said[0]
    tiers = _tiers(said)
    total = {name: sum(one.nodes.get(name, 0.0) for one in said) for name in nodes}
    return Scores(nodes=total, note="; ".join(one.note for one in said if one.note), tiers=tiers)


def single_tier(said: Iterable[Scores]) -> bool:
    """All nodes are to be tried at once, whatever their scores."""
    tiers = _tiers(said)
    return tiers is not None and tiers.count == 1


def _tiers(said: Iterable[Scores]) -> Tiers | None:
    return next((one.tiers for one in said if one.tiers is not None), None)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Ranking:
    """The nodes of a pass by their scores; one without a score has 0.

    `roomy` are those that have room now, None: that is not known. `turn` is where among equals the choice begins: a
    burst of workloads for which the same nodes are the best must not all be sent to the first few of them.
    """

    scores: Scores
    columns: NodeColumns
    roomy: Mask | None = None
    turn: int = 0

    def differ(self, nodes: Nodes) -> bool:
        """Whether the scores tell these nodes apart at all."""
        if not self.scores.nodes or not nodes:
            return False
        _, found = self._among(nodes)
        return bool(found.size) and bool(found.min() != found.max())

    def best(self, nodes: Nodes, sizes: Sequence[int]) -> list[Nodes]:
        """So many of the best for each size, each set within the next; all of these nodes where that is enough."""
        among, values = self._among(nodes)
        most = min(max(sizes, default=0), len(among))
        rows = _top(among, values, most, self.turn % len(self.columns)) if most else among[:0]
        names = self.columns.names[rows].tolist()
        return [nodes if size >= len(nodes) else frozenset(names[:size]) for size in sizes]

    def _among(self, nodes: Nodes) -> tuple[_Rows, _Values]:
        """The rows to choose from, and their values; all where none has room: it waits for the best then."""
        if self._looked and self._looked[0][0] is nodes:
            return self._looked[0][1]
        mask = self.columns.mask(nodes)
        rows = np.flatnonzero(mask if self.roomy is None else mask & self.roomy)
        rows = rows if len(rows) else np.flatnonzero(mask)
        found = rows, self._values[rows]
        self._looked[:] = [(nodes, found)]
        return found

    @functools.cached_property
    def _looked(self) -> list[tuple[Nodes, tuple[_Rows, _Values]]]:
        """The nodes that were asked about last: the question whether they differ comes before that for the best."""
        return []

    @functools.cached_property
    def _values(self) -> _Values:
        scores = self.scores.nodes
        columns = self.columns
        if isinstance(scores, Numbers):
            return scores.values_of(columns)
        return np.fromiter((scores.get(name, 0.0) for name in columns.names.tolist()), np.float64, len(columns))


def _top(among: _Rows, values: _Values, number: int, turn: int) -> _Rows:
    """The rows of the highest values, best first; equal ones in the order of rows, from `turn` on and around."""
    last = values.max()
    equal = among[values == last]
    better = equal[:0]
    if len(equal) < number:
        last = np.partition(values, len(values) - number)[len(values) - number]
        over = values > last
        better, equal = among[over], among[values == last]
        # Best first; a stable sort, so that equal ones stay as they are put in.
        begin = int(np.searchsorted(better, turn))
        order = np.argsort(-np.roll(values[over], -begin), kind="stable")
        better = np.roll(better, -begin)[order]
    begin = int(np.searchsorted(equal, turn))
    return np.concatenate((better, equal[begin : begin + number], equal[:begin]))[:number]


def layer(outer: NodeSet, answer: Subsets) -> tuple[NodeSet, ...]:
    """The sets within a set: P1 becomes P1R1, P1R2. Where a hook is not relevant the set stays as it is.

    A workload that may not leave a required set, and only prefers sets within it, may have all of it after those.
    """
    if not answer.relevant:
        return (outer,)
    found = tuple(_within(outer, inner) for inner in answer.sets)
    if outer.each is not None:
        # All of its nodes are taken, so that there is no set within it.
        found = tuple(one for one in found if len(one.nodes) == len(outer.nodes))
    widens = outer.required and bool(found) and not any(inner.required for inner in answer.sets)
    return (*found, outer) if widens and all(one.nodes != outer.nodes for one in found) else found


def leaves_out(before: Sequence[NodeSet], divided: Sequence[NodeSet], nodes: Nodes) -> bool:
    """Sets of which none was required, and not all nodes, have become none, or sets that are never left."""
    if divided and not any(one.required for one in divided):
        return False
    preferred = not any(one.required or len(one.nodes) == len(nodes) for one in before)
    return preferred and bool(before)


def _within(outer: NodeSet, inner: NodeSet) -> NodeSet:
    # Identity first: the last set is often all there is, which may be thousands.
    nodes = outer.nodes if inner.nodes is outer.nodes else outer.nodes & inner.nodes
    if not (outer.name or outer.required or outer.parts or inner.parts) and len(nodes) == len(inner.nodes):
        # The outer set is all nodes: no hook has narrowed it.
        return inner
    name = "/".join(part for part in (outer.name, inner.name) if part)
    # For each shape what both leave it; a set without parts leaves each shape all of its nodes.
    if outer.parts and inner.parts:
        parts = tuple(one & other for one, other in zip(outer.parts, inner.parts, strict=True))
    else:
        some, whole = (outer.parts, inner.nodes) if outer.parts else (inner.parts, outer.nodes)
        parts = tuple(part & whole for part in some)
    numbers = [one.each for one in (outer, inner) if one.each is not None and len(one.nodes) == len(nodes)]
    return NodeSet(
        nodes=nodes,
        name=name,
        required=outer.required or inner.required,
        parts=parts,
        each=min(numbers, default=None),
        seconds=outer.seconds if inner.seconds is None else inner.seconds,
        again=max(outer.again, inner.again),
    )


def covered(outer: NodeSet, inner: Iterable[NodeSet]) -> int:
    """How many nodes of a set are in some set within it."""
    sets = [one.nodes for one in inner]
    if len(sets) == 1:
        return len(sets[0])
    whole = any(nodes is outer.nodes for nodes in sets)
    return len(outer.nodes) if whole else len(frozenset().union(*sets))


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """The result of a division. It becomes a text only when it is shown: there may be many nodes."""

    name: str
    sets: Sequence[NodeSet]

    def __str__(self) -> str:
        sets = ", ".join(f"[{', '.join(sorted(one.nodes))}]" for one in self.sets)
        return f"Result of {self.name} logic is {sets}"


def merge(ask: Ask, given: Mapping[str, Any], source: str) -> Ask:
    """The request with these fields, each traceable to where it came from."""
    kept = tuple(value for value in ask.values if value.field not in given)
    made = tuple(Value(field=field, value=show(value), source=source) for field, value in given.items())
    return frozen_records.replaced(ask, request=frozen_records.replaced(ask.request, **given), values=kept + made)
