"""Members that come later, or that may not come yet."""

from collections.abc import Sequence

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_groups, support_kinds, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_groups import message
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

GANG = {names.JOB_PREFIX + "gang": "true"}
LABEL = "scheduling.x-k8s.io/pod-group"


@pytest.fixture(scope="module")
def world(open_world: OpenWorld) -> World:
    """One daemon for all."""
    return open_world("newcomers", workloads={"incomplete_seconds": 2})


def pod_group(world: World, name: str, minimum: int, pods: int) -> list[Json]:
    """More than the least number of pods."""
    Objects(world).create("CoschedulingPodGroup", name, {"minMember": minimum})
    return join(world, name, "first", pods)


def join(world: World, group: str, prefix: str, pods: int, **metadata: Sequence[str]) -> list[Json]:
    """Further pods of a group."""
    made = []
    for number in range(pods):
        one = support_world.pod(f"{group}-{prefix}-{number}", world.daemon.scheduler, annotations=support_world.FOREVER)
        one["metadata"] |= {"labels": {LABEL: group}, **metadata}
        made.append(one)
    return world.create(*made)


def end(world: World, group: str) -> None:
    """All its pods go, and with them its job."""
    world.kube.delete(f"{world.path}?gracePeriodSeconds=0&labelSelector={LABEL.replace('/', '%2F')}%3D{group}")
    wait.until(lambda: not support_groups.living_of(world, "PodGroup", group), f"end of the job of {group}", 20)


@pytest.mark.real
def test_pods_beyond_the_minimum_that_come_with_the_others_start_with_them(world: World) -> None:
    """Two would do and five are there: one job of five."""
    pod_group(world, "five", 2, 5)
    job = support_groups.together(world, support_groups.placed(world, "five", 5))
    assert job.text["tasks"]["number"] == 5
    end(world, "five")


@pytest.mark.real
def test_a_pod_that_comes_after_the_start_waits_for_a_place_and_says_so(world: World) -> None:
    """It gets that of a member that has ended, under the same job, on the same node."""
    pod_group(world, "full", 2, 2)
    old = support_groups.placed(world, "full", 2)
    job = support_groups.together(world, old)
    join(world, "full", "late", 1)
    late = world.await_pod("full-late-0", "reason", message)
    assert not support_world.is_bound(late)
    world.finish(old[:1])
    taken = world.await_pod("full-late-0", "a node", support_world.is_bound)
    assert support_world.job_id(taken) == job.job_id
    assert len(support_groups.jobs_for(world, "PodGroup", "full")) == 1
    end(world, "full")


@pytest.mark.real
def test_t11_pods_that_are_on_their_way_out_do_not_count(world: World) -> None:
    """Two live and one is terminating: two of three."""
    Objects(world).create("CoschedulingPodGroup", "thinned", {"minMember": 3})
    join(world, "thinned", "leaves", 1, finalizers=["tests.local/kept"])
    world.delete("thinned-leaves-0")
    join(world, "thinned", "stays", 2)
    said = support_groups.awaited(world, "thinned", 2, support_world.waits_for("GangIncomplete"), "waiting")
    assert {"2 of 3" in message(one) for one in said} == {True}, list(map(message, said))
    join(world, "thinned", "third", 1)
    support_groups.together(world, support_groups.placed(world, "thinned", 3))
    world.kube.merge(f"{world.path}/thinned-leaves-0", {"metadata": {"finalizers": None}})
    end(world, "thinned")


@pytest.mark.real
def test_pods_that_are_gated_do_not_count_until_the_gate_opens(world: World) -> None:
    """The others wait for them."""
    Objects(world).create("CoschedulingPodGroup", "gated", {"minMember": 3})
    join(world, "gated", "open", 2)
    gated = support_world.pod("gated-shut", world.daemon.scheduler, annotations=support_world.FOREVER)
    gated["metadata"]["labels"] = {LABEL: "gated"}
    gated["spec"]["schedulingGates"] = [{"name": "tests.local/gate"}]
    world.create(gated)
    wait.until(
        lambda: ["2 of 3" in message(one) for one in support_kinds.members(world, "gated-open")] == [True, True],
        "reason",
        20,
    )
    world.kube.merge(f"{world.path}/gated-shut", {"spec": {"schedulingGates": []}})
    support_groups.together(world, support_groups.placed(world, "gated", 3))
    end(world, "gated")


@pytest.mark.real
@pytest.mark.timeout(60)
def test_a_job_with_more_completions_than_places_runs_in_waves(world: World) -> None:
    """Two at once, six in all: never more placeholders than one at a time, and the Job is complete."""
    objects = Objects(world)
    spec = support_kinds.job_spec(support_kinds.template(world, support_world.SHORT), 2)
    objects.create("Job", "waves", {**spec, "completions": 6}, GANG)
    most = 0

    def complete() -> bool:
        nonlocal most
        most = max(most, len(support_groups.living_of(world, "Job", "waves")))
        return objects.get("Job", "waves")["status"].get("succeeded") == 6

    wait.until(complete, f"end of the Job\n{world.daemon.last_words()}", 50, every=0.5)
    wait.until(lambda: not support_groups.living_of(world, "Job", "waves"), "end of its placeholder", 20)
    assert most == 1


@pytest.mark.real
@pytest.mark.timeout(60)
def test_a_job_that_is_made_wider_while_it_runs_says_what_its_new_pods_wait_for(world: World) -> None:
    """The two that run are left alone; it may become narrower again, and ends without leaving anything."""
    objects = Objects(world)
    spec = {**support_kinds.job_spec(support_kinds.template(world), 2), "completions": 6}
    objects.create("Job", "wider", spec, GANG)
    old = support_groups.placed(world, "wider", 2)
    job = support_groups.together(world, old)
    objects.change("Job", "wider", parallelism=4)
    wait.until(lambda: len(support_kinds.members(world, "wider")) == 4, "new pods", 10)
    gone = support_kinds.uids(old)

    def told() -> bool:
        new = [one for one in support_kinds.members(world, "wider") if one["metadata"]["uid"] not in gone]
        return all(map(message, new)) and not any(map(support_world.is_bound, new))

    wait.until(told, "reasons", 20)
    assert [one.job_id for one in support_groups.living_of(world, "Job", "wider")] == [job.job_id]
    assert support_groups.together(world, [one for one in world.pods() if one["metadata"]["uid"] in gone])
    objects.delete("Job", "wider")
    wait.until(lambda: not support_groups.living_of(world, "Job", "wider"), "end of its placeholder", 20)


@pytest.mark.real
@pytest.mark.timeout(60)
def test_a_group_whose_members_end_one_after_the_other_keeps_its_job_to_the_last(world: World) -> None:
    """The placeholder ends with the last member, and the nodes are held until then."""
    objects = Objects(world)
    objects.create("Job", "fades", support_kinds.job_spec(support_kinds.template(world), 3), GANG)
    pods = support_groups.placed(world, "fades", 3)
    job = support_groups.together(world, pods)
    for count, one in enumerate(pods, start=1):
        world.finish([one])
        world.await_pod(one["metadata"]["name"], "success", support_world.has_succeeded)
        if count < len(pods):
            wait.until(lambda n=count: objects.get("Job", "fades")["status"].get("succeeded") == n, "count", 10)
            assert [left.job_id for left in support_groups.living_of(world, "Job", "fades")] == [job.job_id]
    wait.until(lambda: not support_groups.living_of(world, "Job", "fades"), "end of its placeholder", 20)
    assert len(support_groups.jobs_for(world, "Job", "fades")) == 1
