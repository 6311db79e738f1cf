"""Users of queues that are entitled to something, and operators, who say what all of them have together."""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any

from tests.simulation import families
from tests.simulation.daemon import Site
from tests.simulation.group_users import Company, House
from tests.simulation.play import Act, Play
from tests.simulation.queue_guarantees import QUEUE, Law, Realm
from tests.simulation.stage import Stage
from tests.simulation.troupes import Troupe

#: What fits beside all others, however long it runs: of queues with a guarantee, and of those without.
MOST_CPUS = {"r": 6, "b": 5}

_OUTCOMES = (("run", ""), ("run", ""), ("run", ""), ("succeed", "8"))


class Operators:
    """They are of different minds. `times` are the configurations of usual, hard and good ones."""

    def __init__(self, play: Play, site: Site, times: tuple[str, str, str], beside: Sequence[str] = ()) -> None:
        self._world, self._dice, self._site, self._beside = play.world, play.world.dice, site, tuple(beside)
        self._usual, self._hard, self._good = times
        self.realm = Realm(law_of((self._usual,)), families.USUAL_QUEUE)
        self._world.observer.evicted.realm = self.realm
        self.acts: tuple[tuple[int, Act], ...] = ((3, self.save), (3, self.recover), (1, self.neglect))

    def save(self) -> None:
        """All of them have less together than they may have by now."""
        self._decree((self._hard,))

    def recover(self) -> None:
        """As it was."""
        self._decree((self._usual,))

    def neglect(self) -> None:
        """Stop counting."""
        self._decree(())

    def share(self) -> None:
        """Enough for all."""
        self._decree((self._good,))

    def end(self) -> None:
        """Usage is counted, and there is less than all want."""
        self._decree((self._dice.choice((self._usual, self._hard)),))

    def _decree(self, chosen: tuple[str, ...]) -> None:
        self._world.weather.note(f"operator says {chosen}")
        self._site.write(families=(*chosen, *self._beside))
        self._world.updates.configured()
        self.realm.decree(law_of(chosen), self._world.clock.now())


class Rivals(Operators):
    """Single pods; those that live on what others leave exist already. `beside` are the other families of the site."""

    def __init__(self, play: Play, site: Site, beside: Sequence[str] = ()) -> None:
        super().__init__(play, site, families.PODS, beside)
        self._made = 0
        self.acts = (*self.acts, (24, self.come), (24, self.borrow))
        for _ in range(3):
            self.borrow()

    def come(self) -> None:
        """One more pod in one of the queues that are entitled to something."""
        self._enter("r", {QUEUE: self._dice.choice(("root.all.left", "root.all.right"))})

    def borrow(self) -> None:
        """One more pod in the other one."""
        self._enter("b", {})

    def _enter(self, prefix: str, marks: Mapping[str, str]) -> None:
        there = [pod for name, pod in self._world.pods() if name.startswith(prefix) and not _is_over(pod)]
        cpu = self._dice.choice((1, 1, 2))
        if sum(map(_cpus, there)) + cpu > MOST_CPUS[prefix]:
            return
        outcome, seconds = self._dice.choice(_OUTCOMES)
        wishes = {"outcome": outcome} | ({"seconds": seconds} if seconds else {})
        if self._dice.random() < 0.4:
            wishes["terminating"] = self._dice.choice(("1s", "6s", "15s"))
        self._world.pod(f"{prefix}{self._made}", cpu=str(cpu), marks=marks, **wishes)
        self._made += 1


class Teams(Company):
    """Troupes in queues."""

    def __init__(self, stage: Stage, house: House, realm: Realm) -> None:
        super().__init__(stage, house)
        self._realm = realm
        self.acts = ((30, self.enter), *self.acts)

    def drawn(self, dice: random.Random, name: str) -> Troupe:
        """Every other one is entitled to something, and many small ones stay for long."""
        troupe = super().drawn(dice, name)
        if troupe.leader.gpus + troupe.worker.gpus == 0 and dice.random() < 0.6:
            troupe = dataclasses.replace(troupe, seconds=0, workers=min(troupe.workers, 2))
            troupe = dataclasses.replace(troupe, minimum=min(troupe.minimum, troupe.size))
        queue = dice.choice(("root.all.left", "root.all.right", families.USUAL_QUEUE, families.USUAL_QUEUE))
        self._realm.enrol(name, queue)
        return dataclasses.replace(troupe, words={**troupe.words, QUEUE: queue})


def law_of(chosen: tuple[str, ...]) -> Law:
    """What these families mean."""
    shares = next((families.RIVALS[name] for name in chosen if name in families.RIVALS), None)
    return Law(entitled={}, most=None) if shares is None else Law(entitled=shares.entitled, most=shares.most)


def _is_over(pod: Mapping[str, Any]) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def _cpus(pod: Mapping[str, Any]) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
