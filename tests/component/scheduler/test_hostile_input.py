"""What strangers write and servers garble: it costs the one object that holds it, and nothing else."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from slurm_bridge import errors
from slurm_bridge.scheduler.effects import cancel
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.broken_promise import Broken

Row = dict[str, Any]


def stranger(bridge: Bridge, name: bytes) -> int:
    """A job of a Slurm user, which has nothing to do with us."""
    world = bridge.slurm.world
    job_id = world.next_id
    world.next_id += 1
    ask = state.RequestedJob(name="theirs", partitions=("debug",))
    world.put(state.SlurmJob(job_id=job_id, ask=ask, user="alice", submitted=world.now, eligible=world.now))
    bridge.slurm.control.rename(job_id, name)
    return job_id


@pytest.mark.security("input")
def test_a_stranger_whose_job_name_is_no_utf8_stops_nobody(bridge: Bridge) -> None:
    """A Slurm job of another user whose name is not UTF-8 never stops the bridge from submitting and binding."""
    bridge.bound("before")
    stranger(bridge, b"caf\xe9")
    bridge.run(90)
    assert not bridge.core.context.mirror.failing
    bridge.bound("after")


def test_a_daemon_starts_beside_a_job_whose_name_is_no_utf8(bridge: Bridge) -> None:
    """The first full list is read, too."""
    job = bridge.bound("before")
    stranger(bridge, b"\xff\xfe")
    bridge.start()
    bridge.run(5)
    assert bridge.known(job) is not None
    bridge.bound("after")


def test_a_job_of_ours_that_cannot_be_read_is_unknown_and_not_gone(bridge: Bridge) -> None:
    """Its pod runs on, and nobody else waits for it."""
    job = bridge.bound("a")
    garble(bridge, job.job_id, lambda row: {**row, "priority": []})
    bridge.run(120)
    assert bridge.phase("a") == "Running"
    assert not bridge.core.context.mirror.failing
    bridge.start()
    bridge.run(120)
    assert bridge.phase("a") == "Running"
    bridge.bound("b")


@pytest.mark.security("input")
@pytest.mark.parametrize("text", ["ext[1-", "caf\xe9", "", "[]", "n\x00"])
def test_a_garbled_text_of_nodes_ends_no_pod(bridge: Bridge, text: str) -> None:
    """A running pod is never deleted because the text of its job's nodes cannot be read."""
    job = bridge.bound("a")
    garble(bridge, job.job_id, lambda row: {**row, "nodes": text})
    bridge.run(120)
    assert (bridge.phase("a"), bridge.deletes()) == ("Running", 0)


@pytest.mark.security("input")
def test_one_wrong_reading_of_the_nodes_ends_no_pod(bridge: Bridge) -> None:
    """A pod is deleted because its job lost the node only after a second reading confirms it."""
    job = bridge.bound("a")
    garble(bridge, job.job_id, lambda row: {**row, "nodes": "another"}, times=1)
    bridge.run(120)
    assert (bridge.phase("a"), bridge.deletes()) == ("Running", 0)


def test_two_readings_that_agree_end_the_pod(bridge: Bridge) -> None:
    """The node is given to somebody else: the pod has to go. The observer knows better, and tells on it."""
    job = bridge.bound("a")
    garble(bridge, job.job_id, lambda row: {**row, "nodes": "another"})
    with pytest.raises(Broken, match="I7: d1 deleted"):
        bridge.run(120)


def test_one_wrong_absence_of_a_job_ends_no_pod(bridge: Bridge) -> None:
    """Slurm denies a job once, in the list and when asked for it: it is asked again before its pod is ended."""
    job = bridge.bound("a")
    bridge.slurm_calls.plan(faults.Garble(b'{"jobs":[]}'), target="/jobs/state/")
    denied = b'{"jobs":[],"errors":[{"error_number":2017,"description":"no","error":"no","source":"x"}]}'
    bridge.slurm_calls.plan(faults.Garble(denied, status=404), target=f"/job/{job.job_id}")
    bridge.run(60)
    assert (bridge.phase("a"), bridge.deletes()) == ("Running", 0)


def test_a_pod_that_cannot_be_read_may_be_one_that_its_job_has_bound(bridge: Bridge) -> None:
    """Whoever asks which pods have nodes by a job is not told that there are none."""
    job = bridge.bound("a")
    placeholder = bridge.known(job)
    assert placeholder is not None

    def changed(body: bytes) -> bytes:
        said = json.loads(body)
        for one in said["items"]:
            one["spec"]["containers"] = "none"
        return json.dumps(said).encode()

    bridge.kube_calls.plan(faults.Garble(changed), method="GET", target="labelSelector")
    with pytest.raises(errors.Unreadable, match="a pod of job"):
        cancel.bound_by(bridge.core.context, placeholder)
    assert [pod.metadata.name for pod in cancel.bound_by(bridge.core.context, placeholder)] == ["a"]


def garble(bridge: Bridge, job_id: int, change: Callable[[Row], Row], times: int = 10**6) -> None:
    """From now on, or so many times, this is what Slurm says of a job in full."""

    def changed(body: bytes) -> bytes:
        said = json.loads(body)
        said["jobs"] = [change(row) if row["job_id"] == job_id else row for row in said.get("jobs", ())]
        return json.dumps(said).encode()

    bridge.slurm_calls.plan(faults.Garble(changed), method="GET", target=rf"/job/{job_id}|/jobs/(\?|$)", times=times)
