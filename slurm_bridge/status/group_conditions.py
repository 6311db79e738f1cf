"""Conditions for all members of a workload: asked for once, and passed on to each member when the workload has settled.

A gang that gathers changes with every member that is created. Writing to all members each time would cost the square of
their number. Here a call costs the same for any number of members; the condition is passed on when nothing has changed
for `quiet` seconds, at the latest after `at_most` seconds.
"""

import dataclasses
import threading
from collections.abc import MutableMapping, Sequence
from typing import Final, Protocol

from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime import caches

#: Seconds until the same condition is passed on again: for a member that replaced another one unnoticed.
_REPEAT: Final = 60.0


class WaitingMembers(Protocol):
    """The members that wait, as they are at the time of the call. Safe to use from any thread."""

    def __len__(self) -> int: ...

    def all(self) -> Sequence[Pod]:
        """A copy."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GroupCondition:
    """The condition that all members of one workload are to show."""

    uid: str
    members: WaitingMembers
    reason: str
    message: str
    key: str


@dataclasses.dataclass(slots=True, kw_only=True)
class _WrittenCondition:
    """What was last passed on to the members, to how many, and when."""

    key: str = ""
    count: int = -1
    at: float = float("-inf")


@dataclasses.dataclass(slots=True, kw_only=True)
class _Due:
    """A condition, since when it is wanted, and when it is due."""

    condition: GroupCondition
    since: float
    at: float


class GroupConditions:
    """Filled from any thread, emptied by one thread."""

    def __init__(self, *, most: int) -> None:
        self._lock = threading.Lock()
        self._due: dict[str, _Due] = {}
        self._written: MutableMapping[str, _WrittenCondition] = caches.bounded(most=most)

    def put(self, condition: GroupCondition, now: float, *, quiet: float, at_most: float) -> None:
        """Wants this condition on every member, unless it was passed on to as many members a short time ago."""
        with self._lock:
            waits = self._due.get(condition.uid)
            if waits is None:
                written = self._written.get(condition.uid, _WrittenCondition())
                same = written.key == condition.key and written.count == len(condition.members)
                if same and now - written.at < _REPEAT:
                    return
            since = waits.since if waits is not None else now
            self._due[condition.uid] = _Due(condition=condition, since=since, at=min(now + quiet, since + at_most))

    def due(self) -> float | None:
        """When the next condition is due, None when there is none."""
        with self._lock:
            return min((one.at for one in self._due.values()), default=None)

    def pop(self, now: float) -> GroupCondition | None:
        """A condition that is due."""
        with self._lock:
            ripe = next((uid for uid, one in self._due.items() if one.at <= now), None)
            if ripe is None:
                return None
            condition = self._due.pop(ripe).condition
            self._written[ripe] = _WrittenCondition(key=condition.key, count=len(condition.members), at=now)
            return condition

    def forget(self, uid: str) -> None:
        """The workload does not wait any more."""
        with self._lock:
            self._due.pop(uid, None)
            self._written.pop(uid, None)
