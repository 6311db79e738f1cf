"""Reports to users what happens to their pods, with few writes, and only on change.

Conditions and events are asked for from any thread and written by one, each within its own rate. A write that fails is
tried again (conditions) or dropped and counted (events); no caller sees an error of it.
"""

import dataclasses
import random
import threading
from collections.abc import Callable
from typing import Final

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.model import kinds, names, texts
from slurm_bridge.model.announcement import Announcements
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.status import conditions
from slurm_bridge.status.condition_queue import ConditionQueue, PendingCondition
from slurm_bridge.status.condition_writer import ConditionWriter
from slurm_bridge.status.event_queue import EventQueue
from slurm_bridge.status.group_conditions import GroupCondition, GroupConditions, WaitingMembers
from slurm_bridge.status.group_status import GroupObjects, GroupStatusWriter, NoGroupObjects
from slurm_bridge.status.token_bucket import TokenBucket
from slurm_bridge.status.write_backoff import Count, WriteBackoff

#: Seconds that the thread may sleep before it looks for something new to write.
_LOOK: Final = 0.25

#: The members of a group that never stops changing get their condition after so many times the patience.
_RESTLESS: Final = 10


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReporterLimits:
    """How much may be written, and how much may wait to be written.

    `patience_seconds`: a pod that is bound or forgotten sooner than this costs no write.
    """

    conditions_per_second: float = 20.0
    events_per_second: float = 20.0
    patience_seconds: float = 2.0
    most_conditions: int = 50_000
    most_events: int = 2_000
    remembered: int = 50_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is known without asking the server.

    `current` finds the pod as it is now, None when it is gone; `known` the objects behind workloads, whose kinds are
    those of `announcements`.
    """

    current: Callable[[Pod], Pod | None] = lambda pod: pod
    known: GroupObjects = dataclasses.field(default_factory=NoGroupObjects)
    announcements: Announcements = dataclasses.field(default_factory=dict)


class StatusReporter:
    """One for each process."""

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        *,
        dice: random.Random,
        limits: ReporterLimits | None = None,
        sight: Sight | None = None,
        count: Count = lambda _what, _outcome: None,
    ) -> None:
        self._cluster, self._clock = cluster, clock
        sight = sight or Sight()
        self._limits = limits = limits or ReporterLimits()
        self._backoff = WriteBackoff(clock, dice, count)
        self._condition_queue = ConditionQueue(most=limits.most_conditions)
        self._writer = ConditionWriter(cluster, clock, self._backoff, self._condition_queue, sight.current)
        self._group_conditions = GroupConditions(most=limits.remembered)
        self._groups = GroupStatusWriter(
            cluster, sight.known, self._backoff, sight.announcements, most=limits.remembered
        )
        self._event_queue = EventQueue(most=limits.most_events, remembered=limits.remembered)
        #: The last write was on a group.
        self._group_written = False
        self._condition_tokens = _bucket(limits.conditions_per_second, clock.now())
        self._event_tokens = _bucket(limits.events_per_second, clock.now())

    @property
    def queued(self) -> tuple[int, int]:
        """How many conditions and events are still to be written."""
        return len(self._condition_queue) + len(self._groups), len(self._event_queue)

    def configure(self, limits: ReporterLimits) -> None:
        """Changes the rates and the patience; how much may wait stays as it was."""
        self._limits = limits
        self._condition_tokens = _bucket(limits.conditions_per_second, self._clock.now())
        self._event_tokens = _bucket(limits.events_per_second, self._clock.now())

    def waiting(self, pod: Pod, reason: str, message: str, key: str = "") -> None:
        """The pod has to wait, and why. With the key of the last call nothing is written, even if the text differs."""
        self._wait(pod, reason, message, key, self._limits.patience_seconds)

    def waiting_together(self, root: Root, members: WaitingMembers, reason: str, message: str, key: str = "") -> None:
        """All members have to wait, and why; without a key, a text with the same reason is not written again.

        A call costs the same for any number of members. The last text is written on each of them, once for each key,
        when the group has not changed for a moment; members that come later get it, too.
        """
        patience = self._limits.patience_seconds
        key = f"{reason}: {texts.digest(key or reason)}"
        condition = GroupCondition(
            uid=root.key, members=members, reason=reason, message=texts.bounded(message), key=key
        )
        self._group_conditions.put(condition, self._clock.now(), quiet=patience, at_most=_RESTLESS * patience)

    def scheduled(self, workload: Workload) -> None:
        """All members have their nodes: the PodGroup of the workload says so, once, where there is one."""
        self._groups.put(workload)

    def event(self, pod: Pod, reason: str, message: str, *, warning: bool = False, key: str = "") -> None:
        """Something happened to the pod."""
        self.note(_note(pod, reason, message, warning=warning), key=key)

    def group(self, workload: Workload, reason: str, message: str, *, warning: bool = False, key: str = "") -> None:
        """Something happened to all members: an event of the first one, and of the object behind them where known."""
        note = _note(workload.lead, reason, message, warning=warning)
        self.note(note, key=key)
        about = self._groups.about(workload.root, note)
        if about is not None:
            self.note(about, key=key)

    def note(self, note: ports.Note, *, key: str = "") -> None:
        """Something happened to any object."""
        key, message = texts.digest(key or note.message), texts.bounded(note.message)
        note = note if message is note.message else dataclasses.replace(note, message=message)
        self._backoff.dropped("event", self._event_queue.put(note, key))

    def forget(self, uid: str) -> None:
        """The pod or workload does not wait any more: its condition is not written. Queued events are still sent.

        A workload is named by its key, which ends in the uid of its object: its events are known by that uid.
        """
        self._group_conditions.forget(uid)
        own = names.uid_of(uid)
        self._condition_queue.forget(own)
        self._event_queue.forget(own)

    def disrupt(self, pod: Pod, reason: str, message: str) -> None:
        """Writes at once that the pod is about to be deleted, and why; raises the errors of the port."""
        condition = conditions.disrupted(reason, message)
        if not conditions.says(pod, condition):
            conditions.write(self._cluster, pod, condition, wall=self._clock.wall(), pinned=False)

    def idle_for(self) -> float | None:
        """Seconds until a step would do something, None when nothing is queued."""
        now = self._clock.now()
        times = [due - now for due in (self._group_conditions.due(),) if due is not None]
        due = now if len(self._groups) else self._condition_queue.due()
        if due is not None:
            times.append(max(due - now, self._condition_tokens.ready_in(now)))
        if len(self._event_queue):
            times.append(self._event_tokens.ready_in(now))
        return max(min(times), self._backoff.paused_until - now, 0.0) if times else None

    def step(self) -> bool:
        """At most one write; False when there is nothing to do now."""
        now = self._clock.now()
        if now < self._backoff.paused_until:
            return False
        return self._send_one(now) or self._pass_on_one(now) or self._write_one(now)

    def run(self, stop: threading.Event) -> None:
        """Writes what is asked for until `stop` is set."""
        while not stop.is_set():
            if not self.step():
                idle = self.idle_for()
                self._clock.wait(stop, _LOOK if idle is None else min(idle, _LOOK))

    def _wait(self, pod: Pod, reason: str, message: str, key: str, patience: float) -> None:
        condition = conditions.waiting(reason, message)
        key = f"{reason}: {texts.digest(key or message)}"
        if not self._condition_queue.known(pod.uid) and conditions.says(pod, condition):
            self._condition_queue.settle(pod.uid, key)
            return
        due = self._clock.now() + patience
        self._backoff.dropped(
            "condition", self._condition_queue.put(PendingCondition(pod=pod, condition=condition, key=key, due=due))
        )

    def _send_one(self, now: float) -> bool:
        if self._event_tokens.ready_in(now) > 0:
            return False
        queued = self._event_queue.pop()
        if queued is None:
            return False
        self._event_tokens.take()
        note, key = queued
        try:
            self._cluster.event(note)
        except errors.NotLeading:
            # The replica that leads reports what is true of the pods.
            self._event_queue.lost(note, key)
            unsent = 1 + self._event_queue.clear()
            self._backoff.dropped("event", unsent)
            logger.info("{} events are not written: this replica does not lead", unsent)
        except errors.BridgeError as error:
            self._event_queue.lost(note, key)
            self._backoff.failed("event", (note.namespace, note.name), error)
        else:
            self._backoff.worked("event", "ok")
        return True

    def _pass_on_one(self, now: float) -> bool:
        """Passes the condition of a workload on to each member: memory only."""
        condition = self._group_conditions.pop(now)
        if condition is None:
            return False
        for pod in condition.members.all():
            self._wait(pod, condition.reason, condition.message, condition.key, 0.0)
        return True

    def _write_one(self, now: float) -> bool:
        if self._condition_tokens.ready_in(now) > 0:
            return False
        # Groups and pods take turns: a namespace with many groups does not delay conditions of pods.
        placed = self._groups.pop() if not self._group_written or self._condition_queue.due() is None else None
        self._group_written = placed is not None
        if placed is not None:
            self._condition_tokens.take()
            self._groups.write(placed, wall=self._clock.wall())
            return True
        waiting = self._condition_queue.pop(now)
        if waiting is None:
            return len(self._groups) > 0
        if self._writer.write(waiting, patience=self._limits.patience_seconds):
            self._condition_tokens.take()
        return True


def _note(pod: Pod, reason: str, message: str, *, warning: bool) -> ports.Note:
    namespace, name = pod.key
    return ports.Note(
        kind=kinds.PODS.kind,
        api_version=kinds.PODS.versions[0],
        namespace=namespace,
        name=name,
        uid=pod.uid,
        reason=reason,
        message=message,
        warning=warning,
    )


def _bucket(per_second: float, now: float) -> TokenBucket:
    return TokenBucket(per_second=per_second, burst=max(1.0, per_second), now=now)
