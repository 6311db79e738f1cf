"""The hook "vela": Vela's phases as phases of the chain.

    order   the sort plugin
    sample  nodes that were sampled beside the passes; Wait while they are, Sample once they are there
    score   the final scores of the decision
    subset  the best of them as candidates, which the chain tries in Slurm one after the other (MultiBind)
    verify  the conflict check

The attempt in the owner record says how far MultiBind has come. Once all candidates were tried nothing is sampled any
more: the last attempt may use every node, also after a restart, when nothing of all this is remembered.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import ClassVar

from slurm_bridge.cluster.room import NodeRooms
from slurm_bridge.families.vela import candidates, commit, conflict, decision, note, sample_order, samplers, smart
from slurm_bridge.families.vela.agents import Patience
from slurm_bridge.families.vela.cases import Cases, Follows, Pace, SamplingCase, Seen, Turn
from slurm_bridge.families.vela.counts import HOOK
from slurm_bridge.families.vela.decision import SamplingDecision
from slurm_bridge.families.vela.office import AgentsUnavailable, Outcome, SamplingQuestion, SamplingService
from slurm_bridge.families.vela.options import VelaOptions
from slurm_bridge.hooks.base import (
    GO,
    Admit,
    Ask,
    Deny,
    Mode,
    Nodes,
    NodeSet,
    Rank,
    Sample,
    Scores,
    Session,
    Subsets,
)
from slurm_bridge.hooks.emitter import Emitter
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Workload

#: One shape of a workload: the pod that stands for it, and how many there are.
Shaped = tuple[Pod, int]


class Vela:
    """See above. `options` are checked, `services` is where sampling happens."""

    Options: ClassVar = VelaOptions
    services: ClassVar = True

    def __init__(self, options: VelaOptions, services: HookServices) -> None:
        self.emit = options.emit
        self._options = options
        self._services = services
        self._sort = sample_order.sort(options.sort[0])
        if options.emit != "none":
            # Without it the phase is left to another hook.
            self.order = self._rank
        self._cases = Cases()
        self._pace = Pace(
            max_retries=options.max_retries,
            first_seconds=options.backoff_seconds,
            most_seconds=options.max_backoff_seconds,
        )
        self._patience = Patience(options.failures, options.pause_seconds, self._came_back)
        self._sampler = samplers.sampler(options, services, self._patience)
        self._office = SamplingService(options, services, self._sampler, self._told)
        self._numbers = itertools.count(1)
        #: The number of the question that a pass asks just now; the lock of the cases protects it.
        self._asking: int | None = None
        #: What the decision does not compare the conflict check does not compare either.
        self._ignored = frozenset[str]().union(
            *(one.args.get("ignored_resources", ()) for one in options.decision.filters)
        )
        self._emitter = Emitter()
        self._rooms = NodeRooms()

    def close(self) -> None:
        self._office.close()

    def forget(self, workload: WorkloadKey) -> None:
        self._cases.forget(workload)

    def _rank(self, workload: Workload) -> Rank:
        return Rank(key=self._sort.key(workload.priority, workload.created))

    def sample(self, session: Session, ask: Ask, nodes: Nodes) -> Sample | Wait:
        case = self._cases.of(ask.workload.root.key)
        with self._cases.lock:
            if session.attempt >= (len(case.candidates) or self._options.candidates):
                return Sample(nodes=nodes, note="every candidate was tried: all nodes are looked at")
            if session.mode is Mode.SIMULATED:
                # A simulation does not wait: it looks at what is there, and changes nothing.
                turn = case.turns.get(_shape(ask))
                if turn is None or turn.decision is None:
                    return Sample(nodes=nodes, note="nothing was sampled yet: all nodes are looked at")
                if turn.whole:
                    return Sample(nodes=nodes, note=note.WIDENED)
                return Sample(nodes=case.sampled(session.columns), note=note.sampled(turn.decision))
            return self._sample(session, case, ask, nodes)

    def score(self, session: Session, ask: Ask, _nodes: Nodes) -> Scores:
        """Of several shapes that can use a node the one to which it is worth most counts."""
        case = self._cases.get(ask.workload.root.key)
        if case is None:
            return decision.UNRATED
        with self._cases.lock:
            if session.mode is Mode.REAL:
                case.reached()
            turns = [case.turns.get(pod.uid) for pod, _ in _shapes(ask)]
            decisions = [one for turn in turns if turn is not None and (one := turn.decision) is not None]
        return decision.rated(session.columns, decisions)

    def subset(self, session: Session, ask: Ask, _tasks: tuple[Pod, ...], nodes: Nodes) -> Subsets:
        case = self._cases.of(ask.workload.root.key)
        with self._cases.lock:
            sets = self._candidates(session, case, ask, nodes)
            if not sets and any(turn.decision is not None and not turn.whole for turn in case.turns.values()):
                # What is left of the sample does not have a node for each pod: all of it is tried, and then all nodes.
                sets = (nodes,)
            if session.mode is Mode.REAL:
                case.candidates = sets
        if not sets:
            return Subsets(relevant=False)
        return Subsets(sets=tuple(NodeSet(nodes=one, name=f"candidate {place}") for place, one in enumerate(sets, 1)))

    def verify(self, session: Session, workload: Workload, nodes: Mapping[str, str]) -> Admit | Deny:
        case = self._cases.get(workload.root.key)
        allocated = frozenset(nodes.values())
        # Without the lock: a binding does not wait for samples of others.
        last_first = case.decisions[::-1] if case is not None else []
        uids = {name: next(filter(None, (one.uid_of(name) for one in last_first)), "") for name in allocated}
        wrong = conflict.conflicts(workload.pods, nodes, session.snapshot, uids, self._ignored)
        if not wrong:
            self._count_bound(case, allocated)
            return GO
        self._services.counters.happened(HOOK, "conflicts")
        if case is not None:
            with self._cases.lock:
                case.refused()
        told = "; ".join(f"{name}: {problem}" for name, problem in sorted(wrong.items()))
        return Deny(nodes=frozenset(wrong), message=f"nodes that Slurm allocated cannot be used: {told}")

    def _sample(self, session: Session, case: SamplingCase, ask: Ask, nodes: Nodes) -> Sample | Wait:
        shape, now, seen = _shape(ask), session.now, (session.snapshot.version, self._patience.version)
        case.placed = session.placed
        follows = case.follows(shape, now, seen)
        if follows is Follows.ASK and case.in_vain(shape, now, seen, self._pace):
            # What the chain had of it was in vain, and it was the last try.
            self._services.counters.happened(HOOK, "parked")
            follows = case.follows(shape, now, seen)
        elif follows is Follows.ASK:
            if not self._ask(session, case, ask, seen):
                return note.crowded()
            follows = case.follows(shape, now, seen)
        turn = case.turns[shape]
        if follows is Follows.ALL:
            case.widened(shape)
            again = case.handed(shape, now, seen, self._pace)
            return Sample(nodes=nodes, note=note.WIDENED, retry_after=again)
        if follows is Follows.USE and (decision := turn.decision) is not None:
            again = case.handed(shape, now, seen, self._pace)
            return Sample(nodes=case.sampled(session.columns), note=note.sampled(decision), retry_after=again)
        if case.parked and turn.decision is not None:
            # Agents have nodes for it, and other hooks exclude them: these say why.
            after, why = max(0.0, turn.due - now), note.given_up(self._pace)
            return Sample(nodes=nodes, note=note.WIDENED, retry_after=after, given_up=why)
        case.withdrawn()
        return note.waiting(case, turn, now, self._pace)

    def _ask(self, session: Session, case: SamplingCase, ask: Ask, seen: Seen) -> bool:
        workload = ask.workload
        question = SamplingQuestion(
            workload=workload.root.key,
            pod=workload.lead,
            priority=workload.priority,
            created=workload.created,
            nodes_bp=self._nodes_bp(len(session.snapshot.nodes), len(workload.pods)),
            number=next(self._numbers),
            partition=ask.request.partition,
        )
        before = case.turns.get(_shape(ask))
        case.asked(_shape(ask), question.number, session.now, seen)
        # An answer that comes at once wakes no workload; one from another thread waits until the number is forgotten.
        self._asking = question.number
        try:
            if self._office.ask(question):
                return True
        finally:
            self._asking = None
        del case.turns[_shape(ask)]
        if before is not None:
            case.turns[_shape(ask)] = before
        return False

    def _told(self, question: SamplingQuestion, outcome: Outcome) -> None:
        """From any thread. An answer to an older question than the last one is not looked at."""
        with self._cases.lock:
            at_once = self._asking == question.number
            self._keep(question, outcome)
        if not at_once:
            self._services.wake(question.workload)

    def _keep(self, question: SamplingQuestion, outcome: Outcome) -> None:
        shape, case = question.pod.uid, self._cases.get(question.workload)
        turn = case.turns.get(shape) if case is not None else None
        if case is None or turn is None or turn.number != question.number:
            return
        case.told(shape, outcome, self._services.clock.wall(), self._pace)
        self._cases.kept(len(outcome.nodes) if isinstance(outcome, SamplingDecision) else 0)
        if not isinstance(outcome, SamplingDecision):
            what = "agents-unavailable" if isinstance(outcome, AgentsUnavailable) else "unschedulable"
            self._services.counters.happened(HOOK, what)
        if case.parked:
            self._services.counters.happened(HOOK, "parked")

    def _count_bound(self, case: SamplingCase | None, allocated: Nodes) -> None:
        """Which candidate it became: the first one, a later one, or none of them."""
        bound = commit.multibind(case.candidates if case else (), allocated.issubset, self._options.candidates)
        if bound.bound is None:
            self._services.counters.happened(HOOK, "bound-elsewhere")
            return
        self._services.counters.happened(HOOK, "bound-to-candidate")
        self._services.counters.happened(HOOK, "commit-retries", bound.retries)

    def _candidates(self, session: Session, case: SamplingCase, ask: Ask, nodes: Nodes) -> tuple[Nodes, ...]:
        shapes = _shapes(ask)
        ranked = [
            (self._best(session, turn, decision, ask, shaped, nodes), shaped[1])
            for shaped in shapes
            if (turn := case.turns.get(shaped[0].uid)) is not None and (decision := turn.decision) is not None
        ]
        if len(ranked) == len(shapes):
            return candidates.candidates(ranked, nodes, self._options.candidates)
        if case.candidates:
            return case.candidates
        inside = self._emitter.reach(ask.request, session.snapshot, nodes)
        return candidates.any_of(inside, len(ask.workload.pods), self._options.candidates)

    def _best(
        self, session: Session, turn: Turn, decision: SamplingDecision, ask: Ask, shaped: Shaped, nodes: Nodes
    ) -> Sequence[str]:
        """The nodes for all candidates. Which of them have room is looked at until there is a job, and then stays."""
        columns, (pod, pods) = session.columns, shaped
        roomy, rows = turn.roomy, decision.rows_in(columns)
        there = candidates.among(rows, columns.mask(nodes))
        if roomy is None or not session.placed:
            roomy = there & self._rooms.among(columns, rows, pod, ask.request)
        if session.mode is Mode.REAL:
            turn.roomy = roomy
        most = candidates.wanted(roomy, pods, self._options.candidates)
        return candidates.best(rows, columns, there, roomy, most)

    def _nodes_bp(self, nodes: int, pods: int) -> int:
        """A group needs nodes for all of its candidates, however few of all that is; one pod takes what is usual."""
        if pods == 1 or not nodes:
            return self._options.nodes_bp
        asked = nodes * self._sampler.share
        return min(
            smart.ALL_BP, max(self._options.nodes_bp, -int(-smart.ALL_BP * pods * self._options.candidates // asked))
        )

    def _came_back(self) -> None:
        """An agent that had failed answers again: workloads without a node may find one there."""
        for workload in self._cases.waiting(lambda case: case.parked or case.troubles > 0):
            self._services.wake(workload)


def _shapes(ask: Ask) -> list[Shaped]:
    shapes = [(shape.pods[0], len(shape.pods)) for shape in ask.shapes]
    return shapes or [(ask.workload.lead, len(ask.workload.pods))]


def _shape(ask: Ask) -> str:
    """The pod that stands for the shape that is asked about."""
    return ask.workload.lead.uid
