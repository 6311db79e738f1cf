"""Servers that go away, forget or say nothing, and processes that die, or stand still and do not know it."""

from tests.simulation.play import Act, Play
from tests.simulation.weather import Side


class Outages:
    """None of them is announced."""

    def __init__(self, play: Play) -> None:
        self._play, self._world, self._dice = play, play.world, play.world.dice
        self.acts: tuple[tuple[int, Act], ...] = (
            (2, self.slurm_goes),
            (2, self.slurm_crashes),
            (2, self.kube_goes),
            (1, self.kube_forgets),
            (2, self.watches_stall),
            (1, self.stranger_submits),
            (2, self.kill),
            (2, self.kill_soon),
            (2, self.replace_leader),
            (2, self.freeze_leader),
        )

    def slurm_goes(self) -> None:
        """slurmctld hangs, or is down, or slurmrestd is."""
        how = self._dice.choice(("hang", "down", "hide"))
        self._world.weather.note(f"slurm goes: {how}")
        seconds = self._dice.uniform(1, 25)
        if how == "hide":
            self._world.weather.hide(Side.SLURM)
            self._play.later(seconds, lambda: self._world.weather.show(Side.SLURM))
            return
        (self._world.slurm.control.hang if how == "hang" else self._world.slurm.control.down)()
        self._play.later(seconds, self._world.wake_slurm)

    def slurm_crashes(self) -> None:
        """slurmctld forgets the last seconds; sometimes a stranger is given an id that was ours."""
        if self._world.slurm.control.outage is None:
            self._world.crash_slurm(self._dice.uniform(0.1, 5.0))
            if self._dice.random() < 0.5:
                self.stranger_submits()

    def stranger_submits(self) -> None:
        """A job of another user, native or external."""
        open_ = self._world.slurm.world.partitions["debug"].accepts_jobs
        if self._world.slurm.control.outage is None and open_:
            self._world.weather.note("a stranger submits")
            self._world.submit("stranger", flags=[] if self._dice.random() < 0.7 else None, priority=0)

    def kube_goes(self) -> None:
        """The API server is not reached for a while."""
        self._world.weather.note("kube goes")
        self._world.weather.hide(Side.KUBE)
        self._play.later(self._dice.uniform(1, 25), lambda: self._world.weather.show(Side.KUBE))

    def kube_forgets(self) -> None:
        """Its history is compacted: every watch is too old."""
        self._world.weather.note("kube forgets")
        self._world.observer.look()
        self._world.kube.settle()
        self._world.observer.look()
        self._world.kube.compact()
        self._world.observer.skip()

    def watches_stall(self) -> None:
        """A daemon hears nothing of Kubernetes for a while, and does not know."""
        for running in self._play.daemons:
            running.daemon.deaf_until = self._world.clock.now() + self._dice.uniform(1, 30)
            self._world.weather.note(f"{running.daemon.name} hears nothing")

    def kill(self) -> None:
        """kill -9 between two beats; the next one starts after a while."""
        for running in list(self._play.daemons):
            self._play.end(running)
        self._world.pass_time(self._dice.choice((0.5, 5.0, 40.0)))

    def kill_soon(self) -> None:
        """kill -9 in the middle of some call to come."""
        weather = self._world.weather
        number = weather.calls + self._dice.randint(1, 25)
        weather.note(f"to be killed after call {number}")
        weather.after(number, weather.kill)

    def replace_leader(self) -> None:
        """Another process takes the lead; the old one notices, and stays a while without writing."""
        for running in self._play.daemons:
            running.leads = False
            self._play.later(self._dice.uniform(1, 10), lambda old=running: self._play.end(old))  # type: ignore[misc]
        self._play.start()

    def freeze_leader(self) -> None:
        """The leader stands still in the middle of some call to come, another takes over, and then it goes on."""
        weather = self._world.weather
        number = weather.calls + self._dice.randint(1, 25)
        weather.note(f"to be frozen after call {number}")
        weather.after(number, self._play.takeover(self._dice.uniform(5, 20)))

    def end(self) -> None:
        """All servers answer again, and one leader is left."""
        if self._world.slurm.control.outage is not None:
            self._world.wake_slurm()
        for old in self._play.daemons[:-1]:
            self._play.end(old)
        for last in self._play.daemons:
            last.leads = True
            last.daemon.deaf_until = 0.0
