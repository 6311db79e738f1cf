"""Random choices that a seed repeats."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

Json = dict[str, Any]


#: What the pods of a cluster ask for most; "room": nodes are small and full.
THEMES = ("room", "spread", "near", "volumes", "ports")
_OFTEN, _SELDOM = 75.0, 0.5


class Draws:
    """The choices of one cluster: with every rule on every pod, nothing would fit, so that each has a theme."""

    def __init__(self, seed: str) -> None:
        self._dice = random.Random(seed)
        self.theme = self.one(THEMES)

    def often(self, theme: str, percent: float) -> float:
        """In how many percent of the cases, where this is the theme and elsewhere."""
        return _OFTEN if theme == self.theme else percent * _SELDOM

    def chance(self, percent: float) -> bool:
        return self._dice.random() * 100 < percent

    def number(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return self._dice.randint(low, high)

    def one(self, among: Sequence[T]) -> T:
        return self._dice.choice(among)

    def some(self, among: Sequence[T], least: int = 0, most: int | None = None) -> list[T]:
        """Different ones, at least and at most so many."""
        return self._dice.sample(among, self.number(least, len(among) if most is None else min(len(among), most)))

    def several(self, most: int, make: Callable[[], T], least: int = 1) -> list[T]:
        """At least and at most so many, each made anew."""
        return [make() for _ in range(self.number(least, most))]

    def maybe(self, percent: float, key: str, make: Callable[[], object]) -> Json:
        """The field, in so many percent of the cases."""
        return {key: make()} if self.chance(percent) else {}

    def weighed(self, choices: Mapping[str, int]) -> str:
        """One of the names, each as often as its number says."""
        return self._dice.choices([*choices], [*choices.values()])[0]
