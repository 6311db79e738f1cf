"""The placeholders by job id and by workload: written by the mirror and after each submit, read by all."""

import collections
import threading
from collections.abc import Callable, Collection, Iterable, Mapping

from slurm_bridge.model import kinds
from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import JobId, WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder

#: Told the key of a workload whose placeholder has changed; called outside the lock.
Listener = Callable[[WorkloadKey], None]

#: Slurm has not said why the job waits, or has not been asked.
NO_REASON = "None"

#: Of how many groups the next attempt is remembered.
MOST_ATTEMPTS = 10_000

#: The job waits in Slurm's queue, or may do so.
_UNSTARTED = (Phase.PENDING, Phase.UNKNOWN)


def unobserved(_key: WorkloadKey) -> None:
    """There is no view of the table."""


class Table:
    """Every change goes through `put` or `drop`, so that counts and listeners can never be forgotten."""

    def __init__(self, listener: Listener) -> None:
        self._lock = threading.RLock()
        self._by_id: dict[JobId, Placeholder] = {}
        self._by_key: dict[WorkloadKey, dict[JobId, None]] = {}
        #: In the order in which they were read.
        self._living: dict[JobId, Placeholder] = {}
        #: Of these, those that have run for a while, as far as `divided` has seen; those that may move; and those that
        #: were not read since they came to their phase.
        self._settled: dict[JobId, None] = {}
        #: The same, until one joins or leaves.
        self._all_settled: tuple[JobId, ...] | None = ()
        self._moving: dict[JobId, Placeholder] = {}
        self._unread: dict[JobId, Placeholder] = {}
        self._ended: dict[JobId, Placeholder] = {}
        self._kept_for: dict[JobId, Placeholder] = {}
        #: The next attempt of groups whose jobs were dropped, the latest last. A group may start anew, and Slurm
        #: remembers the jobs of earlier attempts for a while.
        self._next_attempts: dict[WorkloadKey, int] = {}
        self._phases = dict.fromkeys(Phase, 0)
        #: Of those that have held nodes: whether Slurm has shown the job, and whether it knows it no more.
        self._started = {(seen, gone): 0 for seen in (False, True) for gone in (False, True)}
        self._unstarted: dict[str, dict[JobId, None]] = {}
        self._reasons: collections.Counter[str] = collections.Counter()
        self._listener = listener
        #: Told of every change, also of those that wake no workload: for a view of the table, while there is one.
        self.changed: Listener = unobserved

    def put(self, new: Placeholder, *, tell: bool = True) -> None:
        """This is what is known of the job now."""
        with self._lock:
            old = self._by_id.get(new.job_id)
            self._count(old, -1)
            # After a crash Slurm gives an id to another job, and that can be one of ours.
            robbed = old if old is not None and old.owner.key != new.owner.key else None
            if robbed is not None:
                self._unfile(robbed)
            self._by_id[new.job_id] = new
            if old is not None and old.read != new.read:
                self._living.pop(new.job_id, None)
            self._sort(new, old)
            self._by_key.setdefault(new.owner.key, {})[new.job_id] = None
            self._count(new, +1)
        if robbed is not None:
            self._listener(robbed.owner.key)
        self.changed(new.owner.key)
        if tell:
            self._listener(new.owner.key)

    def drop(self, job_id: JobId) -> None:
        """Forget this job: it is not needed any more."""
        with self._lock:
            old = self._by_id.pop(job_id, None)
            self._unsettle(job_id)
            for kept in (self._living, self._moving, self._unread, self._ended, self._kept_for):
                kept.pop(job_id, None)
            self._count(old, -1)
            if old is not None:
                self._unfile(old)
                self._remember(old)
        if old is not None:
            self.changed(old.owner.key)

    def _sort(self, new: Placeholder, old: Placeholder | None) -> None:
        joined, left = (self._living, self._ended) if new.alive else (self._ended, self._living)
        joined[new.job_id] = new
        left.pop(new.job_id, None)
        still = old is not None and new.phase is Phase.RUNNING and new.since == old.since
        if not still:
            self._unsettle(new.job_id)
        _file(self._moving, new, there=new.alive and new.job_id not in self._settled)
        _file(self._unread, new, there=new.alive and (new.read is None or new.read < new.since))
        _file(self._kept_for, new, there=new.alive and bool(new.owner.reserved))

    def _unsettle(self, job_id: JobId) -> None:
        if job_id in self._settled:
            del self._settled[job_id]
            self._all_settled = None

    def _unfile(self, old: Placeholder) -> None:
        filed = self._by_key[old.owner.key]
        del filed[old.job_id]
        if not filed:
            del self._by_key[old.owner.key]

    def _remember(self, old: Placeholder) -> None:
        if old.owner.kind == kinds.PODS.kind:
            return
        key = old.owner.key
        self._next_attempts[key] = max(self._next_attempts.pop(key, 0), old.next_attempt)
        if len(self._next_attempts) > MOST_ATTEMPTS:
            del self._next_attempts[next(iter(self._next_attempts))]

    def _count(self, placeholder: Placeholder | None, step: int) -> None:
        if placeholder is None:
            return
        self._phases[placeholder.phase] += step
        gone = placeholder.certainty is Certainty.GONE
        if placeholder.started and (gone or placeholder.alive):
            self._started[placeholder.seen, gone] += step
        if placeholder.phase in _UNSTARTED:
            self._count_unstarted(placeholder, step)

    def _count_unstarted(self, placeholder: Placeholder, step: int) -> None:
        namespace = placeholder.owner.namespace
        waiting = self._unstarted.setdefault(namespace, {})
        if step > 0:
            waiting[placeholder.job_id] = None
        else:
            waiting.pop(placeholder.job_id, None)
        if not waiting:
            del self._unstarted[namespace]
        reason = (placeholder.view.reason if placeholder.view is not None else "") or NO_REASON
        self._reasons[reason] += step
        if not self._reasons[reason]:
            del self._reasons[reason]

    def get(self, job_id: JobId) -> Placeholder | None:
        """What is known of this job."""
        with self._lock:
            return self._by_id.get(job_id)

    def of(self, key: WorkloadKey) -> tuple[Placeholder, ...]:
        """All placeholders of a workload, the oldest attempt first."""
        with self._lock:
            found = [self._by_id[job_id] for job_id in self._by_key.get(key, ())]
        if len(found) > 1:
            found.sort(key=lambda one: (one.owner.attempt, one.job_id))
        return tuple(found)

    def next_attempt(self, key: WorkloadKey) -> int:
        """The number after those of the jobs that were dropped: the same in every daemon that has seen them."""
        with self._lock:
            return self._next_attempts.get(key, 0)

    def lives(self, key: WorkloadKey) -> bool:
        """Some placeholder of this workload is not over."""
        with self._lock:
            return any(job_id in self._living for job_id in self._by_key.get(key, ()))

    def all(self) -> tuple[Placeholder, ...]:
        """Every placeholder, at one moment."""
        with self._lock:
            return tuple(self._by_id.values())

    def alive(self) -> tuple[Placeholder, ...]:
        """Those that Slurm may still change; the one whose reading is oldest is first."""
        with self._lock:
            return tuple(self._living.values())

    def alive_among(self, job_ids: Iterable[JobId]) -> list[Placeholder]:
        """Those of these jobs that Slurm may still change."""
        with self._lock:
            return [one for one in map(self._living.get, job_ids) if one is not None]

    def divided(self, before: float) -> tuple[tuple[Placeholder, ...], tuple[JobId, ...]]:
        """Those that live: all that may move soon, and the ids of all that have run since before that moment.

        The second are the same tuple while none has joined or left them, however often they are read.
        """
        with self._lock:
            for one in tuple(self._moving.values()):
                if one.since <= before and one.phase is Phase.RUNNING:
                    del self._moving[one.job_id]
                    self._settled[one.job_id] = None
                    self._all_settled = None
            if self._all_settled is None:
                self._all_settled = tuple(self._settled)
            return tuple(self._moving.values()), self._all_settled

    def unread(self) -> tuple[Placeholder, ...]:
        """Living ones that were not read since they came to their phase: nearly none of many that run."""
        with self._lock:
            return tuple(self._unread.values())

    def ended(self) -> tuple[Placeholder, ...]:
        """Those that are over and not forgotten yet: few, at any moment."""
        with self._lock:
            return tuple(self._ended.values())

    def kept_for(self) -> tuple[Placeholder, ...]:
        """Living ones whose record says that nodes are kept for them: few, at any moment."""
        with self._lock:
            return tuple(self._kept_for.values())

    def forget_ended(self, before: float) -> None:
        """Drop those that have been over since before that moment."""
        for one in self.ended():
            # Of a torn one the rest still lives, and has to be ended.
            if one.since < before and not one.torn:
                self.drop(one.job_id)

    def let_go(self, namespace: str) -> None:
        """Another daemon serves this namespace: forget all of its jobs, whatever becomes of them."""
        for one in self.all():
            if one.owner.namespace == namespace:
                self.drop(one.job_id)

    def uids(self) -> tuple[WorkloadKey, ...]:
        """Every workload that has a placeholder."""
        with self._lock:
            return tuple(self._by_key)

    @property
    def unstarted(self) -> int:
        """How many wait in Slurm's queue: what the window bounds."""
        with self._lock:
            return sum(map(self._phases.__getitem__, _UNSTARTED))

    @property
    def running(self) -> int:
        """How many run, or did when Slurm still knew them."""
        with self._lock:
            return self._phases[Phase.RUNNING]

    def unstarted_by_namespace(self) -> Mapping[str, int]:
        """The same for each namespace."""
        with self._lock:
            return {namespace: len(waiting) for namespace, waiting in self._unstarted.items()}

    def unstarted_by_reason(self) -> Mapping[str, int]:
        """The same for each reason of Slurm."""
        with self._lock:
            return dict(self._reasons)

    def youngest_pending(self, namespace: str, count: int) -> tuple[Placeholder, ...]:
        """So many jobs of a namespace that wait in Slurm's queue; those that came to wait last are first."""
        with self._lock:
            waiting = [self._by_id[job_id] for job_id in self._unstarted.get(namespace, ())]
        pending = [one for one in waiting if one.phase is Phase.PENDING and one.certainty is Certainty.SEEN]
        return tuple(sorted(pending, key=lambda one: (-one.since, -one.job_id))[:count])

    def vanished(self, *, named: bool = False) -> tuple[int, int]:
        """Of the placeholders that have held nodes: how many Slurm does not know any more, and how many there are.

        `named`: with those of which nothing but the labels of pods has ever told.
        """
        with self._lock:
            counted = [self._started[seen, gone] for seen in (True, False) if seen or named for gone in (True, False)]
        return sum(counted[::2]), sum(counted)

    def counts(self) -> dict[Phase, int]:
        """How many there are in each phase."""
        with self._lock:
            return dict(self._phases)


def _file(among: dict[JobId, Placeholder], one: Placeholder, *, there: bool) -> None:
    if there:
        among[one.job_id] = one
    else:
        among.pop(one.job_id, None)


def current(placeholders: Iterable[Placeholder]) -> Placeholder | None:
    """The one that counts: the oldest that lives, else the latest that ended.

    Of two that live the older is kept: every daemon that sees both cancels the same one.
    """
    ordered = tuple(placeholders)
    living = [one for one in ordered if one.alive]
    sure = [one for one in living if one.certainty is Certainty.SEEN]
    return next(iter(sure or living or ordered[::-1]), None)


def surplus(
    placeholders: Iterable[Placeholder], kept: Placeholder | None, named: Collection[JobId] = ()
) -> tuple[Placeholder, ...]:
    """Those that live beside the one that is kept; none as long as it is not clear which one that is.

    Jobs that bound pods name (`named`) are not among them: those pods depend on them.
    """
    if kept is None:
        return ()
    beside = (one for one in placeholders if one is not kept and one.job_id not in named)
    return tuple(one for one in beside if (one.alive or one.torn) and one.certainty is Certainty.SEEN)
