"""Beside another bridge, or after it: pods that it has bound carry our `schedulerName`, and name jobs of its own."""

from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

#: What another bridge keeps on pods until it has cleaned up after them.
FINALIZER = "scheduler.slinky.slurm.net/finalizer"


def theirs(bridge: Bridge, name: str = "theirs", *, record: str | None = None, finalizer: bool = True) -> int:
    """A pod that another bridge has bound to the node of its own running job; the job's id."""
    record = f'{{"pods":["default/{name}"]}}' if record is None else record
    job_id = bridge.world.submit(name, admin_comment=record)
    bridge.world.pass_time(2)
    job = bridge.slurm.world.jobs[job_id]
    assert job.grant is not None
    named(bridge, name, job_id, node=next(iter(job.grant.nodes)), finalizer=finalizer)
    return job_id


def named(
    bridge: Bridge,
    name: str,
    job_id: int,
    *,
    node: str = "n1",
    finalizer: bool = True,
    notes: Mapping[str, str] | None = None,
) -> None:
    """A pod that is bound and names that job."""
    bridge.pod(
        name,
        labels={names.LABEL_JOB_ID: str(job_id)},
        annotations={names.ANNOTATION_SLURM_NODE: node, **(notes or {})},
        finalizers=[FINALIZER] if finalizer else [],
        spec={"nodeName": node},
    )


def without_status(bridge: Bridge, name: str) -> Mapping[str, Any]:
    """What only its own bridge may change of a pod."""
    found = bridge.manifest(name)
    return {"metadata": {**found["metadata"], "resourceVersion": ""}, "spec": found["spec"]}


@pytest.mark.security("neighbours")
@pytest.mark.parametrize("record", ['{"pods":["default/theirs"]}', "", "a note", "{}"])
def test_a_pod_whose_job_is_anothers_is_never_ended(bridge: Bridge, record: str) -> None:
    """A bound pod whose Slurm job exists and is not of this bridge is left alone, whatever the job's record says."""
    job_id = theirs(bridge, record=record)
    before = without_status(bridge, "theirs")
    bridge.bound("ours")
    bridge.run(120, step=2)
    assert bridge.deletes() == 0
    assert bridge.slurm.world.jobs[job_id].running
    assert without_status(bridge, "theirs") == before
    assert bridge.condition("theirs", "DisruptionTarget") == ("", "")


@pytest.mark.security("neighbours")
def test_many_pods_of_another_bridge_neither_end_nor_stop_anything(bridge: Bridge) -> None:
    """Pods that another bridge has bound do not count as vanished jobs: the breaker stays closed."""
    bridge = Bridge(bridge.folder, world=bridge.world, mirror={"vanished_minimum": 2})
    for number in range(4):
        theirs(bridge, f"theirs{number}")
    ours = bridge.bound("ours")
    bridge.run(30)
    assert bridge.deletes() == 0
    assert bridge.core.context.table.vanished() == (0, 1)
    bridge.slurm.control.end(ours.job_id, "CANCELLED")
    bridge.until(lambda: not bridge.exists("ours"), 30)
    assert bridge.deletes() == 1


@pytest.mark.security("neighbours")
def test_a_note_that_says_we_bound_a_pod_and_then_does_not_keeps_nobody_busy(bridge: Bridge) -> None:
    """A pod that names the running job of another pod and loses `bound-by` is left alone, and so is the other pod."""
    job_id = bridge.bound("ours").job_id
    bound_by = bridge.core.context.config.rules.cluster_id
    named(bridge, "forged", job_id, finalizer=False, notes={names.ANNOTATION_BOUND_BY: bound_by})
    bridge.run(1)
    taken_back = {"metadata": {"annotations": {names.ANNOTATION_BOUND_BY: None}}}
    bridge.kube.merge(kinds.PODS, (NAMESPACE, "forged"), taken_back)
    bridge.run(60, step=2)
    assert bridge.deletes() == 0
    assert bridge.slurm.world.jobs[job_id].running
    assert [reason for reason, _ in bridge.events("forged")].count("SlurmJobNotOurs") == 1


def test_the_pod_says_once_that_its_job_is_not_ours(bridge: Bridge) -> None:
    """The event names the job and what its record says, and is not repeated."""
    job_id = theirs(bridge)
    bridge.run(60, step=2)
    said = [text for reason, text in bridge.events("theirs") if reason == "SlurmJobNotOurs"]
    assert len(said) == 1
    assert said[0].startswith(f"Slurm job {job_id} is not of this bridge")
    assert "leaves the pod alone" in said[0]
    assert bridge.core.pod_index.disowned == 1


def test_a_pod_that_is_not_ours_costs_one_look(bridge: Bridge) -> None:
    """However long it runs, and however often it changes."""
    job_id = theirs(bridge)
    bridge.run(5)
    for number in range(5):
        bridge.kube.merge(kinds.PODS, ("default", "theirs"), {"metadata": {"labels": {"turn": str(number)}}})
        bridge.run(20, step=2)
    assert bridge.slurm_calls.count(method="GET", target=f"/job/{job_id}") == 1


def test_its_end_and_its_deletion_are_its_own_affair(bridge: Bridge) -> None:
    """Neither its job nor its finalizer is touched when the pod ends or is deleted."""
    job_id = theirs(bridge)
    bridge.run(5)
    bridge.delete("theirs", grace=1)
    bridge.run(30, step=2)
    assert bridge.manifest("theirs")["metadata"]["finalizers"] == [FINALIZER]
    assert bridge.slurm.world.jobs[job_id].running
    bridge.kube.merge(kinds.PODS, ("default", "theirs"), {"metadata": {"finalizers": []}})
    bridge.run(5)
    assert not bridge.exists("theirs")
    assert bridge.core.pod_index.disowned == 0
    assert bridge.slurm.world.jobs[job_id].running


@pytest.mark.security("neighbours")
def test_a_daemon_that_starts_anew_leaves_them_alone_as_well(bridge: Bridge) -> None:
    """A restart of the daemon, or another leader, ends no pod of another bridge."""
    theirs(bridge)
    bridge.run(20)
    bridge.start()
    bridge.run(60, step=2)
    assert bridge.deletes() == 0
    assert bridge.core.pod_index.disowned == 1


def test_a_pod_of_another_bridge_whose_job_is_gone_is_left_to_that_bridge(bridge: Bridge) -> None:
    """Its finalizer says whose it is; Slurm has purged the job, and that bridge alone knows what follows."""
    named(bridge, "theirs", 77)
    bridge.run(60, step=2)
    assert bridge.deletes() == 0
    said = dict(bridge.events("theirs"))["SlurmJobNotOurs"]
    assert said.startswith("Slurm does not know job 77, and the pod was bound by another bridge")


def test_a_pod_of_an_earlier_version_whose_job_is_gone_is_ended(bridge: Bridge) -> None:
    """It carries no word about who has bound it; nothing speaks for another bridge, and its job exists no more."""
    named(bridge, "before", 77, finalizer=False)
    bridge.until(lambda: not bridge.exists("before"), 60)


def test_a_pod_of_ours_whose_id_slurm_gave_to_a_stranger_is_ended(bridge: Bridge) -> None:
    """Its binding says that it was ours: its own job is gone, whatever stands under that id now."""
    job = bridge.bound("a")
    assert bridge.manifest("a")["metadata"]["annotations"][names.ANNOTATION_BOUND_BY] == "sim"
    bridge.world.crash_slurm(1e6)
    bridge.world.submit("stranger", job_id=job.job_id, admin_comment='{"pods":["default/other"]}')
    bridge.start()
    bridge.until(lambda: not bridge.exists("a"), 60)
    assert not bridge.slurm.world.jobs[job.job_id].over


def test_members_of_another_bridge_do_not_count_as_lost(bridge: Bridge) -> None:
    """A gang that finds one of its pods bound by another bridge waits for the pod that is missing, and ends nothing."""
    job_id = bridge.world.submit("theirs", admin_comment='{"pods":["default/g0"]}')
    bridge.world.pass_time(2)
    labels = {names.GROUP: "g"}
    annotations = {names.GROUP_SIZE: "2"}
    bridge.pod(
        "g0",
        labels={**labels, names.LABEL_JOB_ID: str(job_id)},
        annotations=annotations,
        finalizers=[FINALIZER],
        spec={"nodeName": "n1"},
    )
    bridge.pod("g1", labels=labels, annotations=annotations)
    bridge.run(60, step=2)
    assert bridge.deletes() == 0
    assert not bridge.node_of("g1")
    assert bridge.condition("g1")[0] == "GangIncomplete"
