"""What cannot be taken back rests on two readings of Slurm: one of them may be garbled."""

import json

import pytest

from slurm_bridge.sim import faults
from tests.component.scheduler.gang_scenes import bound, pair
from tests.component.scheduler.test_hostile_input import garble
from tests.component.scheduler.whole_core import Bridge


@pytest.mark.security("input")
def test_a_component_that_one_reading_says_has_ended_ends_no_pod(bridge: Bridge) -> None:
    """No pod is ended if only one of two readings says that a component of its running group has ended."""
    pods = pair(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    bridge.run(5)

    def one_ended(body: bytes) -> bytes:
        said = json.loads(body)
        if len(said["jobs"]) > 1:
            said["jobs"][1]["state"] = ["CANCELLED"]
        return json.dumps(said).encode()

    bridge.slurm_calls.plan(faults.Garble(one_ended), method="GET", target="/jobs/state/", times=1)
    bridge.run(60)
    assert bridge.deletes() == 0
    assert all(bound(bridge, pods))


@pytest.mark.security("input")
def test_a_user_that_one_reading_says_is_of_the_system_costs_no_job(bridge: Bridge) -> None:
    """No job is cancelled if only one of two readings says that it belongs to user 0."""
    job = bridge.waiting("a")
    garble(bridge, job.job_id, lambda row: {**row, "user_id": 0}, times=1)
    bridge.run(30)
    assert not bridge.of(job).over
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.submits() == 1


@pytest.mark.security("input")
def test_a_node_that_one_reading_says_was_allocated_costs_no_allocation(bridge: Bridge) -> None:
    """No job is given back if only one of two readings says that it has an unknown node."""
    job = bridge.waiting("a")
    bridge.run(10, step=2)
    garble(
        bridge,
        job.job_id,
        lambda row: {**row, "nodes": "another"} if "RUNNING" in row["job_state"] else row,
        times=1,
    )
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.submits() == 1
