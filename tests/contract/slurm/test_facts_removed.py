"""What becomes of jobs when nodes that they name have left Slurm, and slurmctld starts anew."""

import pytest
from slurm_desk import Desk
from slurm_outages import dead, saved

pytestmark = pytest.mark.disruptive


def remove(slurm: Desk, *names: str) -> None:
    """They leave Slurm while jobs name them."""
    for name in names:
        assert slurm.ask("DELETE", f"node/{name}").verdict == (200, [])
    slurm.added[:] = [name for name in slurm.added if name not in names]


@pytest.mark.security("neighbours")
def test_jobs_that_exclude_a_removed_node_outlive_a_restart(slurm: Desk) -> None:
    """Jobs that exclude a node survive its removal and a restart of slurmctld."""
    slurm.add_nodes("left1", "left2", "left3")
    plain = slurm.running()
    running = slurm.running(excluded_nodes=["left[1-2]"])
    waiting = slurm.held(excluded_nodes=["left1"])
    nodes = {job_id: slurm.job(job_id)["nodes"] for job_id in (plain, running)}
    remove(slurm, "left1", "left2", "left3")
    saved(slurm)
    with dead(slurm):
        pass
    slurm.reconfigure()
    assert {job_id: slurm.job(job_id)["nodes"] for job_id in (plain, running)} == nodes
    assert (slurm.state(plain), slurm.state(running), slurm.state(waiting)) == ({"RUNNING"}, {"RUNNING"}, {"PENDING"})


def test_a_running_job_that_requires_a_removed_node_fails_at_the_next_start(slurm: Desk) -> None:
    """Also one that does not run there: it was one of several candidates."""
    (node,) = slurm.idle("plain")
    slurm.add_nodes("left1")
    job_id = slurm.running(nodes="1", required_nodes=[node, "left1"])
    assert slurm.job(job_id)["nodes"] == node
    remove(slurm, "left1")
    saved(slurm)
    with dead(slurm):
        pass
    slurm.until(lambda: slurm.state(job_id) == {"NODE_FAIL"}, "the job ends")
