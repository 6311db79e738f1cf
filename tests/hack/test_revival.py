"""Servers of the local cluster are looked after between cases."""

import dataclasses

import pytest

from tests import revival


@dataclasses.dataclass
class Mortal:
    """A server that may die, and may or may not come back."""

    well: bool = True
    runs: bool = True
    returns: bool = True
    log: str = "why"
    asked: int = 0
    brought_back: int = 0

    def watched(self) -> revival.Watched:
        return revival.Watched(
            name="slurmctld",
            runs=lambda: self.runs,
            complaint=self._complaint,
            log=lambda: self.log,
            bring_back=self._bring_back,
        )

    def dies(self) -> None:
        self.well = self.runs = False

    def _complaint(self) -> str:
        self.asked += 1
        return "" if self.well else "no answer"

    def _bring_back(self) -> None:
        self.brought_back += 1
        self.log = "started"
        self.well = self.runs = self.returns


def guarding(server: Mortal) -> revival.Guard:
    """Impatient: nothing here gets well by itself."""
    return revival.Guard(lambda: [server.watched()], patience=0)


def test_a_server_is_asked_at_first_and_then_on_suspicion_only() -> None:
    """A look costs something: without a failed case there is no second one."""
    server = Mortal()
    guard = guarding(server)
    guard.look()
    guard.look()
    assert server.asked == 1
    guard.suspect("since a case")
    guard.look()
    assert (server.asked, server.brought_back, guard.stories) == (2, 0, [])


def test_a_dead_server_is_brought_back_and_told_of() -> None:
    """The story has the end of the log as it was before the new start, and since when something was wrong."""
    server = Mortal()
    guard = guarding(server)
    server.dies()
    guard.suspect("since test_killing")
    (story,) = guard.look()
    assert server.well
    assert story.startswith("slurmctld has ended (since test_killing): no answer")
    assert "why" in story
    assert guard.stories == [story]


def test_a_server_that_runs_and_hangs_is_brought_back_too() -> None:
    """It is told apart from one that has ended."""
    server = Mortal(well=False)
    (story,) = guarding(server).look()
    assert server.well
    assert "does not answer" in story


def test_a_server_that_does_not_come_back_is_lost() -> None:
    """What it says then, and the newest of its log."""
    server = Mortal(well=False, returns=False)
    with pytest.raises(revival.Lost, match="started again and says: no answer\nstarted"):
        guarding(server).look()


def test_a_server_that_dies_again_and_again_is_lost() -> None:
    """The fourth time is one too many."""
    server = Mortal()
    guard = guarding(server)
    for _ in range(revival.MOST):
        server.dies()
        guard.suspect("since a case")
        guard.look()
    server.dies()
    guard.suspect("since another case")
    with pytest.raises(revival.Lost, match="brought back 3 times already"):
        guard.look()
    assert len(guard.stories) == revival.MOST
