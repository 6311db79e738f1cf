"""`ports.Slurm` over slurmrestd: the list of verbs. How each of them can go wrong stands in the modules beside it."""

import contextlib
import functools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

from slurm_bridge import errors, ports
from slurm_bridge.model import marks
from slurm_bridge.model.job import (
    Done,
    JobAllocation,
    JobRequest,
    JobStates,
    JobView,
    Outcome,
    Phase,
    Refusal,
    Refused,
    Unknown,
)
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId
from slurm_bridge.model.reservation import Reservation
from slurm_bridge.model.slurmconf import SlurmConf
from slurm_bridge.model.slurmnode import NewNodes, NodeChange, NodeListing, Partition, Ping, SlurmNode
from slurm_bridge.model.slurmtoken import TokenLife
from slurm_bridge.runtime import retries
from slurm_bridge.runtime.caches import AnswerCache, ValueCache
from slurm_bridge.runtime.http.messages import HttpAnswer, HttpRequest
from slurm_bridge.runtime.oddities import Oddities
from slurm_bridge.slurm import (
    answers,
    calls,
    conf,
    error_numbers,
    fields,
    het,
    nodes,
    outcomes,
    readback,
    replies,
    reservations,
    rows,
    shapes,
)
from slurm_bridge.slurm.dialogue import Connect, Dialogue, pool
from slurm_bridge.slurm.settings import SlurmSettings

T = TypeVar("T", bound=shapes.Envelope)
F = TypeVar("F")
R = TypeVar("R")
M = TypeVar("M")

_NOT_MODIFIED = 304
#: How many answers of jobs/state are kept at most, and for how long. The mirror asks for at most 25 parts in turn, each
#: of some calls.
_MOST_STATES, _STATES_SECONDS = 64, 60.0


class SlurmClient:
    """One slurmrestd. Makes no call before it is asked something, and may be used by many threads."""

    def __init__(
        self,
        settings: SlurmSettings,
        *,
        clock: ports.Clock,
        stop: threading.Event,
        connect: Connect = pool,
        oddities: Oddities | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._stop = stop
        self._oddities = oddities or Oddities(clock.now)
        self._dialogue = Dialogue(settings, now=clock.now, connect=connect)
        self._threads: Mapping[str, int] = {}
        self._no_components = False
        self._known_states = AnswerCache[str, tuple[bytes, Mapping[JobId, JobStates]]](most=_MOST_STATES)
        ttl, now = settings.cache_ttl, clock.now
        self._nodes: ValueCache[tuple[SlurmNode, ...]] = ValueCache(self._read_nodes, ttl=ttl, now=now)
        self._partitions: ValueCache[tuple[Partition, ...]] = ValueCache(self._read_partitions, ttl=ttl, now=now)
        self._ping: ValueCache[Ping] = ValueCache(self._read_ping, ttl=ttl, now=now)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Drop all connections."""
        self._dialogue.close()

    @property
    def version(self) -> str:
        """The API version in use; negotiates it when that was not done yet."""
        return self._dialogue.wire().name

    def token_life(self) -> TokenLife | None:
        """When the current token was made, and when it ends; None where it does not say so."""
        return self._dialogue.token_life()

    # Orders: every one ends in an Outcome.

    def submit(self, request: JobRequest) -> Outcome:
        try:
            call = calls.submit(fields.components(request))
        except ValueError as mistake:
            return Refused(why=Refusal.INVALID, code=0, message=str(mistake))
        outcome = self._order(call, lambda answer: outcomes.of_submit(answer, request.job_id), request.job_id)
        if request.components and isinstance(outcome, Refused) and outcome.code == error_numbers.NOT_FOR_EXTERNAL_JOBS:
            # An older slurmctld behind a newer slurmrestd: nothing else tells its release.
            self._no_components = True
        return outcome

    def update(self, job_id: JobId, request: JobRequest) -> Outcome:
        if request.components:
            return Refused(why=Refusal.INVALID, code=0, message="a heterogeneous job cannot be changed, only replaced")
        outcome = self._change(job_id, lambda: fields.update(request))
        return self._confirmed(request, outcome) if isinstance(outcome, Done) else outcome

    def note(self, job_id: JobId, owner: Owner) -> Outcome:
        return self._change(job_id, lambda: {"admin_comment": marks.write(owner)})

    def cancel(self, job_id: JobId) -> Outcome:
        return self._end(calls.cancel(job_id), (job_id,))[job_id]

    def cancel_many(self, job_ids: Sequence[JobId]) -> Mapping[JobId, Outcome]:
        return {
            job_id: outcome
            for chunk in calls.chunks(job_ids)
            for job_id, outcome in self._end(calls.cancel_many(chunk), chunk).items()
        }

    def assign(self, job_id: JobId, owner: Owner, reservation: str, priority: int | None) -> Outcome:
        return self._change(job_id, lambda: fields.assign(owner, reservation, priority))

    def reserve(self, name: str, nodes: Sequence[str], user: str, seconds: int) -> Outcome:
        return reservations.reserve(self._order, name, nodes, user, seconds)

    def unreserve(self, name: str) -> Outcome:
        return reservations.unreserve(self._order, name)

    # Reads: tried again a few times, then raised.

    def states(self, job_ids: Collection[JobId] | None = None) -> Mapping[JobId, JobStates]:
        if job_ids is None:
            return answers.states(self._read(calls.ALL_STATES, shapes.States).jobs, components=False)
        found: dict[JobId, JobStates] = {}
        for chunk in calls.chunks(sorted(set(job_ids))):
            found |= self._tried(functools.partial(self._read_states, chunk))
        return found

    def job(self, job_id: JobId) -> JobView | None:
        with self._one(job_id):
            view = het.job(job_id, self._rows(job_id))
            if view is None or view.het_job_id in (None, job_id):
                return view
            return view if self._rows(view.het_job_id) else het.orphan(view)

    def components(self, job_id: JobId) -> Sequence[JobView]:
        with self._one(job_id):
            return het.parts(job_id, self._rows(job_id))

    def jobs(self) -> Sequence[JobView]:
        listed = self._read(calls.jobs(self._settings.recovery_timeout), shapes.RawJobs).jobs
        odd: list[rows.UnreadableRow] = []
        # All rows at once would take as much memory as the answer itself.
        found = het.jobs(rows.each(listed, shapes.JobRow, "job", odd), odd)
        return self._known((found, tuple(odd)))[0]

    def find(self, owner: Owner) -> Sequence[JobView]:
        return [view for view in self.jobs() if view.owner is not None and view.owner.same_workload(owner)]

    def allocation(self, job_id: JobId) -> JobAllocation | None:
        if not self._dialogue.wire().resources:
            row = self._row(job_id, shares=True)
            holding = row is not None and answers.state_of(row.job_state).phase not in (Phase.PENDING, Phase.ENDED)
            with self._one(job_id):
                return answers.allocation_of_job(row) if row is not None and holding else None
        try:
            held = self._read(calls.resources(job_id), shapes.Resources).nodes
        except (errors.NotFound, errors.Conflict) as problem:
            # Not there, or there and not running; any other conflict is not about that.
            if problem.code in (error_numbers.INVALID_JOB_ID, error_numbers.JOB_NOT_RUNNING):
                return None
            raise
        with self._one(job_id):
            # Threads per core: only a node never seen before costs another call.
            if any(row.node not in self._threads for row in held):
                self._nodes.renew()
            return answers.allocation(job_id, held, self._threads)

    def heterogeneous(self) -> bool:
        return not self._no_components and het.served_by(self.ping().version)

    def reservations(self) -> Sequence[Reservation]:
        found = self._read(reservations.LIST, shapes.Reservations).reservations
        return self._made(found, reservations.read, "reservation")

    def nodes(self) -> Sequence[SlurmNode]:
        return self._nodes.get()

    def partitions(self) -> Sequence[Partition]:
        return self._partitions.get()

    def node_listing(self, seen: NodeListing | None = None) -> NodeListing:
        found, odd = self._known(self._tried(lambda: self._changed(seen)))
        if found is None:
            assert seen is not None
            return seen
        made, more = self._known(rows.made(found.nodes, self._reader(), "node"))
        unreadable = frozenset(one.name for one in (*odd, *more))
        return NodeListing(nodes=tuple(made), stamp=shapes.number(found.last_update) or 0, unreadable=unreadable)

    def change_nodes(self, names: Collection[str], change: NodeChange) -> Outcome:
        return nodes.change(self._order, names, change)

    def create_nodes(self, new: NewNodes) -> Outcome:
        return nodes.create(self._order, new)

    def delete_nodes(self, names: Collection[str]) -> Outcome:
        return nodes.delete(self._order, names)

    def ping(self) -> Ping:
        """What Slurm says of itself: its version decides whether jobs may have components. No part of the port."""
        return self._ping.get()

    def conf(self) -> SlurmConf | None:
        """Some of slurm.conf, None where this API version does not tell it. Only for checks, so no part of the port."""
        if not self._dialogue.wire().conf:
            return None
        return conf.read(self._read(conf.CALL, conf.Conf).conf)

    def inscribe(self, job_id: JobId, text: str) -> Outcome:
        """Write a text that is no record of ours into `admin_comment`. Only for a handover, so no part of the port."""
        return self._change(job_id, lambda: {"admin_comment": text})

    # How all of them talk.

    def _change(self, job_id: JobId, changes: Callable[[], Mapping[str, object]]) -> Outcome:
        """`changes` raises ValueError where Slurm would take something else than what is meant."""
        try:
            call = calls.update(job_id, changes())
        except ValueError as mistake:
            return Refused(why=Refusal.INVALID, code=0, message=str(mistake))
        return self._order(call, lambda answer: outcomes.of_update(answer, job_id), job_id)

    def _order(self, call: HttpRequest, judge: Callable[[HttpAnswer], Outcome], job_id: JobId | None = None) -> Outcome:
        try:
            return judge(self._dialogue.ask(call))
        except errors.BridgeError as problem:
            return outcomes.of_problem(problem, job_id)

    def _end(self, call: HttpRequest, job_ids: Sequence[JobId]) -> Mapping[JobId, Outcome]:
        try:
            return outcomes.of_cancel(self._dialogue.ask(call), job_ids)
        except errors.BridgeError as problem:
            return {job_id: outcomes.of_problem(problem, job_id) for job_id in job_ids}

    def _confirmed(self, request: JobRequest, done: Done) -> Outcome:
        """Slurm says 200 to fields that it did not change: only what can be read back is done."""
        try:
            row = self._row(done.job_id)
        except errors.BridgeError as problem:
            return Unknown(message=f"updated, but not read back: {problem}", job_id=done.job_id)
        if row is None:
            return Unknown(message="updated, but gone since", job_id=done.job_id)
        try:
            wrong = readback.differences(request, row)
        except rows.ODD as odd:
            return Unknown(message=f"updated, but what it is now cannot be read: {odd}", job_id=done.job_id)
        return Unknown(message=f"not as asked: {', '.join(wrong)}", job_id=done.job_id) if wrong else done

    def _read(self, call: HttpRequest, shape: type[T]) -> T:
        return self._ask(call, shape)[0]

    def _read_states(self, job_ids: Sequence[JobId]) -> Mapping[JobId, JobStates]:
        """Of jobs that run for hours the answer lists the very same rows each time: they are read once."""
        call = calls.states(job_ids)
        answer, now = self._dialogue.ask(call), self._clock.now()
        digest, before = replies.rows_digest(answer), self._known_states.recall(call.path, now=now)
        if before is not None and before[0] == digest:
            return before[1]
        listed, odd = self._known(replies.read(answer, shapes.States))
        wanted = set(job_ids)
        found = {job_id: one for job_id, one in answers.states(listed.jobs).items() if job_id in wanted}
        if digest is not None and not odd:
            self._known_states.keep(call.path, (digest, found), until=now + _STATES_SECONDS)
        return found

    def _ask(self, call: HttpRequest, shape: type[T]) -> tuple[T, tuple[rows.UnreadableRow, ...]]:
        """The answer, and the rows of it that cannot be read; others have nothing to do with them."""
        return self._known(self._tried(lambda: replies.read(self._dialogue.ask(call), shape)))

    def _tried(self, read: Callable[[], F]) -> F:
        return retries.read(read, self._settings.retries, pause=self._pause)

    def _changed(self, seen: NodeListing | None) -> tuple[shapes.Nodes | None, tuple[rows.UnreadableRow, ...]]:
        """The nodes, None where Slurm says that none has changed."""
        answer = self._dialogue.ask(nodes.listing(None if seen is None else seen.stamp))
        unchanged = seen is not None and answer.status == _NOT_MODIFIED
        return (None, ()) if unchanged else replies.read(answer, shapes.Nodes)

    def _known(self, found: tuple[F, tuple[rows.UnreadableRow, ...]]) -> tuple[F, tuple[rows.UnreadableRow, ...]]:
        for one in found[1]:
            self._oddities.met("Slurm", one.kind, one.name, one.why)
        return found

    def _made(self, found: Iterable[R], make: Callable[[R], M], kind: str) -> tuple[M, ...]:
        """Each row as a record; one whose values are odd is left out."""
        return tuple(self._known(rows.made(found, make, kind))[0])

    @contextlib.contextmanager
    def _one(self, job_id: JobId) -> Iterator[None]:
        """What is read of one job may be odd: then nothing is known of it, and it exists."""
        try:
            yield
        except rows.ODD as odd:
            self._oddities.met("Slurm", "job", str(job_id), str(odd))
            raise errors.Unreadable(f"what Slurm says of job {job_id} cannot be read: {odd}") from odd

    def _pause(self, seconds: float) -> None:
        if self._clock.wait(self._stop, seconds):
            raise errors.Unavailable("stopping")

    def _rows(self, job_id: JobId, *, shares: bool = False) -> Sequence[shapes.JobRow]:
        """Of a heterogeneous leader all components are in the answer."""
        try:
            found, odd = self._ask(calls.job(job_id, shares=shares), shapes.Jobs)
        except errors.NotFound:
            return ()
        if odd:
            # Be it another component: without it a job would look as if it had lost one.
            raise errors.Unreadable(f"what Slurm says of {odd[0]}")
        return found.jobs

    def _row(self, job_id: JobId, *, shares: bool = False) -> shapes.JobRow | None:
        return next((row for row in self._rows(job_id, shares=shares) if row.job_id == job_id), None)

    def _read_nodes(self) -> tuple[SlurmNode, ...]:
        found = self._made(self._read(calls.NODES, shapes.Nodes).nodes, self._reader(), "node")
        self._threads = {node.name: node.threads_per_core for node in found}
        return found

    def _reader(self) -> Callable[[shapes.NodeRow], SlurmNode]:
        """How a node is read in the version that was agreed on."""
        return functools.partial(answers.node, told=self._dialogue.wire().external)

    def _read_partitions(self) -> tuple[Partition, ...]:
        found = self._read(calls.PARTITIONS, shapes.Partitions).partitions
        return self._made(found, answers.partition, "partition")

    def _read_ping(self) -> Ping:
        return answers.ping(self._read(calls.PING, shapes.Pings))
