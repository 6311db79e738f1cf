"""Tells users what happens to their pods: few writes, only on change, never in anybody's way.

Conditions and events are asked for from any thread and written by one, each within its own rate. What the server
refuses to take now is tried again (conditions) or dropped and counted (events); nothing here ever raises for it.
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
from slurm_bridge.status.group_status import GroupStatusWriter, NoObjects, Objects
from slurm_bridge.status.token_bucket import TokenBucket
from slurm_bridge.status.write_backoff import Count, WriteBackoff

#: How long the thread may sleep before it looks for something new to write.
_LOOK: Final = 0.25

#: A group that never stops changing is told after so many times the patience.
_RESTLESS: Final = 10


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may be written, and how much may wait to be written.

    `patience_seconds`: a pod that is bound, or forgotten, sooner than this costs no write.
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
    known: Objects = dataclasses.field(default_factory=NoObjects)
    announcements: Announcements = dataclasses.field(default_factory=dict)


class StatusReporter:
    """One for the process."""

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        *,
        dice: random.Random,
        limits: Limits | None = None,
        sight: Sight | None = None,
        count: Count = lambda _what, _outcome: None,
    ) -> None:
        self._cluster, self._clock = cluster, clock
        sight = sight or Sight()
        self._limits = limits = limits or Limits()
        self._pace = WriteBackoff(clock, dice, count)
        self._waits = ConditionQueue(most=limits.most_conditions)
        self._telling = ConditionWriter(cluster, clock, self._pace, self._waits, sight.current)
        self._crowds = GroupConditions(most=limits.remembered)
        self._groups = GroupStatusWriter(cluster, sight.known, self._pace, sight.announcements, most=limits.remembered)
        self._news = EventQueue(most=limits.most_events, remembered=limits.remembered)
        #: The last write was on a group.
        self._grouped = False
        self._conditions = _bucket(limits.conditions_per_second, clock.now())
        self._events = _bucket(limits.events_per_second, clock.now())

    @property
    def queued(self) -> tuple[int, int]:
        """How many conditions and events are still to be written."""
        return len(self._waits) + len(self._groups), len(self._news)

    def configure(self, limits: Limits) -> None:
        """From now on so much is written; how much may wait stays as it was."""
        self._limits = limits
        self._conditions = _bucket(limits.conditions_per_second, self._clock.now())
        self._events = _bucket(limits.events_per_second, self._clock.now())

    def waiting(self, pod: Pod, reason: str, message: str, key: str = "") -> None:
        """The pod has to wait, and why. With the same key as last time it is no news, however the text differs."""
        self._wait(pod, reason, message, key, self._limits.patience_seconds)

    def waiting_together(self, root: Root, crowd: WaitingMembers, reason: str, message: str, key: str = "") -> None:
        """All members have to wait, and why; without a key, the reason alone decides what is news.

        A call costs the same for any number of members. They are told when the group has been still for a moment, with
        the last words, and each once for each key; who comes later is told when the group has grown.
        """
        patience = self._limits.patience_seconds
        key = texts.digest(key or reason)
        message = texts.bounded(message)
        saying = GroupCondition(uid=root.key, crowd=crowd, reason=reason, message=message, key=f"{reason}: {key}")
        self._crowds.put(saying, self._clock.now(), quiet=patience, at_most=_RESTLESS * patience)

    def scheduled(self, workload: Workload) -> None:
        """All members have their nodes: the PodGroup says so, once, where the workload has one."""
        self._groups.put(workload)

    def event(self, pod: Pod, reason: str, message: str, *, warning: bool = False, key: str = "") -> None:
        """Something happened to the pod."""
        self.note(_note(pod, reason, message, warning=warning), key=key)

    def group(self, workload: Workload, reason: str, message: str, *, warning: bool = False, key: str = "") -> None:
        """Something happened to all: said of the first member, and of the object behind them where it is known."""
        note = _note(workload.lead, reason, message, warning=warning)
        self.note(note, key=key)
        about = self._groups.about(workload.root, note)
        if about is not None:
            self.note(about, key=key)

    def note(self, note: ports.Note, *, key: str = "") -> None:
        """Something happened to any object."""
        key, message = texts.digest(key or note.message), texts.bounded(note.message)
        note = note if message is note.message else dataclasses.replace(note, message=message)
        self._pace.dropped("event", self._news.put(note, key))

    def forget(self, uid: str) -> None:
        """This pod or workload waits no more: what was to be said of its waiting is not said. Events are still sent.

        A workload is meant by its key, at whose end stands the uid of its object: by that its events are known.
        """
        self._crowds.forget(uid)
        own = names.uid_of(uid)
        self._waits.forget(own)
        self._news.forget(own)

    def disrupt(self, pod: Pod, reason: str, message: str) -> None:
        """Write at once that the pod is about to be ended, and why; errors of the port are the caller's."""
        condition = conditions.disrupted(reason, message)
        if not conditions.says(pod, condition):
            conditions.write(self._cluster, pod, condition, wall=self._clock.wall(), pinned=False)

    def idle_for(self) -> float | None:
        """Seconds until a step would do something, None when nothing is asked for."""
        now = self._clock.now()
        times = [due - now for due in (self._crowds.due(),) if due is not None]
        due = now if len(self._groups) else self._waits.due()
        if due is not None:
            times.append(max(due - now, self._conditions.ready_in(now)))
        if len(self._news):
            times.append(self._events.ready_in(now))
        return max(min(times), self._pace.paused_until - now, 0.0) if times else None

    def step(self) -> bool:
        """At most one write; False when there is nothing to do now."""
        now = self._clock.now()
        if now < self._pace.paused_until:
            return False
        return self._send_one(now) or self._spread_one(now) or self._write_one(now)

    def run(self, stop: threading.Event) -> None:
        """Write what is asked for until `stop` is set."""
        while not stop.is_set():
            if not self.step():
                idle = self.idle_for()
                self._clock.wait(stop, _LOOK if idle is None else min(idle, _LOOK))

    def _wait(self, pod: Pod, reason: str, message: str, key: str, patience: float) -> None:
        condition = conditions.waiting(reason, message)
        key = f"{reason}: {texts.digest(key or message)}"
        if not self._waits.known(pod.uid) and conditions.says(pod, condition):
            self._waits.settle(pod.uid, key)
            return
        due = self._clock.now() + patience
        self._pace.dropped(
            "condition", self._waits.put(PendingCondition(pod=pod, condition=condition, key=key, due=due))
        )

    def _send_one(self, now: float) -> bool:
        if self._events.ready_in(now) > 0:
            return False
        news = self._news.pop()
        if news is None:
            return False
        self._events.take()
        note, key = news
        try:
            self._cluster.event(note)
        except errors.NotLeading:
            # What is true of the pods is said by the replica that leads.
            self._news.lost(note, key)
            unsent = 1 + self._news.clear()
            self._pace.dropped("event", unsent)
            logger.info("{} events are not written: this replica does not lead", unsent)
        except errors.BridgeError as error:
            self._news.lost(note, key)
            self._pace.failed("event", (note.namespace, note.name), error)
        else:
            self._pace.worked("event", "ok")
        return True

    def _spread_one(self, now: float) -> bool:
        """What a workload's members are to say is brought to each of them: memory only."""
        saying = self._crowds.pop(now)
        if saying is None:
            return False
        for pod in saying.crowd.all():
            self._wait(pod, saying.reason, saying.message, saying.key, 0.0)
        return True

    def _write_one(self, now: float) -> bool:
        if self._conditions.ready_in(now) > 0:
            return False
        # Groups and pods take turns: a namespace with many groups does not hold up what is said on pods.
        placed = self._groups.pop() if not self._grouped or self._waits.due() is None else None
        self._grouped = placed is not None
        if placed is not None:
            self._conditions.take()
            self._groups.write(placed, wall=self._clock.wall())
            return True
        waiting = self._waits.pop(now)
        if waiting is None:
            return len(self._groups) > 0
        if self._telling.write(waiting, patience=self._limits.patience_seconds):
            self._conditions.take()
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
