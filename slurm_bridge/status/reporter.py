"""Tells users what happens to their pods: few writes, only on change, never in anybody's way.

Conditions and events are asked for from any thread and written by one, each within its own rate. What the server
refuses to take now is tried again (conditions) or dropped and counted (events); nothing here ever raises for it.

A condition is written only on the pod as it was seen (its resource version is a precondition): "it waits" must not
land on a pod that was bound a moment ago.
"""

import dataclasses
import random
import threading
from collections.abc import Callable
from typing import Final

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.informers.backoff import Backoff
from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.status import conditions
from slurm_bridge.status.bucket import Bucket
from slurm_bridge.status.news import News
from slurm_bridge.status.waits import Waiting, Waits

#: How long the thread may sleep before it looks for something new to write.
_LOOK: Final = 0.25

#: Called with what was written ("condition", "event") and how that ended ("ok", "same", "stale", "failed", "dropped").
Count = Callable[[str, str], None]


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


class Reporter:
    """One for the process; `current` finds the pod as it is known now, None when it is gone."""

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        *,
        dice: random.Random,
        limits: Limits | None = None,
        current: Callable[[Pod], Pod | None] = lambda pod: pod,
        count: Count = lambda _what, _outcome: None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._current = current
        self._count = count
        self._limits = limits = limits or Limits()
        self._waits = Waits(most=limits.most_conditions)
        self._news = News(most=limits.most_events, remembered=limits.remembered)
        self._backoff = Backoff(dice)
        self._paused_until = clock.now()
        self._conditions = _bucket(limits.conditions_per_second, clock.now())
        self._events = _bucket(limits.events_per_second, clock.now())

    @property
    def queued(self) -> tuple[int, int]:
        """How many conditions and events are still to be written."""
        return len(self._waits), len(self._news)

    def configure(self, limits: Limits) -> None:
        """From now on so much is written; how much may wait stays as it was."""
        self._limits = limits
        self._conditions = _bucket(limits.conditions_per_second, self._clock.now())
        self._events = _bucket(limits.events_per_second, self._clock.now())

    def waiting(self, pod: Pod, reason: str, message: str, key: str = "") -> None:
        """The pod has to wait, and why. With the same key as last time it is no news, however the text differs."""
        condition = conditions.waiting(reason, message)
        key = f"{reason}: {key or message}"
        if not self._waits.known(pod.uid) and conditions.says(pod, condition):
            self._waits.settle(pod.uid, key)
            return
        due = self._clock.now() + self._limits.patience_seconds
        self._dropped("condition", self._waits.put(Waiting(pod=pod, condition=condition, key=key, due=due)))

    def event(self, pod: Pod, reason: str, message: str, *, warning: bool = False, key: str = "") -> None:
        """Something happened to the pod."""
        note = ports.Note(
            kind=kinds.PODS.kind,
            api_version=kinds.PODS.versions[0],
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            uid=pod.uid,
            reason=reason,
            message=message,
            warning=warning,
        )
        self.note(note, key=key)

    def note(self, note: ports.Note, *, key: str = "") -> None:
        """Something happened to any object."""
        self._dropped("event", self._news.put(note, key or note.message))

    def forget(self, uid: str) -> None:
        """The pod waits no more: what was to be said of its waiting is not said. Events are still sent."""
        self._waits.forget(uid)
        self._news.forget(uid)

    def disrupt(self, pod: Pod, reason: str, message: str) -> None:
        """Write at once that the pod is about to be ended, and why; errors of the port are the caller's."""
        condition = conditions.disrupted(reason, message)
        if not conditions.says(pod, condition):
            conditions.write(self._cluster, pod, condition, wall=self._clock.wall(), pinned=False)

    def idle_for(self) -> float | None:
        """Seconds until a step would do something, None when nothing is asked for."""
        now = self._clock.now()
        due = self._waits.due()
        times = [max(due - now, self._conditions.ready_in(now))] if due is not None else []
        if len(self._news):
            times.append(self._events.ready_in(now))
        return max(min(times), self._paused_until - now, 0.0) if times else None

    def step(self) -> bool:
        """At most one write; False when there is nothing to do now."""
        now = self._clock.now()
        if now < self._paused_until:
            return False
        return self._send_one(now) or self._write_one(now)

    def run(self, stop: threading.Event) -> None:
        """Write what is asked for until `stop` is set."""
        while not stop.is_set():
            if not self.step():
                idle = self.idle_for()
                self._clock.wait(stop, _LOOK if idle is None else min(idle, _LOOK))

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
        except errors.BridgeError as error:
            self._news.lost(note, key)
            self._failed("event", note.namespace, note.name, error)
        else:
            self._worked("event", "ok")
        return True

    def _write_one(self, now: float) -> bool:
        if self._conditions.ready_in(now) > 0:
            return False
        waiting = self._waits.pop(now)
        if waiting is None:
            return False
        pod = self._current(waiting.pod)
        if pod is None or not self._waits_still(pod, waiting):
            self._waits.forget(waiting.pod.uid)
            self._count("condition", "stale")
        elif conditions.same(
            self._waits.shown(pod.uid) or conditions.find(pod, waiting.condition.type), waiting.condition
        ):
            self._count("condition", "same")
        else:
            self._conditions.take()
            self._write(dataclasses.replace(waiting, pod=pod))
        return True

    def _write(self, waiting: Waiting) -> None:
        try:
            self._put(waiting)
        except errors.NotFound:
            self._waits.forget(waiting.pod.uid)
            self._worked("condition", "stale")
        except errors.Conflict:
            # Somebody changed it again between our look and our write: it is busy, and has time.
            self._later(waiting)
            self._worked("condition", "failed")
        except errors.Invalid as error:
            # The same words would be refused again.
            self._failed("condition", *waiting.pod.key, error)
        except errors.BridgeError as error:
            self._later(waiting)
            self._failed("condition", *waiting.pod.key, error)

    def _put(self, waiting: Waiting) -> None:
        """Write it on the pod as we know it; where that is out of date, look once and write it on what is there."""
        pod = waiting.pod
        try:
            conditions.write(self._cluster, pod, waiting.condition, wall=self._clock.wall(), pinned=True)
        except errors.Conflict:
            fresh = self._cluster.get(kinds.PODS, *pod.key)
            if fresh is None or not self._waits_still(fresh, waiting):
                self._waits.forget(pod.uid)
                self._worked("condition", "stale")
                return
            conditions.write(self._cluster, fresh, waiting.condition, wall=self._clock.wall(), pinned=True)
        self._waits.written(waiting)
        self._worked("condition", "ok")

    def _waits_still(self, pod: Pod, waiting: Waiting) -> bool:
        return pod.uid == waiting.pod.uid and not (pod.bound or pod.terminal or pod.terminating)

    def _later(self, waiting: Waiting) -> None:
        due = self._clock.now() + self._limits.patience_seconds
        self._waits.again(dataclasses.replace(waiting, due=due))

    def _worked(self, what: str, outcome: str) -> None:
        self._backoff.reset()
        self._count(what, outcome)

    def _failed(self, what: str, namespace: str, name: str, error: errors.BridgeError) -> None:
        """The next write waits, whichever it is: what one pod met, others would meet too."""
        wish = error.retry_after if isinstance(error, errors.TryLater) else None
        seconds = self._backoff.next(at_least=wish)
        self._paused_until = self._clock.now() + seconds
        self._count(what, "failed")
        logger.bind(pod=f"{namespace}/{name}").warning("{} not written, pause of {:.1f} s: {}", what, seconds, error)

    def _dropped(self, what: str, number: int) -> None:
        for _ in range(number):
            self._count(what, "dropped")


def _bucket(per_second: float, now: float) -> Bucket:
    return Bucket(per_second=per_second, burst=max(1.0, per_second), now=now)
