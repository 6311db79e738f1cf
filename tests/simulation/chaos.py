"""A random run: users, administrators, machines, networks and processes, each doing its worst by the same dice."""

from typing import Protocol

from tests.simulation.admins import Admins
from tests.simulation.outages import Outages
from tests.simulation.play import Act, Play
from tests.simulation.users import Users
from tests.simulation.weather import Odds

BEATS = 45


class Guests(Protocol):
    """Actors of some runs only."""

    acts: tuple[tuple[int, Act], ...]

    def end(self) -> None:
        """What is wrong by their doing is put right."""


class Chaos:
    """Everything that may happen beside the daemon; `more` is what only some runs have."""

    def __init__(self, play: Play, *more: Guests) -> None:
        self._play, self._world, self._dice = play, play.world, play.world.dice
        self._more = more
        self._users, self._admins, self._outages = Users(play), Admins(play), Outages(play)

    def run(self) -> None:
        """Let it rage, then stop and see that all comes right."""
        self.rage()
        self.heal()
        self._play.run_to_rest(self._users.help)

    def rage(self) -> None:
        """Begin, and go on for a while."""
        weather, dice = self._world.weather, self._dice
        for _ in range(4):
            self._users.create_pod()
        worse = dice.choice((0.0, 1.0, 3.0, 10.0))
        weather.odds = Odds(
            lost=0.01 * worse,
            unanswered=0.015 * worse,
            orders_unanswered=dice.choice((0.0, 0.0, 0.3)),
            slow=0.005 * worse,
            killed=0.003 * worse,
        )
        hectic = dice.choice((0.15, 0.4, 1.0))
        actors = (self._users, self._admins, self._outages, *self._more)
        weights, acts = zip(*(act for actor in actors for act in actor.acts), strict=True)
        for _ in range(BEATS):
            if dice.random() < hectic:
                dice.choices(acts, weights)[0]()
            self._play.step(dice.choice((0.1, 0.3, 0.7, 1.5, 4.0)))

    def heal(self) -> None:
        """Nothing goes wrong any more, and what was broken is mended."""
        self._world.weather.note("heal")
        self._play.forget_chores()
        self._world.weather.calm()
        self._outages.end()
        self._admins.mend()
        for guests in self._more:
            guests.end()
        self._users.correct()
