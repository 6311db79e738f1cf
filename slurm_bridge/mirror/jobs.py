"""Keeps the table of placeholders true: `jobs/state` of ours, details by a budgeted round robin, a sweep for strays.

    poll     state words of our living jobs in one call (chunks, or everything beyond a size); of those that wait or
             have just moved soon after a change, and later each time that nothing changes; of those that have run for
             a while part by part, as often as their cost allows; a change in one part makes it the turn of the others
    confirm  a job that an answer left out is asked for by id: only a plain "no such job" counts, never silence
    details  reason, estimated start, hold and edits: the job whose last reading is oldest, so many reads a second
    sweep    every id that Slurm knows: ours that are not among them have vanished, and those that live and that we
             cannot place are looked at once: ours are adopted, others remembered
    recover  one full list, or each job alone where Slurm has very many; at the start of a leadership only

A job that waits costs nothing but its share of these calls.
"""

import dataclasses
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.mirror import readings
from slurm_bridge.mirror.rhythm import PollPace, Rhythm
from slurm_bridge.mirror.served import ALL_NAMESPACES, ServedNamespaces
from slurm_bridge.mirror.strays import Strays
from slurm_bridge.mirror.table import Table
from slurm_bridge.model import texts
from slurm_bridge.model.job import JobStates, JobView, Phase
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import NO_JOB, JobId
from slurm_bridge.model.placeholder import Certainty, NotOurs, Placeholder
from slurm_bridge.runtime import backoff, hands

T = TypeVar("T")

#: For how many seconds a job that has just started counts as moving.
SETTLED = 3.0
#: From so many on, jobs that have ended are confirmed together.
TOGETHER = 10
#: One job read alone costs as much as so many in a list of all.
SINGLE_COSTS = 4
#: How many of the jobs that are read alone are one batch: its answers are awaited before the next begins.
READ_BATCH = 20


class Mirror:
    """Called by one thread, or by a simulation; what it learns goes into the table, whose listener wakes workloads."""

    def __init__(
        self,
        slurm: ports.Slurm,
        clock: ports.Clock,
        table: Table,
        *,
        cluster_id: str,
        rhythm: Rhythm | None = None,
        served: ServedNamespaces = ALL_NAMESPACES,
    ) -> None:
        self._slurm, self._clock, self._table = slurm, clock, table
        self._cluster_id = cluster_id
        #: Jobs for other namespaces are another daemon's.
        self._served = served
        #: How the jobs of a batch are read: several at once where there is a pool of threads for it.
        self.each: hands.Each = hands.in_turn
        self._rhythm = rhythm or Rhythm()
        self._period = self._rhythm.fastest
        self._due = self._settled_due = self._swept = self._polled = 0.0
        #: When Slurm last lost a job, or came back after it did not answer.
        self._lost = float("-inf")
        self._read_first = self._read_again = 0.0
        self._pace, self._part, self._round = PollPace(self._rhythm), 0, 0.0
        #: All that have run for a while, and each part of them that was asked for since one joined or left.
        self._parted: tuple[tuple[JobId, ...], dict[int, list[JobId]]] = (), {}
        self._strays = Strays(table, lambda view: self._ours(view.owner))
        #: How many jobs the last full list had: what the next one will cost.
        self._listed = 0
        #: How many jobs of all users there were when their states were read last, and how long that took.
        self._jobs, self._count_cost = 0, 0.0
        #: When a job was met of which nothing can be read: what is known of it stays, and it is not asked for in a row.
        self._odd: dict[JobId, float] = {}
        self._recovered: Callable[[], None] = lambda: None
        self.last_good: float | None = None
        self.failures = 0
        #: The last failure was a refusal, which does not pass by itself.
        self.refused = False

    @property
    def failing(self) -> bool:
        """The last question to Slurm went without a usable answer."""
        return self.failures > 0

    @property
    def due_in(self) -> float:
        """Seconds until a step would do something; never longer than the fastest period, for a nudge may come."""
        return min(self._rhythm.fastest, max(0.01, min(self._due, self._settled_due) - self._clock.now()))

    @property
    def owes_sweep(self) -> bool:
        """A job has vanished, or Slurm did not answer, and the other jobs have not been looked at since."""
        return self._lost >= self._swept

    def on_recovery(self, listener: Callable[[], None]) -> None:
        """The function to call when Slurm answers again."""
        self._recovered = listener

    def nudge(self) -> None:
        """Something was ordered: look soon."""
        self._period = self._rhythm.fastest
        self._due = min(self._due, self._clock.now() + self._period)

    def recover(self) -> None:
        """Rebuild the table from one full list; what was submitted meanwhile is newer than the list and stays."""
        before = [one for one in self._table.alive() if one.certainty is Certainty.SEEN]
        states = self._all_states()
        views = self._read(states) if self._crowded else self._all()
        self._strays.begin(views)
        self._miss(before, views)
        self._swept = self._clock.now()

    def step(self) -> None:
        """Whatever is due; a Slurm that does not answer is asked again after a pause that grows."""
        now = self._clock.now()
        if now < min(self._due, self._settled_due):
            return
        try:
            if self.failures or self._lost >= self._swept:
                # Nothing is told of one job before all have been asked for: others may be gone.
                self.poll()
            asked = (self._poll_moving(), self._poll_settled())
            if any(asked):
                self.details()
            if self._lost >= self._swept or now - self._swept >= self._sweep_pause:
                self.sweep()
        except errors.BridgeError as problem:
            self.failures += 1
            self.refused = isinstance(problem, errors.OperatorMustAct)
            pause = backoff.pause(self.failures, first=self._rhythm.fastest, most=self._rhythm.slowest)
            wish = problem.retry_after if isinstance(problem, errors.TryLater) else None
            self._due = self._settled_due = self._clock.now() + max(pause, wish or 0.0)
            if self.failures == 1 or self.refused:
                logger.warning("Slurm cannot be asked for our jobs, next try in {:.1f} s: {}", pause, problem)

    def _poll_moving(self) -> bool:
        """Those that wait or have just moved: a start is awaited by a pod. Returns whether it was their turn."""
        began = self._clock.now()
        if began < self._due:
            return False
        moving, settled = self._table.divided(began - SETTLED)
        if not moving and not settled:
            self._keep_fresh()
        changed = self.poll(moving)
        if not settled:
            self._polled = began
        slower = min(self._rhythm.slowest, self._period * 1.5)
        self._period = self._rhythm.fastest if changed else slower
        # A Slurm that takes long to answer is asked less often, or asking would be all that it does.
        self._due = self._clock.now() + max(self._period, self._clock.now() - began)
        return True

    def _poll_settled(self) -> bool:
        """A part of those that have run for a while; others rarely end alone, so after a change the rest is asked for.

        None is left out for longer than the slowest period. Returns whether any was asked for.
        """
        began = self._clock.now()
        if began < self._settled_due:
            return False
        if not self._table.running:
            self._settled_due = began + self._rhythm.fastest
            return False
        _, settled = self._table.divided(began - SETTLED)
        parts = self._rhythm.parts(len(settled))
        self._part = (self._part + 1) % max(1, parts)
        if self._part == 0:
            self._round = began
        mine = self._mine(settled, parts)
        changed = self.poll(self._table.alive_among(mine))
        cost = self._clock.now() - began
        if changed:
            self.poll(self._table.alive_among(job_id for job_id in settled if job_id % parts != self._part))
            self._period = self._rhythm.fastest
            self._due = min(self._due, self._clock.now() + self._period)
        if changed or self._part == parts - 1:
            self._polled = max(self._polled, began if changed else self._round)
        more = self._clock.now() - began - cost
        pause = self._pace.pause(cost, parts, more) if mine else self._rhythm.fastest
        self._settled_due = self._clock.now() + pause
        return bool(mine)

    def _mine(self, settled: tuple[JobId, ...], parts: int) -> list[JobId]:
        """Those of the part whose turn it is; looked for only once while none has joined or left."""
        if settled is not self._parted[0]:
            self._parted = settled, {}
        found = self._parted[1].get(self._part)
        if found is None:
            found = self._parted[1][self._part] = [job_id for job_id in settled if job_id % parts == self._part]
        return found

    def _keep_fresh(self) -> None:
        """With nothing to ask for, Slurm is asked now and then all the same."""
        now = self._clock.now()
        if self.failing or self.last_good is None or now - self.last_good >= self._rhythm.slowest:
            self._ask(lambda: self._slurm.states([JobId(1)]))

    def poll(self, known: Sequence[Placeholder] | None = None) -> int:
        """Ask for the states of these placeholders, or of all that live; how many have changed."""
        every = known is None
        known = self._table.alive() if known is None else known
        if not known:
            return 0
        began, states = self._clock.now(), self._states(known)
        lost = any(one.certainty is Certainty.SEEN and one.job_id not in states for one in known)
        if lost and (rest := self._others(known)):
            # Slurm has lost something: what else is asked at once, before anything moves.
            states, known, every = {**states, **self._states(rest)}, (*known, *rest), True
        moved = self._learn(known, states)
        if every:
            self._polled = began
        return moved

    def _learn(self, known: Sequence[Placeholder], states: Mapping[JobId, JobStates]) -> int:
        """What the states of these say; how many have changed."""
        # Missing jobs first: a place that Slurm has forgotten must not be given to another before that is known.
        missing: list[Placeholder] = []
        moved: list[Placeholder] = []
        for one in known:
            seen = states.get(one.job_id)
            if seen is None:
                missing.append(one)
            elif readings.moved(one, seen):
                moved.append(one)
        self._confirm(missing)
        if self._many_started(moved, states):
            # One list says of all of them what each would otherwise be read for when its pods are bound.
            self._adopt(self._all())
            moved = [one for one in moved if self._table.get(one.job_id) is one]
        twice = self._ended_twice(moved, states) if len(moved) >= TOGETHER else frozenset()
        for one in moved:
            self._move(one, states[one.job_id], confirmed=one.job_id in twice)
        return len(moved) + len(missing)

    def _states(self, jobs: Sequence[Placeholder]) -> Mapping[JobId, JobStates]:
        if self._rhythm.full_states_above < len(jobs) <= self._rhythm.listed and not self._crowded:
            return self._all_states()
        ids = [one.job_id for one in jobs]
        return self._ask(lambda: self._slurm.states(ids))

    def _all_states(self) -> Mapping[JobId, JobStates]:
        began = self._clock.now()
        states = self._ask(lambda: self._slurm.states(None))
        self._jobs, self._count_cost = len(states), self._clock.now() - began
        return states

    @property
    def _crowded(self) -> bool:
        """Slurm has so many jobs that they are not listed."""
        return self._jobs > self._rhythm.listed

    @property
    def _sweep_pause(self) -> float:
        """Between two readings of all states, which may not cost more than their share."""
        return max(self._rhythm.sweep, self._count_cost / self._rhythm.share)

    def _others(self, known: Iterable[Placeholder]) -> tuple[Placeholder, ...]:
        asked = {one.job_id for one in known}
        return tuple(one for one in self._table.alive() if one.job_id not in asked)

    def _many_started(self, moved: Sequence[Placeholder], states: Mapping[JobId, JobStates]) -> bool:
        """So many have started that one list of all jobs costs less than one reading each."""
        started = sum(states[one.job_id].phase in readings.STARTED and not one.started for one in moved)
        worth = started >= self._rhythm.many and started * SINGLE_COSTS > max(self._listed, len(states))
        return worth and not self._crowded

    def _ended_twice(self, moved: Iterable[Placeholder], states: Mapping[JobId, JobStates]) -> frozenset[JobId]:
        """Those that have ended by a second answer, too: one question for many, instead of one for each.

        None where Slurm may have given an id away: that takes a crash, or a job that was never looked at.
        """
        ended = [one.job_id for one in moved if one.phase is Phase.RUNNING and one.view and _over(states[one.job_id])]
        if len(ended) < TOGETHER or self.owes_sweep:
            return frozenset()
        again = self._ask(lambda: self._slurm.states(ended))
        return frozenset(job_id for job_id in ended if job_id in again and again[job_id] == states[job_id])

    def _move(self, old: Placeholder, seen: JobStates, *, confirmed: bool = False) -> None:
        """Take in new state words. A job of which we only knew that it may exist has to show first whose it is."""
        if old.certainty is Certainty.MAYBE:
            self._look(old)
            return
        state = seen.state if seen.components else old.state
        started = old.started or seen.phase in readings.STARTED
        new = dataclasses.replace(
            old,
            state=state,
            started=started,
            torn=readings.torn(old, seen),
            since=self._clock.now(),
            confirmed=confirmed,
        )
        # Unless newer news has come meanwhile.
        if self._table.get(old.job_id) is old:
            self._table.put(new)

    def _confirm(self, missing: Sequence[Placeholder]) -> None:
        sure = [one for one in missing if one.certainty is Certainty.SEEN]
        for one in missing:
            if one.certainty is Certainty.MAYBE and self._clock.now() - one.since > self._rhythm.maybe:
                self._vanish(one.job_id)
        if len(sure) >= self._rhythm.many and not self._crowded:
            self._miss(sure, self._all())
            return
        for one in sure:
            self._look(one)

    def _miss(self, known: Iterable[Placeholder], views: Sequence[JobView]) -> None:
        """Take in a list of all; those known that are not in it have vanished. What cannot be read may be any job."""
        listed = self._adopt(views, ended=True) | {one.job_id for one in views if not one.readable}
        if NO_JOB not in listed:
            for one in known:
                if one.job_id not in listed and self._is_known(one):
                    self._vanish(one.job_id)

    def _is_known(self, one: Placeholder) -> bool:
        """Nothing newer has been learned of it meanwhile."""
        return self._table.get(one.job_id) is one

    def _look(self, one: Placeholder) -> None:
        """Among many: one of which nothing can be read stays as it was known, and does not keep us from the others."""
        try:
            self.look(one.job_id, one.owner)
        except errors.Unreadable as problem:
            self._odd[one.job_id] = self._clock.now()
            logger.bind(job_id=one.job_id).warning("what was known of it stays: {}", problem)

    def look(self, job_id: JobId, owner: Owner, *, tell: bool = True) -> Placeholder | None:
        """Read one job and see whether it is (still) that workload's; None when there is no such job of ours."""
        view = self._from_list(job_id) if self._lost_a_component(job_id) else self._ask(lambda: self._slurm.job(job_id))
        if view is None or view.owner is None or not view.owner.same_workload(owner):
            self._missed(job_id, owner, taken=view is not None)
            return None
        return self.adopt(view, tell=tell)

    def _lost_a_component(self, job_id: JobId) -> bool:
        """It is torn, and Slurm has forgotten the component that ended.

        slurmctld 26.05.5 reads freed memory when it is asked for the record of such a leader: it answers with an error,
        or dies. The list of jobs is safe.
        """
        known = self._table.get(job_id)
        if known is None or not known.torn or self._crowded:
            return False
        seen = self._ask(lambda: self._slurm.states([job_id])).get(job_id)
        return seen is not None and not seen.torn

    def _from_list(self, job_id: JobId) -> JobView | None:
        views = {one.job_id: one for one in self._all()}
        # A row that does not even tell its id may be that of any job.
        found = views.get(job_id) or views.get(NO_JOB)
        if found is not None and not found.readable:
            raise errors.Unreadable(f"Slurm job {job_id} cannot be read in the list of jobs")
        return found

    def look_whose(self, job_id: JobId, owner: Owner) -> Placeholder | NotOurs | None:
        """Likewise, for a job that pods name: another workload of the same namespace may be its owner now.

        None only when there is no such job. One that exists and is not ours is an answer of its own.
        """
        view = self._ask(lambda: self._slurm.job(job_id))
        if view is None or view.owner is None or not self._ours(view.owner) or view.owner.namespace != owner.namespace:
            self._missed(job_id, owner, taken=view is not None)
            return None if view is None else NotOurs(job_id=job_id, whose=readings.whose(view))
        # The caller knows now; a workload that the id was given to after a crash hears of it here or nowhere.
        return self.adopt(view, tell=not view.owner.same_workload(owner))

    def _missed(self, job_id: JobId, owner: Owner, *, taken: bool) -> None:
        """Not there, or another workload's. A job that an unanswered order may yet make is waited for a while.

        Of a job that is known as another workload's nothing is learned: that of this one was never there.
        """
        old = self._table.get(job_id)
        if old is not None and not old.owner.same_workload(owner):
            return
        awaited = old is not None and old.certainty is Certainty.MAYBE
        if old is not None and (taken or not awaited or self._clock.now() - old.since > self._rhythm.maybe):
            self._vanish(job_id)

    def _vanish(self, job_id: JobId) -> None:
        old, now = self._table.get(job_id), self._clock.now()
        if old is None or old.certainty is Certainty.GONE:
            return
        lost = old.lost
        if old.alive and old.certainty is Certainty.SEEN:
            # slurmctld has lost something: what else is not as we knew it? An earlier attempt may be back.
            self._lost = now
            # Seen so lately that its end could not have been purged since: a cancelled one is not lost.
            lost = lost or now - max(self._polled, old.since, old.read or 0.0) <= self._rhythm.remembered
        self._table.put(dataclasses.replace(old, certainty=Certainty.GONE, lost=lost, torn=False, since=now))

    def adopt(self, view: JobView, *, tell: bool = True) -> Placeholder:
        """Take a full reading into the table; the workload hears of it when it says something new."""
        assert view.owner is not None
        old = self._table.get(view.job_id)
        new = readings.placeholder(view, old, self._clock.now())
        self._table.put(new, tell=tell and (old is None or readings.news(old, new)))
        return new

    def _all(self) -> Sequence[JobView]:
        views = self._ask(self._slurm.jobs)
        self._listed = len(views)
        self._meet(views)
        return views

    def _meet(self, views: Iterable[JobView]) -> None:
        for owner in (one.owner for one in views if one.state.phase is not Phase.ENDED):
            if owner is not None and owner.cluster == self._cluster_id and not self._served.serves(owner.namespace):
                self._served.met(owner.namespace)

    def _adopt(self, views: Iterable[JobView], *, ended: bool = False) -> frozenset[JobId]:
        """Take in our jobs. Unknown jobs that have ended count only in a recovery."""
        known = self._table.get
        ours = [
            one
            for one in views
            if self._ours(one.owner) and (ended or one.state.phase is not Phase.ENDED or known(one.job_id) is not None)
        ]
        for view in ours:
            self.adopt(view)
        return frozenset(one.job_id for one in ours)

    def _ours(self, owner: Owner | None) -> bool:
        return owner is not None and owner.cluster == self._cluster_id and self._served.serves(owner.namespace)

    def details(self) -> None:
        """Read a few jobs in full: those never read first, then the one whose reading is oldest.

        When very many were never read, as after a burst, one list of all is cheaper and tells them all why they wait.
        """
        now = self._clock.now()
        first = self._quota(now - self._read_first, self._rhythm.first_details_per_second)
        again = self._quota(now - self._read_again, self._rhythm.details_per_second)
        if not max(first, again):
            return
        self._read_first = now
        self._read_again = now if again else self._read_again
        self._forgive(now)
        unread = self._unread(now)
        if len(unread) >= self._rhythm.crowd and not self._crowded:
            self._adopt(self._all())
            return
        oldest = heapq.nsmallest(first, unread, key=lambda one: one.since)
        if not oldest and again:
            oldest = list(itertools.islice(self._ready(now), again))
        for one in oldest:
            self._look(one)

    def _quota(self, seconds: float, rate: float) -> int:
        """How many reads are allowed; what was not used counts for one slow period, or until it makes one read."""
        return min(int(seconds * rate), max(1, int(self._rhythm.slowest * rate)))

    def _forgive(self, now: float) -> None:
        if self._odd:
            self._odd = {job_id: at for job_id, at in tuple(self._odd.items()) if now - at < self._rhythm.sweep}

    def _unread(self, now: float) -> list[Placeholder]:
        """Those of `_ready` that were not read since they came to their phase."""
        heard = now - self._rhythm.patience
        return [
            one
            for one in self._table.unread()
            if one.since <= heard and one.certainty is Certainty.SEEN and one.job_id not in self._odd
        ]

    def _ready(self, now: float) -> Iterator[Placeholder]:
        """Those that have been left alone for long enough to be asked for; the one whose reading is oldest is first."""
        for one in self._table.alive():
            alone = now - max(one.since, one.read or 0.0) >= self._left_alone(one)
            if alone and one.certainty is Certainty.SEEN and one.job_id not in self._odd:
                yield one

    def _left_alone(self, one: Placeholder) -> float:
        """A job that runs as it was read has little to say."""
        read = one.read is not None and one.read >= one.since
        return self._rhythm.slowest if read and one.phase is Phase.RUNNING else self._rhythm.patience

    def sweep(self) -> None:
        """Find placeholders of ours that we do not know of: a submit whose answer was lost may have made them."""
        began, known = self._clock.now(), self._table.alive()
        states = self._all_states()
        self._learn(known, states)
        self._polled = self._swept = began
        unplaced = self._strays.among(states)
        views = self._read(unplaced) if len(unplaced) < self._rhythm.many or self._crowded else self._all()
        self._adopt(views)
        self._strays.learn(views, states)
        # The scheduler drops what it is done with; what it has not claimed within a sweep is of no use.
        self._table.forget_ended(began - self._rhythm.sweep)

    def _read(self, job_ids: Iterable[JobId]) -> list[JobView]:
        """Each alone. What cannot be read belongs to no workload until it can be; the next sweep asks again."""
        found: list[JobView] = []
        left = iter(job_ids)
        for first in left:
            # One of them is read in this thread: its calls show that it makes progress.
            others = tuple(itertools.islice(left, READ_BATCH - 1))
            views = [self._view(first), *self.each(self._view, others)]
            if len(views) < 1 + len(others):
                raise errors.Unavailable("the daemon ends: not all jobs were read")
            self._answered()
            found += [view for view in views if view is not None]
        self._meet(found)
        return found

    def _view(self, job_id: JobId) -> JobView | None:
        try:
            return self._slurm.job(job_id)
        except errors.Unreadable:
            return JobView.unreadable(job_id)

    def _ask(self, question: Callable[[], T]) -> T:
        """Any read; an answer is the proof that Slurm serves, which `ping` is not."""
        try:
            answer = question()
        except errors.Unreadable:
            self._answered()
            raise
        self._answered()
        return answer

    def _answered(self) -> None:
        """Slurm serves, be it with a job that makes no sense."""
        self.last_good = self._clock.now()
        if self.failures:
            logger.info("Slurm answers again, after {}", texts.counted(self.failures, "failure"))
            self.failures, self.refused = 0, False
            # A slurmctld that came back may have forgotten the end of jobs, which then run again.
            self._lost = self.last_good
            self._recovered()


def _over(seen: JobStates) -> bool:
    """A job without components has ended."""
    return len(seen.components) == 1 and seen.phase is Phase.ENDED
