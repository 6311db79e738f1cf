"""The decision: which of the sampled nodes can be used, how good each is in the end, and in which order they are tried.

It looks at the snapshot only. What agents say is checked against it: nodes that this daemon cannot bind to are dropped,
each with a reason that is counted.
"""

import dataclasses
import weakref
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeGuard

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Mask, NodeColumns, Numbers, Whole
from slurm_bridge.cluster.columns.members import NodeRows
from slurm_bridge.families.vela import catalogue, dice, samples, scores
from slurm_bridge.families.vela.book import Book
from slurm_bridge.families.vela.catalogue import Filter
from slurm_bridge.families.vela.joint_filter import Sift
from slurm_bridge.families.vela.options import DecisionOptions, PipelineOptions
from slurm_bridge.families.vela.samples import Picked
from slurm_bridge.families.vela.scene import Rows, SamplingScene
from slurm_bridge.families.vela.scores import Weighted
from slurm_bridge.families.vela.smart import Merged
from slurm_bridge.hooks.base import Scores, Tiers
from slurm_bridge.runtime import frozen_records

UNKNOWN_HERE = "not a node of this cluster"
UNKNOWN_TO_SLURM = "not known to Slurm"
OTHER_NODE = "another node than the one of this name here"
TWICE = "named twice"

#: Reason by what it is counted under.
DROPPED: Mapping[str, str] = {
    UNKNOWN_HERE: "dropped-unknown",
    UNKNOWN_TO_SLURM: "dropped-not-in-slurm",
    OTHER_NODE: "dropped-other-node",
    TWICE: "dropped-twice",
}

_FOREIGN = -1

#: Candidates are tried as they are, and not in tiers of their own.
_WHOLE = Tiers(count=1)
#: Nothing was decided.
UNRATED = Scores(nodes={}, tiers=_WHOLE)


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SamplingDecision:
    """The nodes that are left, best first, with their final scores and the uids of the Kubernetes nodes, by place.

    `rows` is where they are in columns with these `members`, which is not kept with a remembered sample.
    `sampled` is how many nodes the agents named, `dropped` is how many of them were of no use here, by reason.
    """

    nodes: Sequence[str]
    scores: Whole
    uids: Sequence[str]
    rows: Rows
    members: weakref.ref[NodeRows]
    sampled: int
    dropped: Mapping[str, int]
    answered: tuple[str, ...] = ()
    failed: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def rows_in(self, nodes: NodeColumns) -> Rows:
        """Where each of the nodes is in these columns; -1 for those that are gone."""
        return self.rows if nodes.members is self.members() else rows_of(nodes, self.nodes)

    def there(self, nodes: NodeColumns) -> Rows:
        """Likewise, without those that are gone."""
        if nodes.members is self.members():
            return self.rows
        rows = rows_of(nodes, self.nodes)
        return rows[rows >= 0]

    def uid_of(self, name: str) -> str:
        """The uid under which a node was sampled; "" where it is not known, or where it was not sampled."""
        members = self.members()
        if members is None:
            return next((uid for node, uid in zip(self.nodes, self.uids, strict=True) if node == name), "")
        found = (self.rows == members.index.get(name, _FOREIGN)).nonzero()[0]
        return self.uids[int(found[0])] if len(found) else ""


def rated(columns: NodeColumns, decisions: Sequence[SamplingDecision]) -> Scores:
    """As the chain hears them: of a node that several decisions have, the highest; computed at the first use."""

    def values() -> tuple[Whole, Mask]:
        found, mask = np.zeros(len(columns), np.int64), np.zeros(len(columns), np.bool_)
        for decision in decisions:
            rows = decision.rows_in(columns)
            rows, final = rows[rows >= 0], decision.scores[rows >= 0]
            found[rows] = np.where(mask[rows], np.maximum(found[rows], final), final)
            mask[rows] = True
        return found, mask

    return Scores(nodes=Numbers(columns, values), tiers=_WHOLE)


class InPartition:
    """Agents do not know which partition is the job's."""

    rejects: ClassVar = "are not in the Slurm partition of its job"

    def fits(self, scene: SamplingScene, rows: Rows) -> Mask:
        return self.every(scene)[rows]

    def every(self, scene: SamplingScene) -> Mask:
        """The same of all nodes."""
        return scene.nodes.present if scene.inside is None else scene.inside


def every_filter(options: DecisionOptions, sampling: PipelineOptions) -> tuple[Filter, ...]:
    """Those of the decision and those of sampling in this process, each once."""
    return (*options.filters, *(one for one in sampling.filters if one not in options.filters))


class Decider:
    """The plugins of the decision; used from several threads."""

    def __init__(self, options: DecisionOptions, sampling: PipelineOptions) -> None:
        self._scorers = catalogue.scorers(options.scores)
        self._sift = Sift((InPartition(), *catalogue.filters(options.filters)))
        #: All that a node has to pass here.
        self._filters = (InPartition(), *catalogue.filters(every_filter(options, sampling)))
        self._book = Book()

    def decide(self, merged: Merged, scene: SamplingScene) -> SamplingDecision:
        """What is left of the sample."""
        rows, places, dropped = _resolved(merged, scene.nodes)
        stay = self._sift.of(scene).places(rows)
        if len(stay) < len(rows):
            rows, places = rows[stay], places[stay]
        said = [Weighted(weight=one.weight, scores=one.plugin.score(scene, rows)) for one in self._scorers]
        sampled = merged.accumulated, merged.plugins
        if len(places) < len(merged.nodes):
            sampled = merged.accumulated[places], merged.plugins[places]
        final = scores.combined(*sampled, said)
        order = scores.picked(final, len(final))
        rows = rows[order]
        names, uids = self._book.written(scene.nodes, rows)
        return SamplingDecision(
            nodes=names,
            scores=final[order],
            uids=uids,
            rows=rows,
            members=weakref.ref(scene.nodes.members),
            sampled=len(merged.nodes),
            dropped=dropped,
            answered=merged.answered,
            failed=merged.failed,
        )

    def reasons(self, scene: SamplingScene) -> Mapping[str, int]:
        """How many of all nodes here are rejected, by the words of the first filter that does; "" for those by none."""
        rows: Rows = np.flatnonzero(scene.nodes.present)
        found: dict[str, int] = {}
        for one in self._filters:
            stay = one.fits(scene, rows)
            found[one.rejects] = len(rows) - int(np.count_nonzero(stay))
            rows = rows[stay]
        return {words: number for words, number in (*found.items(), ("", len(rows))) if number}


def _resolved(merged: Merged, nodes: NodeColumns) -> tuple[Rows, NDArray[np.intp], Mapping[str, int]]:
    """The rows of the nodes that are of use, their places in the answers, and how many others there were of a kind."""
    rows = rows_of(nodes, merged.nodes)
    places: NDArray[np.intp] = dice.counting(len(rows))
    dropped: dict[str, int] = {}

    def drop(wrong: Mask, reason: str) -> None:
        nonlocal rows, places
        if wrong.any():
            dropped[reason] = int(np.count_nonzero(wrong))
            rows, places = rows[~wrong], places[~wrong]

    if not _here(merged.nodes, nodes):
        drop(rows == _FOREIGN, UNKNOWN_HERE)
    known = nodes.of_slurm("vela in slurm", lambda slurm: int(slurm is not None))[rows]
    if not known.all():
        drop(known == 0, UNKNOWN_TO_SLURM)
    uids = merged.uids
    if not (isinstance(uids, Picked) and uids.every is samples.uid(nodes).codes and _here(merged.nodes, nodes)):
        drop(_others(merged.uids, places, samples.uids(nodes, rows)), OTHER_NODE)
    if merged.repeats:
        drop(~dice.is_first(rows), TWICE)
    return rows, places, dropped


def rows_of(nodes: NodeColumns, names: Sequence[str]) -> Rows:
    """Where these nodes are; -1 for names that no node has."""
    if _here(names, nodes):
        return names.codes.astype(np.intp, copy=False)
    index = nodes.members.index
    return np.array([index.get(name, _FOREIGN) for name in names], np.intp)


def _here(names: Sequence[str], nodes: NodeColumns) -> TypeGuard[Picked]:
    """They were picked out of these very nodes, and their codes are the rows."""
    return isinstance(names, Picked) and names.values is nodes.names


def _others(said: Sequence[str], places: NDArray[np.intp], here: Picked) -> Mask:
    """Agents that know a node's uid know it of another node than we do."""
    if isinstance(said, Picked) and said.values is here.values:
        differ: Mask = said.codes[places] != here.codes
        return differ
    there = (said[place] for place in places.tolist())
    return np.array([bool(one) and one != other for one, other in zip(there, here, strict=True)], np.bool_)
