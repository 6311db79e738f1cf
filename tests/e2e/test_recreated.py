"""Pods that are lost and made anew by their controllers: every time one placeholder, none leaked and none doubled."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_groups, support_kinds, support_observer, support_slots, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

GANG = {names.JOB_PREFIX + "gang": "true"}
MEMBER_LOST = names.JOB_PREFIX + "member-lost"

#: The Job controller waits ten seconds before it replaces a pod that failed.
BACK_OFF_SECONDS = 30.0

#: A CronJob starts something every full minute.
MINUTE_SECONDS = 75.0


@pytest.fixture(scope="module")
def watched(open_world: OpenWorld) -> Iterator[tuple[World, support_observer.Observer]]:
    """One daemon, watched all the time; the CronJobs come first, because they take their time."""
    world = open_world("recreated")
    with support_observer.observing(world) as observer:
        _cron_jobs(world)
        yield world, observer


@pytest.fixture
def world(watched: tuple[World, support_observer.Observer]) -> World:
    """The daemon that is watched."""
    return watched[0]


def _cron_jobs(world: World) -> None:
    """One run is due at once, because the last one seems to be long ago; the next one at the full minute."""
    objects = Objects(world)
    long_ago = (dt.datetime.now(dt.UTC) - dt.timedelta(minutes=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for policy in ("Allow", "Replace"):
        name = f"every-{policy.lower()}"
        jobs = {"spec": {"template": support_kinds.template(world)}}
        objects.create("CronJob", name, {"schedule": "* * * * *", "concurrencyPolicy": policy, "jobTemplate": jobs})
        world.kube.merge(f"{objects.path('CronJob', name)}/status", {"status": {"lastScheduleTime": long_ago}})


def group_of_three(world: World, name: str, **spec: Any) -> list[Json]:
    """The pods of a LeaderWorkerSet of one group, placed."""
    pods = support_kinds.leader_worker_spec(support_kinds.served(world), 3, **spec)
    Objects(world).create("LeaderWorkerSet", name, pods)
    return support_groups.placed(world, name, 3)


def await_end(world: World, *job_ids: int) -> None:
    """Until none of these jobs lives."""
    gone = set(job_ids)
    wait.until(lambda: not gone & {one.job_id for one in support_groups.living(world)}, f"end of {gone}", 30)


LOSSES = {
    "container": lambda world, pods: support_kinds.crash(world, pods[2]),
    "worker": lambda world, pods: world.delete(pods[1]["metadata"]["name"]),
    "leader": lambda world, pods: world.delete(pods[0]["metadata"]["name"]),
}


@pytest.mark.real
@pytest.mark.timeout(90)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_group_that_is_recreated_when_one_pod_restarts_has_one_new_job(world: World, loss: str) -> None:
    """RecreateGroupOnPodRestart: pods that are born and die while the old group goes get no job of their own.

    The controller deletes leaders by name: where it is late, it sometimes deletes the new one with its group, too.
    """
    name, began = f"again-{loss}", world.kube.version(world.path)
    pods = group_of_three(world, name)
    first = support_groups.together(world, pods)
    LOSSES[loss](world, sorted(pods, key=lambda one: str(one["metadata"]["name"])))
    again = support_groups.together(world, support_groups.renewed(world, name, pods))
    await_end(world, first.job_id)
    jobs = [one.job_id for one in support_groups.jobs_for(world, "LeaderWorkerSet", name)]
    assert (jobs[0], jobs[-1]) == (first.job_id, again.job_id)
    assert 2 <= len(jobs) <= len(leaders(world, name, began)), jobs
    Objects(world).delete("LeaderWorkerSet", name)
    await_end(world, again.job_id)


def leaders(world: World, name: str, since: str) -> set[str]:
    """The uids of all pods that led the group, as the API server remembers."""
    pods = (event["object"] for event in world.kube.watch(world.path, 1, since))
    return {one["metadata"]["uid"] for one in pods if one["metadata"]["name"] == f"{name}-0"}


@pytest.mark.real
def test_a_worker_of_a_group_that_is_not_recreated_takes_the_free_place(world: World) -> None:
    """RestartPolicy None: the others run on, and the successor is bound by the job that runs."""
    pods = group_of_three(world, "stays", restartPolicy="None")
    job = support_groups.together(world, pods)
    world.delete("stays-0-1")
    wait.until(lambda: successor(world, "stays-0-1", pods), "successor", 20)
    assert support_groups.together(world, support_groups.placed(world, "stays", 3)).job_id == job.job_id
    assert len(support_groups.jobs_for(world, "LeaderWorkerSet", "stays")) == 1
    Objects(world).delete("LeaderWorkerSet", "stays")
    await_end(world, job.job_id)


def successor(world: World, name: str, old: list[Json]) -> bool:
    """A new pod of this name."""
    one = world.pod(name)
    return one is not None and one["metadata"]["uid"] not in support_kinds.uids(old)


@pytest.mark.real
@pytest.mark.timeout(90)
def test_a_jobset_that_restarts_is_a_new_incarnation_with_one_job(world: World) -> None:
    """The old placeholder ends with the last pod of the old attempt; the new one stands for all new pods."""
    pods = support_kinds.template(world)
    parts = {name: support_kinds.job_spec(pods, count, backoffLimit=0) for name, count in (("lead", 1), ("work", 2))}
    objects = Objects(world)
    objects.create("JobSet", "retried", support_kinds.job_set_spec(parts, failurePolicy={"maxRestarts": 2}))
    old = support_groups.placed(world, "retried", 3)
    first = support_groups.together(world, old)
    support_kinds.fail(world, next(one for one in old if "work" in one["metadata"]["name"]))
    again = support_groups.together(world, support_groups.renewed(world, "retried", old))
    await_end(world, first.job_id)
    assert [job.owner["uid"].split(":")[1] for job in (first, again)] == ["0", "1"]
    assert len(support_groups.jobs_for(world, "JobSet", "retried")) == 2
    objects.delete("JobSet", "retried")
    await_end(world, again.job_id)


@pytest.mark.real
@pytest.mark.timeout(90)
def test_the_replacement_of_a_jobs_failed_member_takes_the_free_place(world: World) -> None:
    """The job runs on with the others, and no other pod is given the node of the one that failed."""
    objects = Objects(world)
    objects.create("Job", "retrying", support_kinds.job_spec(support_kinds.template(world), 3, backoffLimit=3), GANG)
    old = support_groups.placed(world, "retrying", 3)
    job = support_groups.together(world, old)
    lost = old[0]
    support_kinds.fail(world, lost)
    wait.until(lambda: len(support_kinds.members(world, "retrying")) == 2, "failure", 20)
    members = support_groups.placed(world, "retrying", 3, BACK_OFF_SECONDS)
    assert support_groups.together(world, members).job_id == job.job_id
    assert support_slots.where(lost) in set(map(support_slots.where, members))
    assert len(support_groups.jobs_for(world, "Job", "retrying")) == 1
    objects.delete("Job", "retrying")
    await_end(world, job.job_id)


@pytest.mark.real
@pytest.mark.timeout(60)
def test_a_job_that_may_not_fail_ends_as_a_whole(world: World) -> None:
    """BackoffLimit 0: its controller ends the others, and the placeholder ends with the last of them."""
    objects = Objects(world)
    objects.create("Job", "strict", support_kinds.job_spec(support_kinds.template(world), 3, backoffLimit=0), GANG)
    pods = support_groups.placed(world, "strict", 3)
    job = support_groups.together(world, pods)
    support_kinds.fail(world, pods[0])
    await_end(world, job.job_id)
    assert len(support_groups.jobs_for(world, "Job", "strict")) == 1


@pytest.mark.real
@pytest.mark.timeout(90)
def test_t43_a_group_that_wants_so_starts_anew_when_it_loses_a_member(world: World) -> None:
    """`member-lost: restart-group` on pods of a StatefulSet that are a group: all go, and come back under one job."""
    marks = {MEMBER_LOST: "restart-group", **support_world.FOREVER}
    pods = support_kinds.template(world, marks, restartPolicy="Always")
    spec = support_kinds.replicas_spec("united", pods, 3, serviceName="united", podManagementPolicy="Parallel")
    labels = {names.SCHEDULER_PREFIX + "group": "united", names.SCHEDULER_PREFIX + "group-size": "3"}
    spec["template"]["metadata"]["labels"] |= labels
    objects = Objects(world)
    objects.create("StatefulSet", "united", spec)
    old = support_groups.placed(world, "united", 3)
    first = support_groups.together(world, old)
    world.delete("united-1")
    again = support_groups.together(world, support_groups.renewed(world, "united", old))
    assert again.job_id != first.job_id
    await_end(world, first.job_id)
    objects.delete("StatefulSet", "united")
    await_end(world, again.job_id)


@pytest.mark.real
@pytest.mark.timeout(90)
def test_t42_a_pod_of_the_same_name_gets_a_job_of_its_own(world: World) -> None:
    """StatefulSet: the old job ends when the old pod has ended, which takes its time, and the new pod has another."""
    objects = Objects(world)
    pods = support_kinds.template(world, {"kwok.local/terminating": "2s"}, restartPolicy="Always")
    objects.create("StatefulSet", "data", support_kinds.replicas_spec("data", pods, 2, serviceName="data"))
    old = support_groups.placed(world, "data", 2)
    jobs = {one.owner["name"]: one.job_id for one in support_groups.apart(world, old)}
    world.delete("data-0")
    assert jobs["data-0"] in {one.job_id for one in support_groups.living(world)}, "it still uses what its job holds"
    wait.until(lambda: successor(world, "data-0", old), "successor", 20)
    new = {
        one.owner["name"]: one.job_id for one in support_groups.apart(world, support_groups.placed(world, "data", 2))
    }
    assert new["data-1"] == jobs["data-1"]
    assert new["data-0"] != jobs["data-0"]
    await_end(world, jobs["data-0"])
    objects.delete("StatefulSet", "data")
    await_end(world, *new.values())


@pytest.mark.real
@pytest.mark.timeout(120)
def test_runs_of_a_cronjob_that_overlap_have_a_job_each(world: World) -> None:
    """Allow: both run, each with its placeholder."""
    pods = support_groups.placed(world, "every-allow", 2, MINUTE_SECONDS)
    jobs = support_groups.apart(world, pods)
    Objects(world).delete("CronJob", "every-allow")
    await_end(world, *(one.job_id for one in jobs))


@pytest.mark.real
@pytest.mark.timeout(120)
def test_a_run_of_a_cronjob_that_replaces_another_ends_its_job(world: World) -> None:
    """Replace: one pod and one placeholder are left, and they are the new ones."""

    def ever() -> set[int]:
        return {one.job_id for one in world.slurm.jobs_of(world.daemon.cluster_id) if is_replaced(one.owner)}

    wait.until(lambda: len(ever()) >= 2, "second run", MINUTE_SECONDS, every=0.5)
    (pod,) = support_groups.placed(world, "every-replace", 1)
    (job,) = support_groups.apart(world, [pod])
    await_end(world, *(ever() - {job.job_id}))
    Objects(world).delete("CronJob", "every-replace")
    await_end(world, job.job_id)


def is_replaced(owner: Any) -> bool:
    """A run of the CronJob that replaces."""
    return bool(owner["name"].startswith("every-replace"))


@pytest.mark.real
def test_nothing_was_ever_doubled_misplaced_or_left(watched: tuple[World, support_observer.Observer]) -> None:
    """What the observer saw all the time."""
    world, observer = watched
    # The API server's garbage collector has pods end whose CronJob is gone: it pauses whenever kinds come or go.
    world.await_nothing_in_slurm(100)
    seen = observer.seen
    assert {line for line in seen.wrong if not line.startswith("I7")} == set()
    assert seen.looks > 10
