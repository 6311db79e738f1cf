"""Starts of groups that are interrupted, late or joined by others: finished in time, or undone as a whole."""

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.decide import Pods, pods_of
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.sim import faults
from tests.component.scheduler.gang_scenes import bound, gang, job_of, member, pair, parts, running
from tests.component.scheduler.troubled_gangs import living
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

pytestmark = pytest.mark.thorough


def podgroup(bridge: Bridge, pods: list[str], minimum: int = 2) -> list[str]:
    """A group that says from how many on it is worth starting, and not how many there will be."""
    if bridge.kube.get(kinds.COSCHEDULING_PODGROUPS, NAMESPACE, "pg") is None:
        meta = {"name": "pg", "namespace": NAMESPACE}
        bridge.kube.create(kinds.COSCHEDULING_PODGROUPS, {"metadata": meta, "spec": {"minMember": minimum}})
    for name in pods:
        bridge.pod(name, labels={names.LABEL_COSCHEDULING: "pg"})
    return pods


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


def test_a_lie_about_what_a_running_job_holds_does_not_leave_half_a_group(bridge: Bridge) -> None:
    """It is asked again."""
    bridge.kube_calls.plan(faults.Answer(500, b"{}"), method="POST", target="/binding", times=3, nth=2)
    nothing = b'{"errors": [{"error_number": 2085, "error": "Job is not running", "source": "x"}]}'
    bridge.slurm_calls.plan(faults.Answer(500, nothing), method="GET", target="/resources/", times=1, nth=1)
    pods = gang(bridge)
    bridge.until(lambda: all(bound(bridge, pods)), 200)


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
