"""When one side ends, so does the other; and what is doubtful ends nothing.

pods over          note why in the job, cancel it
job ended          say so on the pod (DisruptionTarget), then delete exactly this pod
job gone           the same, after a pause, and unless so many went at once that Slurm's memory is in doubt
job cancelled      before the pod had a node: respected; the pod says so and waits until its user changes something
"""

from collections.abc import Iterable

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model import kinds, names
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.ports import Scope
from slurm_bridge.scheduler import current_job, desired_job, pod_marks, words
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.effects import cancel, look_up
from slurm_bridge.scheduler.queue import AT_ONCE, FORGET, WOKEN, Filed
from slurm_bridge.scheduler.state import DesiredJob
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods, job_id_of
from slurm_bridge.workloads import voices

#: A pod that changed under our hands: its next event says more, or this does.
DISAGREED = 1.0
#: While mass disappearance is doubted, how often to look whether it still is.
DOUBTFUL = 30.0


def withdraw(ctx: SchedulerContext, key: WorkloadKey, members: WorkloadPods | None, *, seen: bool) -> Filed:
    """The pods are over: cancel every placeholder that lives. `seen` says that we saw them end or go."""
    placeholders = ctx.table.of(key)
    if members is None and not seen and _exists(ctx, placeholders[0]):
        logger.warning("{} exists though it is not ours to see; its job stays", placeholders[0].owner.name)
        return Filed(after=DOUBTFUL)
    why = _outcome(members)
    for one in placeholders:
        if (one.alive or one.torn) and not _withdraw_one(ctx, one, why, orphan=not seen and members is None):
            return ctx.back_off(one.owner.key)
    return AT_ONCE


def _withdraw_one(ctx: SchedulerContext, placeholder: Placeholder, why: str, *, orphan: bool) -> bool:
    if placeholder.certainty is Certainty.MAYBE:
        found = ctx.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
        if found is None:
            # The order may still be on its way, and is given up by the mirror in its time.
            known = ctx.table.get(placeholder.job_id)
            return known is None or known.certainty is not Certainty.MAYBE
        if not found.alive:
            return True
    if not cancel.withdraw(ctx, placeholder, why):
        return False
    ctx.counters.ended("orphan" if orphan else "pod")
    return True


def _exists(ctx: SchedulerContext, placeholder: Placeholder) -> bool:
    """Is this very workload alive after all? Asked once for each stray placeholder."""
    owner = placeholder.owner
    if owner.kind == kinds.PODS.kind:
        pod = ctx.cluster.get(kinds.PODS, owner.namespace, owner.name)
        return pod is not None and pod.uid == owner.uid and not pod.terminal
    listed = ctx.cluster.list(kinds.PODS, Scope(namespace=owner.namespace))
    # One that cannot be read may be the one that is looked for.
    return bool(listed.unreadable) or any(
        job_id_of(pod) == placeholder.job_id and not pod.terminal for pod in listed.items
    )


def drop(ctx: SchedulerContext, key: WorkloadKey) -> Filed:
    """Both sides are over."""
    for one in ctx.table.of(key):
        ctx.table.drop(one.job_id)
    ctx.settle(key)
    ctx.states.drop(key)
    ctx.ended(key)
    ctx.status.forget(key)
    return FORGET


def cancel_surplus(ctx: SchedulerContext, surplus: tuple[Placeholder, ...]) -> Filed:
    """Of several jobs for one workload one is kept, before anything is bound."""
    for one in surplus:
        logger.warning("job {} is a second one for {}: cancelled", one.job_id, one.owner.name)
        if not cancel.withdraw(ctx, one, "a second job for the same workload", noted=True):
            return ctx.back_off(one.owner.key)
        ctx.table.drop(one.job_id)
    return AT_ONCE


def doubt(ctx: SchedulerContext, members: WorkloadPods, placeholder: Placeholder) -> Filed:
    """The job of bound pods is unknown to Slurm: believed after a pause, one by one, and never of a multitude.

    A job that was seen counts as gone only beside other jobs that were seen. Every user can write any job id on a pod
    and bind it: such ids count only for pods of whose jobs nothing else is known.
    """
    ends, now = ctx.config.ends, ctx.clock.now()
    settled = placeholder.since + ends.settle_seconds
    if now < settled:
        return Filed(after=settled - now)
    if ctx.mirror.owes_sweep:
        # Perhaps others are gone, too, and nothing is known of that yet.
        return Filed(after=ctx.limits.backoff_first)
    vanished, bound = ctx.table.vanished(named=not placeholder.seen)
    if ends.breaker.open(vanished, bound):
        text = f"{vanished} of {bound} placeholder jobs vanished at once; no pod is ended until Slurm shows other jobs"
        logger.error(text)
        for pod in members.pods(PodState.BOUND)[:1]:
            ctx.status.event(pod, "SlurmJobsVanished", text, warning=True)
        return Filed(after=DOUBTFUL)
    # Its absence was read once, some seconds ago; Slurm may have said so by mistake.
    found = ctx.mirror.look_whose(placeholder.job_id, placeholder.owner)
    if isinstance(found, Placeholder) and found.owner.same_workload(placeholder.owner):
        return AT_ONCE
    if found is not None and not placeholder.seen and not _bound_by_us(ctx, members, placeholder.job_id):
        # Its absence made it ours, or a note on its pods, and neither is so any more.
        look_up.disbelieve(ctx, placeholder)
        return AT_ONCE
    return _end(ctx, members, placeholder)


def _bound_by_us(ctx: SchedulerContext, members: WorkloadPods, job_id: names.JobId) -> bool:
    """Whether all pods that name this job say that this bridge has bound them."""
    cluster = ctx.config.rules.cluster_id
    pods = (pod for pod in members.pods(PodState.BOUND) if job_id_of(pod) == job_id)
    return all(pod.metadata.annotations.get(names.ANNOTATION_BOUND_BY) == cluster for pod in pods)


def end(ctx: SchedulerContext, members: WorkloadPods, placeholder: Placeholder) -> Filed:
    """The job of bound pods has ended; whether the id is still that job's is looked at first."""
    read = placeholder
    if not _is_certain(ctx, placeholder):
        found = ctx.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
        if found is None or (found.alive and not found.torn):
            return AT_ONCE
        read = found
    return _end(ctx, members, read)


def _is_certain(ctx: SchedulerContext, placeholder: Placeholder) -> bool:
    """Slurm has said twice that it was cancelled, no other job gets its id, and a cancel has no further reason."""
    ids = ctx.limits.ids
    chosen = ids is not None and ids.first <= placeholder.job_id <= ids.last
    return chosen and placeholder.confirmed and words.end_word(placeholder) == "CANCELLED"


def _end(ctx: SchedulerContext, members: WorkloadPods, placeholder: Placeholder) -> Filed:
    word, text = words.end_word(placeholder), words.ended(placeholder)
    if word == "TIMEOUT":
        # The controller would make more such pods, which would be cut off just the same.
        controllers = [maker for pod in members.pods(PodState.BOUND) if (maker := voices.controller(pod)) is not None]
        makers = {one.key: one.kind for one in controllers} | {members.root.object_key: members.root.kind}
        for key, kind in makers.items():
            if kind in ctx.config.ends.hold_after_timeout:
                ctx.held.put(key, text)
    if placeholder.torn and not cancel.withdraw(ctx, placeholder, text):
        return ctx.back_off(members.root.key)
    return end_all(ctx, members, placeholder, word, text)


def end_all(ctx: SchedulerContext, members: WorkloadPods, placeholder: Placeholder, word: str, text: str) -> Filed:
    """Every pod that this job gave a node to, and that is not on its way out already."""
    theirs = (pod for pod in members.pods(PodState.BOUND) if job_id_of(pod) == placeholder.job_id)
    return _end_each(ctx, ((pod, text) for pod in theirs), word=word)


def _end_each(ctx: SchedulerContext, ends: Iterable[tuple[Pod, str]], *, word: str) -> Filed:
    """One that has changed meanwhile does not keep the others alive; it is looked at again."""
    filed = WOKEN
    for pod, text in ends:
        try:
            end_pod(ctx, pod, word, text)
        except errors.Disagreement as problem:
            logger.bind(workload="/".join(pod.key)).info("not ended yet: {}", problem)
            filed = Filed(after=DISAGREED)
    return filed


def end_shrunk(ctx: SchedulerContext, members: WorkloadPods, lost: Iterable[Pod], placeholder: Placeholder) -> Filed:
    """Pods whose node their running job does not hold any more, by two readings: one may be garbled."""
    read = ctx.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
    again = {pod.uid for pod in current_job.shrunk(members, read)} if read is not None else set()
    still = [pod for pod in lost if pod.uid in again]
    if not still:
        return AT_ONCE
    text = f"Slurm job {placeholder.job_id} no longer holds node"
    return _end_each(ctx, ((pod, f"{text} {pod.spec.node_name}") for pod in still), word="SHRUNK")


def end_pod(ctx: SchedulerContext, pod: Pod, word: str, text: str) -> Filed:
    """Say why, then delete exactly this pod. Not an eviction: no budget can keep a node that Slurm gave away."""
    ctx.status.disrupt(pod, "SlurmJobEnded", text)
    ctx.cluster.delete(kinds.PODS, pod)
    ctx.status.event(pod, "SlurmJobEnded", text, warning=True)
    ctx.counters.ended(word.lower())
    logger.bind(workload="/".join(pod.key)).info("pod deleted: {}", text)
    return WOKEN


def leaving(ctx: SchedulerContext, members: WorkloadPods) -> Filed:
    """Pods that are being deleted keep their job until they are gone, unless their node is dead."""
    if not ctx.table.lives(members.root.key):
        return WOKEN
    uid, now, heads = members.root.key, ctx.clock.now(), members.count(PodState.LEAVING)
    state = ctx.states.of(uid)
    before, due = state.leaving_looked or (0, now)
    if heads > before or now >= due:
        left = _patience(ctx, members)
        if not members.count(PodState.LEAVING):
            return AT_ONCE
        if left is None:
            logger.warning("the pods of {} hang on dead nodes; their job is given back", members.root)
            return withdraw(ctx, uid, members, seen=True)
        due = now + left
    state.leaving_looked = (heads, due)
    return Filed(after=due - now)


def _patience(ctx: SchedulerContext, members: WorkloadPods) -> float | None:
    """How long to wait before looking again at those that leave; None when all of them hang on dead nodes."""
    now, stuck = ctx.clock.now(), ctx.config.ends.stuck_seconds
    began = ctx.states.of(members.root.key).leaving
    waits = []
    for pod in members.pods(PodState.LEAVING):
        grace = pod.metadata.deletion_grace_period_seconds or 0
        left = began.setdefault(pod.uid, now) + grace + stuck - now
        if left > 0:
            waits.append(left)
        elif (node := ctx.keeper.snapshot().nodes.get(pod.spec.node_name)) is not None and node.node.ready:
            waits.append(stuck)
    return min(waits, default=None)


def again(ctx: SchedulerContext, desired: DesiredJob, placeholder: Placeholder) -> Filed | None:
    """The job ended before the pod had a node: None when it is to be submitted again."""
    read = ctx.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
    if read is not None and read.alive:
        return AT_ONCE
    if read is not None and read.torn:
        # A component ended before the others had started: they never would.
        seen = ctx.slurm.states([read.job_id]).get(read.job_id)
        cancelled = seen is not None and any("CANCELLED" in one.state.words for one in seen.components)
        if cancelled and not desired_job.answered(desired, read):
            park(ctx, desired, read, f"a component of Slurm job {read.job_id} was cancelled before the pods had nodes")
        if not cancel.withdraw(ctx, read, "a component of it has ended", noted=True):
            return ctx.back_off(desired.workload.root.key)
        return AT_ONCE
    if read is None or read.owner.note or words.end_word(read) != "CANCELLED":
        return None
    return park(ctx, desired, read, f"{words.ended(read)} before the pod had a node")


def park(ctx: SchedulerContext, desired: DesiredJob, placeholder: Placeholder | None, why: str) -> Filed:
    """Write on all pods that they are not submitted again until their user changes something."""
    note = desired_job.park_note(desired, placeholder, why)
    _write_note(ctx, desired, note)
    ctx.status.group(desired.workload, "SlurmJobEnded", parked_text(why), warning=True)
    ctx.counters.attempt("parked")
    return WOKEN


def spread(ctx: SchedulerContext, desired: DesiredJob) -> Filed:
    """Members without the note get it from the others: it has to outlive each of them."""
    _write_note(ctx, desired, desired_job.note_of(desired))
    return tell_parked(ctx, desired)


def _write_note(ctx: SchedulerContext, desired: DesiredJob, note: str) -> None:
    for pod in desired_job.without(desired, note):
        pod_marks.annotate(ctx, pod, names.ANNOTATION_PARKED, note)


def tell_parked(ctx: SchedulerContext, desired: DesiredJob) -> Filed:
    """Keep saying why it waits."""
    uid, suspended = desired.workload.root.key, desired.workload.suspended
    if not ctx.may_have_job(uid):
        ctx.ended(uid)
    if suspended:
        text = f"{suspended} is suspended; a job is submitted when it is resumed"
        ctx.say(desired.workload, "Suspended", text, parked=True)
    else:
        ctx.say(desired.workload, "Parked", parked_text(desired_job.why_parked(desired)), parked=True)
    return WOKEN


def parked_text(why: str) -> str:
    """What happened, and what helps."""
    return f"{why}; not submitted again until the workload changes or gets a new {names.ANNOTATION_RETRY} annotation"


def _outcome(members: WorkloadPods | None) -> str:
    """Why the pods want nothing of Slurm any more."""
    pod = members.any if members is not None else None
    if members is None or pod is None:
        return "pod is gone"
    if members.root.kind != kinds.PODS.kind:
        return f"the pods of {members.root} are over"
    if pod.terminal:
        return f"pod {pod.status.phase}" + (f" ({pod.status.reason})" if pod.status.reason else "")
    return "pod was deleted before it had a node" if not pod.bound else "pod was bound by another scheduler"
