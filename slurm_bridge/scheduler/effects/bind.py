"""From nodes that Slurm allocated to pods that are bound there.

    1 read     the job: is it still this workload's, running, and of what was asked?
    2 place    pods onto its nodes, always the same way; those of a gang by what the job holds of each node
    3 check    each node exists, is usable, and has room for all that is there, pods whose job has ended among them
    4 claims   those of all these pods that wait for a node are bound to volumes first (`effects.claims`), and those
               to devices get what the job was given (`effects.device_claims`)
    5 bind     with the uid and version that were checked, the job id and the node's name in the same write

What cannot be bound gives its nodes back: the job is cancelled and the next attempt avoids the node. Once a part of a
gang is bound nothing is given back here: the rest is tried again, until the ganger has all of it undone.
"""

import dataclasses
from collections.abc import Mapping

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.model import kinds, names
from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import resizes
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.effects import cancel, claims, device_claims, job_users, update
from slurm_bridge.scheduler.effects.exclusive import as_submitted
from slurm_bridge.scheduler.placement import checks, slots, task_marks
from slurm_bridge.scheduler.placement.checks import DENIED_SECONDS, Spot
from slurm_bridge.scheduler.placement.misfit import Misfit, Occupied
from slurm_bridge.scheduler.placement.task_marks import TaskMarks
from slurm_bridge.scheduler.placement.vacancy import PATIENCE, VACATED_LOOK
from slurm_bridge.scheduler.queue import AT_ONCE, WOKEN, Filed
from slurm_bridge.scheduler.state import DesiredJob
from slurm_bridge.scheduler.workload_pods import WorkloadPods
from slurm_bridge.translate import resources

#: A pod that changed under our hands, or whose binding was not answered: its next event says more, or this does.
LOOK_AGAIN = 2.0
#: How old a reading of a job may be when its pods are bound by it, in seconds.
FRESH = 3.0
#: A watch that has not told of a binding for this long is not waited for any more.
ECHO = 30.0


def bind(ctx: SchedulerContext, desired: DesiredJob, placeholder: Placeholder) -> Filed:
    """Give the pods of this workload their nodes, or the nodes back."""
    read = _running(ctx, desired, placeholder)
    if isinstance(read, Filed):
        return read
    if not read.owner.request.startswith(f"{desired.intent}:"):
        return cancel.replace(ctx, read, "the pods changed before they were bound")
    desired = dataclasses.replace(desired, workload=slots.those_who_came_first(desired.workload, read.owner))
    # After an interrupted start the record tells which pods belong to it.
    renamed = update.rename(ctx, desired, read)
    if renamed is not None:
        return renamed
    spots, problem = _place(ctx, desired, read)
    if isinstance(spots, Misfit):
        # One reading of what the job holds may be garbled.
        again = ctx.mirror.look(read.job_id, read.owner, tell=False)
        if again is None or again.phase is not Phase.RUNNING:
            return AT_ONCE
        spots, problem = _place(ctx, desired, again)
    if isinstance(spots, Misfit):
        return _give_back(ctx, desired, read, spots)
    problem = problem or _claims(ctx, desired, spots, read)
    return _bind_all(ctx, desired, spots, read) if problem is None else _not_now(ctx, desired, read, problem, spots)


def join(ctx: SchedulerContext, desired: DesiredJob, members: WorkloadPods, placeholder: Placeholder) -> Filed:
    """Give pods without a node what the job has left for them."""
    read = _running(ctx, desired, placeholder)
    if isinstance(read, Filed):
        return read
    everybody = desired.workload
    desired = dataclasses.replace(desired, workload=slots.as_many_as_fit(everybody, members, read))
    spots, problem = _place(ctx, desired, read)
    if isinstance(spots, Misfit) and not members.on(read.job_id):
        return _give_back(ctx, desired, read, spots)
    if isinstance(spots, Misfit):
        text = f"Slurm job {read.job_id} has no place left for this pod: {spots.message}"
        return _later(ctx, everybody, "GangFull", text, ECHO)
    if problem is None and spots:
        problem = _claims(ctx, desired, spots, read)
    if problem is not None:
        if isinstance(problem, Misfit):
            # The nodes stay the job's: they are selected anew at the next try.
            claims.undo(ctx, desired.workload.pods, read)
            device_claims.undo(ctx, desired.workload.pods)
        return _later(ctx, everybody, problem.reason, problem.message, VACATED_LOOK)
    if not spots:
        text = f"Slurm job {read.job_id} has no place left for this pod; it takes the place of one that leaves"
        return _later(ctx, everybody, "GangFull", text, None)
    return _bind_all(ctx, desired, spots, read)


def _later(ctx: SchedulerContext, workload: Workload, reason: str, message: str, after: float | None) -> Filed:
    ctx.say(workload, reason, message)
    return Filed(after=after)


def _running(ctx: SchedulerContext, desired: DesiredJob, placeholder: Placeholder) -> Placeholder | Filed:
    """The job in full, read since it started and not long ago: what it held then may be another's now."""
    if ctx.mirror.failing:
        # What Slurm has done since is unknown; its next answer wakes every workload that waits for it.
        return ctx.back_off(desired.workload.root.key)
    at = placeholder.read
    fresh = at is not None and at >= placeholder.since and ctx.clock.now() - at <= FRESH
    look = ctx.mirror.look
    read = placeholder if fresh else look(placeholder.job_id, placeholder.owner, tell=False)
    if read is None or not (fresh or read.phase is Phase.RUNNING):
        return AT_ONCE
    return job_users.refuse(ctx, desired, read) if job_users.improper(read) else read


def _place(
    ctx: SchedulerContext, desired: DesiredJob, read: Placeholder
) -> tuple[tuple[Spot, ...] | Misfit, Misfit | Wait | None]:
    """Where each pod that wants a node comes, and what is wrong with that; where nothing is, they count there.

    One at a time: of two that are bound at the same moment the second has to see the first.
    """
    with ctx.placing:
        snapshot = ctx.keeper.snapshot()
        spots = _spots(ctx, desired, read, snapshot)
        if isinstance(spots, Misfit):
            return spots, None
        # Slurm gives the job whole nodes, because of what was asked for or of its partition.
        partition = read.view.partition if read.view is not None else ""
        exclusive = any(one.exclusive for one in snapshot.partitions if one.name == partition)
        key, whole = desired.workload.root.key, exclusive or as_submitted(ctx, desired, read, snapshot)
        problem = claims.unread(ctx, key, spots) or checks.problem(
            ctx, desired.workload, spots, snapshot, read, whole=whole
        )
        if problem is None:
            claimed = ctx.states.of(key).claimed
            for spot in spots:
                if not ctx.keeper.holds(spot.pod.uid, spot.node.name):
                    claimed[spot.pod.uid] = None
                _assume(ctx, spot)
        return spots, problem


def _claims(
    ctx: SchedulerContext, desired: DesiredJob, spots: tuple[Spot, ...], read: Placeholder
) -> Misfit | Occupied | None:
    """What keeps the claims of these pods from being used there; while they wait, the pods count nowhere."""
    key, ready = desired.workload.root.key, False
    try:
        problem = claims.settle(ctx, key, spots, read) or device_claims.settle(ctx, desired, spots, read)
        ready = problem is None
        return problem
    finally:
        if not ready:
            _unclaim(ctx, key, spots)


def _unclaim(ctx: SchedulerContext, key: WorkloadKey, spots: tuple[Spot, ...]) -> None:
    """Stop counting the pods that no binding was tried for."""
    claimed = ctx.states.of(key).claimed
    for uid in sorted(claimed.keys() & {spot.pod.uid for spot in spots}):
        del claimed[uid]
        ctx.keeper.forget(uid)


def _assume(ctx: SchedulerContext, spot: Spot) -> None:
    ctx.keeper.assume(spot.pod.uid, spot.node.name, resources.requests_of(spot.pod), spot.pod)


def _spots(
    ctx: SchedulerContext, desired: DesiredJob, read: Placeholder, snapshot: ClusterSnapshot
) -> tuple[Spot, ...] | Misfit:
    """Where each pod that wants a node comes."""
    placed = slots.placed(desired, read, ctx)
    if isinstance(placed, Reject):
        return Misfit(reason=placed.reason, message=placed.message)
    spots = []
    for pod in desired.workload.pods:
        if pod.bound:
            continue
        slurm_name = placed[pod.uid]
        node = snapshot.by_slurm_name(slurm_name)
        if node is None:
            text = f"Slurm allocated node {slurm_name}, which is no node of this Kubernetes cluster"
            return Misfit(reason="NodeUnknown", message=text, nodes=(slurm_name,))
        spots.append(Spot(pod=pod, slurm_name=slurm_name, node=node))
    return tuple(spots)


def _not_now(
    ctx: SchedulerContext, desired: DesiredJob, read: Placeholder, problem: Misfit | Wait, spots: tuple[Spot, ...]
) -> Filed:
    if isinstance(problem, Misfit):
        return _give_back(ctx, desired, read, problem)
    now, leadership = ctx.clock.now(), ctx.states.of(desired.workload.root.key).leadership
    # The time for the start begins with the first binding.
    leadership.starting = None
    if leadership.occupied is None or leadership.occupied[0] != read.job_id:
        leadership.occupied = (read.job_id, {})
    # Each kind has its own patience, which nothing else uses up or renews.
    kind, patience = (problem.reason, problem.patience) if isinstance(problem, Occupied) else ("", PATIENCE)
    left = leadership.occupied[1].setdefault(kind, now) + patience - now
    if left <= 0:
        return _give_back(ctx, desired, read, _expired(problem, spots))
    ctx.say(desired.workload, problem.reason, problem.message)
    return Filed(after=left if problem.retry_after is None else min(left, problem.retry_after))


def _expired(problem: Wait, spots: tuple[Spot, ...]) -> Misfit:
    """Why nodes are given back that were kept for long enough."""
    if isinstance(problem, Occupied):
        return problem.expired
    nodes = tuple(dict.fromkeys(spot.node.name for spot in spots))
    return Misfit(reason=problem.reason, message=problem.message, nodes=nodes, seconds=DENIED_SECONDS)


def _give_back(ctx: SchedulerContext, desired: DesiredJob, read: Placeholder, misfit: Misfit) -> Filed:
    """The nodes go back to Slurm; the next attempt is told to avoid the one that is to blame."""
    uid = desired.workload.root.key
    ctx.states.of(uid).leadership.occupied = None
    claims.undo(ctx, desired.workload.pods, read)
    device_claims.undo(ctx, desired.workload.pods)
    text = f"{misfit.message}; Slurm job {read.job_id} is given back"
    ctx.status.group(desired.workload, misfit.reason, text, warning=True)
    ctx.say(desired.workload, misfit.reason, text)
    ctx.counters.attempt("unschedulable")
    for node in misfit.nodes:
        holds, now = misfit.holds(node, ctx.node(node)), ctx.clock.now()
        if node in misfit.occupied:
            ctx.node_waiters.add(node, uid)
            ctx.avoided.until(uid, node, misfit.message, ctx.clock.now(), holds)
        else:
            ctx.avoided.add(uid, node, misfit.message, now, holds=holds, seconds=misfit.seconds)
    ctx.refresh_facts()
    pause = ctx.back_off(uid)
    # A full node is avoided until it has room: the next try is on another one, and need not wait so long.
    if not misfit.lacking and ctx.avoided.tries(uid) > ctx.limits.bind_tries:
        pause = Filed(after=ctx.limits.backoff_most)
    replaced = cancel.replace(ctx, read, misfit.message)
    return pause if replaced is AT_ONCE else replaced


def _bind_all(ctx: SchedulerContext, desired: DesiredJob, spots: tuple[Spot, ...], read: Placeholder) -> Filed:
    """In rank order: the first alone, for one that changed stops the whole while none is bound; then all others."""
    uid = desired.workload.root.key
    for one in (uid, *(spot.pod.uid for spot in spots)):
        # What is still to be written of their waiting would only change the pods under our hands.
        ctx.status.forget(one)
    try:
        marks = task_marks.of(ctx, desired, spots, read)
        first = _bind(ctx, uid, spots[0], read, marks)
        others = ctx.each(lambda spot: _bind(ctx, uid, spot, read, marks), spots[1:]) if first else []
    finally:
        _unclaim(ctx, uid, spots)
    if len(others) + 1 < len(spots) or not first or not all(others):
        return Filed(after=LOOK_AGAIN)
    ctx.states.of(uid).leadership.occupied = None
    ctx.avoided.success(uid)
    ctx.counters.attempt("scheduled")
    _say_bound(ctx, desired.workload, spots, read)
    return WOKEN


def _say_bound(ctx: SchedulerContext, workload: Workload, spots: tuple[Spot, ...], read: Placeholder) -> None:
    if workload.gang is None:
        spot = spots[0]
        ctx.status.event(spot.pod, "Scheduled", f"bound to {spot.node.name} by Slurm job {read.job_id}")
        return
    nodes = {spot.node.name for spot in spots}
    where = next(iter(nodes)) if len(nodes) == 1 else f"{len(nodes)} nodes"
    ctx.status.group(workload, "Scheduled", f"{len(spots)} pods bound to {where} by Slurm job {read.job_id}")
    if len(workload.pods) >= workload.gang.minimum:
        ctx.status.scheduled(workload)


def _bind(ctx: SchedulerContext, key: WorkloadKey, spot: Spot, read: Placeholder, marks: TaskMarks) -> bool:
    """A lost answer leaves the pod assumed: it may be on the node, so its place is not free."""
    pod = spot.pod
    ctx.states.of(key).claimed.pop(pod.uid, None)
    _assume(ctx, spot)
    try:
        ctx.cluster.bind(_binding(spot, read, marks.get(pod.uid, {})))
    except errors.Disagreement as problem:
        _disagreed(ctx, pod, problem)
        return False
    except (errors.Unavailable, errors.NotLeading):
        ctx.keeper.forget(pod.uid)
        raise
    ctx.states.of(key).sent[pod.uid] = ctx.clock.now()
    ctx.counters.bound(pod, read)
    return True


def _disagreed(ctx: SchedulerContext, pod: Pod, problem: errors.Disagreement) -> None:
    """It changed meanwhile, is gone, or was bound by a try whose answer was lost: only a look can tell."""
    logger.bind(workload="/".join(pod.key)).info("not bound: {}", problem)
    now = ctx.cluster.get(kinds.PODS, *pod.key)
    if now is None or now.uid != pod.uid or not now.bound:
        ctx.keeper.forget(pod.uid)


def _binding(spot: Spot, read: Placeholder, marks: Mapping[str, str]) -> ports.Binding:
    meta = spot.pod.metadata
    return ports.Binding(
        namespace=meta.namespace,
        pod=meta.name,
        uid=meta.uid,
        node=spot.node.name,
        resource_version=meta.resource_version,
        annotations={
            names.ANNOTATION_SLURM_NODE: spot.slurm_name,
            names.ANNOTATION_BOUND_BY: read.owner.cluster,
            names.ANNOTATION_COUNTED: resizes.written(spot.pod),
            **marks,
        },
        labels={names.LABEL_JOB_ID: str(read.job_id)},
    )
