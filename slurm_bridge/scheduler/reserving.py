"""Keeping nodes for workloads that others pass: a hook says for whom, Slurm's reservation keeps everybody away.

    named     the hook names a workload whose job waits in Slurm for nodes; the nodes that would hold it and are the
              first to be free are promised to it: others of ours keep away
    reserved  Slurm's reservation keeps all other jobs away, too; where Slurm refuses it, the job is first in its queue
    assigned  its job enters the reservation, and its owner record says which nodes, and until when: so a restart knows
    over      used (it has nodes), withdrawn (its job is another one, has gone, or may not come to them any more), or
              timed out: the job leaves the reservation, and the nodes are everybody's

Reservations are short, and prolonged while they are needed: one that nobody looks after goes by itself, and its job
goes on waiting. What is to be given back is given back for certain; what an earlier life left behind, too.
"""

import dataclasses
import functools
import threading
from collections.abc import Callable, Mapping

import msgspec
from loguru import logger

from slurm_bridge import errors
from slurm_bridge.hooks.reserving import Reserves
from slurm_bridge.model.job import Done, JobView, Phase, Refusal, Refused
from slurm_bridge.model.names import JobId
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.scheduler import sites, soonest, withheld
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.clearing import Clearing, Terms
from slurm_bridge.scheduler.members import PLACED, Standing
from slurm_bridge.scheduler.queue import Queue
from slurm_bridge.scheduler.returning import Debt, Returning
from slurm_bridge.scheduler.tools import Tools
from slurm_bridge.scheduler.wish import Wish

#: A reservation lasts for so long, and is prolonged when so much of it is over.
SECONDS, RENEWED = 120, 40.0
#: What was not answered, or could not be done just now, is tried again after so long.
AGAIN = 5.0
#: A workload that could be helped by no node, or whose nodes were not free in time, is looked at again after so long.
REST = 30.0
#: What others of ours are told.
WHY = "node(s) are kept for a workload that has waited for longer"

#: Slurm will say the same when it is asked again soon.
_FINAL = frozenset({Refusal.INVALID, Refusal.FORBIDDEN})


@dataclasses.dataclass(slots=True, kw_only=True)
class Case:
    """Nodes that are kept for one workload and its job. `reserved`: Slurm keeps them; `refused`: it will not."""

    job_id: JobId
    name: str
    says: withheld.Withheld
    reserved: bool = False
    refused: bool = False
    silent: bool = False
    due: float = 0.0


class Reserving:
    """Turned by one thread; `begin` may be called by another."""

    def __init__(self, tools: Tools, census: Census, queue: Queue) -> None:
        self._tools, self._census, self._queue = tools, census, queue
        self._clearing = Clearing(tools, census, queue, Terms(by="reserving", why=WHY, outranked=True))
        self._lock = threading.Lock()
        self._cases: dict[str, Case] = {}
        self._returning = Returning(tools, queue)
        #: Who has had his time, or could be helped by no node: nothing is kept for him until then.
        self._rests: dict[str, float] = {}
        #: Nodes that were kept for a workload, and were not free in time.
        self._in_vain: dict[str, frozenset[str]] = {}
        #: What Slurm has refused it for, by error number: said once.
        self._told: set[int] = set()

    def begin(self) -> None:
        """A leadership begins: owner records say what was kept; what nobody knows of is swept by the first step."""
        with self._lock:
            for state in (self._cases, self._rests, self._in_vain, self._tools.reserved):
                state.clear()
            self._clearing.begin()
            self._returning.begin()
            for one in self._tools.table.all():
                says = withheld.read(one.owner.reserved)
                if says is not None and one.alive:
                    self._resume(one, says)

    @property
    def cases(self) -> tuple[str, ...]:
        """For whom nodes are kept, by uid."""
        return tuple(self._cases)

    def step(self) -> None:
        """Take everybody as far as it goes."""
        with self._lock:
            self._step()

    def _step(self) -> None:
        hook = self._tools.config.chain.reserves
        self._clearing.settle()
        if self._tools.mirror.failing or (hook is None and not self._cases and not self._returning.owed):
            return
        self._try("", functools.partial(self._returning.sweep, {case.name for case in self._cases.values()}))
        for uid, case in tuple(self._cases.items()):
            self._try(uid, functools.partial(self._follow, uid, case, hook))
        for debt in self._returning.owed:
            self._try(debt.uid, functools.partial(self._returning.settle, debt))
        if hook is not None:
            self._begin_some(hook)

    def _try(self, uid: str, act: Callable[[], None]) -> None:
        """Both sides may be away; the next step tries again."""
        try:
            act()
        except errors.BridgeError as problem:
            logger.bind(workload=uid).info("reservation: not now: {}", problem)
        except Exception as surprise:  # noqa: BLE001 - one workload that we cannot cope with must not stop the others
            logger.bind(workload=uid).opt(exception=surprise).error("reservation: it could not be dealt with")

    # -- who, and which nodes ----------------------------------------------------------------------------------------

    def _begin_some(self, hook: Reserves) -> None:
        now = self._tools.clock.now()
        self._rests = {uid: until for uid, until in self._rests.items() if until > now}
        for uid in [uid for uid in self._in_vain if self._census.crew(uid) is None]:
            del self._in_vain[uid]
        # Asked every time: the hook counts from when it saw somebody wait.
        for uid in sorted(hook.passed(), key=lambda uid: uid in self._in_vain):
            if len(self._cases) < hook.reservations and uid not in self._cases and uid not in self._rests:
                self._try(uid, functools.partial(self._begin, uid, hook))

    def _begin(self, uid: str, hook: Reserves) -> None:
        placeholder, wish = self._waits(uid), self._tools.wishes.get(uid, (None, None))[1]
        if placeholder is None or placeholder.view is None or not isinstance(wish, Wish):
            return
        nodes = self._choose(wish, placeholder.view, self._in_vain.get(uid, frozenset()))
        says = withheld.Withheld(nodes=nodes, until=int(self._tools.clock.wall() + hook.reserve_seconds))
        if not nodes or not says.text:
            self._rests[uid] = self._tools.clock.now() + REST
            return
        case = Case(job_id=placeholder.job_id, name=withheld.name(placeholder.owner), says=says)
        if self._returning.owes(case.name):
            # What is still to be given back is its priority, too: that of before would be forgotten.
            return
        hook.count("reserved")
        logger.bind(workload=str(wish.workload.root)).info("reservation: nodes {} are kept for it", ", ".join(nodes))
        self._keep(uid, case)
        self._follow(uid, case, hook)

    def _waits(self, uid: str) -> Placeholder | None:
        """Its one job, where that waits for nodes, and for nothing else that nobody could keep for it."""
        crew, living = self._census.crew(uid), [one for one in self._tools.table.of(uid) if one.alive]
        evicts = self._tools.config.chain.evicts
        if crew is None or crew.count(*PLACED) or len(living) != 1:
            return None
        if evicts is not None and (uid in evicts.rooms() or evicts.recalled(uid) is not None):
            return None
        view, (found,) = living[0].view, living
        waits = found.phase is Phase.PENDING and found.certainty is Certainty.SEEN and view is not None
        return found if waits and view is not None and soonest.supported(view) else None

    def _choose(self, wish: Wish, view: JobView, last: frozenset[str]) -> tuple[str, ...]:
        snapshot = self._tools.keeper.snapshot()
        taken = self._tools.promised.nodes
        names = (snapshot.by_slurm.get(name, "") for name in soonest.allowed(view, snapshot))
        facts = (snapshot.nodes[name] for name in names if name and name not in taken)
        return soonest.choose(soonest.task(wish.translated.shapes, view), view, facts, last=last, ends=self._ends())

    def _ends(self) -> Mapping[str, int]:
        """When the last of our jobs ends on each node at the latest, where Slurm has said so."""
        found: dict[str, int] = {}
        for one in self._tools.table.alive():
            view = one.view
            if view is not None and one.phase is Phase.RUNNING and view.state.phase is Phase.RUNNING:
                found |= {node: max(view.end_time, found.get(node, 0)) for node in view.nodes}
        return found

    def _keep(self, uid: str, case: Case) -> None:
        """Others of ours keep away for as long as it may last."""
        self._cases[uid] = case
        self._tools.reserved[uid] = case.says.text
        known = self._tools.keeper.snapshot().by_slurm
        left = case.says.until - self._tools.clock.wall()
        nodes = (known[name] for name in case.says.nodes if name in known)
        self._clearing.keep(uid, nodes, self._tools.clock.now() + left)

    def _resume(self, one: Placeholder, says: withheld.Withheld) -> None:
        """As the record of its job says; of one that has started all that is left is to leave."""
        uid, name = one.owner.uid, withheld.name(one.owner)
        if one.phase is Phase.PENDING and uid not in self._cases:
            self._keep(uid, Case(job_id=one.job_id, name=name, says=says))
        else:
            self._returning.owe(Debt(name=name, uid=uid))

    # -- one of them -------------------------------------------------------------------------------------------------

    def _follow(self, uid: str, case: Case, hook: Reserves | None) -> None:
        over = self._over(uid, case, hook)
        if over is not None:
            self._end(uid, case, over, hook)
            return
        now = self._tools.clock.now()
        if now >= case.due:
            self._reserve(uid, case, now)
        placeholder = self._job(uid, case)
        if placeholder is not None and not case.silent and (case.reserved or case.refused):
            self._assign(uid, case, placeholder)

    def _over(self, uid: str, case: Case, hook: Reserves | None) -> str | None:
        """In a word, None for as long as it has to last."""
        crew, job = self._census.crew(uid), self._job(uid, case)
        started = job is not None and job.phase is not Phase.PENDING
        if started or (crew is not None and crew.count(*PLACED)):
            return "used"
        if crew is None or not crew.count(Standing.WANTING) or job is None or hook is None or hook.reservations == 0:
            return "withdrawn"
        if self._tools.clock.wall() >= case.says.until:
            return "timed out"
        return None if self._is_of_use(case, job) else "withdrawn"

    def _job(self, uid: str, case: Case) -> Placeholder | None:
        living = (one for one in self._tools.table.of(uid) if one.alive)
        return next((one for one in living if one.job_id == case.job_id), None)

    def _is_of_use(self, case: Case, job: Placeholder) -> bool:
        """Its job may come to all of these nodes, and Slurm starts jobs there."""
        snapshot = self._tools.keeper.snapshot()
        if job.view is None or not job.view.partition:
            return True
        there = {name: snapshot.slurm_nodes.get(name) for name in case.says.nodes}
        usable = all(one is not None and not sites.closed(one, reserved=True) for one in there.values())
        return usable and there.keys() <= soonest.allowed(job.view, snapshot)

    def _reserve(self, uid: str, case: Case, now: float) -> None:
        """Make it, or prolong it. Without it, others of ours keep away all the same."""
        job = self._job(uid, case)
        user = job.view.user if job is not None and job.view is not None else ""
        if not user:
            return
        outcome = self._tools.slurm.reserve(case.name, case.says.nodes, user, SECONDS)
        case.due = now + (RENEWED if isinstance(outcome, Done) else AGAIN)
        if isinstance(outcome, Done) and case.reserved and job is not None:
            # Where Slurm was away for longer than it lasted this is another one, and its job is not in there.
            self._tools.mirror.look(job.job_id, job.owner, tell=False)
        case.reserved = case.reserved or isinstance(outcome, Done)
        if isinstance(outcome, Refused) and outcome.why in _FINAL:
            self._refused(uid, case, outcome)
            case.due = now + RENEWED
        elif isinstance(outcome, Refused) and outcome.why is Refusal.UNKNOWN_NODE:
            self._tools.refresh_facts()

    def _refused(self, uid: str, case: Case, outcome: Refused) -> None:
        case.reserved, case.refused = False, True
        if outcome.code not in self._told:
            self._told.add(outcome.code)
            text = "Slurm reserves no nodes, so that jobs that are not ours may take those that are kept: {}"
            logger.bind(workload=uid).warning("reservation: " + text, outcome.message)

    def _assign(self, uid: str, case: Case, job: Placeholder) -> None:
        """Its job says what is kept for it, and enters the reservation, or is the first of all."""
        view, name = job.view, case.name if case.reserved else ""
        if view is None or (job.owner.reserved == case.says.text and view.reservation == name):
            return
        # Ids come back for others after a crash, and a job that is held has another priority than its own.
        known, view = self._tools.mirror.look(job.job_id, job.owner, tell=False), None
        if known is None or known.phase is not Phase.PENDING or (view := known.view) is None or view.held:
            return
        if case.refused and not case.reserved and case.says.priority is None:
            case.says = dataclasses.replace(case.says, priority=view.priority)
            self._tools.reserved[uid] = case.says.text
        owner = msgspec.structs.replace(known.owner, reserved=case.says.text)
        outcome = self._tools.slurm.assign(job.job_id, owner, name, None if case.reserved else withheld.FIRST)
        if isinstance(outcome, Refused) and outcome.why in _FINAL:
            self._not_assigned(uid, case, outcome)
        self._tools.mirror.look(job.job_id, job.owner, tell=False)
        self._queue.activate(uid, urgent=True)

    def _not_assigned(self, uid: str, case: Case, outcome: Refused) -> None:
        """The reservation has gone meanwhile, or is not for this job; or its record cannot be written."""
        if case.reserved:
            case.reserved, case.due = False, 0.0
        else:
            case.silent = True
        logger.bind(workload=uid).info("reservation: its job {} stays as it is: {}", case.job_id, outcome.message)

    def _end(self, uid: str, case: Case, how: str, hook: Reserves | None) -> None:
        """Its nodes are everybody's, and it leaves what kept them for it."""
        logger.bind(workload=uid).info("reservation: {}", how)
        del self._cases[uid]
        self._tools.reserved.pop(uid, None)
        self._clearing.end(uid)
        if hook is not None:
            hook.count(f"reservation {how}")
        before = self._in_vain.pop(uid, frozenset())
        if how != "used":
            self._rests[uid] = self._tools.clock.now() + REST
        if how == "timed out":
            self._in_vain[uid] = before.union(case.says.nodes)
        self._returning.owe(debt := Debt(name=case.name, uid=uid, priority=case.says.priority))
        self._returning.settle(debt)
