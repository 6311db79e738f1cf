"""A group waits, starts, is stopped, changes and ends as a whole."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_farm, support_foreign, support_groups, support_kinds, support_servers, support_world
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_groups import message
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json, SlurmJob
from tests.e2e.support_world import World

GANG = {names.JOB_PREFIX + "gang": "true"}

#: A partition that is down: jobs wait there for ever.
CLOSED = {names.JOB_PREFIX + "partition": "closed"}


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Two machines of two CPUs in a partition that a test may close and open."""
    with support_farm.built(kube, slurm, 0, 0, cpus=2) as farm:
        yield farm


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld) -> World:
    """One daemon for all groups."""
    assert farm.nodes
    return open_world("gangs", workloads={"incomplete_seconds": 2})


@contextlib.contextmanager
def closed(world: World, farm: Farm) -> Iterator[dict[str, str]]:
    """Annotations of pods whose jobs wait as long as this lasts, and start afterwards."""
    world.slurm.command("scontrol", "update", f"PartitionName={farm.partition}", "State=DOWN")
    try:
        yield {names.JOB_PREFIX + "partition": farm.partition}
    finally:
        world.slurm.command("scontrol", "update", f"PartitionName={farm.partition}", "State=UP")


def group(world: World, name: str, numbers: Sequence[int], size: int, marks: Mapping[str, str] | None = None) -> None:
    """Some of the bare pods that together are a group of this size."""
    labels = {names.SCHEDULER_PREFIX + "group": name, names.SCHEDULER_PREFIX + "group-size": str(size)}
    made = []
    for number in numbers:
        annotations = {**support_world.FOREVER, **(marks or {})}
        one = support_world.pod(f"{name}-{number}", world.daemon.scheduler, annotations=annotations)
        one["metadata"]["labels"] = labels
        made.append(one)
    world.create(*made)


def the_job(world: World, kind: str, name: str, other_than: int = 0) -> SlurmJob:
    """The one living placeholder of this object, once there is one."""
    seen: list[list[SlurmJob]] = [[]]

    def there() -> bool:
        found = support_groups.jobs_for(world, kind, name)
        seen[0] = [one for one in found if one.alive and one.job_id != other_than]
        return len(seen[0]) == 1

    wait.until(there, f"job of {kind} {name}\n{world.daemon.last_words(10)}", 20, every=0.3)
    return seen[0][0]


def await_end(world: World, job_id: int) -> None:
    """Until this job is over."""
    wait.until(lambda: job_id not in {one.job_id for one in support_groups.living(world)}, f"end of {job_id}", 20)


@pytest.mark.real
def test_a_group_is_not_submitted_before_all_are_there(world: World) -> None:
    """Three of four wait and say so; with the fourth all are placed at once."""
    group(world, "four", range(3), 4)
    waiting_ones = support_groups.awaited(world, "four", 3, support_world.waits_for("GangIncomplete"), "waiting")
    assert {"3 of 4" in message(one) for one in waiting_ones} == {True}, list(map(message, waiting_ones))
    assert support_groups.jobs_for(world, "Group", "four") == []
    group(world, "four", [3], 4)
    support_groups.together(world, support_groups.placed(world, "four", 4))


@pytest.mark.real
@pytest.mark.parametrize("kind", ["Job", "JobSet"])
def test_a_suspended_group_has_no_placeholder(world: World, kind: str) -> None:
    """It goes when a running group is suspended, and a new one comes when the group is resumed."""
    objects, name = Objects(world), f"sleeps-{kind.lower()}"
    job = support_kinds.job_spec(support_kinds.template(world), 3)
    objects.create(kind, name, job if kind == "Job" else support_kinds.job_set_spec({"all": job}), GANG)
    first = support_groups.together(world, support_groups.placed(world, name, 3))
    objects.change(kind, name, suspend=True)
    await_end(world, first.job_id)
    assert support_kinds.members(world, name) == []
    objects.change(kind, name, suspend=False)
    again = support_groups.together(world, support_groups.placed(world, name, 3))
    assert again.job_id != first.job_id
    assert len(support_groups.jobs_for(world, kind, name)) == 2


@pytest.mark.real
def test_a_waiting_group_that_is_suspended_leaves_the_queue(world: World) -> None:
    """Nothing waits in Slurm for pods that must not run."""
    objects = Objects(world)
    objects.create("Job", "naps", support_kinds.job_spec(support_kinds.template(world), 3), {**GANG, **CLOSED})
    first = the_job(world, "Job", "naps")
    objects.change("Job", "naps", suspend=True)
    await_end(world, first.job_id)
    objects.change("Job", "naps", suspend=False)
    again = the_job(world, "Job", "naps")
    objects.delete("Job", "naps")
    await_end(world, again.job_id)


@pytest.mark.real
def test_scancel_of_a_running_group_ends_all_its_pods(world: World) -> None:
    """Each says why before it goes, and an event tells it in Slurm's words."""
    group(world, "stopped", range(3), 3)
    pods = support_groups.placed(world, "stopped", 3)
    kept = {"metadata": {"finalizers": ["tests.local/kept"]}}
    for one in pods:
        world.kube.merge(f"{world.path}/{one['metadata']['name']}", kept)
    world.slurm.cancel(support_groups.together(world, pods).job_id)
    for one in pods:
        name = one["metadata"]["name"]
        gone = world.await_pod(name, "deletion", lambda pod: "deletionTimestamp" in pod["metadata"])
        assert "CANCELLED" in support_servers.condition(gone, "DisruptionTarget").get("message", "")
        world.kube.merge(f"{world.path}/{name}", {"metadata": {"finalizers": None}})
    uids = support_kinds.uids(pods)
    wait.until(lambda: any("SlurmJobEnded" in world.reasons(uid) for uid in uids), "event", 15)
    for one in pods:
        world.await_gone(one["metadata"]["name"])


@pytest.mark.real
def test_scancel_of_a_waiting_group_parks_all_its_pods(world: World) -> None:
    """The group is not submitted again behind the administrator's back, until a user asks for it."""
    group(world, "parked", range(3), 3, CLOSED)
    first = the_job(world, "Group", "parked").job_id
    world.slurm.cancel(first)

    def told(one: Json) -> bool:
        return str(first) in message(one) and "cancel" in message(one).lower()

    support_groups.awaited(world, "parked", 3, told, "parked")
    assert support_groups.living_of(world, "Group", "parked") == []
    world.annotate("parked-0", {names.ANNOTATION_RETRY: "please"})
    again = the_job(world, "Group", "parked")
    assert len(support_groups.jobs_for(world, "Group", "parked")) == 2
    world.slurm.cancel(again.job_id)


@pytest.mark.real
@pytest.mark.timeout(90)
def test_t43_a_member_that_is_deleted_before_the_start_leaves_no_request_for_it(world: World, farm: Farm) -> None:
    """Without it the group is incomplete and asks for nothing; with its successor one job stands for exactly these."""
    with closed(world, farm) as marks:
        group(world, "rebuilt", range(3), 3, marks)
        first = the_job(world, "Group", "rebuilt")
        world.delete("rebuilt-1")
        support_groups.awaited(world, "rebuilt", 2, support_world.waits_for("GangIncomplete"), "incomplete")
        await_end(world, first.job_id)
        group(world, "rebuilt", [1], 3, marks)
        again = the_job(world, "Group", "rebuilt")
        assert again.owner["members"] != first.owner["members"]
    job = support_groups.together(world, support_groups.placed(world, "rebuilt", 3))
    assert job.job_id == again.job_id
    world.kube.delete(f"{world.path}?gracePeriodSeconds=0&labelSelector={names.SCHEDULER_PREFIX}group%3Drebuilt")
    await_end(world, job.job_id)


@pytest.mark.real
@pytest.mark.timeout(90)
def test_t17_members_that_come_later_join_a_waiting_job(world: World, farm: Farm) -> None:
    """Two are enough for this PodGroup and are submitted; a third makes the request larger; all start together."""
    Objects(world).create("CoschedulingPodGroup", "grows", {"minMember": 2})
    named = {"scheduling.x-k8s.io/pod-group": "grows"}
    with closed(world, farm) as asked:
        marks = {**asked, **support_world.FOREVER}
        support_kinds.grouped(world, "grows-a", 2, marks=marks, labels=named)
        first = the_job(world, "PodGroup", "grows")
        assert first.text["tasks"]["number"] == 2
        support_kinds.grouped(world, "grows-b", 1, marks=marks, labels=named)
        wait.until(lambda: the_job(world, "PodGroup", "grows").text["tasks"]["number"] == 3, "larger request", 20)
    job = support_groups.together(world, support_groups.placed(world, "grows", 3))
    assert job.text["tasks"]["number"] == 3
    world.kube.delete(f"{world.path}?gracePeriodSeconds=0&labelSelector=scheduling.x-k8s.io%2Fpod-group%3Dgrows")
    await_end(world, job.job_id)


@pytest.mark.real
@pytest.mark.timeout(90)
def test_t27_no_member_starts_before_there_is_room_for_all(world: World, farm: Farm) -> None:
    """Four CPUs in all and one taken: a group of four waits as a whole, and starts as one when it is free."""
    taken = world.slurm.submit({**support_foreign.EXTERNAL, "partition": farm.partition})
    group(world, "patient", range(4), 4, {names.JOB_PREFIX + "partition": farm.partition})
    support_groups.awaited(world, "patient", 4, support_world.waits_for("SlurmJobPending"), "waiting")
    assert not any(map(support_world.is_bound, support_kinds.members(world, "patient")))
    world.slurm.cancel(taken)
    pods = support_groups.placed(world, "patient", 4)
    support_groups.together(world, pods)
    assert sorted(map(len, support_groups.on_nodes(pods).values())) == [2, 2]


@pytest.mark.real
def test_t10_groups_of_one_name_in_two_namespaces_stay_apart(world: World, open_world: OpenWorld) -> None:
    """Two of three here and one there are no group."""
    other = support_world.World(
        kube=world.kube, slurm=world.slurm, daemon=world.daemon, namespace=open_world("twin", start=False).namespace
    )
    group(world, "twins", range(2), 3)
    group(other, "twins", [2], 3)
    support_groups.awaited(world, "twins", 2, support_world.waits_for("GangIncomplete"), "incomplete")
    (lonely,) = support_groups.awaited(other, "twins", 1, support_world.waits_for("GangIncomplete"), "incomplete")
    assert "1 of 3" in message(lonely)


@pytest.mark.real
def test_a_group_without_its_object_says_what_it_waits_for(world: World) -> None:
    """The PodGroup that a pod names may come later."""
    named = {"scheduling.x-k8s.io/pod-group": "unborn"}
    support_kinds.grouped(world, "unborn", 2, marks=support_world.FOREVER, labels=named)
    early = support_groups.awaited(world, "unborn", 2, support_world.waits_for("GroupMissing"), "waiting")
    assert {"unborn" in message(one) for one in early} == {True}
    Objects(world).create("CoschedulingPodGroup", "unborn", {"minMember": 2})
    support_groups.together(world, support_groups.placed(world, "unborn", 2))


@pytest.mark.real
def test_nothing_is_left(world: World) -> None:
    """All pods go, and with them every placeholder."""
    objects = Objects(world)
    objects.delete("Job", "sleeps-job")
    objects.delete("JobSet", "sleeps-jobset")
    world.kube.delete(f"{world.path}?gracePeriodSeconds=2")
    wait.until(lambda: not support_groups.living(world), "end of all placeholders", 30, every=0.5)
