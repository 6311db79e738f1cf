"""Users of Slurm itself: their jobs take whole nodes for a while, of which Kubernetes sees nothing."""

from tests.simulation.play import Act, Play

#: So many may stay to the end where single pods live. Kubernetes sees these nodes empty, and the best of all.
STAYING = 3


class Neighbours:
    """Many of them, each with one job. `staying` are those that do not go when everything else is put right."""

    def __init__(self, play: Play, *, staying: int = 0) -> None:
        self._staying = staying
        self._play, self._world, self._dice = play, play.world, play.world.dice
        self._jobs: set[int] = set()
        self.acts: tuple[tuple[int, Act], ...] = ((20, self.come), (5, self.crowd))

    def come(self) -> None:
        """One node is taken."""
        control = self._world.slurm.control
        accepts = self._world.slurm.world.partitions["debug"].accepts_jobs
        if control.outage is not None or not accepts or len(self._jobs) >= len(self._world.fleet.nodes):
            return
        self._world.weather.note("a neighbour comes")
        job_id = self._world.submit("neighbour", cpus_per_task=self._world.fleet.cpus)
        self._jobs.add(job_id)
        self._play.later(self._dice.uniform(3, 60), lambda: self._leave(job_id))

    def crowd(self) -> None:
        """Many at once."""
        for _ in self._world.fleet.nodes:
            self.come()

    def _leave(self, job_id: int) -> None:
        self._jobs.discard(job_id)
        job = self._world.slurm.world.jobs.get(job_id)
        if job is not None and not job.over and job.ask.name == "neighbour":
            self._world.weather.note(f"neighbour {job_id} leaves")
            self._world.slurm.control.end(job_id, "COMPLETED")

    def end(self) -> None:
        """Most are cancelled, waiting ones first; jobs that have left, and are back since a crash, are among them."""
        jobs = self._world.slurm.world.jobs.values()
        mine = [job.job_id for job in jobs if job.ask.name == "neighbour" and not job.over]
        there = sorted(mine, key=lambda job_id: (not self._runs(job_id), job_id))
        for job_id in there[self._staying :]:
            self._leave(job_id)
        for job_id in there[: self._staying]:
            if not self._runs(job_id):
                self._leave(job_id)

    def _runs(self, job_id: int) -> bool:
        job = self._world.slurm.world.jobs.get(job_id)
        return job is not None and job.running and job.ask.name == "neighbour"
