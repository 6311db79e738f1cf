"""What follows from a decision: what is said at once, and the calls to either side, which a worker makes."""

import dataclasses
from collections.abc import Callable, Mapping

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import active_usage, current_job, desired_job, records, timers, words
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.decide import Action, Decision, Facts, Pods, Stray
from slurm_bridge.scheduler.effects import (
    bind,
    cancel,
    claim_writes,
    device_claims,
    end,
    job_users,
    look_up,
    report,
    restore,
    submit,
    unanswered,
    update,
)
from slurm_bridge.scheduler.facts import Subject
from slurm_bridge.scheduler.queue import AT_ONCE, LINE_UP, WOKEN, Filed
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods

#: The rest of an action; it calls either side, and may take its time.
Act = Callable[[], Filed]


def carry_out(ctx: SchedulerContext, decision: Decision, subject: Subject, facts: Facts) -> Act | Filed:
    """Begin the action, and return the rest of it."""
    return _EFFECTS[decision.action](ctx, subject, decision, facts)


# -- the workload as a whole -------------------------------------------------------------------------------------------


def _search(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    return lambda: unanswered.search(ctx, subject.key)


def _cancel_surplus(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    return lambda: end.cancel_surplus(ctx, subject.surplus)


def _await_watch(_ctx: SchedulerContext, _subject: Subject, decision: Decision, _facts: Facts) -> Filed:
    return Filed(after=decision.after)


def _rest(ctx: SchedulerContext, subject: Subject, decision: Decision, facts: Facts) -> Filed:
    if facts.pods is Pods.BOUND:
        _complete(ctx, subject)
    return Filed(after=decision.after)


def _replace(ctx: SchedulerContext, subject: Subject, decision: Decision, _facts: Facts) -> Act:
    state = ctx.states.get(subject.key)
    if state is not None:
        state.returned = None
    return lambda: cancel.replace(ctx, subject.job, decision.why)


# -- pods without nodes ------------------------------------------------------------------------------------------------


def _settle(_ctx: SchedulerContext, _subject: Subject, decision: Decision, _facts: Facts) -> Filed:
    return Filed(after=decision.after)


def _tell(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
    return _say_obstacle(ctx, subject)


def _tell_for_a_while(ctx: SchedulerContext, subject: Subject, decision: Decision, _facts: Facts) -> Filed:
    _say_obstacle(ctx, subject)
    timers.start_incomplete(ctx.states.of(subject.key).leadership, ctx.clock.now())
    return Filed(after=decision.after)


def _tell_and_replace(ctx: SchedulerContext, subject: Subject, decision: Decision, facts: Facts) -> Act:
    _say_obstacle(ctx, subject)
    return _replace(ctx, subject, decision, facts)


def _say_obstacle(ctx: SchedulerContext, subject: Subject) -> Filed:
    """Tell the pods what keeps them from a job; without a job and nodes, hooks count nothing for them any more."""
    members, obstacle = subject.pods, subject.obstacle
    assert obstacle is not None
    _stop_counting(ctx, members)
    if isinstance(subject.gathered, Workload):
        return report.of_workload(ctx, subject.gathered, obstacle)
    if isinstance(obstacle, Wait) and members.root.kind != "Pod":
        ctx.say_to_members(members, obstacle.reason, obstacle.message)
        return Filed(after=obstacle.retry_after)
    return report.of_crew(ctx, members, obstacle)


def _stop_counting(ctx: SchedulerContext, members: WorkloadPods) -> None:
    if not active_usage.keeps(ctx, members, members.root.key):
        ctx.ended(members.root.key)


def _spread_note(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    return lambda: end.spread(ctx, subject.wanted)


def _tell_parked(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
    return end.tell_parked(ctx, subject.wanted)


def _park(ctx: SchedulerContext, subject: Subject, decision: Decision, _facts: Facts) -> Act:
    why = f"{decision.why}; pods that replace the ended ones are not submitted automatically"
    return lambda: end.park(ctx, subject.wanted, None, why)


def _line_up(_ctx: SchedulerContext, _subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
    return LINE_UP


def _submit(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act | Filed:
    desired, placeholder = subject.wanted, subject.placeholder
    planned = desired_job.plan(desired, ctx, placeholder)
    if isinstance(planned, Wait) and ctx.cleared(desired.workload):
        ctx.promised.crowds_out(desired.workload.root.key)
    if isinstance(planned, Wait) and planned.retry_after is None:
        # Nothing is reported when the time is over for which a node is avoided.
        planned = dataclasses.replace(planned, retry_after=ctx.shunned_for(desired.workload))
    if isinstance(planned, Wait | Reject):
        return _without_devices(ctx, subject, report.of_workload(ctx, desired.workload, planned))
    late = ctx.config.chain.commit(desired.workload, planned, ctx.keeper.snapshot())
    if late is not None:
        return report.of_workload(ctx, desired.workload, late)
    return lambda: submit.submit(ctx, desired, planned, placeholder, subject.pods.served)


def _without_devices(ctx: SchedulerContext, subject: Subject, filed: Filed) -> Act | Filed:
    """What it waits for may be a claim of another pod; one that is being deleted is let go for another in its place."""
    device_claims.await_claims(ctx, subject.key, subject.pods.pods(PodState.WANTING))
    stranded = device_claims.stranded(ctx, subject.pods)
    if not stranded:
        return filed

    def give_back() -> Filed:
        device_claims.undo(ctx, stranded)
        return dataclasses.replace(filed, after=claim_writes.UNSERVED)

    return give_back


def _keep(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    desired, placeholder = subject.wanted, subject.job
    planned = desired_job.plan(desired, ctx, placeholder)
    return lambda: update.keep(ctx, desired, planned, placeholder)


def _await_slurm(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
    placeholder, workload = subject.job, subject.wanted.workload
    ctx.say(workload, "SlurmJobPending", words.waiting(placeholder), key=words.key(placeholder))
    return WOKEN


def _ask_why(ctx: SchedulerContext, subject: Subject, decision: Decision, facts: Facts) -> Act:
    otherwise = LINE_UP
    if facts.cancelled:
        _stop_counting(ctx, subject.pods)
        otherwise = Filed(after=decision.after)
    return lambda: end.again(ctx, subject.wanted, subject.job) or otherwise


def _refuse_user(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    return lambda: job_users.refuse(ctx, subject.wanted, subject.job)


def _bind(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    _begin_start(ctx, subject)
    return lambda: bind.bind(ctx, subject.wanted, subject.job)


def _begin_start(ctx: SchedulerContext, subject: Subject) -> None:
    leadership = ctx.states.of(subject.key).leadership
    timers.begin_start(leadership, subject.job.job_id, ctx.clock.now())


# -- pods that join a job that runs ------------------------------------------------------------------------------------


def _finish_start(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    _begin_start(ctx, subject)

    def act() -> Filed:
        try:
            filed = bind.join(ctx, subject.wanted, subject.pods, subject.job)
        except errors.TryLater as problem:
            logger.bind(workload=str(subject.pods.root)).info("not all bound yet: {}", problem)
            filed = ctx.back_off(subject.key)
        return _in_time(ctx, subject, filed)

    return act


def _in_time(ctx: SchedulerContext, subject: Subject, filed: Filed) -> Filed:
    """The workload is looked at again before the time for its start is over."""
    leadership = ctx.states.of(subject.key).leadership
    left = timers.start_left(leadership, subject.pods, subject.job, ctx.clock.now(), ctx.limits)
    if left is None or (filed.after is not None and filed.after < left):
        return filed
    return Filed(after=max(0.0, left))


def _tell_members(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
    assert subject.obstacle is not None
    return _in_time(ctx, subject, report.of_crew(ctx, subject.pods, subject.obstacle))


def _join(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    return lambda: bind.join(ctx, subject.wanted, subject.pods, subject.job)


def _undo_start(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    members, placeholder, seconds = subject.pods, subject.job, int(ctx.limits.bind_seconds)
    text = f"not all pods of {members.root} could be bound within {seconds} s; the bound ones are deleted"

    def act() -> Filed:
        # Bindings that the watch has not reported count: a start that is complete is not undone for them.
        bound = {pod.uid for pod in cancel.bound_by(ctx, placeholder)}
        more = sum(pod.uid in bound for pod in members.pods(PodState.WANTING))
        if timers.is_complete(members, placeholder, more=more):
            return Filed(after=bind.ECHO)
        ctx.states.of(subject.key).leadership.undone = placeholder.job_id
        ended = end.end_all(ctx, members, placeholder, "NOTBOUND", text)
        # Where no pod has a node any more, no pod's end wakes the workload.
        return ended if members.on(placeholder.job_id) else AT_ONCE

    return act


def _await_group(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
    root = subject.pods.root
    text = f"{root} runs as Slurm job {subject.job.job_id}; this pod starts together with all others next time"
    ctx.say_to_members(subject.pods, "GangRuns", text)
    return WOKEN


# -- pods with nodes ---------------------------------------------------------------------------------------------------


def _look_up(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    return lambda: look_up.look(ctx, subject.pods)


def _leave(ctx: SchedulerContext, subject: Subject, _decision: Decision, facts: Facts) -> Act:
    members = subject.pods
    if facts.wanting:
        job_id = subject.job.job_id
        text = f"earlier pods of {members.root} are still on the nodes of Slurm job {job_id}"
        ctx.say_to_members(members, "GangRuns", text)
    return lambda: end.leaving(ctx, members)


def _regain(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    return lambda: restore.pending(ctx, subject.pods, subject.job)


def _restore(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    return lambda: restore.restore(ctx, subject.wanted, subject.job, subject.pods)


def _doubt(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    return lambda: end.doubt(ctx, subject.pods, subject.job)


def _end(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    return lambda: end.end(ctx, subject.pods, subject.job)


def _end_shrunk(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
    lost = current_job.shrunk(subject.pods, subject.job)
    return lambda: end.end_shrunk(ctx, subject.pods, lost, subject.job)


def _restart(ctx: SchedulerContext, subject: Subject, _decision: Decision, facts: Facts) -> Act:
    if facts.pods is Pods.BOUND:
        _complete(ctx, subject)
    text = f"a pod of {subject.pods.root} was lost, and its policy is to restart the whole group"
    return lambda: end.end_all(ctx, subject.pods, subject.job, "RESTART", text)


def _announce(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
    _complete(ctx, subject)
    members, whole = subject.pods, subject.gathered
    enough = members.count(PodState.BOUND, PodState.DONE) >= records.starters_of(subject.job.owner)
    if isinstance(whole, Workload) and enough:
        ctx.states.of(subject.key).announced = True
        ctx.status.scheduled(whole)
    return WOKEN


def _complete(ctx: SchedulerContext, subject: Subject) -> None:
    """All members have nodes: the start is over."""
    ctx.states.of(subject.key).leadership.starting = None


# -- pods that are over ------------------------------------------------------------------------------------------------


def _ignore(_ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
    logger.warning("job {} stands for a {}: left alone", subject.job.job_id, subject.job.owner.kind)
    return WOKEN


def _withdraw(ctx: SchedulerContext, subject: Subject, _decision: Decision, facts: Facts) -> Act:
    seen = facts.stray is Stray.CHECK or subject.workload_pods is not None or ctx.pod_index.seen_gone(subject.key)
    return lambda: end.withdraw(ctx, subject.key, subject.workload_pods, seen=seen)


def _forget(ctx: SchedulerContext, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
    ctx.node_waiters.drop(subject.key)
    ctx.claim_waiters.drop(subject.key)
    return end.drop(ctx, subject.key)


_EFFECTS: Mapping[Action, Callable[[SchedulerContext, Subject, Decision, Facts], Act | Filed]] = {
    Action.SEARCH: _search,
    Action.CANCEL_SURPLUS: _cancel_surplus,
    Action.AWAIT_WATCH: _await_watch,
    Action.SETTLE: _settle,
    Action.TELL: _tell,
    Action.TELL_FOR_A_WHILE: _tell_for_a_while,
    Action.TELL_AND_REPLACE: _tell_and_replace,
    Action.SPREAD_NOTE: _spread_note,
    Action.TELL_PARKED: _tell_parked,
    Action.PARK: _park,
    Action.LINE_UP: _line_up,
    Action.SUBMIT: _submit,
    Action.KEEP: _keep,
    Action.AWAIT_SLURM: _await_slurm,
    Action.ASK_WHY: _ask_why,
    Action.REFUSE_USER: _refuse_user,
    Action.REPLACE: _replace,
    Action.BIND: _bind,
    Action.FINISH_START: _finish_start,
    Action.JOIN: _join,
    Action.UNDO_START: _undo_start,
    Action.TELL_MEMBERS: _tell_members,
    Action.AWAIT_GROUP: _await_group,
    Action.LOOK_UP: _look_up,
    Action.LEAVE: _leave,
    Action.REGAIN: _regain,
    Action.RESTORE: _restore,
    Action.DOUBT: _doubt,
    Action.END: _end,
    Action.END_SHRUNK: _end_shrunk,
    Action.RESTART: _restart,
    Action.ANNOUNCE: _announce,
    Action.REST: _rest,
    Action.IGNORE: _ignore,
    Action.WITHDRAW: _withdraw,
    Action.FORGET: _forget,
}
