"""LeaderWorkerSets and JobSets: their marks on pods as the real controllers put them."""

from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.model.workload import Gang, MemberLost, Root
from slurm_bridge.workloads import base
from slurm_bridge.workloads.known import Options
from tests.unit.workloads.heard import GANG, NO_GANG, Heard, Members
from tests.unit.workloads.sets import all_of, jobset, lws, of_jobset, of_lws, part

KEY = names.JOB_PREFIX + "partition"


# LeaderWorkerSet


def test_each_group_of_a_leaderworkerset_is_a_gang() -> None:
    """The leader is first, the object speaks, and nobody is asked for the StatefulSets between."""
    world = Heard()
    found = lws(world, annotations={KEY: "gpu"})
    leader, worker, other = of_lws(world, 0, 0), of_lws(world, 0, 1), of_lws(world, 1, 0)
    assert world.claim(leader) == world.claim(worker)
    assert world.claim(other).uid == "uid-lws:1"
    assert world.wait(worker).message == "1 of 2 pods of group 0 of LeaderWorkerSet default/lws is there"
    whole = world.whole(worker, leader)
    assert whole.pods == (leader, worker)
    assert whole.job_name == "lws-0"
    assert [str(source) for source in whole.sources] == ["Pod/lws-0", "LeaderWorkerSet/lws"]
    assert whole.controller == Root(kind="LeaderWorkerSet", namespace="default", name="lws", uid="uid-lws")
    assert base.subject(whole.root, world.known) == base.WorkloadObject(kind=kinds.LEADERWORKERSETS, object=found)
    assert world.server.asked == 0


@pytest.mark.parametrize(
    ("restart", "lost"),
    [
        ("RecreateGroupOnPodRestart", MemberLost.FOLLOW),
        ("RecreateGroupAfterStart", MemberLost.FOLLOW),
        ("None", MemberLost.KEEP),
        ("Default", MemberLost.KEEP),
    ],
)
def test_the_restart_policy_says_what_follows_a_loss(restart: str, lost: MemberLost) -> None:
    """Unless an annotation does."""
    world = Heard()
    lws(world, 1, restart)
    assert world.whole(of_lws(world, 0, 0, 1)).gang == Gang(minimum=1, size=1, member_lost=lost)
    lws(world, 1, restart, annotations={names.ANNOTATION_MEMBER_LOST: "restart-group"})
    gang = world.whole(of_lws(world, 0, 0, 1)).gang
    assert gang is not None
    assert gang.member_lost is MemberLost.RESTART


@pytest.mark.parametrize(
    "late", [{"startup": "LeaderReady"}, {"annotations": {names.ANNOTATION_LWS_EXCLUSIVE: "rack"}}]
)
def test_where_workers_come_only_after_the_leader_they_are_a_gang_of_their_own(late: dict[str, Any]) -> None:
    """All together they would wait for each other for ever."""
    world = Heard()
    lws(world, 3, **late)
    leader, workers = of_lws(world, 0, 0, 3), [of_lws(world, 0, number, 3) for number in (2, 1)]
    assert world.whole(leader).gang == Gang(minimum=1, size=1, member_lost=MemberLost.FOLLOW)
    assert world.claim(leader).uid == "uid-lws:0:leader"
    assert "1 of 2" in world.wait(workers[0]).message
    found = world.whole(*workers)
    assert (found.root.uid, found.job_name) == ("uid-lws:0:workers", "lws-0-workers")
    assert found.pods == tuple(reversed(workers))


def test_groups_of_the_old_size_and_the_new_one_exist_while_an_update_rolls() -> None:
    """A pod was made for the size that stands on it; without that the object says."""
    world = Heard()
    lws(world, 3)
    assert world.whole(of_lws(world, 0, 0), of_lws(world, 0, 1)).gang is not None
    assert "2 of 3" in world.wait(of_lws(world, 1, 0, 3), of_lws(world, 1, 1, 3)).message
    bare = of_lws(world, 2, 0, annotations={names.ANNOTATION_LWS_SIZE: "?"})
    assert "1 of 3" in world.wait(bare).message


def test_a_copy_of_a_groups_pod_is_a_pod_of_its_own() -> None:
    """Somebody looks for an error; labels alone make no member."""
    world = Heard()
    lws(world)
    copy = world.pod("copy", labels=of_lws(world, 0, 0).metadata.labels)
    assert world.claim(copy).uid == copy.uid


def test_pods_of_an_unknown_set_wait_for_it() -> None:
    """Pods may be heard of before it is; each group by itself, as later."""
    world = Heard()
    one = of_lws(world, 0, 0)
    assert world.wait(one).reason == "GroupMissing"
    assert world.claim(one) != world.claim(of_lws(world, 1, 0))
    assert "lws" in base.handles(one)


def test_a_leaderworkerset_is_not_looked_for_where_there_are_none() -> None:
    """Then its pods are those of a StatefulSet."""
    world = Heard(kinds.JOBS)
    pod = of_lws(world, 0, 0)
    assert world.claim(pod).uid == pod.uid


# JobSet


def test_a_whole_jobset_is_a_gang_in_the_order_of_its_spec() -> None:
    """The driver, then the Jobs of the workers, index by index."""
    world = Heard()
    found = jobset(world, annotations={KEY: "gpu"})
    pods = all_of(world, found)
    assert len({world.claim(pod) for pod in pods}) == 1
    assert world.wait(*pods[:4]).message == "4 of 5 pods of JobSet default/set are there"
    whole = world.whole(*pods)
    assert whole.pods == tuple(reversed(pods))
    assert (whole.root.uid, whole.job_name) == ("uid-set:0", "set")
    assert [str(source) for source in whole.sources] == ["Pod/set-driver-0-0-x", "JobSet/set"]
    assert whole.controller == Root(kind="JobSet", namespace="default", name="set", uid="uid-set")
    assert whole.gang == Gang(minimum=5, size=5)
    assert base.subject(whole.root, world.known) == base.WorkloadObject(kind=kinds.JOBSETS, object=found)


def test_a_restart_of_a_jobset_is_another_workload() -> None:
    """Pods of the old run may still be ending when those of the new one come."""
    world = Heard()
    found = jobset(world)
    old, new = of_jobset(world, found, "driver"), of_jobset(world, found, "driver", run="1")
    assert (world.claim(old).uid, world.claim(new).uid) == ("uid-set:0", "uid-set:1")


STEPS = [
    {"order": "InOrder"},
    {"parts": (part("driver"), part("work", replicas=2, pods=2, dependsOn=[{"name": "driver", "status": "Ready"}]))},
]


@pytest.mark.parametrize("steps", STEPS)
def test_parts_that_start_one_after_the_other_are_gangs_of_their_own(steps: dict[str, Any]) -> None:
    """All together they would wait for each other for ever."""
    world, values = Heard(), dict(steps)
    found = jobset(world, *values.pop("parts", ()), **values)
    driver = world.whole(of_jobset(world, found, "driver"))
    assert (driver.root.uid, driver.job_name) == ("uid-set:0:driver", "set-driver")
    worker = of_jobset(world, found, "work")
    assert world.wait(worker).message == "1 of 4 pods of work of JobSet default/set is there"


def test_one_part_alone_waits_for_no_other() -> None:
    """An order of one is no order."""
    world = Heard()
    found = jobset(world, part("work", pods=2), order="InOrder")
    assert world.claim(of_jobset(world, found, "work")).uid == "uid-set:0"


def test_where_followers_need_a_placed_leader_pods_are_placed_one_by_one() -> None:
    """The webhook refuses them before; not where the nodes have been labelled by hand."""
    world = Heard()
    exclusive = {names.ANNOTATION_JOBSET_EXCLUSIVE: "rack"}
    found = jobset(world, annotations=exclusive)
    pod = of_jobset(world, found, "work")
    assert world.claim(pod).uid == pod.uid
    jobset(world, annotations={**exclusive, names.ANNOTATION_JOBSET_SELECTED: "true"})
    assert world.claim(pod).uid == "uid-set:0"
    template: dict[str, Any] = part("work")
    template["template"]["metadata"] = {"annotations": exclusive}
    jobset(world, template)
    assert world.claim(pod).uid == pod.uid


@pytest.mark.parametrize(
    ("setting", "said", "in_order", "uid"),
    [
        ("auto", {}, False, "uid-set:0"),
        ("auto", {}, True, "uid-set:0:driver"),
        ("auto", GANG, True, "uid-set:0:driver"),
        ("auto", NO_GANG, False, "pod"),
        ("gang", {}, True, "uid-set:0"),
        ("gang", GANG, True, "uid-set:0"),
        ("gang", NO_GANG, True, "pod"),
        ("replicatedjob", {}, False, "uid-set:0:driver"),
        ("replicatedjob", GANG, False, "uid-set:0"),
        ("pod", {}, False, "pod"),
        ("pod", GANG, False, "uid-set:0"),
        ("pod", {names.ANNOTATION_MINIMUM_NODES: "2"}, False, "uid-set:0"),
        ("pod", {names.ANNOTATION_GANG: "perhaps"}, False, "pod"),
    ],
)
def test_what_is_one_workload_of_a_jobset(setting: Any, said: dict[str, str], in_order: bool, uid: str) -> None:
    """The table in the module, row by row."""
    world = Heard(options=Options(jobset=setting))
    found = jobset(world, annotations=said, order="InOrder" if in_order else "AnyOrder")
    pod = of_jobset(world, found, "driver")
    assert world.claim(pod).uid == (pod.uid if uid == "pod" else uid)


def test_pods_of_a_jobset_placed_one_by_one_bear_their_jobs_name_and_the_jobsets_words() -> None:
    """Even where every other Job is a gang: its Jobs are parts of it."""
    world = Heard(options=Options(jobset="pod", job="gang"))
    found = jobset(world, annotations={KEY: "gpu"})
    whole = world.whole(of_jobset(world, found, "work", job=1))
    assert (whole.gang, whole.job_name) == (None, "set-work-1")
    assert [str(source) for source in whole.sources] == ["Pod/set-work-1-0-x", "JobSet/set"]


def test_a_gang_that_cannot_be_whole_says_why() -> None:
    """A setting that makes some JobSets wait for ever names itself."""
    world = Heard(options=Options(jobset="gang"))
    found = jobset(world, order="InOrder")
    assert "setting workloads.jobset is gang" in world.wait(of_jobset(world, found, "driver")).message


def test_what_has_been_done_is_not_waited_for() -> None:
    """Pods that come after some have succeeded are fewer; only Jobs of this run count, and of this part."""
    world = Heard()
    found = jobset(world)
    pods = all_of(world, found)
    done = {"spec": {"parallelism": 2, "completions": 2}, "status": {"succeeded": 1}}
    half = of_jobset(world, found, "work", index=1, job_has=done)
    assert world.whole(pods[0], pods[1], half, pods[4]).gang == Gang(minimum=4, size=4)
    old = {"spec": {"parallelism": 2, "completions": 2}, "status": {"succeeded": 2}}
    of_jobset(world, found, "work", job=7, run="6", job_has=old)
    assert "3 of 4" in world.wait(*pods[:2], half).message
    assert world.wait(half).retry_after is not None


def test_what_another_part_has_done_does_not_count() -> None:
    """Each replicated job waits for its own pods."""
    world = Heard()
    found = jobset(world, order="InOrder")
    done = {"spec": {"parallelism": 1, "completions": 1}, "status": {"succeeded": 1}}
    of_jobset(world, found, "driver", job_has=done)
    assert "1 of 4" in world.wait(of_jobset(world, found, "work")).message


def test_t08_before_its_job_is_known_a_pod_is_claimed_by_its_marks() -> None:
    """As later, so that it need not move."""
    world = Heard()
    found = jobset(world)
    early = of_jobset(world, found, "driver", known=False)
    root = world.claim(early)
    assert root == world.claim(of_jobset(world, found, "driver"))
    assert set(base.handles(early)) == {"set-driver-0", "set"}


def test_t08_an_owner_above_a_jobset_does_not_hide_it() -> None:
    """Whatever manages JobSets, be it readable or not, neither claims nor speaks for them."""
    world = Heard()
    manager = world.made(kinds.STATEFULSETS, "manager", annotations={KEY: "wrong"})
    world.server.there[kinds.STATEFULSETS, "default", "manager"] = manager
    found = jobset(world, part("driver"), above=(kinds.STATEFULSETS, manager), annotations={KEY: "gpu"})
    whole = world.whole(of_jobset(world, found, "driver"))
    assert whole.root.kind == "JobSet"
    assert whole.sources[-1].annotations == {KEY: "gpu"}


def test_t08_a_job_that_no_jobset_owns_is_its_own_whatever_its_marks_say() -> None:
    """Its owner may have been deleted without it, or the marks were copied."""
    world = Heard()
    marks = of_jobset(world, jobset(world), "driver").metadata.labels
    job = world.put(kinds.JOBS, "copy", labels=marks)
    pod = world.pod("copy-x", above=(kinds.JOBS, job), labels=marks)
    assert world.claim(pod).uid == pod.uid
    assert world.whole(pod).job_name == "copy"
    bare = world.pod("bare", labels=marks)
    assert world.claim(bare).uid == "uid-bare"


def test_t08_a_jobset_that_is_gone_or_another_of_its_name_is_waited_for() -> None:
    """Its pods are on their way out, or it has not been heard of yet."""
    world = Heard()
    found = jobset(world)
    pod = of_jobset(world, found, "driver")
    world.drop(kinds.JOBSETS, found)
    assert world.wait(pod).reason == "GroupMissing"
    jobset(world, uid="another")
    assert world.wait(pod).reason == "GroupMissing"
    assert world.claim(pod).uid == "JobSet:default/set:0"


def test_t08_without_jobsets_in_the_cluster_its_pods_are_those_of_jobs() -> None:
    """Somebody's leftovers."""
    everywhere = Heard()
    world = Heard(kinds.JOBS)
    pod = of_jobset(world, jobset(everywhere), "driver")
    assert world.claim(pod).uid == pod.uid
    assert world.whole(pod).job_name == "set-driver-0"


def test_t10_jobsets_of_one_name_in_two_namespaces_stay_apart() -> None:
    """The uid tells them apart, and who is known in one says nothing of the other."""
    world = Heard()
    here = jobset(world)
    there = jobset(world, uid="uid-there", namespace="other")
    one, two = of_jobset(world, here, "driver"), of_jobset(world, there, "driver", namespace="other", known=False)
    assert world.claim(one).uid == "uid-set:0"
    assert (world.claim(two).uid, world.claim(two).namespace) == ("uid-there:0", "other")


def test_a_suspended_jobset_is_whole_with_whoever_is_left() -> None:
    """It must hold no placeholder, however many of its pods have gone already."""
    world = Heard()
    found = jobset(world, suspend=True)
    whole = world.whole(of_jobset(world, found, "driver"))
    assert (whole.suspended, len(whole.pods)) == ("JobSet default/set", 1)
    assert base.gather(whole.root, Members(), world.given) is None


def test_an_older_controller_that_marks_no_uid_is_understood() -> None:
    """Then the Job says whose it is."""
    world = Heard()
    found = jobset(world)
    pod = of_jobset(world, found, "driver")
    del pod.metadata.labels[names.LABEL_JOBSET_UID]
    assert world.claim(pod).uid == "uid-set:0"
