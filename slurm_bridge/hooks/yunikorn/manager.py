"""The daemon as one resource manager of the core: what it tells of workloads, and what it hears of them.

To the core the whole of Slurm is one node that takes everything: which nodes there are and who has them is Slurm's
business, and what holds a workload here are its queues alone, and how many others are ahead.

    enter    an application with one ask for all pods      ended    the application goes, and what it used is free
    adopt    one that has a job already, whatever the limits

Each time a workload enters it is another application: what leaves needs a while, and two must not be confused.
"""

import dataclasses
import threading
from collections.abc import Callable, Iterable, Mapping

from slurm_bridge.hooks.background import Backstage
from slurm_bridge.hooks.yunikorn import telling
from slurm_bridge.hooks.yunikorn.demands import Demand
from slurm_bridge.hooks.yunikorn.members import Ahead, Member, Stage
from slurm_bridge.hooks.yunikorn.setup import PARTITION, Setup
from slurm_bridge.queues import naming, records
from slurm_bridge.queues.committed import Partition
from slurm_bridge.queues.core import Core
from slurm_bridge.queues.ledger import RejectedApplication
from slurm_bridge.queues.quantities import LARGEST
from slurm_bridge.queues.records import (
    Allocation,
    Mode,
    Named,
    News,
    Node,
    Question,
    Registration,
    Thing,
    Update,
)
from slurm_bridge.runtime.threads import Supervisor

RM = "slurm-bridge"
#: The one node.
_SLURM = "slurm"


class Manager:
    """Called by the passes and by the core's threads. Without threads the core does everything when it is told."""

    def __init__(self, setup: Setup, backstage: Backstage) -> None:
        self.setup = setup
        self.lock = threading.RLock()
        self.members: dict[str, Member] = {}
        self.ahead = Ahead()
        self._backstage = backstage
        self._core = Core(backstage.clock, self._report)
        self._by_name: dict[str, Member] = {}
        self._kinds: set[str] = set()
        self._size: Mapping[str, int] = {}
        self._entered = self._let_in = 0
        self._woken: list[str] = []
        self._quiet = ""
        self._threads: Supervisor | None = None
        self._began = self._settling = False

    # -- life --------------------------------------------------------------------------------------------------------

    def begin(self, held: Iterable[tuple[Demand, bool]]) -> None:
        """Register, with what runs or pends already; it is known when this returns. The flag: it has started."""
        with self.lock:
            registration = Registration(
                rm=RM, configuration=self.setup.document, mode=Mode.ALLOCATABLE, predicates=True
            )
            self._core.register_resource_manager(registration, self)
            for demand, started in held:
                self.adopt(demand, started=started)
            self._core.settle()
            self._began = True
            if self._backstage.threads:
                self._threads = Supervisor(lambda name, error: self._report(name, error or RuntimeError("it ended")))
                for name, target in self._core.tasks():
                    self._threads.add(name, target)
                self._threads.start()

    def follow(self, setup: Setup, held: Iterable[tuple[Demand, bool]]) -> None:
        """The configuration is another one: limits hold from now on, and whoever was refused may try again."""
        with self.lock:
            self.setup = setup
            for uid in [uid for uid, one in self.members.items() if one.stage is Stage.REFUSED]:
                self._drop(self.members.pop(uid))
            self._send(Update(rm=RM, configuration=setup.document))
            for demand, started in held:
                if demand.uid not in self.members:
                    self.adopt(demand, started=started)
            self.nudge()

    def check(self, setup: Setup) -> None:
        """Refused where this configuration cannot take the place of the one in force."""
        with self._core.cache.ledger.lock:
            known = self._core.cache.ledger.partitions.get(naming.normalised(RM, PARTITION))
            if known is not None:
                known.check(setup.partition)

    def close(self) -> None:
        """The threads end; nothing is decided any more."""
        if self._threads is not None:
            self._threads.stop.set()

    # -- workloads ---------------------------------------------------------------------------------------------------

    def enter(self, demand: Demand, *, placed: bool = False) -> Member:
        """Let it wait in its queue; what it was to the core before is over."""
        with self.lock:
            member = self._member(demand)
            member.placed = placed
            self._quiet = demand.uid
            self._send(
                Update(
                    rm=RM,
                    nodes=self._widened(demand),
                    applications=(telling.application(member),),
                    asks=(telling.ask(member),),
                )
            )
            self._quiet = ""
            return member

    def adopt(self, demand: Demand, *, started: bool) -> Member:
        """It has a job: it counts, in its queue or in the one for those that no queue takes."""
        with self.lock:
            member = self._member(demand)
            member.placed, member.stage = True, Stage.GIVEN
            member.turn = self._next_turn()
            if not started:
                self.ahead.seen(member.name)
            application = dataclasses.replace(telling.application(member), forced=True, node_sort="")
            standing = Allocation(ask=telling.ask(member), nodes=(_SLURM,))
            self._send(Update(rm=RM, nodes=self._widened(demand), applications=(application,), standing=(standing,)))
            return member

    def _member(self, demand: Demand) -> Member:
        self.leave(demand.uid)
        self._entered += 1
        member = Member(demand=demand, name=f"{demand.title}#{self._entered}")
        self.members[demand.uid] = self._by_name[member.name] = member
        return member

    def leave(self, uid: str) -> None:
        """It is over, or no longer what it was: what it used is free."""
        with self.lock:
            member = self.members.pop(uid, None)
            if member is not None:
                self._drop(member)

    def _drop(self, member: Member) -> None:
        del self._by_name[member.name]
        was_ahead = self.ahead.leave(member.name)
        if member.queue or member.stage is not Stage.REFUSED:
            named = Named(partition=PARTITION, name=member.name)
            self._send(Update(rm=RM, removed_applications=(named,)))
        if was_ahead:
            self.nudge()

    def started(self, uid: str) -> None:
        """All its pods have nodes: somebody else may go ahead."""
        with self.lock:
            member = self.members.get(uid)
            if member is None:
                return
            if member.stage is Stage.ASKED and member.placed:
                # Its job of before has started while it waited to be let in as what it has become.
                self.adopt(member.demand, started=True)
            elif self.ahead.leave(member.name):
                self.nudge()

    def seen(self, member: Member) -> None:
        """Slurm has a job of it."""
        with self.lock:
            member.placed = True
            if member.stage is Stage.GIVEN:
                self.ahead.seen(member.name)

    def measure(self, size: Mapping[str, int]) -> None:
        """So large is the cluster: where nothing is guaranteed, shares of queues are parts of it."""
        with self.lock:
            if size != self._size:
                self._size = size
                self.nudge()

    def nudge(self) -> None:
        """Have the core look again at those who found nobody's place."""
        self._send(Update(rm=RM, nodes=(self._node(),)))

    def look_around(self) -> None:
        """Those of whom nobody has seen a job do not hold up others any longer."""
        with self.lock:
            if self.ahead.expire(self._backstage.clock.wall()):
                self.nudge()

    # -- the callback ------------------------------------------------------------------------------------------------

    def update(self, news: News, /) -> None:
        """What the core has decided; whoever it concerns is looked at again."""
        with self.lock:
            for accepted in news.accepted:
                self._accepted(accepted)
            for rejected in news.rejected:
                self._rejected(rejected)
            for allocation in news.new:
                self._given(allocation)
            for eviction in news.evictions:
                self._send(Update(rm=RM, spared=(eviction.victim,)))
            woken, self._woken = self._woken, []
        for uid in woken:
            self._backstage.wake(uid)

    def _accepted(self, accepted: records.Accepted) -> None:
        member = self._by_name.get(accepted.subject.name)
        if member is not None and accepted.subject.thing is Thing.APPLICATION:
            member.queue = accepted.queue
            if member.stage is Stage.ASKED:
                # The pass in which it entered could not say yet what it waits for.
                self._wake(member)

    def _rejected(self, rejected: records.Rejected) -> None:
        subject, member = rejected.subject, self._by_name.get(rejected.subject.name)
        self._backstage.tally.happened("yunikorn", "rejected")
        if member is None or subject.thing not in (Thing.APPLICATION, Thing.ASK):
            if subject.thing is Thing.CONFIGURATION or member is not None:
                self._backstage.log.warning(f"the core rejected {subject.thing.value}: {rejected.reason}")
            return
        if member.stage is Stage.ASKED and not member.why:
            member.why = rejected.reason.removeprefix(f"application {member.name}: ")
            member.stage = Stage.REFUSED
            self._wake(member)

    def _given(self, allocation: Allocation) -> None:
        member = self._by_name.get(allocation.ask.application)
        if member is not None and member.stage is Stage.ASKED:
            member.stage, member.turn = Stage.GIVEN, self._next_turn()
            if member.placed:
                self.ahead.seen(member.name)
            self._backstage.tally.happened("yunikorn", "let in")
            self._wake(member)

    def _wake(self, member: Member) -> None:
        """Not whom a pass is looking at just now: it sees the answer itself."""
        if member.demand.uid != self._quiet:
            self._woken.append(member.demand.uid)

    def predicate(self, question: Question, /) -> str:
        """Whether there is a place ahead; nothing is ever held for anybody, because the one node is never full."""
        if question.reserving:
            return "nothing is held for anybody"
        with self.lock:
            now, most = self._backstage.clock.wall(), self.setup.ahead
            if self.ahead.enter(question.ask.application, now, most):
                return ""
            return f"{most} are ahead"

    # -- what is shown -----------------------------------------------------------------------------------------------

    def committed(self, look: Callable[[Partition], object]) -> object:
        """What somebody sees who looks at the committed state; None before there is any."""
        with self._core.cache.ledger.lock:
            known = self._core.cache.ledger.partitions.get(naming.normalised(RM, PARTITION))
            return look(known) if known is not None else None

    @property
    def rejected(self) -> tuple[RejectedApplication, ...]:
        """The last ones that no queue took."""
        return self._core.cache.rejected

    # -- the core ----------------------------------------------------------------------------------------------------

    def _send(self, update: Update) -> None:
        self._core.update(update)
        # What is sent from within the callback is handled by whoever has called it.
        if self._began and not self._backstage.threads and not self._settling:
            self._settling = True
            try:
                self._core.settle()
            finally:
                self._settling = False

    def _widened(self, demand: Demand) -> tuple[Node, ...]:
        """The node, where it has to hold something that it did not before."""
        if demand.total.keys() <= self._kinds:
            return ()
        self._kinds |= demand.total.keys()
        return (self._node(),)

    def _node(self) -> Node:
        capacity = dict.fromkeys(self._kinds, LARGEST)
        return Node(name=_SLURM, partition=PARTITION, capacity=capacity, size=self._size)

    def _next_turn(self) -> int:
        self._let_in += 1
        return self._let_in

    def _report(self, name: str, error: Exception) -> None:
        self._backstage.tally.happened("yunikorn", "error")
        self._backstage.log.warning(f"queue core: {name}: {type(error).__name__}: {error}")
