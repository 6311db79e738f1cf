"""Names of hosts in a request, and how Slurm writes them: a request may leave out nearly all hosts of a large cluster.

Requests that leave out the same hosts share one `HostNames`, which is written once. Requests that leave out all hosts
but a few differ from each other: `HostGroups` writes each of them without a look at every host.
"""

import bisect
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from slurm_bridge.model import hostlist
from slurm_bridge.model.hostlist import Run, Stem

_OF_LISTS = frozenset(",[] \t\n")


class HostNames(tuple[str, ...]):  # noqa: SLOT001 - an instance keeps what was worked out of it
    """Names, each once."""

    @classmethod
    def of(cls, names: tuple[str, ...]) -> "HostNames":
        """The very same where they are some."""
        return names if isinstance(names, cls) else cls(names)

    @functools.cached_property
    def written(self) -> str:
        """As a hostlist."""
        return hostlist.compress(self)

    @functools.cached_property
    def misread(self) -> bool:
        """Slurm would take some of the names for a list, or for nothing."""
        return not all(self) or not _OF_LISTS.isdisjoint("".join(self))


class HostGroups:
    """Hosts in the order in which they are named, and any of them but a few."""

    def __init__(self, names: Iterable[str]) -> None:
        self.every = HostNames(names)

    def without(self, few: Collection[str]) -> HostNames:
        """The others, in order; the few are some of the hosts."""
        left = list(self.every)
        for place in sorted([self._places[name] for name in few], reverse=True):
            del left[place]
        made = HostNames(left)
        made.written = hostlist.join(self._written(hostlist.group(few)))
        if not self.every.misread:
            made.misread = False
        return made

    @functools.cached_property
    def _places(self) -> Mapping[str, int]:
        return {name: place for place, name in enumerate(self.every)}

    @functools.cached_property
    def _groups(self) -> Mapping[Stem, tuple[Sequence[Run], str]]:
        """The numbers of the hosts of each stem, and how all of them are written."""
        grouped = {stem: hostlist.runs(numbers) for stem, numbers in hostlist.group(self.every).items()}
        return {stem: (runs, hostlist.write(stem, runs)) for stem, runs in grouped.items()}

    def _written(self, few: Mapping[Stem, Collection[int]]) -> Iterator[str]:
        for stem, (runs, whole) in self._groups.items():
            gone = few.get(stem)
            if gone is None:
                yield whole
            elif left := _rest(runs, gone):
                yield hostlist.write(stem, left)


def _rest(runs: Sequence[Run], gone: Iterable[int]) -> list[Run]:
    """The runs without these numbers."""
    left = list(runs)
    # The highest first: the runs of lower numbers keep their places.
    for number in sorted(gone, reverse=True):
        place = bisect.bisect_right(runs, number, key=_first) - 1
        first, last = left[place]
        left[place : place + 1] = [run for run in ((first, number - 1), (number + 1, last)) if run[0] <= run[1]]
    return left


def _first(run: Run) -> int:
    return run[0]
