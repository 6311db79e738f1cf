"""A slurmctld that forgot the job of a running pod is asked for the same job again, and what follows when it cannot."""

import json

import pytest

from slurm_bridge.scheduler.placement import remains
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.whole_core import Bridge

SUBMIT = "/job/submit"


def forgotten(bridge: Bridge, **changes: object) -> state.SlurmJob:
    """A bound pod whose job slurmctld has lost; nobody knows it yet."""
    job = bridge.bound("a", **changes)
    bridge.run(3)
    bridge.slurm.control.pause()
    bridge.world.crash_slurm(1e6)
    return job


def test_the_same_job_is_asked_for_again(bridge: Bridge) -> None:
    """Its id, its record, and no node but the pod's own."""
    job = forgotten(bridge, spec={"nodeSelector": {"kubernetes.io/hostname": "n4"}})
    bridge.run(8)
    again = bridge.job("a")
    assert again.job_id == job.job_id
    assert (again.ask.required, "s4" in again.ask.excluded, len(again.ask.excluded)) == ((), False, 3)
    assert bridge.world.observer.owner(again) == bridge.world.observer.owner(job)
    bridge.slurm.control.unpause()
    bridge.run(8)
    assert bridge.of(job).running
    assert not bridge.leaving("a")


def test_a_node_that_is_not_granted_again_ends_the_pod(bridge: Bridge) -> None:
    """Somebody else has it by now; an allocation that is only hoped for is none."""
    job = forgotten(bridge)
    bridge.run(500, step=5)
    assert not bridge.leaving("a")
    bridge.until(lambda: bridge.leaving("a"), 200)
    assert bridge.of(job).over
    assert "not granted again" in dict(bridge.events("a"))["SlurmJobEnded"]


def answer(number: int) -> faults.Answer:
    """Slurm says no."""
    return faults.Answer(500, json.dumps({"errors": [{"error_number": number, "error": "no"}]}).encode())


def test_a_job_that_is_refused_now_ends_the_pod_after_a_pause(bridge: Bridge) -> None:
    """As if it had ended by itself."""
    forgotten(bridge)
    bridge.slurm_calls.plan(answer(2000), method="POST", target=SUBMIT, times=99)
    bridge.until(lambda: bridge.leaving("a"), 60)


@pytest.mark.parametrize("fault", [answer(2007), faults.Drop(), faults.Reset(acted=False)])
def test_a_restored_job_whose_answer_is_missing_is_made_once(bridge: Bridge, fault: faults.Fault) -> None:
    """Busy, done without a word, or lost on the way: it is tried until it is there, and the pod stays."""
    job = forgotten(bridge)
    bridge.slurm_calls.plan(fault, method="POST", target=SUBMIT)
    bridge.run(15)
    assert bridge.job("a").job_id == job.job_id
    assert bridge.deletes() == 0


def test_what_the_job_had_of_slurm_it_has_again(bridge: Bridge) -> None:
    """The partition that it was in and the limit that it had."""
    bridge.slurm.control.set_partition("debug", default_minutes=44)
    forgotten(bridge)
    bridge.slurm.control.set_partition("debug", default_minutes=55)
    bridge.run(8)
    assert bridge.job("a").ask.minutes == 44
    assert bridge.job("a").ask.partitions == ("debug",)


def test_a_pod_that_is_leaving_needs_no_job_again(bridge: Bridge) -> None:
    """It will not be there for long."""
    job = bridge.bound("a", annotations={"kwok.local/terminating": "60s"})
    bridge.run(3)
    bridge.delete("a")
    bridge.run(2)
    bridge.world.crash_slurm(1e6)
    bridge.run(20)
    assert job.job_id not in bridge.slurm.world.jobs


def test_a_pod_whose_job_waits_again_keeps_its_node_to_itself(bridge: Bridge) -> None:
    """Slurm may promise the place to another meanwhile; nobody is bound there before the job runs again."""
    forgotten(bridge, spec={"nodeSelector": {"kubernetes.io/hostname": "n4"}})
    bridge.run(8)
    assert [pod.metadata.name for pod in remains.all_on(bridge.core.context, "n4")] == ["a"]
    bridge.slurm.control.unpause()
    bridge.run(8)
    assert remains.all_on(bridge.core.context, "n4") == ()
