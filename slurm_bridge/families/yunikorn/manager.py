"""The daemon as one resource manager of the core: what it tells of workloads, and what it hears of them.

To the core the whole of Slurm is one node that takes everything: nodes and their use are Slurm's business. Only its
queues hold a workload here, and the number of others ahead.

    enter    an ask for all pods, of its application       leave    the ask goes, and what it used is free
    adopt    one that has a job already, whatever the limits
    recount  one that was let in counts as less, or as the nodes that it has, where these are whole
    recalls  workloads that the core evicts; each leaves, which confirms it, or is spared

The first ask of an application brings it, the last one takes it away. Each time a workload enters it is another ask:
what leaves needs a while, and two must not be confused.
"""

import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping

from slurm_bridge.families.shared.inline import InlineBudget
from slurm_bridge.families.yunikorn import core_requests, restorer
from slurm_bridge.families.yunikorn.demands import CoreDemand
from slurm_bridge.families.yunikorn.engine import RM, Engine
from slurm_bridge.families.yunikorn.evictions import Evictions
from slurm_bridge.families.yunikorn.members import Ahead, QueueApplication, QueueMember, Stage, pass_by
from slurm_bridge.families.yunikorn.open_applications import OpenApplications
from slurm_bridge.families.yunikorn.queues import amounts, records
from slurm_bridge.families.yunikorn.queues.records import (
    Allocation,
    AllocationRelease,
    FitQuestion,
    News,
    Thing,
    Update,
)
from slurm_bridge.families.yunikorn.restorer import RestoredWorkload
from slurm_bridge.families.yunikorn.room_answers import RoomAnswers
from slurm_bridge.families.yunikorn.setup import Setup
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model.names import WorkloadKey

#: A workload that was let in has the nodes for so long that had room for it; it may never start there.
ROOM_SECONDS = 60.0


class Manager:
    """Called by the passes and by the core, which works in the thread that has told it something, or in its own."""

    def __init__(self, setup: Setup, services: HookServices, inline: InlineBudget | None = None) -> None:
        self.setup = setup
        self.lock = threading.RLock()
        self.members: dict[WorkloadKey, QueueMember] = {}
        self.ahead = Ahead()
        self._services = services
        self.engine = Engine(services, inline, setup.own)
        self.evictions = Evictions(self.lock)
        self.applications = OpenApplications()
        self._by_name: dict[str, QueueMember] = {}
        self._rooms = RoomAnswers(services, self.engine, self.evictions, self.members, self._by_name, self.lock)
        self._turns = itertools.count(1)
        self._woken: list[WorkloadKey] = []
        self._quiet = ""

    # -- life --------------------------------------------------------------------------------------------------------

    def begin(self, known: Iterable[RestoredWorkload]) -> None:
        """Register, with what runs, pends or has others go for it already; all of it is known when this returns."""
        with self.lock:
            # What runs comes first: it says where its application is.
            ordered = sorted(known, key=lambda one: (one.waits, one.demand.created, one.demand.uid))
            pairs = [(one, self._member(one.demand, self._restored(one.demand))) for one in ordered]
            for one, member in pairs:
                if not one.waits:
                    self._in_slurm(member, started=one.started)
            update = restorer.update(pairs, nodes=self.engine.widened(restorer.kinds(pairs)))
            for eviction in update.evicting:
                self._order(eviction)
            for one, member in restorer.askers(pairs, update):
                self.evictions.add(member, one.room_made_by, self._services.clock.wall())
            rooms = self._rooms.answer if self._services.situation is not None else None
            self.engine.begin(self.setup.document, self, update, rooms)

    def _in_slurm(self, member: QueueMember, *, started: bool) -> None:
        member.placed, member.stage = True, Stage.GIVEN
        member.turn, member.started = next(self._turns), started
        if not started:
            self.ahead.seen(member.name)

    def follow(self, setup: Setup, known: Iterable[RestoredWorkload]) -> None:
        """The configuration is another one: limits hold from now on, and refused workloads may try again."""
        with self.lock:
            self.setup = setup
            if not setup.preempts:
                self.evictions.call_off()
            for member in [one for one in self.members.values() if one.stage is Stage.REFUSED]:
                self._undo(member)
            self.engine.send(Update(rm=RM, configuration=setup.document))
            for one in known:
                if not one.waits and one.demand.uid not in self.members:
                    self.adopt(one.demand, started=one.started)
            self.engine.nudge()

    def close(self) -> None:
        """Nothing is decided any more."""
        self.engine.close()

    # -- workloads ---------------------------------------------------------------------------------------------------

    def enter(self, demand: CoreDemand, *, placed: bool = False) -> QueueMember:
        """Let it wait in its queue; what it was to the core before is over."""
        with self.lock:
            held = self._kept(demand, placed=placed)
            if held is not None and held.stands_for(demand):
                return self._restore(held)
            there = self.applications.taking(demand)
            by_queue = self.setup.reads_queues
            apart = there.refusal(demand, by_queue=by_queue) if there is not None and not demand.problem else ""
            if apart or demand.problem:
                member = self._refused(demand, apart or demand.problem, there if apart else None)
                member.placed, member.held = placed, held
                return member
            member = self._member(demand, there or self.applications.begin(demand))
            member.placed, member.held = placed, held
            if there is not None and there.queue:
                self._let_go(member)
            self._quiet = demand.uid
            nodes, applications = self.engine.widened(demand.total), self._new(member, core_requests.application)
        self.engine.ask(Update(rm=RM, nodes=nodes, applications=applications, asks=(core_requests.ask(member),)))
        with self.lock:
            # What comes of it from now on wakes it; what has come of it already, the pass sees.
            self._quiet = ""
        return member

    def _kept(self, demand: CoreDemand, *, placed: bool) -> QueueMember | None:
        """What its job, if it has one, stands for goes on counting; all else that it was to the core is over."""
        member = self.members.get(demand.uid)
        held = member if member is None or member.stage is Stage.GIVEN else member.held
        if not placed or member is None or held is None or self.evictions.recall(demand.uid) is not None:
            self.leave(demand.uid)
            return None
        if member is not held:
            member.held = None
            self._drop(member)
        self.applications.close(held.application)
        return held

    def _let_go(self, member: QueueMember) -> None:
        """What its job stands for counts no longer."""
        held, member.held = member.held, None
        if held is not None:
            self._drop(held)

    def _undo(self, member: QueueMember) -> None:
        """It is not what it has become any more, but what its job stands for, where that counts."""
        held, member.held = member.held, None
        del self.members[member.demand.uid]
        self._drop(member)
        if held is not None:
            self._restore(held)

    def _restore(self, held: QueueMember) -> QueueMember:
        self.members[held.demand.uid] = held
        self.applications.reopen(held.application)
        return held

    def is_over(self, member: QueueMember) -> bool:
        """Whether one that has no job any more has had one that still counts."""
        return member.held is not None or self.evictions.recall(member.demand.uid) is not None

    def adopt(self, demand: CoreDemand, *, started: bool) -> QueueMember:
        """It has a job: it counts, in its queue or in the one for those that no queue takes."""
        with self.lock:
            self.leave(demand.uid)
            member = self._member(demand, self._restored(demand))
            self._in_slurm(member, started=started)
            counted = self._counted(member)
            self.engine.send(dataclasses.replace(counted, applications=self._new(member, core_requests.forced)))
            return member

    def _counted(self, member: QueueMember) -> Update:
        """It counts as what it stands for, whatever the limits."""
        return Update(
            rm=RM,
            nodes=self.engine.widened(member.demand.total),
            standing=(core_requests.standing(member),),
            started=(core_requests.id_of(member),) if member.started else (),
        )

    def recount(self, demand: CoreDemand) -> bool:
        """Whether one that was let in counts as so much from now on, whatever the limits.

        One request: no other workload is let in between the two. One that is to go leaves with what it counted as.
        """
        with self.lock:
            member = self.members.get(demand.uid)
            if member is None or member.stage is not Stage.GIVEN or self.evictions.recall(demand.uid) is not None:
                return False
            # It stays in the application that it has entered.
            demand = dataclasses.replace(demand, application=member.demand.application)
            if member.demand == demand:
                return True
            before = core_requests.id_of(member)
            del self._by_name[before.key], member.application.members[before.key]
            member.demand, member.name = demand, self.applications.ask_name(demand)
            self._by_name[member.name] = member.application.members[member.name] = member
            self.ahead.rename(before.key, member.name)
            self.engine.send(dataclasses.replace(self._counted(member), releases=(AllocationRelease(id=before),)))
            return True

    def _restored(self, demand: CoreDemand) -> QueueApplication:
        """What is there counts: in the application that it names, or by itself where it may be no part of that."""
        there = self.applications.taking(demand)
        if there is None or there.refusal(demand, by_queue=self.setup.reads_queues):
            return self.applications.begin(demand)
        return there

    def _member(self, demand: CoreDemand, application: QueueApplication) -> QueueMember:
        name, now = self.applications.ask_name(demand), self._services.clock.wall()
        member = QueueMember(demand=demand, name=name, application=application, since=now)
        self.members[demand.uid] = self._by_name[name] = application.members[name] = member
        return member

    def _refused(self, demand: CoreDemand, why: str, apart_from: QueueApplication | None) -> QueueMember:
        """The core is not told of it; it tries again when it, the configuration or that application is another one."""
        member = self._member(demand, self.applications.alone(demand))
        member.stage, member.why, member.apart_from = Stage.REFUSED, why, apart_from
        if apart_from is not None:
            apart_from.apart[demand.uid] = None
        return member

    def _new(
        self, member: QueueMember, told: Callable[[QueueApplication], records.Application]
    ) -> tuple[records.Application, ...]:
        """Its application, where it is the first of it."""
        return (told(member.application),) if len(member.application.members) == 1 else ()

    def leave(self, key: WorkloadKey) -> None:
        """It is over, or no longer what it was: what it used is free."""
        with self.lock:
            member = self.members.pop(key, None)
            if member is not None:
                self._let_go(member)
                self._drop(member)

    def _drop(self, member: QueueMember) -> None:
        """What was asked to go is confirmed with it: only then is its room free for the asker."""
        del self._by_name[member.name]
        application = member.application
        self.applications.leave(member)
        was_ahead = self.ahead.leave(member.name)
        self.evictions.served(member.demand.uid)
        evicted = self.evictions.over(member.demand.uid) and member.stage is Stage.GIVEN
        if evicted:
            self._services.counters.happened("yunikorn", "made room")
        if not application.refused:
            self.engine.leave(core_requests.goodbye(member, evicted=evicted))
        if not application.members:
            self._try_again(application)
        if was_ahead:
            self._room_ahead()

    def _try_again(self, application: QueueApplication) -> None:
        """The workloads that were kept apart from it are looked at once more."""
        for uid in self.applications.released(application):
            self._undo(self.members[uid])
            self._services.wake(uid)

    def started(self, key: WorkloadKey) -> None:
        """All its pods have nodes: another workload may go ahead."""
        with self.lock:
            member = self.members.get(key)
            if member is None:
                return
            if member.stage is not Stage.GIVEN and member.placed:
                # Its job of before has started while it was not let in as what it has become.
                if member.held is None:
                    self.adopt(member.demand, started=True)
                    return
                self._undo(member)
                member = self.members[key]
            self.evictions.served(key)
            if not member.started and member.stage is Stage.GIVEN:
                member.started = True
                self.engine.leave(Update(rm=RM, started=(core_requests.id_of(member),)))
            if self.ahead.leave(member.name):
                pass_by(member, map(self._by_name.get, self.ahead.names))
                self._room_ahead()

    def seen(self, member: QueueMember) -> None:
        """Slurm has a job of it."""
        with self.lock:
            member.placed = True
            if member.stage is Stage.GIVEN:
                self.ahead.seen(member.name)
                self.evictions.served(member.demand.uid)

    def measure(self, size: Mapping[str, int]) -> None:
        """So large is the cluster: where nothing is guaranteed, shares of queues are parts of it."""
        with self.lock:
            if self.engine.measure(size):
                self.engine.nudge()

    def running(self) -> Mapping[str, int]:
        """What workloads count as that have nodes, as far as is known."""
        with self.lock:
            ahead = [one.demand.total for name in self.ahead.names if (one := self._by_name.get(name)) is not None]
        used = self.engine.committed(lambda partition: dict(partition.root.allocated))
        found: Mapping[str, int] = used if isinstance(used, dict) else {}
        return functools.reduce(amounts.minus, ahead, found)

    def look_around(self) -> None:
        """Workloads whose job was never seen do not hold up others any longer."""
        with self.lock:
            if self.ahead.expire(self._services.clock.wall()):
                self._room_ahead()

    def _room_ahead(self) -> None:
        """Workloads that found the places ahead taken may find one now; without a limit none has waited for one."""
        if self.setup.ahead:
            self.engine.nudge()

    # -- the callback ------------------------------------------------------------------------------------------------

    def update(self, news: News, /) -> None:
        """What the core has decided; the workloads that it concerns are looked at again."""
        with self.lock:
            for accepted in news.accepted:
                self._accepted(accepted)
            for rejected in news.rejected:
                self._rejected(rejected)
            for allocation in news.new:
                self._given(allocation)
            for eviction in news.evictions:
                self._order(eviction)
            woken, self._woken = self._woken, []
        for uid in woken:
            self._services.wake(uid)

    def _accepted(self, accepted: records.Accepted) -> None:
        application = self.applications.named(accepted.subject.name)
        if application is None or accepted.subject.thing is not Thing.APPLICATION:
            return
        application.queue = accepted.queue
        for member in application.members.values():
            if member.stage is Stage.ASKED:
                # The pass in which it entered could not say yet what it waits for.
                self._let_go(member)
                self._wake(member)
        self._try_again(application)

    def _rejected(self, rejected: records.Rejected) -> None:
        subject, application = rejected.subject, self.applications.named(rejected.subject.name)
        member = self._by_name.get(subject.key)
        if subject.thing is Thing.APPLICATION and application is not None:
            application.refused = True
            self.applications.end(application)
            self._turn_away(tuple(application.members.values()), rejected.reason)
            self._try_again(application)
        elif subject.thing is Thing.ASK and member is not None:
            self._turn_away((member,), rejected.reason)
        elif subject.thing is Thing.CONFIGURATION or member is not None:
            self._services.log.warning(f"the core rejected {subject.thing.value}: {rejected.reason}")

    def _turn_away(self, members: Iterable[QueueMember], reason: str) -> None:
        for member in members:
            if member.stage is Stage.ASKED:
                self._services.counters.happened("yunikorn", "rejected")
                why = reason.removeprefix(f"application {member.application.name}: ")
                member.stage, member.why = Stage.REFUSED, f"no queue takes it: {why}"
                self._wake(member)

    def _given(self, allocation: Allocation) -> None:
        member = self._by_name.get(allocation.ask.key)
        if member is None:
            # It has left at this very moment; the others of its application stay.
            self.engine.send(Update(rm=RM, releases=(AllocationRelease(id=allocation.ask.id),)))
        elif member.stage is Stage.ASKED:
            member.stage, member.turn = Stage.GIVEN, next(self._turns)
            member.room_until = self._services.clock.wall() + ROOM_SECONDS
            if member.placed:
                self.ahead.seen(member.name)
            self._services.counters.happened("yunikorn", "let in")
            self._wake(member)

    def _wake(self, member: QueueMember) -> None:
        """Not the workload of the current pass: that sees the answer itself."""
        if member.demand.uid != self._quiet:
            self._woken.append(member.demand.uid)

    def predicate(self, question: FitQuestion, /) -> str:
        """Whether there is a place ahead; nothing is ever held for a workload, because the one node is never full.

        Nothing is evicted for a workload that would then wait for nodes. An asker whose victims went has a place.
        """
        if question.reserving and not question.preempting:
            return "nothing is held"
        with self.lock:
            now, most, name = self._services.clock.wall(), self.setup.ahead, question.ask.key
            if question.preempting:
                there = self.ahead.count(now, {one.key for one in question.without})
                return f"{there} are ahead" if most and there >= most and not self.engine.is_measured else ""
            member = self._by_name.get(name)
            awaited = member is not None and self.evictions.has_room(member.demand.uid)
            if self.ahead.enter(name, now, 0 if awaited else most):
                return ""
            return f"{most} are ahead"

    # -- evictions --------------------------------------------------------------------------------------------------

    def _order(self, eviction: records.Eviction) -> None:
        """A victim that is gone has left already, and the core hears of that. Without its asker none is evicted."""
        victim = self._by_name.get(eviction.victim.key)
        asker = self._by_name.get(eviction.asker.key) if eviction.asker else None
        if victim is not None and eviction.asker and asker is None:
            self.engine.send(Update(rm=RM, excused=(core_requests.id_of(victim),)))
        elif victim is not None:
            self.evictions.order(victim, asker, eviction.message, self._services.clock.wall())
            self._wake(victim)

    def gone(self, key: WorkloadKey) -> None:
        """The victim keeps nothing any more; where it is to come back it enters its queue anew, unless it has."""
        with self.lock:
            if self.evictions.recall(key) is None:
                return
            self.leave(key)
        self._services.wake(key)

    def spared(self, key: WorkloadKey, *, refused: bool = True) -> None:
        """It stays, and the core may choose another victim."""
        with self.lock:
            member = self.members.get(key)
            if self.evictions.spared(key) and member is not None:
                one = (core_requests.id_of(member.held or member),)
                self.engine.send(Update(rm=RM, spared=one) if refused else Update(rm=RM, excused=one))
