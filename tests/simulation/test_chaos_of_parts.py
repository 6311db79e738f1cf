"""Three daemons with parts, under every misfortune, while the parts are cut anew: no job is doubled, lost, or shared.

pytest tests/simulation/test_chaos_of_parts.py --runs 2000      a share of so many seeds
pytest tests/simulation/test_chaos_of_parts.py --seed 1234      one of them again; a failure prints its journal
"""

import pathlib

import pytest

from slurm_bridge.model import kinds, names
from tests.simulation import fleet
from tests.simulation.broken_promise import Broken
from tests.simulation.outages import Outages
from tests.simulation.part_daemons import PartsPlay, pod, relabel
from tests.simulation.weather import Odds
from tests.simulation.world import World

EVERY = ("a", "b", "c")
NAMESPACES = ("n0", "n1", "n2", "n3")
MOST_PODS = 12
BEATS = 60
#: Longer than a lease lasts.
EXPIRED = 25.0


class Site:
    """What users and administrators do in several namespaces."""

    def __init__(self, world: World) -> None:
        self.world, self.play = world, PartsPlay(world, EVERY)
        self._dice, self._outages = world.dice, Outages(self.play)
        self._count = 0
        for name in NAMESPACES:
            world.kube.create(kinds.NAMESPACES, {"metadata": {"name": name}})

    def rage(self) -> None:
        """Everything at once."""
        worse = self._dice.choice((0.0, 1.0, 3.0, 10.0))
        self.world.weather.odds = Odds(
            lost=0.01 * worse, unanswered=0.015 * worse, slow=0.003 * worse, killed=0.002 * worse
        )
        outages = self._outages
        acts = (
            (12, self.create),
            (4, self.delete),
            (4, self.relabel),
            (2, self.cut),
            (4, self.kill),
            (3, self.begin),
            (2, self.fall_asleep),
            (1, outages.slurm_goes),
            (1, outages.slurm_crashes),
            (1, outages.kube_goes),
            (1, outages.kube_forgets),
            (2, self.be_deaf),
            (1, outages.stranger_submits),
            (2, outages.kill_soon),
        )
        weights, deeds = zip(*acts, strict=True)
        for _ in range(BEATS):
            if self._dice.random() < 0.7:
                self._dice.choices(deeds, weights)[0]()
            self.play.step(self._dice.choice((0.3, 0.7, 1.5, 4.0)))

    def heal(self) -> None:
        """Nothing goes wrong any more, and each part has its daemon."""
        self.world.weather.note("heal")
        self.play.forget_chores()
        self.world.weather.calm()
        if self.world.slurm.control.outage is not None:
            self.world.wake_slurm()
        for namespace in NAMESPACES:
            labels = self.labels(namespace)
            if labels.get(names.LABEL_PART) not in (None, *self.play.every):
                relabel(self.world, namespace, None)
        self.play.begin_all()
        for running in self.play.daemons:
            running.daemon.deaf_until = 0.0

    def labels(self, namespace: str) -> dict[str, str]:
        """Those of a namespace."""
        found = self.world.kube.get(kinds.NAMESPACES, "", namespace)
        return found["metadata"].get("labels") or {} if found is not None else {}

    def create(self) -> None:
        """One more pod, where there is room for it."""
        there = [one for name in NAMESPACES for one in self.world.kube.list(kinds.PODS, name)]
        if len([one for one in there if one["status"]["phase"] not in ("Succeeded", "Failed")]) < MOST_PODS:
            outcome = self._dice.choice(("run", "run", "succeed"))
            wishes = {"outcome": outcome, **({"seconds": "6"} if outcome == "succeed" else {})}
            pod(self.world, self._dice.choice(NAMESPACES), f"p{self._count}", **wishes)
            self._count += 1

    def delete(self) -> None:
        """Any pod, at any time."""
        namespace = self._dice.choice(NAMESPACES)
        there = self.world.kube.list(kinds.PODS, namespace)
        if there:
            name = self._dice.choice(there)["metadata"]["name"]
            self.world.weather.note(f"user deletes {namespace}/{name}")
            self.world.kube.delete(kinds.PODS, (namespace, name))

    def relabel(self) -> None:
        """An administrator moves a namespace; sometimes to a part that no daemon serves."""
        relabel(self.world, self._dice.choice(NAMESPACES), self._dice.choice((*EVERY, None, "nobody")))

    def cut(self) -> None:
        """The administrators change the parts, and restart one daemon after the other."""
        self.play.every = self._dice.choice((EVERY, EVERY[:2], (*EVERY, "d")))
        self.world.weather.note(f"the parts are {self.play.every} from now on")
        for number, part in enumerate(dict.fromkeys((*EVERY, "d"))):
            self.play.later(3.0 * number, lambda one=part: self.restart(one))  # type: ignore[misc]

    def restart(self, part: str) -> None:
        """With the parts of this moment; a part that is none any more loses its daemon."""
        self.play.kill(part)
        if part in self.play.every:
            self.play.begin(part)

    def kill(self) -> None:
        """Any daemon."""
        self.play.kill(self._dice.choice(EVERY))

    def begin(self) -> None:
        """A daemon for a part; where there is one, it is a second replica, which waits."""
        part = self._dice.choice(self.play.every)
        before = self.play.parts.get(part)
        if before not in self.play.daemons or len(self.play.daemons) < len(EVERY) + 2:
            self.play.begin(part)

    def fall_asleep(self) -> None:
        """A daemon stands still in some call to come for longer than its lease, and namespaces are moved meanwhile."""
        weather = self.world.weather

        def moved() -> None:
            self.relabel()
            self.relabel()

        weather.after(weather.calls + self._dice.randint(1, 25), self.play.asleep(moved))

    def be_deaf(self) -> None:
        """One daemon hears nothing for a while, of labels neither."""
        if self.play.daemons:
            one = self._dice.choice(self.play.daemons)
            one.daemon.deaf_until = self.world.clock.now() + self._dice.uniform(1, 30)


def play(seed: int, token: pathlib.Path) -> World:
    """A run by this seed."""
    world = World(seed, token, fleet=fleet.WIDE)
    site = Site(world)
    try:
        site.play.begin_all()
        for _ in range(4):
            site.create()
        site.rage()
        site.heal()
        site.play.rest()
    except (AssertionError, Broken) as broken:
        pytest.fail(f"seed {seed}: {broken}\n" + "\n".join(world.journal), pytrace=False)
    return world


class Move:
    """A namespace with pods that run goes from one part to another, and gets one more pod."""

    def __init__(self, token: pathlib.Path, call: int | None = None) -> None:
        self.world = World(1, token)
        self.play = PartsPlay(self.world, EVERY[:2])
        self.world.kube.create(kinds.NAMESPACES, {"metadata": {"name": "n0", "labels": {names.LABEL_PART: "a"}}})
        if call is not None:
            self.world.weather.after(call, self.world.weather.kill)

    def run(self) -> None:
        """To its end; a daemon that is killed is followed by another one."""
        for number in range(2):
            pod(self.world, "n0", f"p{number}", outcome="run")
        self._go_on(12)
        relabel(self.world, "n0", "b")
        self._go_on(12)
        pod(self.world, "n0", "late", outcome="run")
        self._go_on(60)

    def _go_on(self, seconds: int) -> None:
        for _ in range(seconds):
            self.play.begin_all()
            self.play.step(1.0)

    def check(self) -> None:
        """Each pod has its one job, and the record names the new part."""
        assert self.world.observer.complaints() == []
        assert len(self.world.ours("RUNNING")) == 3
        assert self.play.holder("n0") == "b"


#: Parts of one loop, so that several processes can share it.
TURNS = 2


@pytest.mark.parametrize("turn", range(TURNS))
@pytest.mark.timeout(600)
def test_killed_after_every_call(turn: int, tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> None:
    """Whichever call is a daemon's last while a namespace moves, its pods keep their jobs and it arrives."""
    calm = Move(tmp_path / "token")
    calm.run()
    calm.check()
    every = request.config.getoption("--every-call")
    calls = range(1, calm.world.weather.calls + 1) if every else calm.world.weather.orders
    for call in calls[turn::TURNS]:
        one = Move(tmp_path / "token", call)
        try:
            one.run()
            one.check()
        except (AssertionError, Broken) as broken:
            pytest.fail(f"killed after call {call}: {broken}\n" + "\n".join(one.world.journal), pytrace=False)


def test_random_run(part_seed: int, tmp_path: pathlib.Path) -> None:
    """All promises hold through one random run."""
    play(part_seed, tmp_path / "token")
