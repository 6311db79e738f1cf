"""The window of jobs that have not started, shared between namespaces: max-min fair.

    what the namespaces hold and want together    namespaces that may submit
    fits into the window                          every namespace
    is more than the window                       a namespace that holds less than its share; while the window is not
                                                  full, also the namespace that holds least of those that wait

The share is the level to which all namespaces can be filled: a namespace that wants less gets what it wants, and the
rest is divided equally between the others. A window that was full before another namespace came is exceeded by up to a
quarter for it. When that is used up as well, the namespaces beyond their share give jobs back, the youngest first.

Where an order hook says which workload is next there are no shares: its order is all that counts.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

from slurm_bridge.scheduler import queue_notices

#: The window is exceeded by at most this part of it, for namespaces below their share.
HEADROOM: Final = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Shares:
    """`held`: jobs that have not started, `wanted`: workloads that line up; by namespace."""

    window: int
    held: Mapping[str, int]
    wanted: Mapping[str, int]
    level: int
    #: The fewest jobs that a namespace holds of those that line up.
    least: int
    total: int

    @classmethod
    def of(cls, window: int, held: Mapping[str, int], wanted: Mapping[str, int]) -> "Shares":
        """As things stand."""
        demands = [held.get(name, 0) + wanted.get(name, 0) for name in {*held, *wanted}]
        least = min((held.get(name, 0) for name in wanted), default=0)
        return cls(window, held, wanted, _level(window, demands), least, sum(held.values()))

    @property
    def limit(self) -> int:
        """So many jobs may wait in Slurm in all."""
        return self.window + max(1, self.window // HEADROOM)

    def admits(self, namespace: str) -> bool:
        """One more job of this namespace may be submitted."""
        mine = self.held.get(namespace, 0)
        below = mine < self.level and self.total < self.limit
        return below or (self.total < self.window and mine <= self.least)

    @property
    def any(self) -> bool:
        """Some namespace that lines up may submit."""
        return any(map(self.admits, self.wanted))

    def why(self, namespace: str) -> queue_notices.Why | None:
        """Why a namespace may not submit now, None where it may."""
        if self.admits(namespace):
            return None
        if {*self.held, *self.wanted} <= {namespace}:
            return queue_notices.full(self.window)
        return queue_notices.share_used(namespace, self.held.get(namespace, 0), share=self.level, window=self.window)

    @property
    def to_give_back(self) -> Mapping[str, int]:
        """How many jobs which namespaces have to give back now: none while those below their share may submit."""
        blocked = any(self.held.get(name, 0) < self.level for name in self.wanted)
        if not blocked or self.total < self.limit:
            return {}
        missing, found = self.total - self.window, dict[str, int]()
        for name in sorted(self.held, key=lambda one: (-self.held[one], one)):
            given = min(missing, self.held[name] - self.level)
            if given <= 0:
                break
            found[name], missing = given, missing - given
        return found


def _level(window: int, demands: Iterable[int]) -> int:
    """The largest amount of which all may have as much as they want without exceeding the window, at least 1."""
    left = sorted(demands)
    room = window
    for index, demand in enumerate(left):
        level = room // (len(left) - index)
        if demand > level:
            return max(1, level)
        room -= demand
    return window
