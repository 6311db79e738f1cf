"""A hypothesis state machine over the pocket world: what users, administrators, machines and networks may do next.

Every rule is one act; its dice come from hypothesis, so that a failure shrinks to the few acts that it takes. What is
left to the world's own seed is the weather: which call is lost, which process is slow, which is killed.
"""

import contextlib
import pathlib
import random
import tempfile
from collections.abc import Callable, Iterator

from hypothesis import stateful, strategies

from tests.simulation import daemon, fleet
from tests.simulation.admins import Admins
from tests.simulation.broken_promise import Broken
from tests.simulation.chaos import Guests
from tests.simulation.group_users import Act, Company, House
from tests.simulation.outages import Outages
from tests.simulation.play import Play
from tests.simulation.stage import PocketStage
from tests.simulation.weather import Odds
from tests.simulation.world import World

DICE = strategies.randoms(use_true_random=False)
SECONDS = (0.1, 0.3, 0.7, 1.5, 4.0)

#: After the last fault: a Job that failed several times waits for minutes before its next pod.
PATIENCE = 2000.0


class Scene:
    """One world with a daemon, and all that acts in it."""

    def __init__(
        self,
        seed: int,
        token: pathlib.Path,
        *,
        machines: int = 6,
        house: House | None = None,
        site: daemon.Site | None = None,
    ) -> None:
        usual = daemon.Variant(chosen_ids=seed % 5 > 1, hold_after_timeout=seed % 4 == 0, fickle_hook=seed % 3 == 0)
        site = site or daemon.Site(usual)
        hall = fleet.hall(machines, gpu_type="a100" if seed % 2 else "")
        self.world = World(seed, token, fenced=site.variant.chosen_ids, fleet=hall)
        self.play = Play(self.world, daemon.build(site), fence=seed % 4 != 1)
        #: Actors of some runs only.
        self.guests: tuple[Guests, ...] = ()
        self.company = Company(PocketStage(self.play), house or House())
        self.admins, self.outages = Admins(self.play), Outages(self.play)

    def heal(self) -> None:
        """Nothing goes wrong any more, and what was broken is mended."""
        self.world.weather.note("heal")
        self.play.forget_chores()
        self.world.weather.calm()
        self.outages.end()
        self.admins.mend()
        for guests in self.guests:
            guests.end()
        self.company.settle()

    def rest(self) -> None:
        """See that all comes right."""
        self.heal()
        self.go_on()

    def go_on(self) -> None:
        """Until nothing happens any more."""
        self.play.run_to_rest(lambda: self.company.help(self.world.clock.now()), patience=PATIENCE)

    def act(self, act: Act, dice: random.Random) -> None:
        """One act, and a moment in which the daemon may see what came of it."""
        act(dice)
        self.play.step(dice.choice(SECONDS))

    def worsen(self, dice: random.Random) -> None:
        """The weather changes."""
        worse = dice.choice((0.0, 1.0, 3.0, 10.0))
        self.world.weather.odds = Odds(
            lost=0.01 * worse,
            unanswered=0.015 * worse,
            orders_unanswered=dice.choice((0.0, 0.0, 0.3)),
            slow=0.005 * worse,
            killed=0.003 * worse,
        )


def random_run(scene: Scene, dice: random.Random, acts: int, *, troupes: int = 0) -> None:
    """So many acts by these dice, and more (at most as many again) until so many troupes have come; then the rest."""
    scene.worsen(dice)
    others = [scene.admins.acts, scene.outages.acts, *(guests.acts for guests in scene.guests)]
    everything = (*scene.company.acts, *(act for acts in others for act in _deaf(acts)))
    weights, chosen = zip(*everything, strict=True)
    for number in range(2 * acts):
        if number >= acts and scene.company.entered >= troupes:
            break
        scene.act(dice.choices(chosen, weights)[0], dice)
    scene.rest()


def _deaf(acts: tuple[tuple[int, Callable[[], object]], ...]) -> Iterator[tuple[int, Act]]:
    """Acts that have the world's own dice."""
    return ((weight, lambda _dice, act=act: act()) for weight, act in acts)  # type: ignore[misc]


class Troupes(stateful.RuleBasedStateMachine):
    """Groups of every form under every misfortune."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = contextlib.ExitStack()
        self._scene: Scene | None = None
        self._failed = False

    @property
    def scene(self) -> Scene:
        assert self._scene is not None
        return self._scene

    @stateful.initialize(seed=strategies.integers(0, 2**20), dice=DICE)
    def begin(self, seed: int, dice: random.Random) -> None:
        """An empty world, and some weather."""
        folder = pathlib.Path(self._folder.enter_context(tempfile.TemporaryDirectory()))
        self._scene = Scene(seed, folder / "token")
        self.scene.worsen(dice)
        self._do(self.scene.company.enter, dice)

    def _do(self, act: Act, dice: random.Random) -> None:
        with self._told():
            self.scene.act(act, dice)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """No daemon may catch what the observer raises; hypothesis has to."""
        try:
            yield
        except (AssertionError, Broken) as broken:
            self._failed = True
            raise AssertionError(f"{broken}\n" + "\n".join(self.scene.world.journal)) from None

    @stateful.rule(dice=DICE)
    def enter(self, dice: random.Random) -> None:
        self._do(self.scene.company.enter, dice)

    @stateful.rule(dice=DICE)
    def enter_another(self, dice: random.Random) -> None:
        self._do(self.scene.company.enter, dice)

    @stateful.rule(dice=DICE)
    def leave(self, dice: random.Random) -> None:
        self._do(self.scene.company.leave, dice)

    @stateful.rule(dice=DICE)
    def lose_member(self, dice: random.Random) -> None:
        self._do(self.scene.company.lose_member, dice)

    @stateful.rule(dice=DICE)
    def fail_member(self, dice: random.Random) -> None:
        self._do(self.scene.company.fail_member, dice)

    @stateful.rule(dice=DICE)
    def join(self, dice: random.Random) -> None:
        self._do(self.scene.company.join, dice)

    @stateful.rule(dice=DICE)
    def arrive(self, dice: random.Random) -> None:
        self._do(self.scene.company.arrive, dice)

    @stateful.rule(dice=DICE)
    def suspend(self, dice: random.Random) -> None:
        self._do(self.scene.company.suspend, dice)

    @stateful.rule(dice=DICE)
    def resize(self, dice: random.Random) -> None:
        self._do(self.scene.company.resize, dice)

    @stateful.rule(dice=DICE)
    def change_words(self, dice: random.Random) -> None:
        self._do(self.scene.company.change_words, dice)

    @stateful.rule(dice=DICE)
    def cancel(self, dice: random.Random) -> None:
        self._do(self.scene.company.cancel, dice)

    @stateful.rule(dice=DICE)
    def tear(self, dice: random.Random) -> None:
        self._do(self.scene.company.tear, dice)

    @stateful.rule(number=strategies.integers(0, 8), dice=DICE)
    def an_administrator_acts(self, number: int, dice: random.Random) -> None:
        self._do(lambda _: self.scene.admins.acts[number][1](), dice)

    @stateful.rule(number=strategies.integers(0, 9), dice=DICE)
    def something_breaks(self, number: int, dice: random.Random) -> None:
        self._do(lambda _: self.scene.outages.acts[number][1](), dice)

    @stateful.rule(dice=DICE)
    def the_weather_changes(self, dice: random.Random) -> None:
        self._do(self.scene.worsen, dice)

    @stateful.rule(beats=strategies.integers(1, 6), dice=DICE)
    def time_passes(self, beats: int, dice: random.Random) -> None:
        for _ in range(beats):
            self._do(lambda _: None, dice)

    def teardown(self) -> None:
        """Whatever happened, in the end everything is as users wanted it."""
        with self._folder:
            if self._scene is not None and not self._failed:
                with self._told():
                    self.scene.rest()
