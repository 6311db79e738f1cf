"""The hook "kai": a workload is tried in one domain of a topology after the other, as its annotations ask for."""

import collections
import functools
from collections.abc import Mapping, Sequence
from typing import ClassVar

from slurm_bridge.cluster.columns import NodeColumns, Numbers
from slurm_bridge.cluster.recent_answers import Recent
from slurm_bridge.families.kai import demands, files, memo, wishes
from slurm_bridge.families.kai.choice import Choice, Chooser
from slurm_bridge.families.kai.memo import Way, WishMemo
from slurm_bridge.families.kai.nodesets import Found
from slurm_bridge.families.kai.options import KaiOptions
from slurm_bridge.families.kai.present import Forest, PresentTopology, Trees
from slurm_bridge.families.kai.wishes import Wishes
from slurm_bridge.hooks.base import GO, Admit, Ask, Deny, Mode, Nodes, NodeSet, Scores, Session, Subsets, Tiers
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate import annotations

#: Of so many workloads it is remembered what they ask for.
MOST_READ = 4096

#: So many levels have their last scores remembered.
MOST_SCORED = 4

#: Scores are shown, and lead other hooks' tiers; the sets themselves are the tiers of this one.
_SHOWN = Tiers(count=1)
_NO_SCORES = Scores(nodes={})
_NOT_ASKED = Subsets(relevant=False, everywhere=True)


class Kai:
    """`admit` reads the annotations, `subset` divides the nodes, `score` says which domain fills up first.

    `parts_of` tells apart the parts that have domains of their own. `verify` looks whether the nodes that Slurm gave
    are in one domain of each required level: a plan that was made without this hook, or before a node was moved, is not
    carried out.
    """

    name = "kai"
    Options: ClassVar = KaiOptions

    def __init__(self, options: KaiOptions) -> None:
        self._options = options
        places = [PresentTopology.of(one, files.copy_of(one)) for one in options.topologies]
        self._topologies = {one.topology.name: one.topology for one in places}
        self._forest = Forest(places)
        self._read: Recent[str, tuple[Workload, Wishes]] = Recent(MOST_READ)
        self._scored: Recent[str, tuple[Found, Numbers]] = Recent(MOST_SCORED)

    def admit(self, _session: Session, ask: Ask) -> Admit | Reject:
        """What cannot be understood is refused: a workload that asked for one rack must not be spread over two."""
        problems = self._wishes(ask.workload).problems
        return Reject(reason="InvalidTopology", message=annotations.together(problems)) if problems else GO

    def score(self, session: Session, ask: Ask, nodes: Nodes) -> Scores:
        """By the preferred level, where it is all pods' and no domain of it can take them alone: more of them do."""
        wish = self._wishes(ask.workload).whole
        if wish is None or not wish.constraint.preferred:
            return _NO_SCORES
        asked, trees = demands.asked(session.snapshot, ask, ask.workload.pods), self._trees(session)
        found = Chooser(trees, asked, self._options.candidates).found(wish, nodes)
        scores = self._scores(session.columns, found, wish.constraint.preferred)
        depth = self._topologies[wish.constraint.topology or ""].depth(wish.constraint.preferred)
        if not scores or any(len(one.domain) == depth for one in found.sets):
            return Scores(nodes=scores, tiers=_SHOWN)
        first = demands.enough(session.columns, trees.free[wish.constraint.topology or ""].stock, scores, asked)
        return Scores(nodes=scores, tiers=Tiers(count=2, first=first))

    def subset(self, session: Session, ask: Ask, tasks: tuple[Pod, ...], nodes: Nodes) -> Subsets:
        """The domains that are tried, the same ones in the same order for as long as the job waits."""
        wished = self._wishes(ask.workload)
        if wished.problems:
            return Subsets(note=annotations.together(wished.problems))
        if not wished.every:
            return _NOT_ASKED
        asked = demands.asked(session.snapshot, ask, tasks)
        chooser = Chooser(self._trees(session), asked, self._options.candidates)
        tag = memo.key([repr(one.constraint) for one in wished.every])
        before = WishMemo.parse(session.memo, tag) if session.placed and session.mode is Mode.REAL else None
        found = chooser.fresh(wished, nodes)
        for error in found.errors:
            session.log.debug(error)
        kept = chooser.again(wished, nodes, before.ways) if before else ()
        # What is only preferred ends in all nodes; a course that began again would never come there.
        ends = before is not None and bool(wished.required) and _another(before, found.choices, session.attempt)
        if before is None or not kept or ends:
            turn, roomy = before.turn + 1 if before is not None else 0, sum(one.roomy for one in found.choices)
            before = WishMemo(tag=tag, ways=tuple(map(_way, found.choices)), roomy=roomy, turn=turn).bounded
            # Without room in the record for any of them the sets are chosen anew in each pass.
            kept = found.choices[: len(before.ways)] or found.choices
        return Subsets(
            sets=tuple(_set(one, wished, ask) for one in kept),
            note="; ".join(found.errors),
            wanted=tuple(wishes.spoken(wished.required)),
            memo=before.text,
            # A workload that waits for one of several domains is tried in another that has room by then.
            moving=bool(wished.required) and len(kept) > 1,
        )

    def parts_of(self, workload: Workload) -> Mapping[str, str]:
        """Each part with a wish is a component of the job, if the level of one of them is required."""
        wished = self._wishes(workload)
        found = wished.innermost if any(one.constraint.required for one in wished.parts) else {}
        several = len({*found.values()}) > 1 or len(found) < len(workload.pods)
        return found if several else {}

    def verify(self, session: Session, workload: Workload, nodes: Mapping[str, str]) -> Admit | Deny:
        required = self._wishes(workload).required
        if not required:
            return GO
        trees, active_of = self._trees(session).free, demands.active(session.columns, workload)
        wrong: dict[str, str] = {}
        for wish in required:
            active = active_of(wish)
            tree = trees[wish.constraint.topology or ""]
            depth = tree.topology.depth(wish.constraint.required or "")
            names = [name for pod in wish.pods if (name := nodes.get(pod.uid)) is not None]
            domains = {name: tree.domain(name) for name in (*names, *active)}
            placed = {name: domain[:depth] if domain is not None else None for name, domain in domains.items()}
            # Of the domains that members run in already each is right, and else any: the one with most of the nodes.
            held = {placed[name] for name in active}
            here = [domain for name in names if (domain := placed[name]) and (not active or domain in held)]
            meant = collections.Counter(here).most_common(1)
            wrong |= {name: wish.spoken for name in names if not meant or placed[name] != meant[0][0]}
        if not wrong:
            return GO
        said = "; ".join(dict.fromkeys(wrong.values()))
        told = f"nodes that Slurm allocated are not in one domain with the others: {', '.join(sorted(wrong))} ({said})"
        return Deny(nodes=frozenset(wrong), message=told)

    def _wishes(self, workload: Workload) -> Wishes:
        known = self._read.get(workload.root.key)
        if known is not None and known[0] is workload:
            return known[1]
        read = wishes.read(workload, self._topologies, self._options.default)
        self._read.put(workload.root.key, (workload, read))
        return read

    def _scores(self, columns: NodeColumns, found: Found, level: str) -> Numbers:
        """In a burst of equal workloads the same ones again: there may be a score for each of many nodes."""
        known = self._scored.get(level)
        if known is not None and known[0].tree is found.tree and known[0].cut is found.cut:
            return known[1]
        scores = demands.by_row(columns, found.scores(level))
        self._scored.put(level, (found, scores))
        return scores

    def _trees(self, session: Session) -> Trees:
        return self._forest.at(session.columns, keep=session.mode is Mode.REAL)


def _another(before: WishMemo, now: Sequence[Choice], attempt: int) -> bool:
    """All sets were tried, and others have room than those that had some then, or seemed to."""
    tried, roomy = set(before.ways[: before.roomy]), {_way(one) for one in now if one.roomy and one.name}
    return attempt >= len(before.ways) and bool(roomy) and roomy != tried


def _way(one: Choice) -> Way:
    return Way(keys=tuple(map(memo.key, one.places)), apart=bool(one.parts))


def _set(one: Choice, wished: Wishes, ask: Ask) -> NodeSet:
    """With parts only where a job can have them: each shape has the nodes that all parts of its pods may have."""
    required = bool(wished.required)
    if not one.parts:
        return NodeSet(nodes=one.nodes, name=one.name, required=required)
    nodes_of, innermost = dict(one.parts), wished.innermost
    parts = tuple(
        functools.reduce(
            frozenset.intersection,
            (nodes_of.get(part, one.nodes) for part in {innermost.get(pod.uid, "") for pod in shape.pods}),
            one.nodes,
        )
        for shape in ask.shapes
    )
    return NodeSet(nodes=one.nodes, name=one.name, required=required, parts=parts)
