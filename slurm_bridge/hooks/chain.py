"""The chain: from a translated workload to a plan, or to the reason why there is none.

1 admit    may it be submitted at all          6 settle   the request as Slurm can take it
2 capacity is there room where it draws from   7 score    how good the nodes are that are large enough for it
3 sample   which nodes are looked at           8 subset   which groups of nodes, one after the other
4 filter   which of them cannot take it        9 attempt  which candidates now, and for how long
5 express  which fields of the request come   10 emit     Slurm's node fields
           from hooks

Between 1 and 2 it waits if no hook honours what its pods ask of their place (`honoured_demands`).
Where the pods of a workload differ, 3 and 4 are asked for each kind of them, and everything else for all together.
Hooks return data; nothing here talks to Slurm or Kubernetes. Orders, commits and verifications are asked apart.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slurm_bridge.cluster import fewest
from slurm_bridge.cluster.fewest import Fewest
from slurm_bridge.cluster.room import NodeRooms
from slurm_bridge.cluster.rules.devices import DeviceSight
from slurm_bridge.cluster.rules.volumes import Storage
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks import (
    attempts,
    base,
    component_nodes,
    component_shares,
    emitter,
    explain,
    honoured_demands,
    needs,
    plans,
    usable_nodes,
)
from slurm_bridge.hooks.attempts import Course, PlanState
from slurm_bridge.hooks.base import Ask, Deny, HookPhase, Mode
from slurm_bridge.hooks.calls import Hook, HookCaller, HookFailed
from slurm_bridge.hooks.evictions import Evicts, Preempts
from slurm_bridge.hooks.lifecycle import ActiveUsage, Reserves
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.hooks.pass_context import Layers, Stopped
from slurm_bridge.hooks.plan_cache import PlanCache
from slurm_bridge.hooks.plans import Plan
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.hooks.session import Session
from slurm_bridge.hooks.usable_nodes import Avoid, FilterResult, UsableNodes
from slurm_bridge.model.features import Feature
from slurm_bridge.model.job import Gres, JobRequest, Memory
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Obstacle, Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime import frozen_records
from slurm_bridge.translate.translator import Translated

__all__ = ["Chain", "Plan", "asked"]


class Chain:
    """Configured hooks, in order. Everything may be called from any thread; foreign hooks take turns."""

    def __init__(self, hooks: Iterable[Hook], around: ChainServices) -> None:
        self.hooks = tuple(hooks)
        self._around = around
        self._caller = HookCaller(around.clock, around.observer)
        self._layers = Layers(
            self.hooks, self._caller, around.logs, around.dice, around.shows_scores, strict=around.strict
        )
        self._layers.keeps_lines = around.keeps_lines
        self._emitter = emitter.Emitter()
        self._plans = PlanCache(steady=all(one.steady for one in self.hooks))
        self._fewest = Fewest()
        self._rooms = NodeRooms()
        self._order = next(iter(self._layers.by_phase[HookPhase.ORDER]), None)
        self._emits = getattr(self._order.hook, "emit", "order") if self._order else "none"
        self._keeps_exclusive = all(one.keeps_exclusive for one in self._layers.by_phase[HookPhase.EXPRESS])
        self._gives_devices = next((one.can.gives_devices for one in self.hooks if one.can.gives_devices), None)
        #: The hook that says which workloads have to leave; None where there is none.
        self.evicts: Evicts | None = next((one.can.evicts for one in self.hooks if one.can.evicts), None)
        #: The hook that says which pods leave for a workload of a higher priority, likewise.
        self.preempts: Preempts | None = next((one.can.preempts for one in self.hooks if one.can.preempts), None)
        #: The hook that says for which workloads nodes are kept, likewise.
        self.reserves: Reserves | None = next((one.can.reserves for one in self.hooks if one.can.reserves), None)

    @property
    def needs(self) -> frozenset[Need]:
        """What has to be watched for these hooks."""
        return frozenset().union(*(hook.needs for hook in self.hooks))

    @property
    def honoured(self) -> frozenset[Feature]:
        """What pods may ask for because some hook sees to it."""
        return self._layers.honoured

    @property
    def annotations(self) -> frozenset[str]:
        """Keys of annotations that these hooks read, however long their values are."""
        return frozenset[str]().union(*(hook.annotations for hook in self.hooks))

    @property
    def abandoned(self) -> int:
        """Threads that hang in hooks of this chain, or of any before it in the same surroundings."""
        return self._around.left.count

    @property
    def dead(self) -> tuple[str, ...]:
        """Threads of hooks that have ended without being told to."""
        having = (hook.can.has_threads for hook in self.hooks)
        return tuple(name for one in having if one is not None for name in one.dead)

    @property
    def storage(self) -> Storage | None:
        """Claims and volumes as last heard; None where no hook looks at claims that wait for their first pod."""
        honoured = Feature.WAITING_CLAIMS in self._layers.honoured
        return needs.storage(self._layers.views.get) if honoured else None

    def devices(self, namespace: str = "") -> DeviceSight | None:
        """Devices and the claims to them as last heard; None where no hook honours ResourceClaims.

        What pods of a namespace ask for is compared at its cost.
        """
        hook = self._gives_devices
        return hook.devices(self._layers.views, namespace) if hook is not None else None

    def see(self, views: Mapping[Need, View]) -> None:
        """Give the hooks the objects that they need; raises LookupError naming what is missing."""
        missing = sorted(need.value for need in self.needs - views.keys())
        if missing:
            raise LookupError(f"hooks need {', '.join(missing)}, which are not watched")
        self._layers.views = dict(views)

    @property
    def restores(self) -> bool:
        """Some hook counts what workloads keep."""
        return any(hook.can.restores is not None for hook in self.hooks)

    def restore(self, held: Sequence[ActiveUsage], *, fresh: bool) -> None:
        """Tell the hooks what workloads keep, before they are asked anything; `fresh`: nothing else counts."""
        for hook in self.hooks:
            try:
                hook.restored(held, self._layers.views, fresh=fresh)
            except Exception as error:  # noqa: BLE001 - a defect of one hook must not keep the daemon from starting
                self._layers.own_log.warning(f"hook {hook.name} was not restored: {type(error).__name__}: {error}")

    def parts_of(self, workload: Workload) -> Mapping[str, str]:
        """The parts that have to have nodes of their own, by the uids of their pods; the first hook with some says."""
        for hook in self.hooks:
            try:
                if hook.can.parts is not None and (found := hook.can.parts.parts_of(workload)):
                    return found
            except Exception as error:  # noqa: BLE001 - a defect of one hook must not stop the workload
                text = f"hook {hook.name}: parts_of failed for {workload.root}: {type(error).__name__}: {error}"
                self._layers.own_log.warning(text)
        return {}

    def devices_of(self, workload: Workload, partition: str | None) -> Mapping[str, tuple[Gres, ...]]:
        """What the ResourceClaims of pods, by their uids, ask Slurm for in this partition."""
        if self._gives_devices is None:
            return {}
        eligible = functools.partial(self._eligible, workload, partition)
        return self._gives_devices.devices_of(workload, self._layers.views, eligible)

    def class_gres(self) -> Mapping[str, str]:
        """Extended resources behind which DeviceClasses are, and the GRES that one of each is in Slurm."""
        hook = self._gives_devices
        return hook.class_gres(self._layers.views) if hook is not None and self._layers.views else {}

    def offers(self) -> Mapping[str, Mapping[str, int]]:
        """By the name of the node, what it has of these resources."""
        hook = self._gives_devices
        return hook.offers(self._layers.views) if hook is not None and self._layers.views else {}

    def _eligible(self, workload: Workload, partition: str | None, pod: Pod) -> base.Nodes:
        """The nodes that can take such a pod, by hook eligibility: other hooks need the request."""
        snapshot, hook = self._around.seen(), next(one for one in self.hooks if one.name == "eligibility")
        workload, root = dataclasses.replace(workload, pods=(pod,)), workload.root
        owner = Owner(cluster="", kind=root.kind, namespace=root.namespace, name=root.name, uid=root.uid)
        request = JobRequest(name=root.name, owner=owner, partition=partition, memory=Memory(mib=0))
        nodes = snapshot.names
        with self.session(snapshot, now=self._around.clock.wall()) as session:
            ask = Ask(workload=workload, request=request)
            try:
                nodes = nodes.difference(self._caller.call(hook, HookPhase.FILTER, session, ask, nodes).value.nodes)
            except HookFailed as failed:
                # What is wrong with the pod is told when the hook is asked about the request.
                self._layers.own_log.debug(f"nodes for the devices of {workload.root}: {failed}")
        return self._emitter.reach(request, snapshot, nodes)

    def close(self) -> None:
        """Let workers and whatever hooks do beside the passes end; after the chain was replaced."""
        for hook in self.hooks:
            try:
                hook.close()
            except Exception as error:  # noqa: BLE001 - foreign code; the others have to be closed all the same
                self._layers.own_log.warning(f"hook {hook.name} was not closed: {type(error).__name__}: {error}")

    def session(
        self,
        snapshot: ClusterSnapshot,
        *,
        now: float,
        mode: Mode = Mode.REAL,
        previous: PlanState | None = None,
    ) -> Session:
        """The context of one pass; `previous` is the plan of the job that the workload has."""
        attempt = previous.attempt if previous is not None else None
        memos = attempts.noted(previous.memo) if previous is not None else {}
        return Session(self._layers, snapshot, now=now, mode=mode, attempt=attempt, memos=memos)

    @property
    def orders(self) -> bool:
        """Some hook decides which workload is submitted first."""
        return self._order is not None and self._emits != "none"

    def order_key(self, workload: Workload) -> Any:
        """Sorts workloads: the order hook's key where there is one, then priority, age and uid."""
        usual = (-workload.priority, workload.created, workload.root.uid)
        rank = self._rank(workload) if self._emits != "none" else None
        return (rank is None, ComparableKey(rank.key if rank is not None else ()), usual)

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
        alike = previous is None and not avoid
        if alike and (known := self._plans.get(snapshot, translated, now)) is not None:
            return known
        ask = asked(workload, translated)
        with self.session(snapshot, now=now, previous=previous) as session:
            try:
                planned = self._plan(session, ask, translated, previous, avoid or {})
            except Stopped as stopped:
                # Where only some nodes were looked at, another look may find others although nothing changes.
                obstacle = stopped.obstacle
                if not isinstance(obstacle, Wait) or obstacle.reason != explain.UNSCHEDULABLE:
                    return obstacle
                after = session.retry_after if obstacle.retry_after is None else obstacle.retry_after
                obstacle = dataclasses.replace(obstacle, retry_after=after, moving=obstacle.moving or session.moving)
                if not session.given_up:
                    return obstacle
                message = f"{obstacle.message.removesuffix('.')}; {session.given_up}"
                return dataclasses.replace(obstacle, reason=explain.FAILED, message=message, warning=True)
        if alike:
            self._plans.keep(snapshot, translated, planned)
        return planned

    def unhonoured(self, translated: Translated) -> Wait | None:
        """Why pods that ask for this may not have a job, whatever else hooks say of them."""
        if not translated.demands:
            return None
        lacking = honoured_demands.missing(translated.demands, self._layers.honoured, self._layers.views)
        return honoured_demands.obstacle(lacking, strict=self._layers.strict)

    def commit(self, workload: Workload, plan: Plan, snapshot: ClusterSnapshot) -> Obstacle | None:
        """The last question before the submission."""
        if not self._layers.by_phase[HookPhase.COMMIT]:
            return None
        ask = Ask(workload=workload, request=plan.request, values=plan.values, hints=plan.hints, shapes=plan.shapes)
        with self.session(snapshot, now=self._around.clock.wall()) as session:
            try:
                session.pass_gate(HookPhase.COMMIT, ask)
            except Stopped as stopped:
                return stopped.obstacle
        return None

    def exclusive(self, workload: Workload, translated: Translated, snapshot: ClusterSnapshot) -> bool:
        """Whether its job has nodes for itself, with the fields that hooks give it, where none has anything against it.

        Every binding asks; hooks are asked only where one of them may say anything about it.
        """
        if self._keeps_exclusive:
            return translated.request.exclusive
        with self.session(snapshot, now=self._around.clock.wall(), mode=Mode.SIMULATED) as session:
            try:
                return session.express(asked(workload, translated)).request.exclusive
            except Stopped:
                return translated.request.exclusive

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
            rank: base.Rank = self._caller.call(self._order, HookPhase.ORDER, workload).value
        except HookFailed as failed:
            self._layers.own_log.warning(f"hook {self._order.name} failed in phase order: {failed}")
            return None
        return rank

    def _plan(
        self, session: Session, ask: Ask, translated: Translated, previous: PlanState | None, avoid: Avoid
    ) -> Plan:
        session.pass_gate(HookPhase.ADMIT, ask)
        ignored = session.pass_demands(ask)
        session.pass_gate(HookPhase.CAPACITY, ask)
        within, settled, reached, course = self._course(session, ask, translated, previous, avoid)
        if session.partial and (why := _unlike(within, course, previous)):
            session.look_at_all(why)
            within, settled, reached, course = self._course(session, ask, translated, previous, avoid)
        if not within:
            # In the workload's own words; sets and domains are nothing that its user knows of.
            wanted = f": {'; '.join(session.wanted)}" if session.wanted else ""
            raise Stopped(Wait(reason=explain.UNSCHEDULABLE, message=f"unschedulable on cluster{wanted}"))
        shares = functools.partial(
            component_shares.of_attempt, session.columns, settled, ask.workload.pods, reached.parts
        )
        if settled.request.components:
            # Whether it has room for all of its components is looked at again and again.
            session.shifting = True
            course, previous = component_shares.with_shares(
                course, previous, shares, self._around.limits.window_seconds
            )
        state = attempts.resume(course, previous, session.now, attempts.memo(session.memos))
        if settled.request.components:
            course = component_shares.begun(course, state, shares)
        elif any(one.required for one in within):
            course, state = component_shares.with_room(course, state, shares, session.now)
        if session.partial and state.attempt and course.attempts[state.attempt].nodes is None:
            # Sets may be tried that the hook behind the sample does not count: some were too small for the job.
            session.look_at_all("every set was tried")
            settled, _, _, reached = self._looked(session, ask, translated, avoid)
        planned = self._emit(session, settled, reached, state, course)
        return dataclasses.replace(planned, ignored=ignored) if ignored else planned

    def _course(
        self, session: Session, ask: Ask, translated: Translated, previous: PlanState | None, avoid: Avoid
    ) -> tuple[Sequence[base.NodeSet], Translated, UsableNodes, Course]:
        """The sets on which it could start, the request, the nodes that it can have, and how the sets are tried."""
        settled, rated, sets, reached = self._looked(session, ask, translated, avoid)
        within = usable_nodes.within(sets, reached)
        if sets and not within and not (session.partial or any(one.required for one in sets)):
            within = [base.NodeSet(nodes=reached.every)]
        ranking = plans.ranked(session, ask, settled.request, rated, self._rooms)
        course = attempts.course(within, ranking, reached, self._around.limits, previous)
        if fewest.applies(settled) or plans.single_task(settled.request):
            # A node maximum first, where that makes a gang start on fewer nodes; and for a choice of single nodes.
            number = functools.partial(self._fewest.number, settled, session.snapshot, reached.every)
            course = plans.bounded(course, previous, settled.request.tasks, number)
        return within, settled, reached, course

    def _looked(
        self, session: Session, ask: Ask, translated: Translated, avoid: Avoid
    ) -> tuple[Translated, base.Scores, tuple[base.NodeSet, ...], UsableNodes]:
        """The request as Slurm can take it, scores and sets of nodes, and the nodes that it can have."""
        found = self._filtered(session, ask, avoid)
        expressed = session.express(ask)
        settled, found = self._settle(expressed, translated, session.snapshot, found)
        rated, sets = self._divided(session, expressed, found)
        if session.partial and (why := _too_narrow(settled, sets)):
            # Within each set, what was sampled still comes first.
            session.look_at_all(why)
            found = self._filtered(session, ask, avoid)
            settled, found = self._settle(expressed, translated, session.snapshot, found)
            rated, sets = self._divided(session, expressed, found)
        fit = functools.partial(usable_nodes.fit_apart, session.snapshot, settled)
        reached = usable_nodes.find_usable_nodes(session, settled.request, found, self._emitter, settled.told, fit)
        if isinstance(reached, Wait):
            raise Stopped(reached)
        return settled, rated, sets, reached

    def _filtered(self, session: Session, ask: Ask, avoid: Avoid) -> tuple[FilterResult, ...]:
        found = usable_nodes.filter_nodes(session, ask, avoid)
        if obstacle := usable_nodes.nowhere(session, found):
            raise Stopped(obstacle)
        return found

    def _divided(
        self, session: Session, ask: Ask, found: Sequence[FilterResult]
    ) -> tuple[base.Scores, tuple[base.NodeSet, ...]]:
        """The scores, and the sets of nodes to try: of nodes that the partitions of the request have."""
        eligible = usable_nodes.union(found)
        # Where there is none it is said later, and why.
        eligible = self._emitter.reach(ask.request, session.snapshot, eligible) or eligible
        rated = session.rate_nodes(ask, eligible)
        return rated, session.subset_nodes(ask, ask.workload.pods, eligible)

    def _settle(
        self, ask: Ask, translated: Translated, snapshot: ClusterSnapshot, found: tuple[FilterResult, ...]
    ) -> tuple[Translated, tuple[FilterResult, ...]]:
        """The request as Slurm can take it, and the nodes without those that are too small for this form of it."""
        rank = self._rank(ask.workload) if self._emits == "nice" else None
        request = ask.request
        if rank is not None and rank.nice is not None:
            # The order hook's wish as Slurm's `nice`; never below 0, which only operators may.
            request = dataclasses.replace(request, nice=max(0, rank.nice))
        expressed = frozen_records.replaced(translated, request=request, values=ask.values)
        settle = self._around.settle
        settled = expressed if settle is None else settle(expressed, snapshot, tuple(one.nodes for one in found))
        if isinstance(settled, Wait | Reject):
            raise Stopped(settled)
        if settled.request.components:
            reach = functools.partial(self._emitter.reach, settled.request, snapshot)
            return settled, component_nodes.divided(snapshot, settled, found, reach)
        return settled, usable_nodes.large_enough(snapshot, settled, found)

    def _emit(
        self, session: Session, settled: Translated, reached: UsableNodes, state: PlanState, course: Course
    ) -> Plan:
        attempt = course.attempts[state.attempt]
        settled = plans.limited(settled, attempt)
        parts = attempt.parts or reached.parts
        emit = functools.partial(self._emitter.emit_all, settled.request, session.snapshot, parts)
        emission = emit(attempt.nodes)
        basis = emission if attempt.nodes is attempt.within else emit(attempt.within)
        return Plan(
            request=emission.request,
            values=settled.values,
            state=state,
            course=course,
            lines=tuple(session.lines),
            eligible=len(reached.every),
            emission=emission,
            basis=basis.request,
            matrices=dict(session.matrices),
            moving=session.moving,
            wanted=tuple(session.wanted),
            hints=settled.hints,
            shapes=settled.shapes,
            form=settled.form,
            told=settled.told,
        )


def _unlike(within: Sequence[base.NodeSet], course: Course, previous: PlanState | None) -> str:
    """Why a sample is not enough to go on with; "" where it is."""
    if not within:
        # What was sampled for one pod after the other does not do for all of them together.
        return "the sampled nodes do not suffice"
    # Of another sample other sets would be left, and the job would be tried on these and those by turns.
    return "" if previous is None or previous.follows(course) else "it is being tried on other sets"


def _too_narrow(settled: Translated, sets: Sequence[base.NodeSet]) -> str:
    """Why a sample is not enough; "" where it is."""
    if not sets:
        return "there is no set of sampled nodes"
    if any(one.required for one in sets):
        return "a set of nodes is required"
    return "the job has several components, which cannot get other nodes later" if settled.request.components else ""


def asked(workload: Workload, translated: Translated) -> Ask:
    """What the hooks are asked about, before any of them has said something."""
    return Ask(
        workload=workload,
        request=translated.request,
        values=translated.values,
        hints=translated.hints,
        shapes=translated.shapes,
        demands=translated.demands,
        devices=translated.devices,
    )


class ComparableKey:
    """A key that can be compared with any other: one that cannot be compared must not stop the queue.

    Keys that do not fit each other stand in the order of their types and texts.
    """

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComparableKey):
            return NotImplemented
        try:
            return self.key is other.key or bool(self.key == other.key)
        except Exception:  # noqa: BLE001 - foreign code
            return self._text == other._text

    def __lt__(self, other: "ComparableKey") -> bool:
        try:
            return bool(self.key < other.key)
        except Exception:  # noqa: BLE001 - foreign code
            return self._text < other._text

    def __hash__(self) -> int:
        return hash(self._text)

    @property
    def _text(self) -> tuple[str, str]:
        return type(self.key).__name__, repr(self.key)

    def __repr__(self) -> str:
        return f"Orderly({self.key!r})"
