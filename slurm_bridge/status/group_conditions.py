"""Workloads of many pods that wait: said once for all of them, and brought to each member when the group has settled.

A gang that is gathering changes with every member that comes. Telling all members each time would cost the square of
their number; here a call costs the same for any number of members, and they are looked through once for each change of
what there is to say, when nothing has changed for `quiet` seconds, at the latest after `at_most`.
"""

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, Protocol

from slurm_bridge.model.pod import Pod

#: A look that changes nothing costs no write; it finds a member that took another's place unseen.
_AGAIN: Final = 60.0


class WaitingMembers(Protocol):
    """The members that wait, as they are whenever they are asked for: safe to use from any thread."""

    def __len__(self) -> int: ...

    def all(self) -> Sequence[Pod]:
        """A copy."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GroupCondition:
    """What all members of one workload are to say."""

    uid: str
    crowd: WaitingMembers
    reason: str
    message: str
    key: str


@dataclasses.dataclass(slots=True, kw_only=True)
class _Written:
    """What was last brought to the members, to how many, and when."""

    key: str = ""
    heads: int = -1
    looked: float = float("-inf")


@dataclasses.dataclass(slots=True, kw_only=True)
class _Due:
    """Something to say, since when it was wanted, and when its time has come."""

    saying: GroupCondition
    since: float
    at: float


class GroupConditions:
    """Filled from any thread, emptied by one."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._due: dict[str, _Due] = {}
        self._told: OrderedDict[str, _Written] = OrderedDict()

    def put(self, saying: GroupCondition, now: float, *, quiet: float, at_most: float) -> None:
        """Want this said by every member; what they say already, and as many as there were, is no news."""
        with self._lock:
            waits = self._due.get(saying.uid)
            if waits is None and self._known(saying, now):
                return
            since = waits.since if waits is not None else now
            self._due[saying.uid] = _Due(saying=saying, since=since, at=min(now + quiet, since + at_most))

    def due(self) -> float | None:
        """When the next one's time comes, None when there is none."""
        with self._lock:
            return min((one.at for one in self._due.values()), default=None)

    def pop(self, now: float) -> GroupCondition | None:
        """One whose time has come."""
        with self._lock:
            ripe = next((uid for uid, one in self._due.items() if one.at <= now), None)
            if ripe is None:
                return None
            saying = self._due.pop(ripe).saying
            self._told[ripe] = _Written(key=saying.key, heads=len(saying.crowd), looked=now)
            self._told.move_to_end(ripe)
            while len(self._told) > self._most:
                self._told.popitem(last=False)
            return saying

    def forget(self, uid: str) -> None:
        """This workload waits no more."""
        with self._lock:
            self._due.pop(uid, None)
            self._told.pop(uid, None)

    def _known(self, saying: GroupCondition, now: float) -> bool:
        told = self._told.get(saying.uid, _Written())
        return told.key == saying.key and told.heads == len(saying.crowd) and now - told.looked < _AGAIN
