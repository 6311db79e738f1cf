"""Which nodes are looked at next: one strategy of each name for all pipelines of an agent.

A strategy keeps a state that all pipelines share: two round-robin requests at once get different nodes, until the list
wraps. Packages add strategies by entry point; the name of the entry point is the name of the strategy.
"""

import functools
import random
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.families.vela import dice, extensions
from slurm_bridge.families.vela.dice import Dice, Places


class SamplingStrategy(Protocol):
    """Called by one thread at a time.

    One with the attribute `keeps_place = True` goes through the list from where it stopped: it is asked about the whole
    list in each round of a sample. Any other is asked about those nodes that it has not named yet.
    """

    def sample(self, total: int, count: int, /) -> Sequence[int] | Places:
        """At most so many different places in a list of `total` nodes, in the order in which they are to be tried."""


#: Makes a strategy for one agent, with dice of its own.
Builder = Callable[[Dice], SamplingStrategy]


class RandomStrategy:
    """Any nodes, none of them twice in one sample."""

    def __init__(self, draw: Dice) -> None:
        self._draw = draw

    def sample(self, total: int, count: int) -> Places:
        return dice.distinct(total, count, self._draw)


class RoundRobin:
    """The next ones, and from the first again after the last."""

    keeps_place: ClassVar = True

    def __init__(self, _draw: Dice | None = None, *, last: int = -1) -> None:
        #: The place that was given out last.
        self.last = last

    def sample(self, total: int, count: int) -> Places:
        taken = min(count, total)
        if taken <= 0:
            return np.zeros(0, np.intp)
        start = self.last + 1 if self.last + 1 < total else 0
        self.last = (start + taken - 1) % total
        return np.arange(start, start + taken) % total


BUILTIN: Mapping[str, Builder] = {"random": RandomStrategy, "round-robin": RoundRobin}


class Shared:
    """One strategy for all pipelines of an agent; its answers are checked before they are used."""

    def __init__(self, name: str, strategy: SamplingStrategy) -> None:
        self.name = name
        #: One of ours never gives a place twice in one answer.
        self.repeats = not isinstance(strategy, RandomStrategy | RoundRobin)
        self.keeps_place = bool(getattr(strategy, "keeps_place", False))
        self._strategy = strategy
        self._lock = threading.Lock()

    def sample(self, total: int, count: int) -> Places:
        """At most so many different places; ValueError when the strategy names others."""
        with self._lock:
            answer = self._strategy.sample(total, count)
        if isinstance(answer, np.ndarray):
            places: Places = answer.astype(np.intp, copy=False)[:count]
        else:
            places = np.fromiter(answer, np.intp)[:count]
        if self.repeats and len(places) and not 0 <= places.min() <= places.max() < total:
            raise ValueError(f"strategy {self.name} named a place outside of 0..{total - 1}")
        return places


class Draw:
    """One sample out of a list: no place of it is drawn again before all others were.

    `useful` says which places are worth drawing at all; it is asked once, when the first round was not enough.
    """

    def __init__(self, strategy: Shared, total: int, useful: Callable[[Places], Places]) -> None:
        self._strategy, self._total, self._useful = strategy, total, useful
        self._first: Places | None = None
        #: By place, from the second round on: it was not drawn yet, and is worth it.
        self._open: NDArray[np.bool_] | None = None
        self._named = 0
        #: Nothing is left to be drawn.
        self.done = False

    def next(self, missing: int) -> Places:
        """So many more, as long as there are any."""
        if self._first is None:
            found = self._strategy.sample(self._total, missing)
            self._first = dice.firsts(found) if self._strategy.repeats else found
            self._named = len(found)
            self.done = not len(found) or len(self._first) == self._total
            return self._first
        if self._open is None:
            never = np.ones(self._total, np.bool_)
            never[self._first] = False
            self._open = np.zeros(self._total, np.bool_)
            self._open[self._useful(np.flatnonzero(never))] = True
        more = self._more(self._open, missing)
        found = dice.firsts(more) if self._strategy.repeats else more
        self._open[found] = False
        self.done = not len(found) or not self._open.any()
        return found

    def _more(self, left: NDArray[np.bool_], missing: int) -> Places:
        """Once a strategy that keeps its place was through the whole list what is left is taken as it comes."""
        if not self._strategy.keeps_place:
            places = np.flatnonzero(left)
            return places[self._strategy.sample(len(places), missing)]
        while self._named < self._total:
            places = self._strategy.sample(self._total, missing)
            self._named += max(1, len(places))
            found = places[left[places]]
            if len(found):
                return found
        return np.flatnonzero(left)[:missing]


def load(
    names: Iterable[str], seed: random.Random, offered: Mapping[str, Callable[[], Builder]] | None = None
) -> Mapping[str, Shared]:
    """One of each of these for one agent; ValueError names the one that cannot be had. Others are not even loaded."""
    loaded: dict[str, Shared] = {}
    for name in names:
        builder = extensions.find("strategy", extensions.STRATEGIES, name, BUILTIN, offered)
        draw = dice.throw(seed)
        made = extensions.build("strategy", name, functools.partial(builder, draw), {"sample": 2})
        loaded[name] = Shared(name, made)
    return loaded
