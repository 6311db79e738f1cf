"""When one side ends, so does the other; and what is doubtful ends nothing.

pods over          note why in the job, cancel it
job ended          say so on the pod (DisruptionTarget), then delete exactly this pod
job gone           the same, after a pause, and unless so many went at once that Slurm's memory is in doubt
job cancelled      before the pod had a node: respected; the pod is told and waits for somebody to change something
"""

from collections.abc import Iterable

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model import kinds, names
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.ports import Scope
from slurm_bridge.scheduler import marking, relevant, words
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.effects import cancel, look_up
from slurm_bridge.scheduler.members import Crew, Standing, job_id_of
from slurm_bridge.scheduler.queue import AT_ONCE, FORGET, WOKEN, Filed
from slurm_bridge.scheduler.state import Wish
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.workloads import voices

#: A pod that changed under our hands: its next event says more, or this does.
DISAGREED = 1.0
#: While mass disappearance is doubted, how often to look whether it still is.
DOUBTFUL = 30.0


def withdraw(ctx: Tools, uid: WorkloadKey, crew: Crew | None, *, seen: bool) -> Filed:
    """The pods are over: cancel every placeholder that lives. `seen` says that we saw them end or go."""
    placeholders = ctx.table.of(uid)
    if crew is None and not seen and _exists(ctx, placeholders[0]):
        logger.warning("{} exists though it is not ours to see; its job stays", placeholders[0].owner.name)
        return Filed(after=DOUBTFUL)
    why = _outcome(crew)
    for one in placeholders:
        if (one.alive or one.torn) and not _withdraw_one(ctx, one, why, orphan=not seen and crew is None):
            return ctx.back_off(one.owner.key)
    return AT_ONCE


def _withdraw_one(ctx: Tools, placeholder: Placeholder, why: str, *, orphan: bool) -> bool:
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
    ctx.tally.ended("orphan" if orphan else "pod")
    return True


def _exists(ctx: Tools, placeholder: Placeholder) -> bool:
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


def drop(ctx: Tools, uid: WorkloadKey) -> Filed:
    """Both sides are over."""
    for one in ctx.table.of(uid):
        ctx.table.drop(one.job_id)
    ctx.forget(uid)
    ctx.states.drop(uid)
    ctx.ended(uid)
    ctx.voice.forget(uid)
    return FORGET


def cancel_surplus(ctx: Tools, surplus: tuple[Placeholder, ...]) -> Filed:
    """Of several jobs for one workload one is kept, before anything is bound."""
    for one in surplus:
        logger.warning("job {} is a second one for {}: cancelled", one.job_id, one.owner.name)
        if not cancel.withdraw(ctx, one, "a second job for the same workload", noted=True):
            return ctx.back_off(one.owner.key)
        ctx.table.drop(one.job_id)
    return AT_ONCE


def doubt(ctx: Tools, crew: Crew, placeholder: Placeholder) -> Filed:
    """The job of bound pods is unknown to Slurm: believed after a pause, one by one, and never of a multitude.

    Whether a job that we have seen is gone is told by others that we have seen. Anybody can write any job id on a
    pod and bind it himself: such ids count only for pods of whose jobs nothing else is known, either.
    """
    ends, now = ctx.config.ends, ctx.clock.now()
    settled = placeholder.since + ends.settle_seconds
    if now < settled:
        return Filed(after=settled - now)
    vanished, bound = ctx.table.vanished(named=not placeholder.seen)
    if ends.breaker.open(vanished, bound):
        text = f"{vanished} of {bound} placeholder jobs have vanished at once; no pod is ended until that is explained"
        logger.error(text)
        for pod in crew.pods(Standing.BOUND)[:1]:
            ctx.voice.event(pod, "SlurmJobsVanished", text, warning=True)
        return Filed(after=DOUBTFUL)
    # Its absence was read once, some seconds ago; Slurm may have said so by mistake.
    found = ctx.mirror.look_whose(placeholder.job_id, placeholder.owner)
    if isinstance(found, Placeholder) and found.owner.same_workload(placeholder.owner):
        return AT_ONCE
    if found is not None and not placeholder.seen and not _bound_by_us(ctx, crew, placeholder.job_id):
        # Its absence made it ours, or a note on its pods, and neither is so any more.
        look_up.disbelieve(ctx, placeholder)
        return AT_ONCE
    return _end(ctx, crew, placeholder)


def _bound_by_us(ctx: Tools, crew: Crew, job_id: names.JobId) -> bool:
    """Whether all pods that name this job say that this bridge has bound them."""
    cluster = ctx.config.rules.cluster_id
    pods = (pod for pod in crew.pods(Standing.BOUND) if job_id_of(pod) == job_id)
    return all(pod.metadata.annotations.get(names.ANNOTATION_BOUND_BY) == cluster for pod in pods)


def end(ctx: Tools, crew: Crew, placeholder: Placeholder) -> Filed:
    """The job of bound pods has ended; whether the id is still that job's is looked at first."""
    read = ctx.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
    if read is None or (read.alive and not read.torn):
        return AT_ONCE
    return _end(ctx, crew, read)


def _end(ctx: Tools, crew: Crew, placeholder: Placeholder) -> Filed:
    word, text = words.end_word(placeholder), words.ended(placeholder)
    if word == "TIMEOUT":
        _after_timeout(ctx, crew, text)
    if placeholder.torn and not cancel.withdraw(ctx, placeholder, text):
        return ctx.back_off(crew.root.key)
    return end_all(ctx, crew, placeholder, word, text)


def end_all(ctx: Tools, crew: Crew, placeholder: Placeholder, word: str, text: str) -> Filed:
    """Every pod that this job gave a node to, and that is not on its way out already."""
    theirs = (pod for pod in crew.pods(Standing.BOUND) if job_id_of(pod) == placeholder.job_id)
    return _end_each(ctx, ((pod, text) for pod in theirs), word=word)


def _end_each(ctx: Tools, ends: Iterable[tuple[Pod, str]], *, word: str) -> Filed:
    """One that has changed meanwhile does not keep the others alive; it is looked at again."""
    filed = WOKEN
    for pod, text in ends:
        try:
            end_pod(ctx, pod, word, text)
        except errors.Disagreement as problem:
            logger.bind(workload="/".join(pod.key)).info("not ended yet: {}", problem)
            filed = Filed(after=DISAGREED)
    return filed


def end_shrunk(ctx: Tools, crew: Crew, lost: Iterable[Pod], placeholder: Placeholder) -> Filed:
    """Pods whose node their running job does not hold any more, by two readings: one may be garbled."""
    read = ctx.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
    again = {pod.uid for pod in relevant.shrunk(crew, read)} if read is not None else set()
    still = [pod for pod in lost if pod.uid in again]
    if not still:
        return AT_ONCE
    text = f"Slurm job {placeholder.job_id} no longer holds node"
    return _end_each(ctx, ((pod, f"{text} {pod.spec.node_name}") for pod in still), word="SHRUNK")


def end_pod(ctx: Tools, pod: Pod, word: str, text: str) -> Filed:
    """Say why, then delete exactly this pod. Not an eviction: no budget can keep a node that Slurm gave away."""
    ctx.voice.disrupt(pod, "SlurmJobEnded", text)
    ctx.cluster.delete(kinds.PODS, pod)
    ctx.voice.event(pod, "SlurmJobEnded", text, warning=True)
    ctx.tally.ended(word.lower())
    logger.bind(workload="/".join(pod.key)).info("pod deleted: {}", text)
    return WOKEN


def _after_timeout(ctx: Tools, crew: Crew, text: str) -> None:
    """Whoever makes such pods would make others, which would be cut off just the same."""
    controllers = [maker for pod in crew.pods(Standing.BOUND) if (maker := voices.controller(pod)) is not None]
    makers = {one.key: one.kind for one in controllers} | {crew.root.object_key: crew.root.kind}
    for key, kind in makers.items():
        if kind in ctx.config.ends.hold_after_timeout:
            ctx.held.put(key, text)


def leaving(ctx: Tools, crew: Crew) -> Filed:
    """Pods that are being deleted keep their job until they are gone, unless their node is dead."""
    if not ctx.table.lives(crew.root.key):
        return WOKEN
    uid, now, heads = crew.root.key, ctx.clock.now(), crew.count(Standing.LEAVING)
    state = ctx.states.of(uid)
    before, due = state.leaving_looked or (0, now)
    if heads > before or now >= due:
        left = _patience(ctx, crew)
        if not crew.count(Standing.LEAVING):
            return AT_ONCE
        if left is None:
            logger.warning("the pods of {} hang on dead nodes; their job is given back", crew.root)
            return withdraw(ctx, uid, crew, seen=True)
        due = now + left
    state.leaving_looked = (heads, due)
    return Filed(after=due - now)


def _patience(ctx: Tools, crew: Crew) -> float | None:
    """How long to wait before looking again at those that leave; None when all of them hang on dead nodes."""
    now, stuck = ctx.clock.now(), ctx.config.ends.stuck_seconds
    began = ctx.states.of(crew.root.key).leaving
    waits = []
    for pod in crew.pods(Standing.LEAVING):
        grace = pod.metadata.deletion_grace_period_seconds or 0
        left = began.setdefault(pod.uid, now) + grace + stuck - now
        if left > 0:
            waits.append(left)
        elif _node_lives(ctx, pod):
            waits.append(stuck)
    return min(waits, default=None)


def _node_lives(ctx: Tools, pod: Pod) -> bool:
    node = ctx.keeper.snapshot().nodes.get(pod.spec.node_name)
    return node is not None and node.node.ready


def again(ctx: Tools, wish: Wish, placeholder: Placeholder) -> Filed | None:
    """The job ended before the pod had a node: None when it is to be submitted again."""
    read = ctx.mirror.look(placeholder.job_id, placeholder.owner, tell=False)
    if read is not None and read.alive:
        return AT_ONCE
    if read is not None and read.torn:
        return _torn(ctx, wish, read)
    if read is None or read.owner.note or words.end_word(read) != "CANCELLED":
        return None
    return park(ctx, wish, read, f"{words.ended(read)} before the pod had a node")


def _torn(ctx: Tools, wish: Wish, read: Placeholder) -> Filed:
    """A component ended before the others had started: they never would."""
    parts = ctx.slurm.components(read.job_id)
    cancelled = any("CANCELLED" in one.state.words for one in parts)
    if cancelled and not wishes.answered(wish, read):
        park(ctx, wish, read, f"a component of Slurm job {read.job_id} was cancelled before the pods had nodes")
    if not cancel.withdraw(ctx, read, "a component of it has ended", noted=True):
        return ctx.back_off(wish.workload.root.key)
    return AT_ONCE


def park(ctx: Tools, wish: Wish, placeholder: Placeholder | None, why: str) -> Filed:
    """Write on the pods at once that they are not to be submitted again until somebody changes something."""
    note = wishes.park_note(wish, placeholder, why)
    _write_note(ctx, wish, note)
    ctx.voice.group(wish.workload, "SlurmJobEnded", parked_text(why), warning=True)
    ctx.tally.attempt("parked")
    return WOKEN


def spread(ctx: Tools, wish: Wish) -> Filed:
    """Those who do not carry the note yet get it from the others: it has to outlive any of them."""
    _write_note(ctx, wish, wishes.note_of(wish))
    return tell_parked(ctx, wish)


def _write_note(ctx: Tools, wish: Wish, note: str) -> None:
    for pod in wishes.without(wish, note):
        marking.annotate(ctx, pod, names.ANNOTATION_PARKED, note)


def tell_parked(ctx: Tools, wish: Wish) -> Filed:
    """Keep saying why it waits."""
    uid, suspended = wish.workload.root.key, wish.workload.suspended
    if not ctx.may_have_job(uid):
        ctx.ended(uid)
    if suspended:
        text = f"{suspended} is suspended; a job is submitted when it is resumed"
        ctx.say(wish.workload, "Suspended", text)
    else:
        ctx.say(wish.workload, "Parked", parked_text(wishes.why_parked(wish)))
    return WOKEN


def parked_text(why: str) -> str:
    """What happened, and what helps."""
    return f"{why}; not submitted again until the workload changes or gets a new {names.ANNOTATION_RETRY} annotation"


def _outcome(crew: Crew | None) -> str:
    """Why the pods want nothing of Slurm any more."""
    pod = crew.any if crew is not None else None
    if crew is None or pod is None:
        return "pod is gone"
    if crew.root.kind != kinds.PODS.kind:
        return f"the pods of {crew.root} are over"
    if pod.terminal:
        return f"pod {pod.status.phase}" + (f" ({pod.status.reason})" if pod.status.reason else "")
    return "pod was deleted before it had a node" if not pod.bound else "pod was bound by another scheduler"
