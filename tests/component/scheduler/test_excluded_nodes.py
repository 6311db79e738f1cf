"""Placeholders keep away from nodes by excluding them; none requires any, whoever has asked for it."""

import dataclasses

import pytest

from tests.component.scheduler.whole_core import Bridge


@pytest.mark.security("neighbours")
def test_a_waiting_job_of_an_earlier_version_loses_the_nodes_that_it_requires(bridge: Bridge) -> None:
    """After an upgrade a waiting job requires no nodes any more, and keeps its place in the queue."""
    job = bridge.waiting("a")
    texts = {**job.ask.texts, "required_nodes": "n[1-2]"}
    required = dataclasses.replace(job.ask, required=("n1", "n2"), texts=texts)
    bridge.slurm.world.put(dataclasses.replace(bridge.of(job), ask=required))
    bridge.start()
    bridge.run(10)
    now = bridge.job("a")
    assert (now.job_id, now.ask.required, now.submitted) == (job.job_id, (), job.submitted)
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of("a"))


@pytest.mark.security("neighbours")
def test_a_job_that_is_asked_for_again_for_its_pods_requires_no_nodes(bridge: Bridge) -> None:
    """A job that slurmctld has forgotten is submitted again with all nodes excluded but those of its pods."""
    job = bridge.bound("a")
    node = bridge.node_of("a")
    bridge.world.crash_slurm(1e6)
    bridge.until(lambda: bridge.jobs(bridge.uid("a")) and bridge.job("a").running, 60)
    again = bridge.job("a")
    assert again.job_id == job.job_id
    assert again.grant is not None
    assert tuple(again.grant.nodes) == (node,)
    assert (again.ask.required, node in again.ask.excluded, len(again.ask.excluded)) == ((), False, 3)
    assert bridge.deletes() == 0
