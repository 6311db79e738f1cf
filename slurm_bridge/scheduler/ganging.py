"""What is different when several pods start together: who is missing, who came late, and what follows when one is lost.

not all there         nothing is submitted; what pends is kept for a while, for a member that is made anew
all there, unsettled  one look after the last has come, where nobody says how many there will be
some bound            the rest of a start is bound, within a time, or all are taken back
newcomers             take the places of those who left, or wait until all have, as the gang's policy says
a member lost         the others run on, or are ended, likewise
"""

from collections.abc import Callable, Iterator

from loguru import logger

from slurm_bridge import errors
from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import JobId, WorkloadKey
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import MemberLost, Workload
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.binding import ECHO, Binder
from slurm_bridge.scheduler.ending import Ender
from slurm_bridge.scheduler.members import ENDED, PLACED, Crew, Picked, Standing, job_id_of
from slurm_bridge.scheduler.queue import AT_ONCE, WOKEN, Filed
from slurm_bridge.scheduler.state import Leadership, Wish
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.withdrawing import Replacer, bound_by
from slurm_bridge.workloads import kind_table

#: Members that never stop coming are waited for only so many times as long as it takes to settle.
RESTLESS = 10


class Ganger:
    """Asked about workloads of several pods; of a single pod it says that nothing is the matter."""

    def __init__(self, tools: Tools, ender: Ender) -> None:
        self._tools, self._ender = tools, ender

    def _leadership(self, key: WorkloadKey) -> Leadership:
        return self._tools.states.of(key).leadership

    # Before the start

    def incomplete(
        self, crew: Crew, wait: Wait, placeholder: Placeholder | None, replacer: Replacer
    ) -> Callable[[], Filed] | Filed:
        """Members are missing. A job that exists is kept for as long as it takes to make a lost member anew."""
        self._tell(crew, wait.reason, wait.message)
        if wait.reason == "OwnerUnreadable" or placeholder is None or not placeholder.alive:
            return Filed(after=wait.retry_after)
        left = self._patience(crew)
        if left <= 0:
            return lambda: replacer.replace(placeholder, wait.message)
        return Filed(after=left if wait.retry_after is None else min(left, wait.retry_after))

    def not_for_ever(
        self, crew: Crew, obstacle: Wait | Reject, placeholder: Placeholder | None, replacer: Replacer
    ) -> Callable[[], Filed] | Filed | None:
        """A job that holds nodes is kept for so long only for pods that cannot have them as they are."""
        if placeholder is None or placeholder.phase is not Phase.RUNNING or not isinstance(obstacle, Reject):
            return None
        left = self._patience(crew)
        return Filed(after=left) if left > 0 else lambda: replacer.replace(placeholder, obstacle.message)

    def _patience(self, crew: Crew) -> float:
        """Seconds that are left for whatever is wrong with these pods to be put right."""
        now, leadership = self._tools.clock.now(), self._leadership(crew.root.key)
        if leadership.incomplete_since is None:
            leadership.incomplete_since = now
        return leadership.incomplete_since + self._tools.limits.incomplete_seconds - now

    def _tell(self, crew: Crew, reason: str, text: str) -> None:
        self._tools.voice.waiting_together(crew.root, Picked(crew, Standing.WANTING), reason, text)

    def tell_of_leaving(self, crew: Crew, placeholder: Placeholder) -> None:
        """Those who come while all before them leave."""
        if crew.count(Standing.WANTING):
            text = f"the pods that {crew.root} had before still leave the nodes of Slurm job {placeholder.job_id}"
            self._tell(crew, "GangRuns", text)

    def unsettled(self, workload: Workload, crew: Crew, placeholder: Placeholder | None) -> Filed | None:
        """More may be on their way, and a job that has not started yet would have to be changed for each of them."""
        gang, leadership = workload.gang, self._leadership(crew.root.key)
        leadership.incomplete_since = None
        if gang is None or (gang.size is not None and len(workload.pods) >= gang.size):
            return None
        if placeholder is not None and placeholder.started:
            return None
        if leadership.settling_since is None:
            leadership.settling_since = self._tools.clock.now()
        still = self._still(crew, leadership.settling_since)
        if still is None:
            leadership.settling_since = None
        return still

    def coming(self, crew: Crew, placeholder: Placeholder | None) -> Filed | None:
        """The last look at all of them has shown that more may come, and some have just come: no need for another."""
        started = placeholder is not None and (placeholder.started or placeholder.torn)
        since = self._leadership(crew.root.key).settling_since
        return None if started or since is None else self._still(crew, since)

    def _still(self, crew: Crew, since: float) -> Filed | None:
        now, quiet = self._tools.clock.now(), self._tools.limits.settle_seconds
        left = min(crew.joined + quiet, since + RESTLESS * quiet) - now
        return Filed(after=left) if left > 0 else None

    def anew(self, workload: Workload, crew: Crew, placeholder: Placeholder) -> bool:
        """The job runs and had pods, all of them have gone, and those that want nodes now are to start anew."""
        gang = workload.gang
        if gang is None or placeholder.job_id not in crew.served or crew.on(placeholder.job_id):
            return False
        if gang.member_lost is MemberLost.KEEP:
            return self.undone(crew, placeholder)
        return not records.stands_for(placeholder.owner, workload.pods)

    def undone(self, crew: Crew, placeholder: Placeholder) -> bool:
        """The pods that this job had were taken back, because the others could not be bound."""
        return self._leadership(crew.root.key).undone == placeholder.job_id

    # After the start

    def starts(self, uid: WorkloadKey, job_id: JobId) -> None:
        """Its pods are about to be bound, one after the other."""
        leadership = self._leadership(uid)
        if leadership.starting is None or leadership.starting[0] != job_id:
            leadership.starting = (job_id, self._tools.clock.now())

    def placed(self, crew: Crew, placeholder: Placeholder) -> None:
        """One more has its node: the start is over with the last of them, whatever is lost afterwards."""
        if _complete(crew, placeholder):
            self.started(crew)

    def started(self, crew: Crew) -> None:
        """All have their nodes."""
        self._leadership(crew.root.key).starting = None

    def unannounced(self, crew: Crew) -> bool:
        """The object of the group may not have been told yet that enough have nodes: after a restart."""
        return crew.root.kind in kind_table.ANNOUNCED and not self._tools.states.of(crew.root.key).announced

    def announce(self, crew: Crew, workload: Workload, placeholder: Placeholder) -> None:
        """Tell it once, if it is so: its job was asked for enough, and as many have a place."""
        if crew.count(Standing.BOUND, Standing.DONE) >= records.starters_of(placeholder.owner):
            self._tools.states.of(crew.root.key).announced = True
            self._tools.voice.scheduled(workload)

    def lost(self, crew: Crew, placeholder: Placeholder) -> bool:
        """A member that ran by this job has failed or gone; who was not seen to is not missed."""
        if placeholder.job_id in crew.lost:
            return True
        return any(job_id_of(pod) == placeholder.job_id for pod in crew.pods(Standing.LEAVING, Standing.OVER))

    def restarts(self, workload: Workload) -> bool:
        """A loss ends the others."""
        return workload.gang is not None and workload.gang.member_lost is MemberLost.RESTART

    def restart(self, crew: Crew, placeholder: Placeholder) -> Filed:
        """A member was lost: the others go, too."""
        text = f"a pod of {crew.root} was lost, and its policy is to restart all of them"
        return self._ender.end_all(crew, placeholder, "RESTART", text)

    def join(self, wish: Wish, crew: Crew, placeholder: Placeholder, binder: Binder) -> Callable[[], Filed] | Filed:
        """Some have nodes and others want them."""
        gang = wish.workload.gang
        if gang is None:
            return WOKEN
        lost = self.lost(crew, placeholder)
        # A start goes on although others have come meanwhile.
        begun = self._left(crew, placeholder) is not None and (gang.member_lost is MemberLost.KEEP or not lost)
        if begun or records.stands_for(placeholder.owner, _all_of(crew, placeholder)):
            return self._finish(wish, crew, placeholder, binder)
        if gang.member_lost is MemberLost.KEEP or not lost:
            return lambda: binder.join(wish, crew, placeholder)
        if gang.member_lost is MemberLost.RESTART:
            return lambda: self.restart(crew, placeholder)
        text = f"{crew.root} runs by Slurm job {placeholder.job_id}; this pod starts with all others the next time"
        self._tell(crew, "GangRuns", text)
        return WOKEN

    def _finish(self, wish: Wish, crew: Crew, placeholder: Placeholder, binder: Binder) -> Callable[[], Filed]:
        """The rest of a start."""
        self.starts(crew.root.key, placeholder.job_id)
        return lambda: self._go_on(wish, crew, placeholder, binder)

    def _left(self, crew: Crew, placeholder: Placeholder) -> float | None:
        """Seconds that are left for a start by this job; None when it is over."""
        job_id, began = self._leadership(crew.root.key).starting or (None, 0.0)
        if job_id != placeholder.job_id or _complete(crew, placeholder):
            return None
        return began + self._tools.limits.bind_seconds - self._tools.clock.now()

    def overdue(self, crew: Crew, placeholder: Placeholder) -> Callable[[], Filed] | None:
        """What cannot be finished in time is undone."""
        left = self._left(crew, placeholder)
        if left is None or left > 0:
            return None
        seconds = int(self._tools.limits.bind_seconds)
        text = f"not all pods of {crew.root} could be bound within {seconds} s; those that were are taken back"

        def act() -> Filed:
            if self._complete_after_all(crew, placeholder):
                return Filed(after=ECHO)
            self._leadership(crew.root.key).undone = placeholder.job_id
            ended = self._ender.end_all(crew, placeholder, "NOTBOUND", text)
            # Where nobody has a node any more nobody's end wakes us.
            return ended if crew.on(placeholder.job_id) else AT_ONCE

        return act

    def _complete_after_all(self, crew: Crew, placeholder: Placeholder) -> bool:
        """Bindings of which no watch has told: a start that came to its end is not undone for that."""
        bound = {pod.uid for pod in bound_by(self._tools, placeholder)}
        return _complete(crew, placeholder, more=sum(pod.uid in bound for pod in crew.pods(Standing.WANTING)))

    def in_time(self, crew: Crew, placeholder: Placeholder, filed: Filed) -> Filed:
        """Nobody else may be woken before the time of a start is over."""
        left = self._left(crew, placeholder)
        if left is None or (filed.after is not None and filed.after < left):
            return filed
        return Filed(after=max(0.0, left))

    def _go_on(self, wish: Wish, crew: Crew, placeholder: Placeholder, binder: Binder) -> Filed:
        """Trouble is met with patience, but not with more of it than there is time."""
        try:
            return self.in_time(crew, placeholder, binder.join(wish, crew, placeholder))
        except errors.TryLater as problem:
            logger.bind(workload=str(crew.root)).info("not all bound yet: {}", problem)
            return self.in_time(crew, placeholder, Filed(after=self._tools.pause(crew.root.key)))


def _complete(crew: Crew, placeholder: Placeholder, *, more: int = 0) -> bool:
    """As many as the job was asked for have had a place; `more` have it and are not known by the crew yet."""
    job_id = placeholder.job_id
    return more + crew.ever.get(job_id, 0) - crew.losses.get(job_id, 0) >= records.starters_of(placeholder.owner)


def _all_of(crew: Crew, placeholder: Placeholder) -> Iterator[Pod]:
    """Those that live, and those that were bound by this job and are over."""
    yield from crew.pods(Standing.WANTING)
    for pod in crew.pods(*PLACED, *ENDED):
        if job_id_of(pod) == placeholder.job_id:
            yield pod
