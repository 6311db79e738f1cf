"""Nodes of its own for each component of a job: components share none. Pure."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

N = TypeVar("N")

#: Ways to share nodes are counted in so many steps at most, each about a microsecond.
MOST_STEPS = 100_000
#: Jobs of more components are not looked at.
MOST_COMPONENTS = 8

#: Components that still lack tasks, each with their number.
_Lacking = tuple[int, ...]


class UnclearShares(Exception):
    """There were too many ways to follow all of them, and none of those that were followed will do."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Given(Generic[N]):
    """A node that a component is given, after others."""

    before: "_Given[N] | None"
    node: N
    part: int


def shared(counts: _Lacking, rooms: Iterable[tuple[N, Sequence[int]]], number: int) -> list[tuple[N, int]] | None:
    """Nodes, each with the component that it is given to, so that all have room; None where there is no way.

    `rooms` says for each of `number` nodes how many tasks of each component it takes, and is read as far as needed.
    Every way to give nodes is followed, the best ones where there are too many; UnclearShares is raised if then none
    does. Of two ways after which components lack the same the first one counts.
    """
    most = max(len(counts), MOST_STEPS // max(1, number * len(counts)))
    ways: dict[_Lacking, _Given[N] | None] = {counts: None}
    unclear = False
    for node, takes in rooms:
        for lacking, given in list(ways.items()):
            for part, missing in enumerate(lacking):
                if missing and takes[part]:
                    left = (*lacking[:part], max(0, missing - takes[part]), *lacking[part + 1 :])
                    ways.setdefault(left, _Given(given, node, part))
        if (done := ways.get((0,) * len(counts))) is not None:
            return _listed(done)
        if len(ways) > most:
            ways, unclear = dict(sorted(ways.items(), key=lambda way: sum(way[0]))[:most]), True
    if unclear:
        raise UnclearShares
    return None


def _listed(given: _Given[N] | None) -> list[tuple[N, int]]:
    found = []
    while given is not None:
        found.append((given.node, given.part))
        given = given.before
    return found
