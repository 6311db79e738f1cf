"""What moves everything: daemons beat, time passes, chores fall due, the dead rise again as new processes."""

import dataclasses
import heapq
import itertools
from collections.abc import Callable

from tests.simulation.observer import Broken
from tests.simulation.process import Build, Daemon
from tests.simulation.weather import Chore, Killed
from tests.simulation.world import World

Act = Callable[[], object]

#: After the last fault, everything has to be in order within so many seconds of the world's time.
PATIENCE = 400.0
#: Nothing was ordered for so long: this is the end.
QUIET = 8.0


@dataclasses.dataclass(eq=False, slots=True, kw_only=True)
class Running:
    """A process, and whether it leads: one that does not writes nothing, if there is a fence."""

    daemon: Daemon
    leads: bool = True


class Play:
    """One world, and the daemons in it."""

    def __init__(self, world: World, build: Build, *, fence: bool = True) -> None:
        self.world = world
        self._fence = fence
        self._build = build
        self._names = (f"d{number}" for number in itertools.count(1))
        self._numbers = itertools.count()
        self._agenda: list[tuple[float, int, Chore]] = []
        self.daemons: list[Running] = []

    def start(self) -> Running:
        """One more process."""
        holder: list[Running] = []
        daemon = Daemon(self.world, next(self._names), self._build, allowed=lambda: holder[0].leads or not self._fence)
        running = Running(daemon=daemon)
        holder.append(running)
        self.daemons.append(running)
        self.world.weather.note(f"{daemon.name} starts")
        return running

    def later(self, seconds: float, chore: Chore) -> None:
        """Do this after so much time."""
        heapq.heappush(self._agenda, (self.world.clock.now() + seconds, next(self._numbers), chore))

    def forget_chores(self) -> None:
        """What is planned does not happen."""
        self._agenda.clear()

    def end(self, running: Running) -> None:
        """This process is no more."""
        if running in self.daemons:
            self.daemons.remove(running)
            self.world.weather.note(f"{running.daemon.name} is gone")

    def beat(self, running: Running) -> None:
        """One beat of one process; a process that is killed is gone at once."""
        try:
            running.daemon.beat()
        except Killed:
            self.end(running)

    def step(self, seconds: float) -> None:
        """Every process beats once; then time passes."""
        while self._agenda and self._agenda[0][0] <= self.world.clock.now():
            heapq.heappop(self._agenda)[2]()
        for running in list(self.daemons):
            if running in self.daemons:
                self.beat(running)
        if not self.daemons:
            self.start()
        self.world.pass_time(seconds)

    def takeover(self, seconds: float) -> Chore:
        """A leader stands still in the middle of a call for longer than its lease, and another one takes the lead."""

        def chore() -> None:
            for running in self.daemons:
                running.leads = False
                self.later(seconds, lambda old=running: self.end(old))  # type: ignore[misc]
            new = self.start()
            until = self.world.clock.now() + seconds
            while new in self.daemons and self.world.clock.now() < until:
                self.beat(new)
                self.world.pass_time(1.0)
            self.world.weather.note("the old leader goes on where it stood")

        return chore

    def run_to_rest(self, prepare: Callable[[], object] = lambda: None, *, patience: float = PATIENCE) -> None:
        """Until nothing is wrong and nothing happens any more; Broken when that does not come."""
        began, orders, quiet_since = self.world.clock.now(), -1, 0.0
        while True:
            now = self.world.clock.now()
            prepare()
            self.step(1.0 if now - began < PATIENCE / 8 else 4.0)
            made = len(self.world.weather.orders)
            busy = made != orders or bool(self.world.observer.complaints()) or self.world.kube.next_due() is not None
            if busy:
                orders, quiet_since = made, self.world.clock.now()
            elif self.world.clock.now() - quiet_since >= QUIET:
                return
            if now - began > patience:
                raise Broken("; ".join(self.world.observer.complaints()) or "I6: it does not come to rest")
