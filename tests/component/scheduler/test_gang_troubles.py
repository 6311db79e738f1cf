"""Groups in trouble: what is lost, late or left behind ends no pod without reason and keeps nobody waiting for ever."""

import dataclasses
import pathlib
from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.decide import Pods, pods_of
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.workload_pods import PodState, WorkloadPods
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.test_gangs import bound, gang, job_of, member, pair, parts, pending, running
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import fleet
from tests.simulation.world import NAMESPACE, World

pytestmark = pytest.mark.thorough


def podgroup(bridge: Bridge, pods: list[str], minimum: int = 2) -> list[str]:
    """A group that says from how many on it is worth starting, and not how many there will be."""
    if bridge.kube.get(kinds.COSCHEDULING_PODGROUPS, NAMESPACE, "pg") is None:
        meta = {"name": "pg", "namespace": NAMESPACE}
        bridge.kube.create(kinds.COSCHEDULING_PODGROUPS, {"metadata": meta, "spec": {"minMember": minimum}})
    for name in pods:
        bridge.pod(name, labels={names.LABEL_COSCHEDULING: "pg"})
    return pods


def living(bridge: Bridge) -> list[state.SlurmJob]:
    """All our jobs that are not over."""
    return [job for job in bridge.jobs() if not job.over]


def test_a_member_that_changes_is_there_at_every_moment() -> None:
    """Whoever looks while the watch tells of a change never takes a living pod for one that has gone."""
    seen: list[Pods] = []

    def now() -> float:
        seen.append(pods_of(pod_index.workload(names.workload_key("Pod", "x", "a", "u"))))
        return 0.0

    pod_index = PodIndex(now=now)
    pod = Pod(metadata=ObjectMeta(name="a", namespace="x", uid="u"))
    pod_index.put(None, pod)
    seen.clear()
    pod_index.put(pod, Pod(metadata=ObjectMeta(name="a", namespace="x", uid="u", resource_version="2")))
    assert Pods.OVER not in seen


def test_a_member_that_only_changes_has_not_joined() -> None:
    """What we write on the pods ourselves is no newcomer to wait for."""
    now = [1.0]
    pod_index = PodIndex(now=lambda: now[0])
    pod = Pod(metadata=ObjectMeta(name="a", namespace="x", uid="u"))
    pod_index.put(None, pod)
    now[0] = 5.0
    pod_index.put(pod, Pod(metadata=ObjectMeta(name="a", namespace="x", uid="u", resource_version="2")))
    members = pod_index.workload(names.workload_key("Pod", "x", "a", "u"))
    assert members is not None
    assert members.joined == 1.0


def test_t31_a_pod_that_hangs_since_an_earlier_job_does_not_hide_the_end_of_this_one(bridge: Bridge) -> None:
    """The group runs by its next job, and ends with it, whoever still hangs on a node of the last."""
    labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    bridge.pod("g-0", labels=labels, annotations={"kwok.local/terminating": "hang"})
    member(bridge, "g-1", size=2)
    bridge.until(lambda: all(bound(bridge, ["g-0", "g-1"])))
    first = job_of(bridge)
    slurm_node = bridge.manifest("g-0")["metadata"]["annotations"][names.ANNOTATION_SLURM_NODE]
    bridge.slurm.control.end(first.job_id, "CANCELLED")
    bridge.until(lambda: not bridge.exists("g-1"))
    assert bridge.exists("g-0")
    bridge.slurm.control.drain(slurm_node)
    for name in ("g-2", "g-3"):
        member(bridge, name, size=2)
    bridge.until(lambda: all(bound(bridge, ["g-2", "g-3"])))
    bridge.slurm.control.end(job_of(bridge).job_id, "CANCELLED")
    bridge.until(lambda: bridge.leaving("g-2") and bridge.leaving("g-3"))


def test_the_rest_of_a_start_does_not_wait_for_who_hangs_since_an_earlier_job(bridge: Bridge) -> None:
    """Those have no place in this job."""
    labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    bridge.pod("g-0", labels=labels, annotations={"kwok.local/terminating": "hang"})
    member(bridge, "g-1", size=2)
    bridge.until(lambda: all(bound(bridge, ["g-0", "g-1"])))
    first = job_of(bridge)
    slurm_node = bridge.manifest("g-0")["metadata"]["annotations"][names.ANNOTATION_SLURM_NODE]
    bridge.slurm.control.end(first.job_id, "CANCELLED")
    bridge.until(lambda: not bridge.exists("g-1"))
    bridge.slurm.control.drain(slurm_node)
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=3, nth=2)
    for name in ("g-2", "g-3"):
        member(bridge, name, size=2)
    bridge.until(lambda: all(bound(bridge, ["g-2", "g-3"])), 120)


def test_t26_whoever_joins_while_the_job_starts_does_not_cost_the_others_their_place(bridge: Bridge) -> None:
    """Those that the job is for are bound; the one more waits for a place."""
    bridge.slurm.control.pause()
    pods = podgroup(bridge, ["p-0", "p-1"])
    bridge.run(5)
    (job,) = living(bridge)
    assert job.ask.tasks == 2
    bridge.slurm.control.unpause()
    bridge.world.pass_time(2)
    assert bridge.of(job).running
    podgroup(bridge, ["p-2"])
    bridge.run(10)
    assert bridge.of(job).running, "the allocation was thrown away"
    assert all(bound(bridge, pods))


def test_a_start_that_is_not_finished_is_undone_whoever_has_come_meanwhile(bridge: Bridge) -> None:
    """A newcomer does not make half of a group a whole one."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=9999, nth=3)
    pods = podgroup(bridge, [f"p-{number}" for number in range(4)], minimum=4)
    bridge.run(5)
    assert 0 < sum(map(bool, bound(bridge, pods))) < 4
    podgroup(bridge, ["p-late"])
    bridge.run(400, step=5)
    assert not any(bound(bridge, [name for name in pods if not bridge.leaving(name)]))


def test_a_start_that_is_finished_is_not_undone_for_whoever_has_come_meanwhile(bridge: Bridge) -> None:
    """All places are taken; who finds none waits, and costs nobody his."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=5, nth=3)
    pods = podgroup(bridge, [f"p-{number}" for number in range(4)], minimum=4)
    bridge.run(4)
    assert 0 < sum(map(bool, bound(bridge, pods))) < 4
    podgroup(bridge, ["p-late"])
    bridge.run(400, step=2)
    assert sum(map(bool, bound(bridge, [*pods, "p-late"]))) == 4
    assert not any(bridge.leaving(name) for name in pods)


def test_a_start_that_is_finished_is_not_undone_because_a_silent_watch_has_not_told_of_it(bridge: Bridge) -> None:
    """The bindings were answered; the API server is asked before anybody who has a node loses it."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=5, nth=3)
    pods = gang(bridge)
    bridge.until(lambda: any(bound(bridge, pods)))
    feeds, bridge.feeds = bridge.feeds, ()
    bridge.run(400, step=2)
    assert all(bound(bridge, pods))
    assert not any(map(bridge.leaving, pods))
    bridge.feeds = feeds
    bridge.run(400, step=2)
    assert not any(map(bridge.leaving, pods))


def test_a_start_is_undone_in_its_time_although_a_bound_member_has_failed(bridge: Bridge) -> None:
    """Whoever was lost before all had a place was no member of a group that ran."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=9999, nth=3)
    pods = gang(bridge)
    bridge.run(5)
    assert sum(map(bool, bound(bridge, pods))) == 2
    bridge.status("g-0", phase="Failed", reason="OutOfcpu")
    bridge.run(5)
    member(bridge, "g-9")
    bridge.run(500, step=5)
    assert bridge.leaving("g-1")


def test_a_group_that_runs_for_long_is_not_undone_for_whoever_comes_then(bridge: Bridge) -> None:
    """Its start was over long ago, though nobody has looked since."""
    pods = running(bridge)
    bridge.run(400, step=5)
    member(bridge, "g-late")
    bridge.run(60, step=2)
    assert not any(bridge.leaving(name) for name in pods)
    assert bridge.condition("g-late")[0] == "GangFull"


def test_a_group_whose_member_is_cleaned_up_after_its_work_is_not_undone_for_whoever_comes_then(bridge: Bridge) -> None:
    """One has succeeded and is gone: there is a place, and no start to be finished in time."""
    pods = running(bridge, cpu="3", size=2)
    bridge.status(pods[1], phase="Succeeded")
    bridge.run(1)
    bridge.delete(pods[1], grace=0)
    bridge.run(400, step=5)
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=9999)
    member(bridge, "g-late", size=2, cpu="3")
    bridge.run(400, step=5)
    assert not bridge.leaving(pods[0])


def test_a_start_is_undone_in_its_time_although_one_came_at_its_first_moment(bridge: Bridge) -> None:
    """Before anybody had looked at what was left of it."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=9999, nth=3)
    pods = podgroup(bridge, [f"p-{number}" for number in range(4)], minimum=4)
    bridge.until(lambda: any(bound(bridge, pods)))
    podgroup(bridge, ["p-late"])
    bridge.run(500, step=5)
    assert not any(bound(bridge, [name for name in pods if not bridge.leaving(name)]))


def test_a_group_that_more_and_more_pods_join_is_submitted_all_the_same(bridge: Bridge) -> None:
    """They are waited for, but not for ever."""
    podgroup(bridge, ["p-0", "p-1"])
    for number in range(13):
        podgroup(bridge, [f"p-x{number}"])
        bridge.step(0.9)
    assert bridge.submits() > 0


def test_a_rest_that_finds_no_node_is_undone_in_its_time(bridge: Bridge) -> None:
    """Nobody wakes a group whose rest has lost its node: the time of its start ends all the same."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=3, nth=2)
    pods = gang(bridge, size=2, cpu="4")
    bridge.until(lambda: any(bound(bridge, pods)))
    job = job_of(bridge)
    assert job.grant is not None
    there = {bridge.node_of(name) for name in pods}
    (other,) = [
        kube
        for kube, slurm in bridge.world.fleet.nodes.items()
        if slurm in [share.node for share in job.grant.shares] and kube not in there
    ]
    bridge.kube.delete(kinds.NODES, ("", other))
    bridge.run(400, step=2)
    assert job.job_id not in bridge.slurm.world.jobs or bridge.of(job).over
    assert not any(bound(bridge, [name for name in pods if not bridge.leaving(name)]))


def test_t43a_a_cancelled_pending_group_stays_parked_though_a_member_was_made_anew(bridge: Bridge) -> None:
    """An administrator's word about a job that never started is one about the group, whoever is its member now."""
    pods = pending(bridge)
    job = job_of(bridge)
    bridge.delete(pods[1])
    bridge.run(5)
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    bridge.run(2)
    member(bridge, pods[1])
    bridge.run(10)
    assert bridge.submits() == 1


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


def test_a_partly_bound_group_of_a_suspended_job_is_left_alone(bridge: Bridge) -> None:
    """Whoever suspends a job half-way through the start has not lost a member."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=9, nth=3)
    pods = gang(bridge, lost="restart-group")
    bridge.until(lambda: any(bound(bridge, pods)))
    bridge.slurm.control.suspend(job_of(bridge).job_id)
    bridge.run(20)
    assert not any(bridge.leaving(name) for name in pods)


def test_t29_nobody_is_bound_before_every_component_is_up(bridge: Bridge) -> None:
    """One whose first component runs while a node of the second one powers up has not started."""
    bridge.slurm.control.pause()
    pods = pair(bridge)
    bridge.run(2)
    first, second = sorted(parts(bridge), key=lambda one: one.offset)
    bridge.slurm.world.config = dataclasses.replace(bridge.slurm.world.config, configuring_seconds=20.0)
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.slurm.world.jobs[second.job_id].running)
    bridge.slurm.world.put(dataclasses.replace(bridge.of(first), configuring=False))
    bridge.run(6)
    assert not any(bound(bridge, pods))
    assert not bridge.of(first).over
    bridge.until(lambda: all(bound(bridge, pods)))


def test_a_group_ends_whole_when_its_leading_component_ends(bridge: Bridge) -> None:
    """The others hold their nodes no longer than their pods."""
    pods = pair(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    first, second = sorted(parts(bridge), key=lambda one: one.offset)
    bridge.slurm.control.end(first.job_id, "CANCELLED")
    bridge.until(lambda: all(bridge.leaving(name) for name in pods))
    bridge.until(lambda: bridge.of(second).over)


def test_components_of_a_running_group_survive_a_restart_of_the_daemon(bridge: Bridge) -> None:
    """None of them is taken for a second job."""
    pods = pair(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    bridge.start()
    bridge.run(60, step=2)
    assert not any(bridge.leaving(name) for name in pods)
    assert all(not job.over for job in parts(bridge))


def test_a_pod_whose_job_id_another_workload_has_now_is_not_one_of_its_members(bridge: Bridge) -> None:
    """Ids that Slurm counts come back after a crash; whoever has one now is no group of whoever had it."""
    bridge._given["slurm"] = {"job_ids": None}
    bridge.start()
    lost = bridge.bound("a")
    bridge.world.crash_slurm(30.0)
    bridge.slurm.control.pause()
    bridge.pod("b")
    bridge.settle()
    assert bridge.job("b").job_id == lost.job_id
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of("b"), 120)
    bridge.until(lambda: bridge.leaving("a"), 120)


def test_a_job_id_that_came_back_in_another_namespace_costs_nobody_his_job(bridge: Bridge) -> None:
    """Its owner there is not asked to submit a second one."""
    bridge._given["slurm"] = {"job_ids": None}
    bridge.start()
    bridge.kube.create(kinds.NAMESPACES, {"metadata": {"name": "other"}})
    lost = bridge.bound("a")
    bridge.world.crash_slurm(30.0)
    bridge.slurm.control.pause()
    uid = bridge.pod("b", "other")
    bridge.settle()
    assert [job.job_id for job in bridge.jobs(uid)] == [lost.job_id]
    bridge.run(30)
    assert [job.job_id for job in bridge.jobs(uid)] == [lost.job_id]


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


def test_an_incomplete_group_is_not_judged_by_a_watch_that_is_silent(bridge: Bridge) -> None:
    """Another replica saw all of it and has bound it: the job of bound pods is never given back for members missing."""
    other = Bridge(bridge.folder, world=bridge.world, name="d2")
    for name in ("g-0", "g-1", "g-2"):
        member(bridge, name)
    other.run(1)
    other.feeds = ()
    member(bridge, "g-3")
    other.leads = False
    bridge.until(lambda: all(bound(bridge, [f"g-{n}" for n in range(4)])))
    job = job_of(bridge)
    other.leads, bridge.leads = True, False
    other.core.recover()
    other.run(45)
    assert bridge.of(job).running


@pytest.mark.parametrize(("leader", "worker"), [("3", "2"), ("2", "1")])
def test_a_forgotten_job_of_different_pods_is_asked_for_again(bridge: Bridge, leader: str, worker: str) -> None:
    """Each component for the nodes of its own pods, a sum for the node that all of them are on."""
    pods = pair(bridge, leader=leader, worker=worker)
    bridge.until(lambda: all(bound(bridge, pods)))
    before = job_of(bridge)
    bridge.run(3)
    bridge.slurm.control.pause()
    bridge.world.crash_slurm(1e6)
    bridge.run(8)
    again = job_of(bridge)
    assert again.job_id == before.job_id
    bridge.slurm.control.unpause()
    bridge.run(40)
    assert bridge.of(again).running
    assert not any(bridge.leaving(name) for name in pods)


def test_a_component_whose_leader_was_forgotten_while_nobody_looked_is_ended_with_its_pods(bridge: Bridge) -> None:
    """The daemon was down meanwhile."""
    pods = pair(bridge)
    bridge.until(lambda: all(bound(bridge, pods)))
    first, second = sorted(parts(bridge), key=lambda one: one.offset)
    bridge.slurm.control.end(first.job_id, "CANCELLED")
    del bridge.slurm.world.jobs[first.job_id]
    bridge.start()
    bridge.run(20)
    assert all(bridge.leaving(name) for name in pods)
    assert bridge.of(second).over


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


def test_a_component_job_that_waits_keeps_its_place_when_nodes_come_and_go(bridge: Bridge) -> None:
    """A closed node that it does not need is no reason to line up anew."""
    bridge.slurm.control.pause()
    pair(bridge)
    bridge.run(3)
    assert len(parts(bridge)) == 2
    for _ in range(3):
        bridge.world.cordon("n1", on=True)
        bridge.run(5)
        bridge.world.cordon("n1", on=False)
        bridge.run(5)
    assert bridge.submits() == 1


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


@pytest.mark.parametrize("gpu_type", ["", "v100"])
def test_a_forgotten_job_with_gpus_is_asked_for_again(tmp_path: pathlib.Path, gpu_type: str) -> None:
    """In the form and for the nodes that it had."""
    bridge = Bridge(tmp_path, world=World(1, tmp_path / "token", fleet=fleet.hall(8, gpu_type=gpu_type)))
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "1"}}}
    pods = [f"g-{number}" for number in range(8)]
    for name in pods:
        labels = {names.GROUP: "g", names.GROUP_SIZE: "8"}
        bridge.pod(name, labels=labels, spec={"containers": [container]})
    bridge.until(lambda: all(bound(bridge, pods)))
    before, nodes = job_of(bridge), bound(bridge, pods)
    bridge.run(3)
    bridge.slurm.control.pause()
    bridge.world.crash_slurm(1e6)
    bridge.run(8)
    again = job_of(bridge)
    assert again.job_id == before.job_id
    bridge.slurm.control.unpause()
    bridge.run(40)
    assert bridge.of(again).running
    assert bound(bridge, pods) == nodes
    assert not any(bridge.leaving(name) for name in pods)


def test_a_record_that_cannot_be_changed_any_more_does_not_keep_a_group_from_its_nodes(bridge: Bridge) -> None:
    """Every update of a job that names a node that has left Slurm is refused, for ever."""
    pods = pending(bridge)
    bridge.delete(pods[1])
    bridge.run(2)
    refused = b'{"errors": [{"error_number": 2018, "error": "Invalid node name specified", "source": "x"}]}'
    bridge.slurm_calls.plan(faults.Answer(422, refused), method="POST", target=r"/job/\d+", times=9999)
    bridge.slurm.control.unpause()
    bridge.world.pass_time(2)
    member(bridge, pods[1])
    bridge.until(lambda: all(bound(bridge, pods)))


def test_a_lie_about_what_a_running_job_holds_does_not_leave_half_a_group(bridge: Bridge) -> None:
    """It is asked again."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=3, nth=2)
    nothing = b'{"errors": [{"error_number": 2085, "error": "Job is not running", "source": "x"}]}'
    bridge.slurm_calls.plan(faults.Answer(500, nothing), method="GET", target="/resources/", times=1, nth=1)
    pods = gang(bridge)
    bridge.until(lambda: all(bound(bridge, pods)), 200)


@pytest.mark.parametrize("after", range(1, 30))
def test_a_group_survives_the_death_of_the_daemon_at_every_call(bridge: Bridge, after: int) -> None:
    """It is submitted once, bound as a whole, and ends with its job."""
    pods = [f"g-{number}" for number in range(3)]
    count = [0]

    class Dead(Exception):
        """The process is gone."""

    def die() -> None:
        count[0] += 1
        if count[0] == after:
            raise Dead

    bridge.slurm_calls.plan(faults.Meanwhile(die), method="*", target="", times=9999)
    bridge.kube_calls.plan(faults.Meanwhile(die), method="*", target="", times=9999)
    gang(bridge, size=3)
    try:
        bridge.run(6)
    except Dead:
        bridge.start()
    bridge.until(lambda: all(bound(bridge, pods)))
    assert len(living(bridge)) == 1
    bridge.slurm.control.end(job_of(bridge).job_id, "CANCELLED")
    bridge.until(lambda: not any(bridge.exists(name) for name in pods))


def test_a_replica_that_leads_again_counts_the_time_of_a_start_anew(bridge: Bridge) -> None:
    """What it remembers of an earlier start is not about this one."""
    other = Bridge(bridge.folder, world=bridge.world, name="d2")
    other.leads = False
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=9999, nth=2)
    pods = gang(bridge)
    bridge.run(5)
    assert 0 < sum(map(bool, bound(bridge, pods))) < 4
    bridge.leads, other.leads = False, True
    other.until(lambda: all(bound(bridge, pods)))
    for name in pods:
        bridge.delete(name, grace=0)
    other.run(400, step=5)
    other.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=9999, nth=2)
    gang(bridge)
    other.run(5)
    assert 0 < sum(map(bool, bound(bridge, pods))) < 4
    other.leads = False
    bridge.kube_calls.clear()
    bridge.hear()
    bridge.leads = True
    bridge.core.recover()
    bridge.until(lambda: all(bound(bridge, pods)))


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


def test_t12_a_forgotten_pending_job_of_a_group_is_asked_for_under_its_id(bridge: Bridge) -> None:
    """Should it turn up after all, the id that is taken tells."""
    pending(bridge)
    job = job_of(bridge)
    bridge.run(5)
    bridge.world.crash_slurm(30.0)
    bridge.run(10)
    assert job_of(bridge).job_id == job.job_id


def test_a_member_that_fails_before_the_others_are_bound_does_not_stop_their_start(bridge: Bridge) -> None:
    """A kubelet refuses the first while the third cannot be bound yet; its replacement joins."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=6, nth=3)
    pods = gang(bridge)
    bridge.until(lambda: any(bound(bridge, pods)))
    bridge.status("g-0", phase="Failed", reason="OutOfcpu")
    bridge.run(2)
    member(bridge, "g-9")
    bridge.until(lambda: all(bound(bridge, [*pods[1:], "g-9"])), 120)
    assert bridge.submits() == 1


def test_a_member_that_asks_for_too_much_does_not_keep_a_start_from_its_end(bridge: Bridge) -> None:
    """Nobody can say what the group asks for any more; half of it stays bound only for so long."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=9, nth=3)
    pods = gang(bridge)
    bridge.until(lambda: any(bound(bridge, pods)))
    member(bridge, "g-x", cpu="99999999")
    bridge.run(500, step=5)
    assert all(bound(bridge, pods)) or not any(bound(bridge, [one for one in pods if not bridge.leaving(one)]))


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
    assert bridge.core.context.avoided.nodes((root, above), bridge.clock.now())


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


def test_t26_a_newcomer_is_not_placed_into_the_component_of_others(bridge: Bridge) -> None:
    """Which component is whose does not follow from who is the first of those that are left."""
    for name, cpu in (("g-0", "1"), ("g-1", "3"), ("g-2", "1")):
        member(bridge, name, size=3, cpu=cpu)
    pods = ["g-0", "g-1", "g-2"]
    bridge.until(lambda: all(bound(bridge, pods)))
    assert len(parts(bridge)) == 2
    bridge.delete("g-0", grace=0)
    bridge.run(2)
    member(bridge, "g-3", size=3)
    bridge.until(lambda: bridge.node_of("g-3"))
    assert bridge.node_of("g-3") != bridge.node_of("g-1")


def test_a_component_job_is_bound_whoever_has_become_its_first_member(bridge: Bridge) -> None:
    """The one that asks for most was made anew under a later name while the job was waiting."""
    bridge.slurm.control.pause()
    pair(bridge)
    bridge.run(3)
    assert len(parts(bridge)) == 2
    bridge.delete("g-0")
    bridge.run(2)
    member(bridge, "g-9", size=2, cpu="3")
    bridge.run(3)
    bridge.slurm.control.unpause()
    bridge.until(lambda: all(bound(bridge, ["g-1", "g-9"])))
    assert bridge.submits() == 1


def test_a_binding_that_never_came_to_pass_does_not_take_room_for_ever(bridge: Bridge) -> None:
    """Its answer was lost, and its job has ended since: whoever waits again is on no node."""
    bridge.kube_calls.plan(faults.Reset(acted=False), method="POST", target="/binding")
    pods = gang(bridge, size=2, cpu="2")
    bridge.until(lambda: bridge.kube_calls.count(method="POST", target="/binding"))
    assert not any(bound(bridge, pods))
    bridge.slurm.control.pause()
    bridge.slurm.control.end(job_of(bridge).job_id, "PREEMPTED")
    bridge.run(90, step=1)
    nodes = bridge.core.context.keeper.snapshot().nodes
    assert sum(facts.used.get("cpu", 0) for facts in nodes.values()) == 1
