"""The runner itself: what it finds, how it names it, and that it makes a case again."""

import copy
import random
import time
from collections.abc import Iterable

import pytest

from tests.fuzz import mutations, runner
from tests.fuzz.runner import Session, Watch


class Numbers:
    """A target that breaks its promise at some numbers."""

    name = "numbers"

    def __init__(self) -> None:
        self.made: list[int] = []
        self.spent = 0

    def make(self, dice: random.Random) -> int:
        self.made.append(dice.randrange(10))
        return self.made[-1]

    def check(self, case: int, watch: Watch) -> Iterable[str]:
        if case == 1:
            raise ValueError(case)
        if case == 2:
            yield "two"
        if case == 3:
            with watch("three"):
                self._spend(0.06)
        if case == 4:
            with watch("four"):
                self._spend(0.06 if self.spent == 0 else 0.0)
            self.spent = 1

    def _spend(self, seconds: float) -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass


def test_findings() -> None:
    """A crash, a broken promise and a slow step are findings; a step that is slow only once is none."""
    report = runner.run(Numbers(), Session(seed=1, cases=40))
    assert {what.partition(" ")[0] for what in report.counts} == {"crash:", "two", "slow:"}
    assert "slow: three takes more than 50 ms" in report.counts
    assert "--fuzz-seed 1 --case" in str(report)


@pytest.mark.thorough
def test_again() -> None:
    """A case is the same one whenever it is made, alone or among others, in one part or in several."""
    every, alone, first, second = Numbers(), Numbers(), Numbers(), Numbers()
    runner.run(every, Session(seed=7, cases=10))
    runner.run(alone, Session(seed=7, cases=10, only=6))
    for part, target in enumerate((first, second)):
        runner.run(target, Session(seed=7, cases=10), part, 2)
    assert alone.made == [every.made[6]]
    assert every.made == [number for pair in zip(first.made, second.made, strict=True) for number in pair]


@pytest.mark.parametrize(("cases", "share", "fewer"), [(20_000, 160, 125), (100, 160, 1)])
def test_fewer(cases: int, share: int, fewer: int) -> None:
    """A target whose cases are long has fewer of them, and never none."""
    assert Session(seed=1, cases=cases).fewer(share).cases == fewer


def test_spoiling_a_document_leaves_the_odd_values_as_they_were() -> None:
    """A value that is spoiled again inside a document is spoiled there alone, and in no later case."""
    before = copy.deepcopy(mutations.ODD)
    for seed in range(300):
        mutations.spoil(random.Random(seed), {"a": [1], "b": {"c": ""}}, 6, ("a", "b", 0))
    assert before == mutations.ODD
