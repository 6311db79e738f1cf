"""The chain: from a translated workload to a plan, or to the reason why there is none.

1 admit    may it be submitted at all          6 subset   which groups of nodes, one after the other
2 capacity is there room where it draws from   7 express  which fields of the request come from hooks
3 sample   which nodes are looked at           8 settle   the request as Slurm can take it
4 filter   which of them cannot take it        9 attempt  which candidates now, and for how long
5 score    how good the others are            10 emit     Slurm's node fields

Hooks return data; nothing here talks to Slurm or Kubernetes. Orders, commits and verifications are asked apart.
"""

import dataclasses
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slurm_bridge import ports
from slurm_bridge.hooks import attempts, base, calls, emitter, explain
from slurm_bridge.hooks.attempts import Course, PlanState
from slurm_bridge.hooks.base import Ask, Denied, Deny, Mode, Nodes, Phase
from slurm_bridge.hooks.calls import Caller, Hook, HookFailed
from slurm_bridge.hooks.explain import Line
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.hooks.session import Layers, LogOf, Session, Stopped
from slurm_bridge.hooks.snapshot import ClusterSnapshot
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.verdict import Obstacle, Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate.translator import Translated, Value

#: The request as Slurm's partitions and resources let it be; runs after hooks have had their say about the fields.
Settle = Callable[[Translated, ClusterSnapshot], Translated | Wait | Reject]

#: Nodes to keep this workload away from, and why.
Avoid = Mapping[str, str]


class Silent:
    """A logger for nobody."""

    def trace(self, message: str, /) -> None:
        """Not kept."""

    debug = info = warning = trace


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a chain needs beside its hooks; chains of one process share it. `settle` None: requests come settled."""

    clock: ports.Clock
    dice: random.Random = dataclasses.field(default_factory=random.Random)
    observer: calls.Observer = dataclasses.field(default_factory=calls.Unobserved)
    logs: LogOf = lambda _: Silent()
    limits: attempts.Limits = attempts.DEFAULTS
    settle: Settle | None = None
    left: calls.Left = dataclasses.field(default_factory=calls.Left)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A request that is ready to be sent, and what it rests on. `excluded` are Kubernetes' names."""

    request: JobRequest
    values: tuple[Value, ...]
    state: PlanState
    course: Course
    lines: tuple[Line, ...]
    eligible: int
    excluded: Nodes

    @property
    def window_seconds(self) -> float | None:
        """How long this attempt may wait once Slurm has looked at it; None: it is the last one."""
        return self.course.attempts[self.state.attempt].window_seconds


class Chain:
    """Configured hooks, in order. Everything may be called from any thread; foreign hooks take turns."""

    def __init__(self, hooks: Iterable[Hook], around: Surroundings) -> None:
        self.hooks = tuple(hooks)
        self._around = around
        self._caller = Caller(around.clock, around.observer)
        self._layers = Layers(self.hooks, self._caller, around.logs, around.dice)
        self._emitter = emitter.Emitter()
        self._order = next(iter(self._layers.by_phase[Phase.ORDER]), None)
        self._emits = getattr(self._order.hook, "emit", "order") if self._order else "none"

    @property
    def needs(self) -> frozenset[Need]:
        """What has to be watched for these hooks."""
        return frozenset().union(*(hook.needs for hook in self.hooks))

    @property
    def abandoned(self) -> int:
        """Threads that hang in hooks of this chain, or of any before it in the same surroundings."""
        return self._around.left.count

    def see(self, views: Mapping[Need, View]) -> None:
        """Give the hooks the objects that they need; raises LookupError naming what is missing."""
        missing = sorted(need.value for need in self.needs - views.keys())
        if missing:
            raise LookupError(f"hooks need {', '.join(missing)}, which are not watched")
        self._layers.views = dict(views)

    def close(self) -> None:
        """Let the workers of foreign hooks end; after the chain was replaced."""
        for hook in self.hooks:
            if hook.worker is not None:
                hook.worker.close()

    def session(self, snapshot: ClusterSnapshot, *, now: float, mode: Mode = Mode.REAL) -> Session:
        """The context of one pass."""
        return Session(self._layers, snapshot, now=now, mode=mode)

    @property
    def orders(self) -> bool:
        """Some hook has a say in who is submitted first."""
        return self._order is not None and self._emits != "none"

    def order_key(self, workload: Workload) -> Any:
        """Sorts workloads: the order hook's key where there is one, then priority, age and uid."""
        usual = (-workload.priority, workload.created, workload.root.uid)
        rank = self._rank(workload) if self._emits != "none" else None
        return (rank is None, rank.key if rank is not None else (), usual)

    def less(self, one: Workload, other: Workload) -> bool:
        """Whether one is submitted before the other."""
        return bool(self.order_key(one) < self.order_key(other))

    def plan(
        self,
        workload: Workload,
        translated: Translated,
        snapshot: ClusterSnapshot,
        *,
        now: float,
        previous: PlanState | None = None,
        avoid: Avoid | None = None,
    ) -> Plan | Wait | Reject:
        """What to ask Slurm for; `now` is Unix time, `previous` what the owner record says of a running attempt."""
        ask = Ask(workload=workload, request=translated.request, values=translated.values, hints=translated.hints)
        with self.session(snapshot, now=now) as session:
            try:
                return self._plan(session, ask, previous, avoid or {})
            except Stopped as stopped:
                return stopped.obstacle

    def commit(self, workload: Workload, plan: Plan, snapshot: ClusterSnapshot) -> Obstacle | None:
        """The last question before the submission."""
        if not self._layers.by_phase[Phase.COMMIT]:
            return None
        ask = Ask(workload=workload, request=plan.request, values=plan.values)
        with self.session(snapshot, now=self._around.clock.wall()) as session:
            try:
                session.pass_gate(Phase.COMMIT, ask)
            except Stopped as stopped:
                return stopped.obstacle
        return None

    def verify(self, workload: Workload, nodes: Mapping[str, str], snapshot: ClusterSnapshot) -> Deny | Obstacle | None:
        """Whether pods (by uid) may run on the nodes that Slurm gave them."""
        with self.session(snapshot, now=self._around.clock.wall()) as session:
            try:
                return session.verify(workload, nodes)
            except Stopped as stopped:
                return stopped.obstacle

    def advance(self, plan: Plan, *, now: float, last_evaluation: float, updated_at: float) -> PlanState:
        """The plan's state after a look at the clock; another attempt than before asks for a new `plan` with it."""
        return attempts.advance(
            plan.course, plan.state, now=now, last_evaluation=last_evaluation, updated_at=updated_at
        )

    def _rank(self, workload: Workload) -> base.Rank | None:
        """None when there is no order hook or it failed: its failure must not stop the queue."""
        if self._order is None:
            return None
        try:
            rank: base.Rank = self._caller.call(self._order, Phase.ORDER, workload).value
        except HookFailed as failed:
            self._layers.own_log.warning(f"hook {self._order.name} failed in phase order: {failed}")
            return None
        return rank

    def _plan(self, session: Session, ask: Ask, previous: PlanState | None, avoid: Avoid) -> Plan:
        session.pass_gate(Phase.ADMIT, ask)
        session.pass_gate(Phase.CAPACITY, ask)
        eligible = self._eligible(session, ask, avoid)
        scores = session.score_nodes(ask, eligible)
        sets = session.subset_nodes(ask, ask.workload.pods, eligible)
        ask = self._niced(self._settle(session.express(ask), session.snapshot))
        reach = self._reach(session, ask.request, eligible)
        within = [one if one.nodes is reach else dataclasses.replace(one, nodes=one.nodes & reach) for one in sets]
        if not any(one.nodes for one in within):
            raise Stopped(Wait(reason=explain.UNSCHEDULABLE, message="unschedulable on cluster"))
        course = attempts.course(within, scores, reach, ask.request.maximum_nodes or 1, self._around.limits)
        return self._emit(session, ask, reach, attempts.resume(course, previous, session.now), course)

    def _eligible(self, session: Session, ask: Ask, avoid: Avoid) -> Nodes:
        nodes = session.sample_nodes(ask, session.snapshot.names)
        if avoid:
            denied = Denied(nodes={name: (why,) for name, why in avoid.items()})
            nodes = session.deny("avoided", denied, nodes)
        nodes = session.filter_nodes(ask, nodes)
        if not nodes:
            raise Stopped(self._nowhere(session))
        return nodes

    def _settle(self, ask: Ask, snapshot: ClusterSnapshot) -> Ask:
        if self._around.settle is None:
            return ask
        translated = Translated(request=ask.request, values=ask.values, hints=ask.hints)
        settled = self._around.settle(translated, snapshot)
        if isinstance(settled, Wait | Reject):
            raise Stopped(settled)
        return dataclasses.replace(ask, request=settled.request, values=settled.values)

    def _niced(self, ask: Ask) -> Ask:
        """The order hook's wish as Slurm's `nice`, where it says so; never below 0, which only operators may."""
        rank = self._rank(ask.workload) if self._emits == "nice" else None
        if rank is None or rank.nice is None:
            return ask
        return dataclasses.replace(ask, request=dataclasses.replace(ask.request, nice=max(0, rank.nice)))

    def _reach(self, session: Session, request: JobRequest, eligible: Nodes) -> Nodes:
        """The eligible nodes that the request's partitions have."""
        reach = self._emitter.reach(request, session.snapshot, eligible)
        if not reach:
            where = f"Slurm partition {request.partition}" if request.partition else "any Slurm partition"
            session.denied.append(Denied.because(f"node(s) are not in {where}", eligible))
            raise Stopped(self._nowhere(session))
        return reach

    def _emit(self, session: Session, ask: Ask, reach: Nodes, state: PlanState, course: Course) -> Plan:
        emission = self._emitter.emit(ask.request, session.snapshot, reach, course.attempts[state.attempt].nodes)
        return Plan(
            request=emission.request,
            values=ask.values,
            state=state,
            course=course,
            lines=tuple(session.lines),
            eligible=len(reach),
            excluded=emission.excluded,
        )

    @staticmethod
    def _nowhere(session: Session) -> Wait:
        message = explain.unavailable(session.snapshot.names, session.denied)
        return Wait(reason=explain.UNSCHEDULABLE, message=message)
