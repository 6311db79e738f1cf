"""One look at one workload.

    1 gather   its pods and those who speak for it      -> Workload | Wait | Reject
    2 look     at its placeholder, in memory            -> Placeholder | None
    3 decide   from how both stand                      -> Step
    4 shape    the request by Slurm's limits and hooks  -> Plan | Wait | Reject     (only where it is to be sent)
    5 act      on either side                           -> Filed

Thinking (1 to 4) happens in one thread, in the order of the queue; acting is handed out and may take its time.
"""

from collections.abc import Callable

from loguru import logger

from slurm_bridge.mirror import table
from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import JobId, WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import ending, held, job_users, relevant, submitting
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.asking import TORN, Act, Asker, Parts
from slurm_bridge.scheduler.binding import Binder
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.checking import Remains
from slurm_bridge.scheduler.decide import Pods, Step, decide, job_of, pods_of
from slurm_bridge.scheduler.finding import Finder
from slurm_bridge.scheduler.ganging import Ganger
from slurm_bridge.scheduler.keeping import Warden
from slurm_bridge.scheduler.members import PLACED, Crew, Standing, job_id_of
from slurm_bridge.scheduler.obstacles import Obstacles
from slurm_bridge.scheduler.queue import AT_ONCE, WOKEN, Filed
from slurm_bridge.scheduler.restoring import Restorer
from slurm_bridge.scheduler.state import Wish
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.withdrawing import Replacer
from slurm_bridge.workloads import kind_table
from slurm_bridge.workloads.base import Moved
from slurm_bridge.workloads.gangs import INCOMPLETE

#: A job that stands for a check of the installation and not for pods.
CHECK = "Check"
#: How old the job of a check may become before it counts as forgotten.
FORGOTTEN = 60.0


class Cycle:
    """Knows every step; keeps nothing of its own. `wake` has another workload looked at."""

    def __init__(self, tools: Tools, census: Census, wake: Callable[[WorkloadKey], None]) -> None:
        self._tools, self._census, self._wake = tools, census, wake
        self.replacer = Replacer(tools)
        self.users = job_users.JobUsers(tools, self.replacer)
        self.submitter = submitting.Submitter(tools, self.replacer, self.users)
        self.warden = Warden(tools, self.replacer)
        self.obstacles = Obstacles(tools)
        self.finder = Finder(tools, census)
        self.ender = ending.Ender(tools, self.finder.disbelieve)
        self.restorer = Restorer(tools, self.ender)
        remains = Remains(all=self._remains, forgotten=self._forgotten)
        self.binder = Binder(tools, self.replacer, self.warden, self.users, remains)
        self.ganger = Ganger(tools, self.ender)
        self._asker = Asker(
            tools,
            Parts(
                replacer=self.replacer,
                submitter=self.submitter,
                warden=self.warden,
                obstacles=self.obstacles,
                ender=self.ender,
                binder=self.binder,
                ganger=self.ganger,
                users=self.users,
            ),
        )

    def think(self, uid: WorkloadKey, *, turn: bool) -> Act | Filed:
        """What to do with this workload; `turn` says that it may submit now."""
        if self._tools.unanswered(uid):
            return lambda: self.submitter.search(uid)
        return self._think(uid, turn=turn)

    def _think(self, uid: WorkloadKey, *, turn: bool) -> Act | Filed:
        crew, placeholders = self._census.crew(uid), self._tools.table.of(uid)
        pods = pods_of(crew)
        placeholder, named = relevant.relevant(crew, placeholders)
        surplus = table.surplus(placeholders, placeholder, named)
        if surplus and pods is not Pods.OVER:
            return lambda: self.ender.cancel_surplus(surplus)
        if crew is None or pods is Pods.OVER:
            return self._over(uid, crew, placeholder)
        echo = self.binder.awaited(crew)
        if echo is not None:
            # What we know of some pod is older than its binding: nothing may be concluded from it.
            return Filed(after=echo)
        if pods is Pods.WAITING and placeholder is not None and self._outlived(crew, placeholder):
            return self._joining(crew, placeholder)
        if pods is Pods.WAITING or (pods is Pods.JOINING and relevant.left_behind(crew, placeholder, placeholders)):
            return self._waiting(crew, placeholder, turn=turn)
        return self._placed(crew, pods, placeholder)

    def _outlived(self, crew: Crew, placeholder: Placeholder) -> bool:
        return relevant.outlived(crew, placeholder) and not self.ganger.undone(crew, placeholder)

    def begin(self) -> None:
        """A leadership begins: how long something has lasted in an earlier one is no measure of it now."""
        self._tools.states.begin()

    def _over(self, uid: WorkloadKey, crew: Crew | None, placeholder: Placeholder | None) -> Act | Filed:
        """Pods that want nothing of Slurm any more."""
        if crew is None and placeholder is not None and placeholder.owner.kind not in kind_table.NAMES:
            return self._no_workload(uid, placeholder)
        if decide(Pods.OVER, job_of(placeholder)) is Step.WITHDRAW or self._half_alive(uid):
            if placeholder is not None and self._census.root_of(placeholder.owner.uid) not in (None, uid):
                return lambda: self.replacer.replace(placeholder, "its pod waits as part of another workload now")
            seen = crew is not None or self._census.seen_gone(uid)
            return lambda: self.ender.withdraw(uid, crew, seen=seen)
        return self._forget(uid)

    def _half_alive(self, uid: WorkloadKey) -> bool:
        """A component has ended, and others still hold their nodes."""
        return any(one.torn and one.certainty is Certainty.SEEN for one in self._tools.table.of(uid))

    def _no_workload(self, uid: WorkloadKey, placeholder: Placeholder) -> Act | Filed:
        """The job of a check that was killed half-way has to go; what a later version made is not ours to judge."""
        if placeholder.owner.kind != CHECK:
            logger.warning("job {} stands for a {}: left alone", placeholder.job_id, placeholder.owner.kind)
            return WOKEN
        age = self._tools.clock.now() - placeholder.since
        if placeholder.alive and age < FORGOTTEN:
            return Filed(after=FORGOTTEN - age)
        if not placeholder.alive:
            return self._forget(uid)
        return lambda: self.ender.withdraw(uid, None, seen=True)

    def _placed(self, crew: Crew, pods: Pods, placeholder: Placeholder | None) -> Act | Filed:
        """Some pods have nodes."""
        placeholder = placeholder or self.finder.robbed(crew)
        step = decide(pods, job_of(placeholder))
        if step is Step.LOOK or placeholder is None:
            return lambda: self.finder.look(crew)
        if not crew.count(Standing.BOUND):
            self.ganger.tell_of_leaving(crew, placeholder)
            return lambda: self.ender.leaving(crew)
        if step is Step.END:
            return lambda: self.ender.end(crew, placeholder)
        if step is Step.DOUBT:
            return self._doubt(crew, placeholder)
        return self._joining(crew, placeholder) if step is Step.JOIN else self._bound(crew, placeholder)

    def _bound(self, crew: Crew, placeholder: Placeholder) -> Act | Filed:
        if placeholder.phase is Phase.PENDING:
            return lambda: self.restorer.pending(crew, placeholder)
        lost = relevant.shrunk(crew, placeholder)
        if lost:
            return lambda: self.ender.end_shrunk(crew, lost, placeholder)
        if crew.count(Standing.WANTING):
            # Half of them are bound, and the job is in no state to say anything about the others.
            return WOKEN
        self.ganger.started(crew)
        if self.ganger.lost(crew, placeholder):
            any_one = self._gather(crew, Standing.BOUND, one=True)
            if isinstance(any_one, Workload) and self.ganger.restarts(any_one):
                return lambda: self.ganger.restart(crew, placeholder)
        elif self.ganger.unannounced(crew):
            whole = self._gather(crew, Standing.BOUND)
            if isinstance(whole, Workload):
                self.ganger.announce(crew, whole, placeholder)
        return WOKEN

    def _joining(self, crew: Crew, placeholder: Placeholder) -> Act | Filed:
        """Some have their nodes, others want theirs: the rest of a start, or newcomers."""
        lost = relevant.shrunk(crew, placeholder)
        if lost:
            return lambda: self.ender.end_shrunk(crew, lost, placeholder)
        overdue = self.ganger.overdue(crew, placeholder)
        if overdue is not None:
            return overdue
        gathered = self._gather(crew, Standing.WANTING, *PLACED)
        if gathered is None:
            return AT_ONCE
        wish = wishes.read(gathered, self._tools) if isinstance(gathered, Workload) else gathered
        if not isinstance(wish, Wish):
            return self.ganger.in_time(crew, placeholder, self.obstacles.of_crew(crew, wish))
        lacking = self._tools.config.chain.unhonoured(wish.translated)
        if lacking is not None:
            return self.ganger.in_time(crew, placeholder, self.obstacles.of_crew(crew, lacking))
        return self._join(wish, crew, placeholder)

    def _join(self, wish: Wish, crew: Crew, placeholder: Placeholder) -> Act | Filed:
        if self.ganger.anew(wish.workload, crew, placeholder):
            return lambda: self.replacer.replace(placeholder, "its pods are gone, and the group starts anew")
        if not crew.on(placeholder.job_id) and not placeholder.owner.request.startswith(f"{wish.intent}:"):
            return lambda: self.replacer.replace(placeholder, "the pods that come now ask for something else")
        return self.ganger.join(wish, crew, placeholder, self.binder)

    def _doubt(self, crew: Crew, placeholder: Placeholder) -> Act:
        """The job of running pods is unknown to Slurm: forgotten, or over for so long that it was purged?"""
        gathered = self._gather(crew, Standing.BOUND) if self.restorer.can(placeholder) else None
        wish = wishes.read(gathered, self._tools) if isinstance(gathered, Workload) else None
        if isinstance(wish, Wish):
            return lambda: self.restorer.restore(wish, placeholder, crew)
        return lambda: self.ender.doubt(crew, placeholder)

    def _gather(self, crew: Crew, *stands: Standing, one: bool = False) -> Workload | Wait | Reject | None:
        """Who belongs together, of those that stand like this; None when that has changed under our hands."""
        looked_at = crew.first(*stands)
        gathered = self._tools.gather(crew, *stands, one=one)
        if not isinstance(gathered, Moved):
            return gathered
        if looked_at is not None and not looked_at.bound:
            self._census.move(looked_at.uid, gathered.root)
        self._wake(gathered.root.key)
        return None

    def _waiting(self, crew: Crew, placeholder: Placeholder | None, *, turn: bool) -> Act | Filed:
        """Pods without nodes: what they want has to be known before anything else is."""
        still = self.ganger.coming(crew, placeholder)
        if still is not None:
            return still
        gathered = self._gather(crew, Standing.WANTING)
        if gathered is None:
            return AT_ONCE
        if placeholder is not None and placeholder.torn and not relevant.never_started(crew, placeholder, gathered):
            return lambda: self.replacer.replace(placeholder, TORN)
        if isinstance(gathered, Wait) and crew.root.kind != "Pod":
            self._rest(crew)
            return self._cancelled(crew, gathered, placeholder) or self.ganger.incomplete(
                crew, gathered, placeholder, self.replacer
            )
        wish = wishes.read(gathered, self._tools) if isinstance(gathered, Workload) else gathered
        if not isinstance(wish, Wish):
            told = self._cannot(crew, gathered, wish)
            return self.ganger.not_for_ever(crew, wish, placeholder, self.replacer) or told
        still = self.ganger.unsettled(wish.workload, crew, placeholder)
        return still if still is not None else self._asker.go_on(crew, wish, placeholder, turn=turn)

    def _rest(self, crew: Crew) -> None:
        """It is in no state to have a job: where it has none, and no nodes, hooks count nothing for it any more."""
        uid = crew.root.key
        if not held.keeps(self._tools, crew, uid):
            self._tools.ended(uid)

    def _cannot(self, crew: Crew, gathered: Workload | Wait | Reject, obstacle: Wait | Reject) -> Filed:
        self._rest(crew)
        if isinstance(gathered, Workload):
            return self.obstacles.of_workload(gathered, obstacle)
        return self.obstacles.of_crew(crew, obstacle)

    def _cancelled(self, crew: Crew, wait: Wait, placeholder: Placeholder | None) -> Act | None:
        """Somebody cancelled the job while members are missing: that is respected all the same."""
        if wait.reason != INCOMPLETE or placeholder is None or placeholder.alive:
            return None
        some = self._gather(crew, Standing.WANTING, *PLACED)
        wish = wishes.read(some, self._tools) if isinstance(some, Workload) else None
        if not isinstance(wish, Wish) or wishes.answered(wish, placeholder):
            return None
        if not self.ender.puzzling(wish, placeholder):
            return None

        def act() -> Filed:
            return self.ender.again(wish, placeholder) or Filed(after=wait.retry_after)

        return act

    def _remains(self, node: str) -> tuple[Pod, ...]:
        """Pods on a node whose place Slurm may have given away: their job ended, or was forgotten and waits again."""
        left = (pod for pod, key in self._census.placed_on(node) if self._has_ended(job_id_of(pod), key))
        return (*left, *self._forgotten(node))

    def _has_ended(self, job_id: JobId | None, key: WorkloadKey) -> bool:
        job = self._tools.table.get(job_id) if job_id is not None else None
        return job is not None and not job.alive and job.owner.key == key

    def _forgotten(self, node: str) -> tuple[Pod, ...]:
        """The latter."""
        crews = (self._census.crew(uid) for uid in self.restorer.workloads())
        return tuple(pod for crew in crews if crew for pod in relevant.on(node, crew))

    def _forget(self, uid: WorkloadKey) -> Filed:
        self.binder.checker.forget(uid)
        return self.ender.drop(uid)
