"""A run is one life of one job: ids come again, and components of a job that is over stay for a while."""

import dataclasses

from slurm_bridge.sim.slurm import state
from tests.simulation.job_runs import Runs


def component(job_id: int, others: tuple[int, ...], node: str, **more: object) -> state.SlurmJob:
    """One of a heterogeneous job, whose leader is the first."""
    share = state.Share(node=node, cpus=1, memory_mib=100, cores=(0,), gres=())
    job = state.SlurmJob(job_id=job_id, ask=state.RequestedJob(), leader=others[0], components=others)
    grant = state.Grant(shares=(share,), partition="debug")
    return dataclasses.replace(job, state=state.RUNNING, offset=others.index(job_id), grant=grant, **more)  # type: ignore[arg-type]


def test_the_id_of_a_leader_may_come_again_beside_a_component_of_its_former_job() -> None:
    """The new job runs, whatever became of that component."""
    runs = Runs({"n1": "n1", "n2": "n2", "n3": "n3"})
    over = component(5, (900, 5), "n1", sluid="old")
    now = (component(900, (900, 6), "n2", sluid="new"), component(6, (900, 6), "n3", sluid="new"))
    runs.follow([("u", dataclasses.replace(over, state="CANCELLED")), *(("u", one) for one in now)], 1.0)
    (run,) = runs.of("u")
    assert (run.job_id, run.left, set(run.shares)) == (900, None, {"n2", "n3"})
