"""Runs the hooks: on the cluster as it is, or, offline, each hook by itself as far as it needs no cluster."""

import contextlib
import dataclasses
from collections.abc import Sequence

from slurm_bridge.cluster.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.explain import cluster_view, context, nodes, slots, usage
from slurm_bridge.explain.cluster_view import ClusterView, Servers
from slurm_bridge.explain.context import Inquiry
from slurm_bridge.explain.nodes import NodeReasons
from slurm_bridge.explain.slots import Slot
from slurm_bridge.explain.usage import OtherWorkloads
from slurm_bridge.hooks import chain as chains
from slurm_bridge.hooks import usable_nodes
from slurm_bridge.hooks.base import Audience, HookPhase, Mode
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.hooks.explain import UNSCHEDULABLE, Line
from slurm_bridge.hooks.pass_context import Stopped
from slurm_bridge.hooks.usable_nodes import FilterResult
from slurm_bridge.model.verdict import Obstacle, Reject, Wait
from slurm_bridge.scheduler import desired_job
from slurm_bridge.translate import translator
from slurm_bridge.translate.translator import Translated

#: Phases that need the cluster: offline no hook is asked about them.
_OF_CLUSTER = frozenset({HookPhase.CAPACITY, HookPhase.SAMPLE, HookPhase.FILTER, HookPhase.SCORE, HookPhase.SUBSET})

#: The note if a hook ended the pass before the nodes.
UNREACHED = "a hook holds it before nodes are chosen; the other hooks were asked about all nodes"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PipelineResult:
    """The result of the hooks. `settled`: the form of the request is decided. `scene`: None without a cluster."""

    obstacle: Obstacle | None
    translated: Translated
    lines: tuple[Line, ...]
    slots: tuple[Slot, ...]
    plan: Plan | None = None
    notes: tuple[str, ...] = ()
    reasons: tuple[NodeReasons, ...] = ()
    settled: bool = True
    scene: ClusterView | None = None


def offline(inquiry: Inquiry) -> PipelineResult:
    """Run each hook by itself; a hook that cannot answer without a cluster, or not everything, is named."""
    ask, lines, notes = chains.asked(inquiry.workload, inquiry.translated), list[Line](), list[str]()
    stop: Obstacle | None = None
    means = inquiry.means
    for hook in means.chain.hooks:
        with Chain((hook,), means.around).session(EMPTY, now=means.clock.wall(), mode=Mode.SIMULATED) as session:
            try:
                session.pass_gate(HookPhase.ADMIT, ask)
                ask = session.express(ask)
            except Stopped as stopped:
                if not hook.needs or stopped.obstacle.reason != "HookFailed":
                    stop = stopped.obstacle
                else:
                    notes.append(f"hook {hook.name} cannot answer offline: it was skipped")
        lines += session.lines
        if stop is not None:
            break
    else:
        with means.chain.session(EMPTY, now=means.clock.wall(), mode=Mode.SIMULATED) as session:
            try:
                session.pass_demands(ask)
            except Stopped as stopped:
                stop = stopped.obstacle
        lines += session.lines
    if unasked := [f"hook {hook.name}" for hook in means.chain.hooks if _OF_CLUSTER.intersection(hook.phases)]:
        notes.append(f"offline: not asked about nodes and capacity: {', '.join(unasked)}")
    translated = dataclasses.replace(inquiry.translated, request=ask.request, values=ask.values)
    return PipelineResult(
        obstacle=stop,
        translated=translated,
        lines=tuple(lines),
        slots=slots.of(translated.shapes),
        notes=tuple(notes),
        settled=inquiry.workload.gang is None,
    )


def against(inquiry: Inquiry, servers: Servers, others: OtherWorkloads = usage.ALONE) -> PipelineResult:
    """Run the whole chain on the cluster as it is, as the daemon would now."""
    chain, workload = inquiry.means.chain, inquiry.workload
    chain.see(cluster_view.views(servers.cluster, chain.needs))
    scene, now = cluster_view.scene(servers), inquiry.means.clock.wall()
    inquiry.means.current.seen = scene.snapshot
    scene.keeper.offer(chain.offers())
    inquiry.means.current.seen = seen = scene.snapshot
    translated = translator.translate(workload, inquiry.means.rules)
    # Now that the claims of its pods are known.
    inquiry = inquiry if isinstance(translated, Reject) else dataclasses.replace(inquiry, translated=translated)
    usage.restore(inquiry, servers, others)
    planned = chain.plan(workload, inquiry.translated, seen, now=now, previous=context.running(inquiry.jobs))
    lines, reasons, notes = _listen(inquiry, seen, stopped=not isinstance(planned, Plan))
    if not isinstance(planned, Plan):
        return PipelineResult(
            obstacle=planned,
            translated=inquiry.translated,
            lines=lines,
            slots=_slots(inquiry.translated, seen, reasons),
            notes=notes,
            reasons=reasons,
            settled=inquiry.workload.gang is None,
            scene=scene,
        )
    settled = dataclasses.replace(
        inquiry.translated,
        request=planned.request,
        values=planned.values,
        shapes=planned.shapes or inquiry.translated.shapes,
        form=planned.form,
        told=planned.told,
    )
    inside = tuple(nodes.within(one, seen, planned.request) for one in reasons)
    desired = inquiry.desired
    # The user cancelled exactly this request, and it has not changed since.
    parked = desired_job.parked(desired)
    obstacle = Wait(reason="Parked", message=desired_job.why_parked(desired)) if parked else None
    return PipelineResult(
        obstacle=obstacle or chain.commit(workload, planned, seen),
        translated=settled,
        lines=planned.lines,
        slots=_slots(settled, seen, inside),
        plan=planned,
        reasons=inside,
        scene=scene,
    )


def holders(lines: Sequence[Line], obstacle: Obstacle) -> tuple[str, ...]:
    """The hook that said it, or the hooks that excluded the last nodes; hooks for operators only are not named."""
    said = [one.hook for one in lines[-1:] if one.reason == obstacle.message]
    if said or obstacle.reason != UNSCHEDULABLE:
        return tuple(said)
    filters = (one for one in lines if one.phase is HookPhase.FILTER and one.audience is Audience.USER)
    return tuple(dict.fromkeys(one.hook for one in filters if one.nodes_out < one.nodes_in))


def _slots(translated: Translated, seen: ClusterSnapshot, reasons: Sequence[NodeReasons]) -> tuple[Slot, ...]:
    """The slots with their nodes. Unless hooks were asked about each shape, all slots have the same nodes."""
    found = slots.of(translated.shapes)
    eligible = [one.eligible for one in reasons]
    if len(eligible) != len(found):
        eligible = [eligible[0] if eligible else frozenset[str]()] * len(found)
    return slots.fitted(found, seen, eligible, alone=translated.one_per_node)


def _listen(
    inquiry: Inquiry, seen: ClusterSnapshot, *, stopped: bool
) -> tuple[tuple[Line, ...], tuple[NodeReasons, ...], tuple[str, ...]]:
    """What hooks say up to the choice of nodes; everything if the plan was stopped.

    If a hook stopped the pass before that, the other hooks are asked about all nodes, which the user wants to know
    next.
    """
    lines, found = _pass(inquiry, seen, Mode.REAL, further=stopped)
    notes: tuple[str, ...] = ()
    if not found:
        _, found = _pass(inquiry, seen, Mode.SIMULATED, further=False)
        notes = (UNREACHED,) if found else ()
    reasons = tuple(nodes.reasons(seen, one.nodes, one.denied, one.members) for one in found)
    return lines, reasons, notes


def _pass(
    inquiry: Inquiry, seen: ClusterSnapshot, mode: Mode, *, further: bool
) -> tuple[tuple[Line, ...], tuple[FilterResult, ...]]:
    """The lines of one pass, and the nodes; no nodes if a hook stopped the pass before them."""
    ask, running = chains.asked(inquiry.workload, inquiry.translated), context.running(inquiry.jobs)
    session = inquiry.means.chain.session(seen, now=inquiry.means.clock.wall(), mode=mode, previous=running)
    found = tuple[FilterResult, ...]()
    # The plan has stopped at the same obstacle, and reports it.
    with session, contextlib.suppress(Stopped):
        session.pass_gate(HookPhase.ADMIT, ask)
        session.pass_demands(ask)
        session.pass_gate(HookPhase.CAPACITY, ask)
        found = usable_nodes.filter_nodes(session, ask, {})
        if further and usable_nodes.nowhere(session, found) is None:
            eligible = usable_nodes.union(found)
            session.rate_nodes(ask, eligible)
            session.subset_nodes(ask, ask.workload.pods, eligible)
            session.express(ask)
    return tuple(session.lines), found
