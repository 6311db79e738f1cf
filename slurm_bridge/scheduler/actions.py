"""What follows from a decision: what is said at once, and the calls to either side, which a worker makes."""

import dataclasses
from collections.abc import Callable, Mapping

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model.names import JobId, WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import held, job_users, records, relevant, submitting, timers, words
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.binding import ECHO, Binder
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.checking import Remains
from slurm_bridge.scheduler.decide import Action, Decision, Facts, Pods, Stray
from slurm_bridge.scheduler.ending import Ender
from slurm_bridge.scheduler.facts import Subject
from slurm_bridge.scheduler.finding import Finder
from slurm_bridge.scheduler.keeping import Warden
from slurm_bridge.scheduler.members import Crew, Picked, Standing, job_id_of
from slurm_bridge.scheduler.obstacles import Obstacles
from slurm_bridge.scheduler.queue import AT_ONCE, LINE_UP, WOKEN, Filed
from slurm_bridge.scheduler.restoring import Restorer
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.withdrawing import Replacer, bound_by

#: The rest of an action; it calls either side, and may take its time.
Act = Callable[[], Filed]


class Actions:
    """One method for each action; each returns what is left to do, or when to look again."""

    def __init__(self, tools: Tools, census: Census) -> None:
        self._tools, self._census = tools, census
        self.replacer = Replacer(tools)
        self.users = job_users.JobUsers(tools, self.replacer)
        self.submitter = submitting.Submitter(tools, self.replacer, self.users)
        self.warden = Warden(tools, self.replacer)
        self.obstacles = Obstacles(tools)
        self.finder = Finder(tools, census)
        self.ender = Ender(tools, self.finder.disbelieve)
        self.restorer = Restorer(tools, self.ender)
        remains = Remains(all=self._remains, forgotten=self._forgotten)
        self.binder = Binder(tools, self.replacer, self.warden, self.users, remains)

    def carry_out(self, decision: Decision, subject: Subject, facts: Facts) -> Act | Filed:
        """Begin the action, and return the rest of it."""
        return _METHODS[decision.action](self, subject, decision, facts)

    # -- the workload as a whole -------------------------------------------------------------------------------------

    def _search(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        return lambda: self.submitter.search(subject.key)

    def _cancel_surplus(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        return lambda: self.ender.cancel_surplus(subject.surplus)

    def _await_watch(self, _subject: Subject, decision: Decision, _facts: Facts) -> Filed:
        return Filed(after=decision.after)

    def _rest(self, subject: Subject, decision: Decision, facts: Facts) -> Filed:
        if facts.pods is Pods.BOUND:
            self._complete(subject)
        return Filed(after=decision.after)

    def _replace(self, subject: Subject, decision: Decision, _facts: Facts) -> Act:
        state = self._tools.states.get(subject.key)
        if state is not None:
            state.returned = None
        return lambda: self.replacer.replace(subject.job, decision.why)

    # -- pods without nodes ------------------------------------------------------------------------------------------

    def _settle(self, _subject: Subject, decision: Decision, _facts: Facts) -> Filed:
        return Filed(after=decision.after)

    def _tell(self, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
        return self._say_obstacle(subject)

    def _tell_for_a_while(self, subject: Subject, decision: Decision, _facts: Facts) -> Filed:
        self._say_obstacle(subject)
        timers.start_incomplete(self._tools.states.of(subject.key).leadership, self._tools.clock.now())
        return Filed(after=decision.after)

    def _tell_and_replace(self, subject: Subject, decision: Decision, facts: Facts) -> Act:
        self._say_obstacle(subject)
        return self._replace(subject, decision, facts)

    def _say_obstacle(self, subject: Subject) -> Filed:
        """Tell the pods what keeps them from a job; without a job and nodes, hooks count nothing for them any more."""
        crew, obstacle = subject.pods, subject.obstacle
        assert obstacle is not None
        self._stop_counting(crew)
        if isinstance(subject.gathered, Workload):
            return self.obstacles.of_workload(subject.gathered, obstacle)
        if isinstance(obstacle, Wait) and crew.root.kind != "Pod":
            self._say_waiting(crew, obstacle.reason, obstacle.message)
            return Filed(after=obstacle.retry_after)
        return self.obstacles.of_crew(crew, obstacle)

    def _stop_counting(self, crew: Crew) -> None:
        if not held.keeps(self._tools, crew, crew.root.key):
            self._tools.ended(crew.root.key)

    def _say_waiting(self, crew: Crew, reason: str, text: str) -> None:
        self._tools.voice.waiting_together(crew.root, Picked(crew, Standing.WANTING), reason, text)

    def _spread_note(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        return lambda: self.ender.spread(subject.wanted)

    def _tell_parked(self, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
        return self.ender.tell_parked(subject.wanted)

    def _park(self, subject: Subject, decision: Decision, _facts: Facts) -> Act:
        why = f"{decision.why}; what replaces the pods that were ended is not submitted by itself"
        return lambda: self.ender.park(subject.wanted, None, why)

    def _line_up(self, _subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
        return LINE_UP

    def _submit(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act | Filed:
        tools, wish, placeholder = self._tools, subject.wanted, subject.placeholder
        planned = wishes.plan(wish, tools, placeholder)
        if isinstance(planned, Wait) and tools.cleared(wish.workload):
            tools.promised.crowds_out(wish.workload.root.key)
        if isinstance(planned, Wait) and planned.retry_after is None and tools.avoid(wish.workload):
            # Nothing is reported when a node is no longer avoided.
            planned = dataclasses.replace(planned, retry_after=tools.avoided.seconds)
        if isinstance(planned, Wait | Reject):
            return self.obstacles.of_workload(wish.workload, planned)
        late = tools.config.chain.commit(wish.workload, planned, tools.keeper.snapshot())
        if late is not None:
            return self.obstacles.of_workload(wish.workload, late)
        return lambda: self.submitter.submit(wish, planned, placeholder, subject.pods.served)

    def _keep(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        wish, placeholder = subject.wanted, subject.job
        planned = wishes.plan(wish, self._tools, placeholder)
        return lambda: self.warden.keep(wish, planned, placeholder)

    def _await_slurm(self, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
        placeholder, workload = subject.job, subject.wanted.workload
        self._tools.say(workload, "SlurmJobPending", words.waiting(placeholder), key=words.key(placeholder))
        return WOKEN

    def _ask_why(self, subject: Subject, decision: Decision, facts: Facts) -> Act:
        otherwise = LINE_UP
        if facts.cancelled:
            self._stop_counting(subject.pods)
            otherwise = Filed(after=decision.after)
        return lambda: self.ender.again(subject.wanted, subject.job) or otherwise

    def _refuse_user(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        return lambda: self.users.refuse(subject.wanted, subject.job)

    def _bind(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        self._begin_start(subject)
        return lambda: self.binder.bind(subject.wanted, subject.job)

    def _begin_start(self, subject: Subject) -> None:
        leadership = self._tools.states.of(subject.key).leadership
        timers.begin_start(leadership, subject.job.job_id, self._tools.clock.now())

    # -- pods that join a job that runs ------------------------------------------------------------------------------

    def _finish_start(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        self._begin_start(subject)

        def act() -> Filed:
            try:
                filed = self.binder.join(subject.wanted, subject.pods, subject.job)
            except errors.TryLater as problem:
                logger.bind(workload=str(subject.pods.root)).info("not all bound yet: {}", problem)
                filed = Filed(after=self._tools.pause(subject.key))
            return self._in_time(subject, filed)

        return act

    def _in_time(self, subject: Subject, filed: Filed) -> Filed:
        """The workload is looked at again before the time for its start is over."""
        tools = self._tools
        leadership = tools.states.of(subject.key).leadership
        left = timers.start_left(leadership, subject.pods, subject.job, tools.clock.now(), tools.limits)
        if left is None or (filed.after is not None and filed.after < left):
            return filed
        return Filed(after=max(0.0, left))

    def _tell_members(self, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
        assert subject.obstacle is not None
        return self._in_time(subject, self.obstacles.of_crew(subject.pods, subject.obstacle))

    def _join(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        return lambda: self.binder.join(subject.wanted, subject.pods, subject.job)

    def _undo_start(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        crew, placeholder, seconds = subject.pods, subject.job, int(self._tools.limits.bind_seconds)
        text = f"not all pods of {crew.root} could be bound within {seconds} s; those that were are taken back"

        def act() -> Filed:
            # Bindings that the watch has not reported count: a start that is complete is not undone for them.
            bound = {pod.uid for pod in bound_by(self._tools, placeholder)}
            more = sum(pod.uid in bound for pod in crew.pods(Standing.WANTING))
            if timers.is_complete(crew, placeholder, more=more):
                return Filed(after=ECHO)
            self._tools.states.of(subject.key).leadership.undone = placeholder.job_id
            ended = self.ender.end_all(crew, placeholder, "NOTBOUND", text)
            # Where no pod has a node any more, no pod's end wakes the workload.
            return ended if crew.on(placeholder.job_id) else AT_ONCE

        return act

    def _await_group(self, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
        root = subject.pods.root
        text = f"{root} runs by Slurm job {subject.job.job_id}; this pod starts with all others the next time"
        self._say_waiting(subject.pods, "GangRuns", text)
        return WOKEN

    # -- pods with nodes ---------------------------------------------------------------------------------------------

    def _look_up(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        return lambda: self.finder.look(subject.pods)

    def _leave(self, subject: Subject, _decision: Decision, facts: Facts) -> Act:
        crew = subject.pods
        if facts.wanting:
            job_id = subject.job.job_id
            text = f"the pods that {crew.root} had before still leave the nodes of Slurm job {job_id}"
            self._say_waiting(crew, "GangRuns", text)
        return lambda: self.ender.leaving(crew)

    def _regain(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        return lambda: self.restorer.pending(subject.pods, subject.job)

    def _restore(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        return lambda: self.restorer.restore(subject.wanted, subject.job, subject.pods)

    def _doubt(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        return lambda: self.ender.doubt(subject.pods, subject.job)

    def _end(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        return lambda: self.ender.end(subject.pods, subject.job)

    def _end_shrunk(self, subject: Subject, _decision: Decision, _facts: Facts) -> Act:
        lost = relevant.shrunk(subject.pods, subject.job)
        return lambda: self.ender.end_shrunk(subject.pods, lost, subject.job)

    def _restart(self, subject: Subject, _decision: Decision, facts: Facts) -> Act:
        if facts.pods is Pods.BOUND:
            self._complete(subject)
        text = f"a pod of {subject.pods.root} was lost, and its policy is to restart all of them"
        return lambda: self.ender.end_all(subject.pods, subject.job, "RESTART", text)

    def _announce(self, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
        self._complete(subject)
        crew, whole = subject.pods, subject.gathered
        enough = crew.count(Standing.BOUND, Standing.DONE) >= records.starters_of(subject.job.owner)
        if isinstance(whole, Workload) and enough:
            self._tools.states.of(subject.key).announced = True
            self._tools.voice.scheduled(whole)
        return WOKEN

    def _complete(self, subject: Subject) -> None:
        """All members have nodes: the start is over."""
        self._tools.states.of(subject.key).leadership.starting = None

    # -- pods that are over ------------------------------------------------------------------------------------------

    def _ignore(self, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
        logger.warning("job {} stands for a {}: left alone", subject.job.job_id, subject.job.owner.kind)
        return WOKEN

    def _withdraw(self, subject: Subject, _decision: Decision, facts: Facts) -> Act:
        seen = facts.stray is Stray.CHECK or subject.crew is not None or self._census.seen_gone(subject.key)
        return lambda: self.ender.withdraw(subject.key, subject.crew, seen=seen)

    def _forget(self, subject: Subject, _decision: Decision, _facts: Facts) -> Filed:
        self.binder.checker.forget(subject.key)
        return self.ender.drop(subject.key)

    # -- pods that are still on nodes that Slurm has given away ------------------------------------------------------

    def _remains(self, node: str) -> tuple[Pod, ...]:
        """Pods on a node whose job has ended, or was forgotten and waits for the node again."""
        left = (pod for pod, key in self._census.placed_on(node) if self._has_ended(job_id_of(pod), key))
        return (*left, *self._forgotten(node))

    def _has_ended(self, job_id: JobId | None, key: WorkloadKey) -> bool:
        job = self._tools.table.get(job_id) if job_id is not None else None
        return job is not None and not job.alive and job.owner.key == key

    def _forgotten(self, node: str) -> tuple[Pod, ...]:
        crews = (self._census.crew(uid) for uid in self.restorer.workloads())
        return tuple(pod for crew in crews if crew for pod in relevant.on(node, crew))


_METHODS: Mapping[Action, Callable[[Actions, Subject, Decision, Facts], Act | Filed]] = {
    action: getattr(Actions, f"_{action.name.lower()}") for action in Action
}
