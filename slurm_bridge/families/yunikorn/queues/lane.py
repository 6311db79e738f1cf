"""One scheduler's part in one partition: its events, its passes, and what it proposes.

What a pass gives counts here at once, so that the next step knows of it, and is proposed; the answer leaves it or takes
it back.
"""

import dataclasses
import math
import zlib
from collections.abc import Callable

from slurm_bridge.families.yunikorn.queues import events, nodes, plans, records
from slurm_bridge.families.yunikorn.queues.allocation_pass import Allocated, Passing
from slurm_bridge.families.yunikorn.queues.applications import PendingAsk
from slurm_bridge.families.yunikorn.queues.config import documents, reload, tree_builder
from slurm_bridge.families.yunikorn.queues.events import (
    CommitEvent,
    CoreEventQueue,
    Leave,
    Leaving,
    ProposalAnswer,
    SchedulerEvent,
)
from slurm_bridge.families.yunikorn.queues.nodes import PartitionNode
from slurm_bridge.families.yunikorn.queues.orders import NodePolicy
from slurm_bridge.families.yunikorn.queues.partition import AllocationRules, QueuePartition
from slurm_bridge.families.yunikorn.queues.plans import PreemptionPlan, Preemptor
from slurm_bridge.families.yunikorn.queues.ports import Clock, Report
from slurm_bridge.families.yunikorn.queues.preemption import PartitionPreemption
from slurm_bridge.families.yunikorn.queues.records import Allocation, AskId, FitQuestion, Origin
from slurm_bridge.families.yunikorn.queues.tree import find
from slurm_bridge.runtime import backoff

#: So many results one pass gives at most, before it listens again.
MOST_RESULTS = 1_000
#: An application that is refused again and again is asked for less and less often, at last every so many seconds.
_LONGEST_PAUSE = 32.0

#: Whether a node may take the ask: the question of the partition of a resource manager, "" or the reason.
Predicate = Callable[[str, FitQuestion], str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all lanes of a scheduler share. `number` is the scheduler's, of so many in `schedulers`."""

    clock: Clock
    rules: AllocationRules
    send: Callable[[CommitEvent], None]
    predicate: Predicate
    preemptor: Preemptor | None
    report: Report
    number: int = 0
    schedulers: int = 1


class Lane:
    """Events come in from any thread; one thread at a time handles and passes."""

    def __init__(self, name: str, origin: Origin, settings: documents.PartitionDocument, setting: Setting) -> None:
        self.name = name
        self.origin = origin
        self.inbox: CoreEventQueue[SchedulerEvent] = CoreEventQueue()
        self._setting = setting
        self._plan = tree_builder.plan(settings)
        sorts = nodes.sorts(settings.node_sort)
        self.partition = QueuePartition(tree_builder.build(self._plan), sorts, self._rules(settings), settings.root)
        self._preemption = PartitionPreemption(settings.preemption, self._would_do, origin.rooms)
        self._passing = Passing(self.partition, self._may if origin.predicates else None)
        #: Proposed and not answered; the ask that is to wait if it is refused.
        self._flying: dict[AskId, records.AllocationAsk | None] = {}
        self._held: frozenset[str] = frozenset()
        #: Another pass would come to nothing now: the last one has come to its end, and nothing has happened since.
        self.settled = False

    # -- events ------------------------------------------------------------------------------------------------------

    def handle(self) -> None:
        """All that has come in. An event that fails is reported, and the others are handled."""
        mine = self._setting.number
        for event in self.inbox.take():
            # What was proposed here and stands has counted since: no further pass comes to anything by that.
            expected = isinstance(event, ProposalAnswer) and event.by == mine and not event.refused
            self.settled = self.settled and expected
            try:
                self._handle(event)
            except Exception as error:  # noqa: BLE001 - one event must not take the partition with it
                self._setting.report(f"partition {self.name}: {type(event).__name__}", error)

    def _handle(self, event: SchedulerEvent) -> None:
        match event:
            case events.Configured():
                self._configure(event.settings)
            case events.NodePut():
                self.partition.put_node(event.node)
            case events.Added():
                root = self.partition.root
                leaf = find(root, event.queue) or tree_builder.create(root, self._plan, event.queue)
                self.partition.add_application(event.application, leaf)
            case events.AskAccepted():
                self._ask(event.ask)
            case events.StandingAllocation():
                self._adopt(event.allocation)
            case Leaving():
                self._let_go(event)
            case ProposalAnswer():
                self._answered(event)
            case events.ToGo() | events.Started():
                self._heard_of(event)
            case events.NodesHeld():
                self._leave_out(event)

    def _heard_of(self, event: events.ToGo | events.Started) -> None:
        """What stands has its nodes, or is to go."""
        if isinstance(event, events.Started):
            self.partition.standing.start(event.id)
        else:
            is_mine = event.ask is not None and self._is_mine(event.ask.application)
            plans.follow(self.partition, event, self._setting.clock.wall(), is_mine=is_mine)

    def _configure(self, settings: documents.PartitionDocument) -> None:
        self._plan = tree_builder.plan(settings)
        busy = {application.queue.path for application in self.partition.applications.values()}
        changes, gone = reload.reload(self.partition.root, self._plan, busy)
        for queue in gone:
            self.partition.forget(queue)
        self.partition.follow(self._rules(settings), nodes.sorts(settings.node_sort), settings.root)
        lowered = [one for path in changes.lowered if (one := find(self.partition.root, path)) is not None]
        self._preemption.follow(settings.preemption, lowered, self._setting.clock.wall())

    def _rules(self, settings: documents.PartitionDocument) -> AllocationRules:
        return dataclasses.replace(
            self._setting.rules,
            mode=self.origin.mode,
            node_sort=settings.node_sort.policy or NodePolicy.FAIR.value,
            preempts=settings.preemption.enabled and self._setting.preemptor is None,
            alike=not self.origin.predicates,
        )

    def _ask(self, ask: records.AllocationAsk) -> None:
        """Asks of the other schedulers' applications are theirs. One that is proposed is not proposed a second time.

        The cache refuses what has been asked for otherwise since, and then this one waits.
        """
        if ask.id in self._flying:
            self._flying[ask.id] = ask
        elif self._is_mine(ask.application):
            self.partition.add_ask(ask)

    def _is_mine(self, application: str) -> bool:
        count = self._setting.schedulers
        return count == 1 or zlib.crc32(application.encode()) % count == self._setting.number

    def _adopt(self, allocation: Allocation) -> None:
        """Count what is committed, as far as its application and its nodes have not left already."""
        here = tuple(name for name in allocation.nodes if self.partition.nodes.get(name) is not None)
        if here and allocation.ask.application in self.partition.applications:
            self.partition.adopt(dataclasses.replace(allocation, nodes=here))
            application = self.partition.applications[allocation.ask.application]
            application.ran = True
            self._preemption.quotas.noticed(application.queue, self._setting.clock.wall())

    def _answered(self, answer: ProposalAnswer) -> None:
        if answer.by != self._setting.number:
            self._adopt(answer.allocation)
            return
        again = self._flying.pop(answer.allocation.ask.id, None)
        application = self.partition.applications.get(answer.allocation.ask.application)
        if application is None:
            return
        if not answer.refused:
            application.refusals, application.ran = 0, True
            return
        self.partition.undo(answer.allocation, again=again)
        # What refuses once is a change that has been told by now; what refuses again will not go away by asking.
        application.refusals += 1
        repeated = application.refusals > 1
        pause = backoff.pause(application.refusals - 2, first=1.0, most=_LONGEST_PAUSE) if repeated else -math.inf
        application.refused_until = self._setting.clock.wall() + pause

    def _let_go(self, leaving: Leaving) -> None:
        """It goes from here first; then the cache is told that it may go there."""
        one = AskId(partition=self.name, application=leaving.name, key=leaving.key)
        application = self.partition.applications.get(leaving.name)
        if leaving.leave is Leave.APPLICATION and application is not None:
            self.partition.remove_application(leaving.name)
            leaf = application.queue
            for queue in reload.retire(leaf, (leaf.path,) if len(self.partition.leaf(leaf)) else ()):
                self.partition.forget(queue)
        elif leaving.leave is Leave.NODE:
            self.partition.remove_node(leaving.name)
        elif leaving.leave is Leave.ALLOCATION:
            self.partition.release(one)
        elif application is not None:
            self.partition.withdraw(application, leaving.key)
            if one in self._flying:
                self._flying[one] = None
        self._setting.send(events.Removed(by=self._setting.number, leaving=leaving))

    def _leave_out(self, event: events.NodesHeld) -> None:
        """Nodes of other schedulers are no candidates; where two hold the same one, the first scheduler keeps it."""
        for node in self.partition.nodes:
            node.elsewhere.discard(event.by)
            if node.name in event.nodes:
                node.elsewhere.add(event.by)
                if event.by < self._setting.number:
                    self.partition.give_up(node.name)
        self.partition.unsettle()

    # -- passes ------------------------------------------------------------------------------------------------------

    def run(self, most: int = MOST_RESULTS) -> int:
        """One pass; the number of its results. What was decided before it fails is proposed all the same."""
        now, self.settled = self._setting.clock.wall(), False
        proposals: list[Allocation] = []
        try:
            count = self._steps(proposals, most, now)
        finally:
            self._tell_held()
            if proposals:
                bundle = events.Bundle(
                    partition=self.name,
                    incarnation=self.origin.incarnation,
                    by=self._setting.number,
                    proposals=tuple(proposals),
                )
                self._setting.send(bundle)
        # What was just proposed may have to go: the cache has to know it before.
        followed = self._preempt(now) if count < most else 0
        self.settled = count < most and not followed
        return count + followed

    def _steps(self, proposals: list[Allocation], most: int, now: float) -> int:
        for count in range(most):
            result = self._passing.step(now)
            if result is None:
                return count
            if isinstance(result, Allocated):
                proposals.append(result.allocation)
                self._flying[result.allocation.ask.id] = result.allocation.ask
        return most

    def _tell_held(self) -> None:
        """The other schedulers leave out what is held here."""
        if self._setting.schedulers == 1:
            return
        held = frozenset(node for waiting in self.partition.holders.values() for node in waiting.on)
        if held != self._held:
            self._held = held
            self._setting.send(events.NodesHeld(partition=self.name, by=self._setting.number, nodes=held))

    def _may(self, waiting: PendingAsk, node: PartitionNode, reserving: bool) -> bool:
        question = FitQuestion(ask=waiting.ask, node=node.name, reserving=reserving)
        return not self._setting.predicate(self.origin.rm, question)

    # -- preemption --------------------------------------------------------------------------------------------------

    def _preempt(self, now: float) -> int:
        landed, plan_all = self.partition.land(), self._setting.preemptor or self._preemption
        before = self.partition.grown
        planned = sum(self._carry_out(plan, now) for plan in plan_all(self.partition, now))
        # Asks that were kept back in vain may be let in now.
        return landed + planned + self.partition.grown - before

    def _carry_out(self, plan: PreemptionPlan, now: float) -> bool:
        evictions = plans.carry_out(self.partition, plan, now)
        if not evictions:
            return False
        self._tell_held()
        self._setting.send(
            events.Evicting(partition=self.name, incarnation=self.origin.incarnation, evictions=evictions)
        )
        return True

    def _would_do(self, waiting: PendingAsk, node: str, without: tuple[AskId, ...]) -> bool:
        if not self.origin.predicates:
            return True
        question = FitQuestion(ask=waiting.ask, node=node, reserving=True, preempting=True, without=without)
        return not self._setting.predicate(self.origin.rm, question)
