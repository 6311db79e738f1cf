"""When which job held which nodes: what a binding has to agree with. All components of a job are one run."""

import collections
from collections.abc import Iterable, Iterator, Mapping

from slurm_bridge.sim.slurm import state
from tests.simulation import observed


class Runs:
    """Every run that was ever seen, and whether it goes on."""

    def __init__(self, slurm_names: Mapping[str, str]) -> None:
        self._slurm_names = slurm_names
        self._runs: dict[tuple[int, str], observed.Run] = {}

    def follow(self, owned: Iterable[tuple[str, state.SlurmJob]], now: float) -> None:
        """Look at all jobs of ours, each with the uid that its owner record says."""
        families: dict[tuple[str, tuple[int, ...]], list[state.SlurmJob]] = collections.defaultdict(list)
        for uid, job in owned:
            # The id of a leader comes again, while Slurm still has a component of the job that had it before.
            families[uid, job.components or (job.job_id,)].append(job)
        running = set()
        for (uid, _), jobs in families.items():
            jobs.sort(key=lambda job: job.offset)
            if _run(jobs):
                key = (family(jobs[0]), jobs[0].sluid)
                running.add(key)
                grants = (job.grant for job in jobs if job.grant is not None)
                self._goes_on(key, uid, observed.shares(grants, self._slurm_names), now)
        for key, run in self._runs.items():
            if key not in running and run.left is None:
                run.left = now

    def _goes_on(self, key: tuple[int, str], uid: str, shares: Mapping[str, observed.Amounts], now: float) -> None:
        before = self._runs.get(key)
        if before is not None and before.shares == shares:
            before.left = None
        else:
            self._runs[key] = observed.Run(job_id=key[0], uid=uid, shares=shares, since=now)

    def of(self, uid: str) -> Iterator[observed.Run]:
        """Those of this workload, the living ones first."""
        mine = (run for run in self._runs.values() if run.uid == uid)
        return iter(sorted(mine, key=lambda run: run.left is not None))


def _run(jobs: list[state.SlurmJob]) -> bool:
    """All of them do, and hold something."""
    whole = len(jobs) >= max(1, len(jobs[0].components))
    return whole and all(job.state == state.RUNNING and not job.configuring and job.grant is not None for job in jobs)


def family(job: state.SlurmJob) -> int:
    """The id of the leader, for all components of a job."""
    return job.leader or job.job_id
