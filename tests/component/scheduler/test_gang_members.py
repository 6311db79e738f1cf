"""Groups whose members are changed, suspended, scaled, refused or made single keep their jobs or get others."""

import dataclasses
import pathlib
from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods
from slurm_bridge.sim import faults
from tests.component.scheduler.gang_scenes import bound, gang, job_of, member, pair, parts, pending, running
from tests.component.scheduler.troubled_gangs import living
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import fleet
from tests.simulation.world import NAMESPACE, World

pytestmark = pytest.mark.thorough


def test_a_group_whose_members_disagree_on_its_size_holds_no_nodes(bridge: Bridge) -> None:
    """A job that starts for pods that may never be bound is given back."""
    pending(bridge)
    member(bridge, "g-x", size=9)
    bridge.run(3)
    bridge.slurm.control.unpause()
    bridge.run(90, step=1)
    assert not living(bridge)


def test_a_finished_member_that_is_cleaned_up_is_not_a_loss(bridge: Bridge) -> None:
    """Whoever removes pods that have succeeded does not restart the others."""
    pods = running(bridge, lost="restart-group")
    bridge.status(pods[1], phase="Succeeded")
    bridge.run(2)
    bridge.delete(pods[1], grace=0)
    bridge.run(10)
    assert not any(bridge.leaving(name) for name in pods if name != pods[1])


def test_a_group_that_restarts_again_and_again_gets_its_job_each_time(bridge: Bridge) -> None:
    """Ids that its ended jobs keep for a while do not stand in its way."""
    bridge.slurm.world.config = dataclasses.replace(bridge.slurm.world.config, minimum_job_age=300.0)
    for _ in range(13):
        pods = running(bridge, size=2)
        for name in pods:
            bridge.delete(name, grace=0)
        bridge.run(2)
        assert not living(bridge)


@pytest.mark.parametrize("size", [2, 3])
def test_a_group_that_is_made_anew_before_anybody_looks_has_a_job_of_its_own(bridge: Bridge, size: int) -> None:
    """All of its pods go and others come between two looks at it: they are no members of the old job."""
    pods = running(bridge, size=size, lost="restart-group")
    old = job_of(bridge)
    for name in pods:
        bridge.delete(name, grace=0)
    again = gang(bridge, size=size, lost="restart-group")
    bridge.until(lambda: all(bound(bridge, again)), 30)
    assert [one.job_id for one in living(bridge)] != [old.job_id]
    assert bridge.of(old).over
    bridge.run(10)
    assert len(living(bridge)) == 1


def test_a_partly_bound_group_of_a_suspended_job_is_left_alone(bridge: Bridge) -> None:
    """Whoever suspends a job half-way through the start has not lost a member."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=9, nth=3)
    pods = gang(bridge, lost="restart-group")
    bridge.until(lambda: any(bound(bridge, pods)))
    bridge.slurm.control.suspend(job_of(bridge).job_id)
    bridge.run(20)
    assert not any(bridge.leaving(name) for name in pods)


def test_a_record_that_does_not_take_a_change_is_not_written_again_at_once(bridge: Bridge) -> None:
    """Whoever says yes and does nothing is not asked in a hot loop."""
    pods = pending(bridge)
    lie = faults.Answer(200, b'{"errors": [], "warnings": [], "results": [], "meta": {}}')
    bridge.slurm_calls.plan(lie, method="POST", target=r"/job/\d+", times=9999)
    bridge.delete(pods[1])
    bridge.run(2)
    member(bridge, pods[1])
    bridge.run(10)
    assert bridge.slurm_calls.count(method="POST", target="/job/5") < 20


def test_a_replacement_is_told_why_it_waits_while_the_others_leave(bridge: Bridge) -> None:
    """It may take as long as their grace."""
    pods = [f"g-{number}" for number in range(2)]
    for name in pods:
        member(bridge, name, size=2, spec={"terminationGracePeriodSeconds": 300})
    bridge.until(lambda: all(bound(bridge, pods)))
    for name in pods:
        bridge.kube.merge(
            kinds.PODS, (NAMESPACE, name), {"metadata": {"annotations": {"kwok.local/terminating": "hang"}}}
        )
        bridge.delete(name)
    for name in ("g-2", "g-3"):
        member(bridge, name, size=2)
    bridge.run(20)
    assert bridge.condition("g-2")[0]


def test_a_group_of_one_is_a_group(bridge: Bridge) -> None:
    """One of one is all."""
    member(bridge, "g-0", size=1)
    bridge.until(lambda: bridge.node_of("g-0"))
    bridge.slurm.control.end(job_of(bridge).job_id, "CANCELLED")
    bridge.until(lambda: bridge.leaving("g-0"))


def workers(bridge: Bridge, number: int = 4, **spec: object) -> None:
    """A Job whose pods are one group."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "500Mi"}}}
    pod = {
        "schedulerName": names.SCHEDULER_NAME,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 3,
        "containers": [container],
    }
    body = {
        "completions": number,
        "parallelism": number,
        "template": {"metadata": {"annotations": {"kwok.local/outcome": "run"}}, "spec": pod},
        **spec,
    }
    meta = {"name": "work", "namespace": NAMESPACE, "annotations": {names.ANNOTATION_GANG: "true"}}
    bridge.kube.create(kinds.JOBS, {"metadata": meta, "spec": body})


def ours(bridge: Bridge) -> list[str]:
    """The names of our pods."""
    return [name for name, _ in bridge.world.pods()]


def test_a_suspended_job_holds_no_nodes_and_comes_back(bridge: Bridge) -> None:
    """Whether it was pending or running."""
    bridge.slurm.control.pause()
    workers(bridge)
    bridge.run(5)
    assert len(living(bridge)) == 1
    bridge.kube.merge(kinds.JOBS, (NAMESPACE, "work"), {"spec": {"suspend": True}})
    bridge.run(20)
    assert not living(bridge)
    bridge.slurm.control.unpause()
    bridge.kube.merge(kinds.JOBS, (NAMESPACE, "work"), {"spec": {"suspend": False}})
    bridge.until(lambda: len(ours(bridge)) == 4 and all(bound(bridge, ours(bridge))))
    bridge.kube.merge(kinds.JOBS, (NAMESPACE, "work"), {"spec": {"suspend": True}})
    bridge.run(20)
    assert not living(bridge)
    bridge.kube.merge(kinds.JOBS, (NAMESPACE, "work"), {"spec": {"suspend": False}})
    bridge.until(lambda: len(ours(bridge)) == 4 and all(bound(bridge, ours(bridge))))


@pytest.mark.parametrize("size", [2, 6])
def test_a_job_that_is_scaled_while_it_waits_starts_with_its_new_size(bridge: Bridge, size: int) -> None:
    """Not before the last member is there, and without losing its place for one less."""
    bridge.slurm.control.pause()
    workers(bridge, completions=8)
    bridge.run(5)
    bridge.kube.merge(kinds.JOBS, (NAMESPACE, "work"), {"spec": {"parallelism": size}})
    bridge.run(5)
    bridge.slurm.control.unpause()
    bridge.until(lambda: len(ours(bridge)) == size and all(bound(bridge, ours(bridge))))
    assert bridge.submits() == 1


@pytest.mark.parametrize("size", [2, 6])
def test_a_job_that_is_scaled_while_it_runs_keeps_those_who_run(bridge: Bridge, size: int) -> None:
    """Whoever is more than there are places waits, and says so."""
    workers(bridge, completions=8)
    bridge.until(lambda: len(ours(bridge)) == 4 and all(bound(bridge, ours(bridge))))
    before = set(ours(bridge))
    bridge.kube.merge(kinds.JOBS, (NAMESPACE, "work"), {"spec": {"parallelism": size}})
    bridge.run(20)
    assert len(before & set(ours(bridge))) == min(size, 4)
    assert len(living(bridge)) == 1


def test_a_parked_note_that_could_not_be_written_on_all_is_written_on_the_rest(bridge: Bridge) -> None:
    """A half-parked group is a parked one."""
    pods = pending(bridge)
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="PATCH", target=r"/pods/[^/]+(\?|$)", times=2, nth=3)
    bridge.slurm.control.end(job_of(bridge).job_id, "CANCELLED")
    bridge.run(30)
    assert bridge.submits() == 1
    assert all(bridge.park_note(name) for name in pods)


def crowded(bridge: Bridge, nodes: list[str]) -> None:
    """Pods of another scheduler on these nodes, of which Slurm knows nothing."""
    for node in nodes:
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
        bridge.kube.create(
            kinds.PODS, {"metadata": {"name": f"x-{node}"}, "spec": {"nodeName": node, "containers": [container]}}
        )


def test_a_group_learns_of_all_full_nodes_at_once(tmp_path: pathlib.Path) -> None:
    """Not of one with each allocation that it gives back."""
    bridge = Bridge(tmp_path, world=World(1, tmp_path / "token", fleet=fleet.hall(24)))
    crowded(bridge, [f"n{n:02}" for n in range(1, 17)])
    pods = gang(bridge, size=4, cpu="10")
    bridge.run(3600, step=5)
    assert all(bound(bridge, pods))
    assert bridge.submits() < 8


def test_t43a_a_cancelled_pending_group_stays_parked_though_its_leader_was_made_anew(bridge: Bridge) -> None:
    """What was cancelled is the job of all of them, and not what was left of them at that moment."""
    bridge.slurm.control.pause()
    pair(bridge)
    bridge.run(3)
    bridge.delete("g-0")
    bridge.run(5)
    for one in parts(bridge):
        bridge.slurm.control.end(one.job_id, "CANCELLED")
    bridge.run(3)
    member(bridge, "g-0", size=2, cpu="3")
    bridge.run(10)
    assert bridge.submits() == 1


def test_a_group_that_finishes_after_a_loss_is_not_gathered_for_each_member(tmp_path: pathlib.Path) -> None:
    """What its policy says was asked when the member was lost."""
    bridge = Bridge(tmp_path, world=World(1, tmp_path / "token", fleet=fleet.hall(8)))
    pods = running(bridge, size=40)
    gathered: list[int] = []
    gather = bridge.core.context.gather

    def counted(members: WorkloadPods, /, *stands: PodState, one: bool = False) -> Any:
        gathered.append(1 if one else len(pods))
        return gather(members, *stands, one=one)

    bridge.core.context.gather = counted
    bridge.status(pods[0], phase="Failed")
    bridge.run(1)
    for name in pods[1:]:
        bridge.status(name, phase="Succeeded")
        bridge.settle()
    assert sum(gathered) < 5 * len(pods)


def test_a_node_whose_kubelet_refused_a_pod_of_a_jobset_is_avoided_by_the_set(bridge: Bridge) -> None:
    """Whoever made the pod; what counts is for whom the next job is."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "500Mi"}}}
    spec = {"schedulerName": names.SCHEDULER_NAME, "restartPolicy": "Never", "containers": [container]}
    template = {"metadata": {"annotations": {"kwok.local/outcome": "run"}}, "spec": spec}
    job = {"parallelism": 2, "completions": 2, "backoffLimit": 9, "completionMode": "Indexed", "template": template}
    body = {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": job}}]}
    made = bridge.kube.create(kinds.JOBSETS, {"metadata": {"name": "set", "namespace": NAMESPACE}, "spec": body})
    bridge.until(lambda: len(ours(bridge)) == 2 and all(bound(bridge, ours(bridge))))
    uid = str(made["metadata"]["uid"])
    (root,) = bridge.core.pod_index.roots()
    above = names.workload_key("JobSet", NAMESPACE, "set", uid)
    bridge.status(ours(bridge)[0], phase="Failed", reason="OutOfcpu")
    bridge.settle()
    assert bridge.core.context.avoided.nodes((root, above), bridge.clock.now(), bridge.core.context.node)


def test_jobs_of_single_pods_that_are_a_group_after_a_restart_go(bridge: Bridge) -> None:
    """The site has changed its mind, or has a new version, while they were waiting."""
    bridge.slurm.control.pause()
    workers(bridge, number=2)
    bridge.kube.merge(kinds.JOBS, (NAMESPACE, "work"), {"metadata": {"annotations": {names.ANNOTATION_GANG: None}}})
    bridge.run(5)
    assert len(living(bridge)) == 2
    bridge._given["workloads"] = {"job": "gang"}
    bridge.start()
    bridge.run(60)
    assert [job.ask.tasks for job in living(bridge)] == [2]


def unobserved(bridge: Bridge) -> None:
    """The observer does not know of users who change their minds about what belongs together."""
    bridge.world.observer.look = lambda *_: None  # type: ignore[method-assign]
    bridge.world.weather.watcher = lambda _who: None


def test_a_job_of_a_group_whose_pods_are_single_after_a_restart_goes(bridge: Bridge) -> None:
    """Likewise, the other way round."""
    unobserved(bridge)
    bridge._given["workloads"] = {"job": "gang"}
    bridge.start()
    bridge.slurm.control.pause()
    workers(bridge, number=2)
    bridge.run(5)
    assert [job.ask.tasks for job in living(bridge)] == [2]
    bridge.kube.merge(kinds.JOBS, (NAMESPACE, "work"), {"metadata": {"annotations": {names.ANNOTATION_GANG: "false"}}})
    bridge.start()
    bridge.run(60)
    assert [job.ask.tasks for job in living(bridge)] == [1, 1]


def test_a_group_whose_pods_are_told_to_be_single_while_they_wait_becomes_single(bridge: Bridge) -> None:
    """And together again."""
    unobserved(bridge)
    bridge.slurm.control.pause()
    workers(bridge, number=3)
    bridge.run(5)
    for word, tasks in (("false", [1, 1, 1]), ("true", [3]), ("false", [1, 1, 1])):
        bridge.kube.merge(kinds.JOBS, (NAMESPACE, "work"), {"metadata": {"annotations": {names.ANNOTATION_GANG: word}}})
        bridge.run(10)
        assert [job.ask.tasks for job in living(bridge)] == tasks
    bridge.slurm.control.unpause()
    bridge.until(lambda: all(bound(bridge, ours(bridge))))


def test_a_group_whose_pods_are_told_to_be_single_while_they_run_runs_on(bridge: Bridge) -> None:
    """What has begun as a group ends as one, before and after a restart of the daemon."""
    workers(bridge, number=3)
    bridge.until(lambda: len(ours(bridge)) == 3 and all(bound(bridge, ours(bridge))))
    before = living(bridge)
    bridge.kube.merge(kinds.JOBS, (NAMESPACE, "work"), {"metadata": {"annotations": {names.ANNOTATION_GANG: "false"}}})
    bridge.run(20)
    bridge.start()
    bridge.run(40)
    assert [job.job_id for job in living(bridge)] == [job.job_id for job in before]
    bridge.delete(ours(bridge)[0], grace=0)
    bridge.until(lambda: len(ours(bridge)) == 3 and all(bound(bridge, ours(bridge))))


def test_whoever_finds_no_place_costs_slurm_nothing(bridge: Bridge) -> None:
    """How many places a job has is known without asking."""
    running(bridge)
    member(bridge, "g-late")
    bridge.run(10)
    before = bridge.slurm_calls.count(method="GET", target="/resources/")
    bridge.run(300, step=2)
    assert bridge.slurm_calls.count(method="GET", target="/resources/") - before <= 1


def test_t38_a_group_that_hangs_on_dead_nodes_gives_its_job_back(tmp_path: pathlib.Path) -> None:
    """And those who replace it get another one."""
    bridge = Bridge(tmp_path, ends={"stuck_seconds": 30})
    labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    for name in ("g-0", "g-1"):
        bridge.pod(name, labels=labels, annotations={"kwok.local/terminating": "hang"})
    bridge.until(lambda: all(bound(bridge, ["g-0", "g-1"])))
    job = job_of(bridge)
    dead = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    for node in {bridge.node_of("g-0"), bridge.node_of("g-1")}:
        bridge.kube.merge(kinds.NODES, ("", node), {"status": {"conditions": [dead]}}, subresource="status")
    bridge.delete("g-0")
    bridge.run(5)
    bridge.delete("g-1")
    for name in ("g-2", "g-3"):
        member(bridge, name, size=2)
    bridge.until(lambda: bridge.of(job).over, 60)
    bridge.until(lambda: all(bound(bridge, ["g-2", "g-3"])))


def test_a_group_that_is_rolled_to_larger_pods_gets_another_job(bridge: Bridge) -> None:
    """The job of the old ones has no places for the new ones; when nobody is on it any more it goes."""
    pods = running(bridge, size=2)
    first = job_of(bridge)
    for name in ("h-0", "h-1"):
        member(bridge, name, size=2, cpu="3")
    bridge.run(3)
    for name in pods:
        bridge.delete(name)
    bridge.until(lambda: all(bound(bridge, ["h-0", "h-1"])), 120)
    assert bridge.of(first).over


def test_a_group_that_is_suspended_while_its_job_runs_on_is_not_bound(bridge: Bridge) -> None:
    """Pods that are there although they may not run get no places."""
    workers(bridge, number=2)
    bridge.until(lambda: len(ours(bridge)) == 2 and all(bound(bridge, ours(bridge))))
    bridge.kube.merge(kinds.JOBS, (NAMESPACE, "work"), {"spec": {"suspend": True}})
    bridge.run(1)
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "controller": True}
    found = bridge.kube.get(kinds.JOBS, NAMESPACE, "work")
    assert found is not None
    bridge.pod("extra", ownerReferences=[{**reference, "uid": found["metadata"]["uid"]}])
    bridge.run(20)
    assert not bridge.node_of("extra")


def test_a_job_that_a_silent_watch_shows_as_that_of_a_group_now_is_looked_at_first(bridge: Bridge) -> None:
    """A replica with other settings takes over, and has not heard that its pods were bound one by one."""
    other = Bridge(bridge.folder, world=bridge.world, name="d2", workloads={"job": "gang"})
    other.leads = False
    bridge.slurm.control.pause()
    workers(bridge, number=2)
    bridge.kube.merge(kinds.JOBS, (NAMESPACE, "work"), {"metadata": {"annotations": {names.ANNOTATION_GANG: None}}})
    bridge.run(2)
    other.hear()
    other.feeds = ()
    bridge.slurm.control.unpause()
    bridge.until(lambda: all(bound(bridge, ours(bridge))))
    jobs = living(bridge)
    bridge.leads, other.leads = False, True
    other.core.recover()
    other.run(20)
    assert all(bridge.of(job).running for job in jobs)
