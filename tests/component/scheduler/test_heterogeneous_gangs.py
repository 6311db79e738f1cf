"""Groups of different members: one task, or a component for each shape."""

import dataclasses

from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from tests.component.scheduler.gang_scenes import bound, job_of, member, pair, parts, pending
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

CONTAINER = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "500Mi"}}}


def test_t01_different_members_on_one_node_are_one_task(bridge: Bridge) -> None:
    """Where a node has room for their sum."""
    pods = pair(bridge, leader="2", worker="1")
    bridge.until(lambda: all(bound(bridge, pods)))
    job = job_of(bridge)
    assert (job.ask.tasks, job.ask.cpus_per_task) == (1, 3)
    assert len(set(bound(bridge, pods))) == 1


def test_different_members_that_fit_on_no_node_are_components(bridge: Bridge) -> None:
    """Each on a node of its own, by one job."""
    pods = pair(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    assert bridge.submits() == 1
    assert len(set(bound(bridge, pods))) == 2
    assert len(parts(bridge)) == 2


def test_a_group_ends_whole_when_one_component_ends(bridge: Bridge) -> None:
    """And so does the other component."""
    pods = pair(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    first, second = sorted(parts(bridge), key=lambda one: one.offset)
    bridge.slurm.control.end(second.job_id, "CANCELLED")
    bridge.until(lambda: all(bridge.leaving(name) for name in pods))
    bridge.until(lambda: bridge.of(first).over)


def test_a_component_that_is_cancelled_before_the_start_parks_the_group(bridge: Bridge) -> None:
    """What is left of the job would never start, and goes too."""
    bridge.slurm.control.pause()
    pods = pair(bridge)
    bridge.run(2)
    first, second = sorted(parts(bridge), key=lambda one: one.offset)
    bridge.slurm.control.end(second.job_id, "CANCELLED")
    bridge.run(10)
    assert bridge.of(first).over
    assert all(bridge.park_note(name) for name in pods)
    assert bridge.submits() == 1


def test_without_heterogeneous_jobs_the_largest_bounds_them_all(bridge: Bridge) -> None:
    """And an event says so."""
    bridge._given["workloads"] = {"heterogeneous": "never"}
    bridge.start()
    pods = pair(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    job = job_of(bridge)
    assert (job.ask.tasks, job.ask.cpus_per_task) == (2, 3)
    assert "SlurmJobWidened" in dict(bridge.events("g-0"))


def test_t27_an_allocation_that_is_too_small_starts_nothing(bridge: Bridge) -> None:
    """It is given back, said, and asked for again."""
    pods = pending(bridge)
    bridge.slurm.control.unpause()
    bridge.world.pass_time(3)
    job = job_of(bridge)
    assert job.grant is not None
    less = tuple(dataclasses.replace(share, cpus=1, cores=share.cores[:1]) for share in job.grant.shares)
    bridge.slurm.world.put(dataclasses.replace(job, grant=dataclasses.replace(job.grant, shares=less)))
    bridge.step()
    assert not any(bound(bridge, pods))
    assert bridge.of(job).over
    assert "AllocationTooSmall" in dict(bridge.events("g-0"))
    bridge.until(lambda: all(bound(bridge, pods)), 120)


def test_whoever_comes_between_start_and_binding_waits(bridge: Bridge) -> None:
    """The start is not given up for one more; those who were there are bound."""
    bridge.kube.create(
        kinds.COSCHEDULING_PODGROUPS, {"metadata": {"name": "pg", "namespace": NAMESPACE}, "spec": {"minMember": 2}}
    )
    bridge.slurm.control.pause()
    for number in range(2):
        bridge.pod(f"p-{number}", labels={names.LABEL_COSCHEDULING: "pg"})
    bridge.run(3)
    bridge.slurm.control.unpause()
    bridge.world.pass_time(3)
    bridge.pod("a-late", labels={names.LABEL_COSCHEDULING: "pg"})
    bridge.run(3)
    assert all(bound(bridge, ["p-0", "p-1"]))
    assert bridge.node_of("a-late") == ""
    assert bridge.submits() == 1


def test_a_member_made_anew_after_the_start_is_known_before_it_is_bound(bridge: Bridge) -> None:
    """An interrupted start of changed members is gone on with, and not taken for a loss."""
    pods = pending(bridge, lost="restart-group")
    bridge.slurm.control.unpause()
    bridge.world.pass_time(3)
    bridge.delete(pods[1])
    member(bridge, pods[1], lost="restart-group")
    bridge.kube_calls.plan(faults.Reset(acted=False), method="POST", target="/binding", times=1, nth=3)
    bridge.until(lambda: all(bound(bridge, pods)))
    bridge.run(5)
    assert not any(bridge.leaving(name) for name in pods)
    assert bridge.submits() == 1


def test_the_pods_of_a_job_that_was_deleted_are_nobody_elses(bridge: Bridge) -> None:
    """They are about to be collected: no job for each of them."""
    bridge.slurm.control.pause()
    template = {"spec": {"schedulerName": names.SCHEDULER_NAME, "restartPolicy": "Never", "containers": [CONTAINER]}}
    bridge.kube.create(
        kinds.JOBS,
        {
            "metadata": {"name": "j", "namespace": NAMESPACE, "annotations": {names.ANNOTATION_GANG: "true"}},
            "spec": {"parallelism": 3, "completions": 3, "template": template},
        },
    )
    bridge.until(lambda: bridge.submits() == 1)
    job = next(job for job in bridge.jobs() if not job.over)
    assert job.ask.tasks == 3
    bridge.kube.delete(kinds.JOBS, (NAMESPACE, "j"))
    bridge.until(lambda: bridge.of(job).over)
    bridge.run(10)
    assert bridge.submits() == 1


def test_an_event_says_whose_annotations_counted(bridge: Bridge) -> None:
    """Each value with the object that carries it."""
    bridge.slurm.control.pause()
    annotations = {names.JOB_PREFIX + "timelimit": "7"}
    for number in range(2):
        labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
        bridge.pod(f"g-{number}", labels=labels, annotations=annotations)
    bridge.run(10)
    assert "timelimit=7 from Pod default/g-0" in dict(bridge.events("g-0"))["SlurmJobSubmitted"]


def test_a_member_that_comes_after_the_start_takes_the_place_that_was_asked_for_it(bridge: Bridge) -> None:
    """One of three was gone when the others were bound; the job has its place still."""
    bridge.kube.create(
        kinds.COSCHEDULING_PODGROUPS, {"metadata": {"name": "pg", "namespace": NAMESPACE}, "spec": {"minMember": 2}}
    )
    labels = {names.LABEL_COSCHEDULING: "pg"}
    bridge.slurm.control.pause()
    for number in range(3):
        bridge.pod(f"p-{number}", labels=labels)
    bridge.run(4)
    bridge.slurm.control.unpause()
    bridge.world.pass_time(3)
    bridge.delete("p-1")
    bridge.until(lambda: all(bound(bridge, ["p-0", "p-2"])))
    bridge.run(3)
    bridge.pod("p-1", labels=labels)
    bridge.until(lambda: bridge.node_of("p-1"))
    assert bridge.submits() == 1


def test_a_leader_gives_the_only_node_of_its_workers_back(bridge: Bridge) -> None:
    """Slurm gives the leader the first node that will do, on which alone both workers fit, again and again."""
    world = bridge.slurm.world
    roomy, small, *_ = sorted(name for name in world.nodes if world.free[name].cpus == world.nodes[name].cpus)
    for name in world.nodes:
        taken = {roomy: 0, small: 1}.get(name, world.free[name].cpus)
        if taken:
            bridge.world.submit(f"native-{name}", required_nodes=[name], cpus_per_task=taken)
    bridge.run(2)
    for number, cpu in enumerate("322"):
        member(bridge, f"g-{number}", size=3, cpu=cpu)
    pods = [f"g-{number}" for number in range(3)]
    bridge.until(lambda: all(bound(bridge, pods)), 200)
    assert bound(bridge, pods) == [small, roomy, roomy]
    assert bridge.submits() == 2


def test_a_job_that_has_no_room_keeps_its_place(bridge: Bridge) -> None:
    """However long it waits."""
    for number, name in enumerate(sorted(bridge.world.slurm.world.nodes)):
        free = bridge.world.slurm.world.free[name].cpus
        if free:
            bridge.world.submit(f"native{number}", required_nodes=[name], cpus_per_task=free)
    bridge.run(5)
    pair(bridge)
    bridge.run(200)
    assert bridge.submits() == 1
