"""Short work is done by whoever asks for it, and what has become long is not."""

import pytest

from slurm_bridge.families.shared.inline import IN_A_ROW, REST, InlineBudget
from slurm_bridge.runtime.clock import VirtualClock


class Spent:
    """The time of the processor, as a test says."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Desk:
    """Work that takes as long as a test says."""

    def __init__(self) -> None:
        self.clock, self.spent = VirtualClock(), Spent()
        self.inline = InlineBudget(self.clock, 0.01, self.spent, lambda: self.spent.now + self.waited)
        #: While others had the processor.
        self.waited = 0.0

    def work(self, *seconds: float) -> None:
        """Pieces one after the other."""
        for one in seconds:
            begun = self.inline.begin()
            self.spent.now += one
            self.inline.end(begun)


@pytest.fixture
def desk() -> Desk:
    """Where nothing was done yet."""
    return Desk()


def test_nothing_is_known_to_be_long_at_first(desk: Desk) -> None:
    """Somebody has to try."""
    assert desk.inline.pays


def test_time_in_which_others_had_the_processor_does_not_count(desk: Desk) -> None:
    """Work that only waited for its turn is short."""
    for _ in range(2 * IN_A_ROW):
        begun = desk.inline.begin()
        desk.waited += 5.0
        desk.spent.now += 0.001
        desk.inline.end(begun)
    assert desk.inline.pays


def test_one_long_piece_is_an_accident(desk: Desk) -> None:
    """Garbage is collected in the middle of anything."""
    desk.work(*[0.001, 5.0] * 10)
    assert desk.inline.pays


def test_what_is_always_too_long_is_not_lent(desk: Desk) -> None:
    """However little it is too long."""
    desk.work(*[0.011] * IN_A_ROW)
    assert not desk.inline.pays


def test_it_is_tried_now_and_then_whether_it_still_is(desk: Desk) -> None:
    """Once; where it is, for as long again nobody is bothered with it."""
    desk.work(*[0.011] * IN_A_ROW)
    desk.clock.advance(REST)
    assert desk.inline.pays
    desk.work(0.011)
    assert not desk.inline.pays
    desk.clock.advance(REST)
    desk.work(0.001)
    assert desk.inline.pays
