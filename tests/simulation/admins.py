"""What administrators of both sides do, and what becomes of machines."""

from slurm_bridge.model import kinds
from tests.simulation.play import Act, Play


class Admins:
    """They mean well."""

    def __init__(self, play: Play) -> None:
        self._play, self._world, self._dice = play, play.world, play.world.dice
        self.acts: tuple[tuple[int, Act], ...] = (
            (4, self.end_job),
            (2, self.hold_job),
            (1, self.suspend_job),
            (2, self.fail_node),
            (2, self.drain_node),
            (2, self.cordon_node),
            (1, self.remove_node),
            (1, self.remove_slurm_node),
            (1, self.close_partition),
        )

    def end_job(self) -> None:
        """An administrator, or something else, ends one of our jobs."""
        jobs = self._world.ours("PENDING", "RUNNING", "SUSPENDED")
        if jobs:
            job = self._dice.choice(jobs)
            words = ("CANCELLED", "CANCELLED", "PREEMPTED", "TIMEOUT", "NODE_FAIL", "FAILED") if job.running else ()
            self._world.end_job(job, self._dice.choice(words or ("CANCELLED", "DEADLINE")))

    def hold_job(self) -> None:
        """An administrator holds a pending job, and lets it go later."""
        jobs = self._world.ours("PENDING")
        if jobs:
            job_id = self._dice.choice(jobs).job_id
            self._world.weather.note(f"admin holds job {job_id}")
            self._world.slurm.control.hold(job_id)
            self._play.later(self._dice.uniform(2, 30), self.release)

    def release(self) -> None:
        """Let all held jobs go."""
        for job in self._world.ours("PENDING"):
            if job.held:
                self._world.slurm.control.release(job.job_id)

    def suspend_job(self) -> None:
        """An administrator suspends a running job for a while."""
        jobs = self._world.ours("RUNNING")
        if jobs:
            job_id = self._dice.choice(jobs).job_id
            self._world.weather.note(f"admin suspends job {job_id}")
            self._world.slurm.control.suspend(job_id)
            self._play.later(self._dice.uniform(2, 20), self._resume_jobs)

    def _resume_jobs(self) -> None:
        for job in self._world.ours("SUSPENDED"):
            self._world.slurm.control.resume_job(job.job_id)

    def fail_node(self) -> None:
        """A machine dies for Slurm, and comes back."""
        name = self._slurm_node()
        if name is None:
            return
        self._world.weather.note(f"machine {name} fails")
        self._world.slurm.control.fail_node(name)
        self._play.later(self._dice.uniform(3, 30), lambda: self._resume_node(name))

    def drain_node(self) -> None:
        """An administrator of Slurm closes a node for a while."""
        name = self._slurm_node()
        if name is None:
            return
        self._world.weather.note(f"admin drains {name}")
        self._world.slurm.control.drain(name, "maintenance")
        self._play.later(self._dice.uniform(3, 30), lambda: self._resume_node(name))

    def _slurm_node(self) -> str | None:
        there = list(self._world.slurm.world.nodes)
        return self._dice.choice(there) if there else None

    def _resume_node(self, name: str) -> None:
        if name in self._world.slurm.world.nodes:
            self._world.slurm.control.resume(name)

    def cordon_node(self) -> None:
        """An administrator of Kubernetes closes a node for a while."""
        name = self._dice.choice(list(self._world.fleet.nodes))
        if self._world.kube.get(kinds.NODES, "", name) is not None:
            self._world.cordon(name, on=True)
            self._play.later(self._dice.uniform(3, 30), lambda: self._open(name))

    def _open(self, name: str) -> None:
        if self._world.kube.get(kinds.NODES, "", name) is not None:
            self._world.cordon(name, on=False)

    def remove_node(self) -> None:
        """A node leaves Kubernetes, and joins again under its name."""
        name = self._dice.choice(list(self._world.fleet.nodes))
        if self._world.kube.get(kinds.NODES, "", name) is not None:
            self._world.weather.note(f"node {name} leaves")
            self._world.kube.delete(kinds.NODES, ("", name))
            self._play.later(self._dice.uniform(3, 30), lambda: self._join(name))

    def _join(self, name: str) -> None:
        if self._world.kube.get(kinds.NODES, "", name) is None:
            self._world.weather.note(f"node {name} joins")
            self._world.add_kube_node(name)

    def remove_slurm_node(self) -> None:
        """A node leaves Slurm with all its jobs, and joins again."""
        name = self._slurm_node()
        if name is not None:
            self._world.weather.note(f"{name} leaves Slurm")
            self._world.slurm.control.delete_node(name)
            self._play.later(self._dice.uniform(3, 30), lambda: self._join_slurm(name))

    def _join_slurm(self, name: str) -> None:
        if name not in self._world.slurm.world.nodes:
            self._world.weather.note(f"{name} joins Slurm")
            fleet = self._world.fleet
            places = [one.name for one in fleet.partitions() if name in one.nodes]
            self._world.slurm.control.add_node(fleet.machine(name), *places)

    def close_partition(self) -> None:
        """An administrator closes a partition for a while."""
        name, how = self._dice.choice(("debug", "batch")), self._dice.choice(("DOWN", "INACTIVE", "DRAIN"))
        self._world.weather.note(f"partition {name} is {how}")
        self._world.slurm.control.set_partition(name, state=how)
        self._play.later(self._dice.uniform(3, 30), lambda: self._world.slurm.control.set_partition(name, state="UP"))

    def mend(self) -> None:
        """What was closed, removed or broken is as it was."""
        for kube, slurm in self._world.fleet.nodes.items():
            self._join(kube)
            self._open(kube)
            self._join_slurm(slurm)
            self._resume_node(slurm)
        for partition in ("debug", "batch"):
            self._world.slurm.control.set_partition(partition, state="UP")
        self._resume_jobs()
        self._world.slurm.control.reconfigure()
        self.release()
