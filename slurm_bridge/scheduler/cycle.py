"""One look at one workload.

    1 glance   its pods, its jobs and its timers, from memory           -> Subject, Facts
    2 gather   its members and what they ask for, where that counts     -> Facts
    3 decide   by the table                                             -> Decision
    4 plan     the request, by hooks and Slurm's limits, for SUBMIT and KEEP
    5 act      on either side                                           -> Filed

Steps 1 to 4 run in one thread, in the order of the queue; acting is handed to workers and may take its time.
"""

from collections.abc import Callable

import msgspec

from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.verdict import Obstacle
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler import actions, timers
from slurm_bridge.scheduler import facts as reading
from slurm_bridge.scheduler.actions import Act
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.decide import DecisionTable, Facts, decide, view
from slurm_bridge.scheduler.facts import Subject
from slurm_bridge.scheduler.queue import AT_ONCE, Filed
from slurm_bridge.scheduler.workload_pods import PLACED, PodState, WorkloadPods
from slurm_bridge.workloads.base import Moved


class Cycle:
    """Looks at workloads; `wake` has another workload looked at."""

    def __init__(self, context: SchedulerContext, wake: Callable[[WorkloadKey], None]) -> None:
        self._context, self._wake = context, wake

    def look(self, key: WorkloadKey, *, turn: bool) -> Act | Filed:
        """What to do with this workload; `turn` says that it may submit now."""
        subject = reading.subject(self._context, key, turn=turn)
        facts = reading.glance(self._context, subject)
        stands = reading.to_gather(facts)
        if stands:
            gathered = self._gather(subject.pods, *stands, one=facts.lost)
            if gathered is None and view(facts) is not DecisionTable.PLACED:
                return AT_ONCE
            subject.gathered = gathered
            facts = self._with_members(reading.of_members(self._context, facts, subject), subject)
        decision = decide(facts)
        return actions.carry_out(self._context, decision, subject, facts)

    def _gather(self, members: WorkloadPods, *stands: PodState, one: bool = False) -> Workload | Obstacle | None:
        """The workload of the pods in these states; None when they turn out to belong to another one."""
        looked_at = members.first(*stands)
        gathered = self._context.gather(members, *stands, one=one)
        if not isinstance(gathered, Moved):
            return gathered
        if looked_at is not None and not looked_at.bound:
            self._context.pod_index.move(looked_at.uid, gathered.root)
        self._wake(gathered.root.key)
        return None

    def _with_members(self, facts: Facts, subject: Subject) -> Facts:
        """Pods that wait: members that may still come, and a job that was cancelled while members are missing."""
        if view(facts) is not DecisionTable.WAITING:
            return facts
        if reading.may_be_cancelled(subject):
            some = self._gather(subject.pods, PodState.WANTING, *PLACED)
            return msgspec.structs.replace(facts, cancelled=reading.is_cancelled(self._context, subject, some))
        if subject.desired is None or (facts.torn and not facts.never_started):
            return facts
        known, members, context = subject.placeholder, subject.pods, self._context
        leadership, started = context.states.of(members.root.key).leadership, known is not None and known.started
        workload, now = subject.desired.workload, context.clock.now()
        left = timers.follow_members(leadership, workload, members, now, context.limits, started=started)
        return msgspec.structs.replace(facts, settle_left=left) if left is not None else facts
