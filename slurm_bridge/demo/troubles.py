"""The faults of the demo, by name: each breaks calls, or does something to a server at a given time."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from slurm_bridge import errors
from slurm_bridge.demo.pocket import PocketWorld
from slurm_bridge.sim import faults

Deed = Callable[[PocketWorld], None]

#: Everything but watches.
_PLAIN_CALLS = r"^(?!.*watch=)"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """`arm` runs at once, `later` after so many seconds of the daemon's life."""

    words: str
    arm: Deed | None = None
    later: tuple[tuple[float, Deed], ...] = ()


def _lose_answers(world: PocketWorld) -> None:
    """The server acts, and the connection breaks before it answers."""
    world.slurm_calls.plan(faults.Drop(), method="POST", target="/job/submit", nth=2)
    world.slurm_calls.at_random(faults.Drop(), probability=0.2, seed=1, method="POST", target="/job/submit")
    world.slurm_calls.at_random(faults.Drop(), probability=0.2, seed=2, method="DELETE", target="/job")
    world.kube_calls.plan(faults.Drop(), method="POST", target="/binding", nth=2)
    world.kube_calls.at_random(faults.Drop(), probability=0.2, seed=3, method="POST", target="/binding")


def _slow_down(world: PocketWorld) -> None:
    for number, calls in enumerate((world.kube_calls, world.slurm_calls)):
        calls.at_random(faults.Delay(0.3), probability=0.4, seed=number, target=_PLAIN_CALLS)


def _cut_watches(world: PocketWorld) -> None:
    world.kube_calls.at_random(faults.Cut(after=5), probability=0.8, seed=1, target="watch=", times=60)


def _refuse(world: PocketWorld) -> None:
    """The errors of an overloaded, unavailable or broken API server."""
    for number in (429, 500, 503):
        text = f'{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"ordered trouble","code":{number}}}'
        fault = faults.Answer(status=number, body=text.encode())
        world.kube_calls.at_random(fault, probability=0.08, seed=number, target=_PLAIN_CALLS)


def _crash(world: PocketWorld) -> None:
    """kill -9: what slurmctld had not saved is lost."""
    world.slurmctld.control.crash(lose_seconds=1.0)


TROUBLES: Mapping[str, Trouble] = {
    "lost-answers": Trouble(
        words="submits, cancels and bindings are carried out, but one answer in five is lost", arm=_lose_answers
    ),
    "slow": Trouble(words="two calls in five take 0.3 seconds longer, on both servers", arm=_slow_down),
    "slurm-down": Trouble(
        words="slurmctld is down from the 2nd to the 6th second",
        later=((2.0, lambda world: world.slurmctld.control.down()), (6.0, lambda world: world.slurmctld.control.up())),
    ),
    "watch-cuts": Trouble(words="watches break after five changes", arm=_cut_watches),
    "apiserver-errors": Trouble(words="one call in five to Kubernetes is answered with 429, 500 or 503", arm=_refuse),
    "controller-crash": Trouble(
        words="slurmctld is killed in the 2nd and in the 5th second, and loses its most recent changes each time",
        later=((2.0, _crash), (5.0, _crash)),
    ),
}


class Schedule:
    """The faults of one run."""

    def __init__(self, world: PocketWorld, names: Iterable[str]) -> None:
        chosen = [trouble(name) for name in dict.fromkeys(names)]
        self._world = world
        self._due = sorted((step for one in chosen for step in one.later), key=lambda step: step[0])
        self._done = 0
        self._struck = world.kube_calls.struck + world.slurm_calls.struck
        for one in chosen:
            if one.arm is not None:
                one.arm(world)

    def step(self, seconds: float) -> None:
        """Do what is due."""
        while self._due and self._due[0][0] <= seconds:
            _, deed = self._due.pop(0)
            deed(self._world)
            self._done += 1

    @property
    def over(self) -> bool:
        """Nothing is due any more; broken calls go on."""
        return not self._due

    @property
    def struck(self) -> int:
        """How many faults have struck."""
        return self._done + self._world.kube_calls.struck + self._world.slurm_calls.struck - self._struck


def trouble(name: str) -> Trouble:
    """The fault of this name; BadConfiguration lists all names."""
    found = TROUBLES.get(name)
    if found is None:
        raise errors.BadConfiguration(f"fault {name!r}: there are {', '.join(TROUBLES)}")
    return found


def listed() -> str:
    """All faults as text."""
    width = max(map(len, TROUBLES))
    return "\n".join(f"{name:<{width}}  {one.words}" for name, one in TROUBLES.items())
