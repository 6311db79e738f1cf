"""When one side ends, the other is told: scancel, deleted pods, time limits."""

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_foreign, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

#: Keeps a deleted pod where it can be looked at; only the test takes it away.
KEPT = "tests.local/kept"

#: A partition that is down: jobs wait there.
WAITING = {names.JOB_PREFIX + "partition": "closed", **support_world.FOREVER}

#: slurmctld looks at time limits every half minute.
LIMIT_SECONDS = 75.0


@pytest.fixture(scope="module")
def world(open_world: OpenWorld) -> World:
    """A site that holds what replaces a Job's pod after a timeout, and submits all others again."""
    return open_world("ends", ends={"after_timeout": {"default": "resubmit", "Job": "hold"}})


@pytest.fixture(scope="module")
def limited(world: World) -> dict[str, Json]:
    """A pod of a Job and one of a ReplicaSet whose time is over; asked for early, because that takes its time."""
    world.create_job(support_world.job("once", world.daemon.scheduler, 1, annotations=support_world.FOREVER))
    path = f"/apis/apps/v1/namespaces/{world.namespace}/replicasets"
    world.kube.create(path, support_world.replica_set("always", world.daemon.scheduler, 1, support_world.FOREVER))
    wait.until(lambda: len(owned(world)) == 2, "pods of both owners")
    for owner in owned(world):
        bound = world.await_pod(owned(world)[owner]["metadata"]["name"], "a node", support_world.is_bound)
        job_id = str(support_world.job_id(bound))
        world.slurm.command("scontrol", "update", f"JobId={job_id}", "EndTime=now+1")
    return owned(world)


def owned(world: World) -> dict[str, Json]:
    """Owner -> its pod that is not on its way out."""
    found = {}
    for one in world.pods():
        owner = (one["metadata"].get("ownerReferences") or [{"name": ""}])[0]["name"]
        if owner and "deletionTimestamp" not in one["metadata"] and not support_world.is_over(one):
            found[owner] = one
    return found


def bound(world: World, name: str, **metadata: object) -> Json:
    """A pod that runs until it is deleted."""
    manifest = support_world.pod(name, world.daemon.scheduler, annotations=support_world.FOREVER)
    manifest["metadata"].update(metadata)
    world.create(manifest)
    return world.await_pod(name, "a node", support_world.is_bound)


def waits(world: World, name: str) -> tuple[Json, int]:
    """A pod whose job Slurm keeps waiting, and that job."""
    (made,) = world.create(support_world.pod(name, world.daemon.scheduler, annotations=WAITING))
    return made, world.await_placeholder(made["metadata"]["uid"]).job_id


@pytest.mark.real
def test_scancel_of_a_running_job_ends_its_pod(world: World, limited: dict[str, Json]) -> None:
    """The pod says DisruptionTarget and why, is deleted, and an event tells it in Slurm's words."""
    assert limited
    pod = bound(world, "cancelled", finalizers=[KEPT])
    world.slurm.cancel(support_world.job_id(pod))
    gone = world.await_pod("cancelled", "deletion", lambda one: "deletionTimestamp" in one["metadata"])
    said = support_servers.condition(gone, "DisruptionTarget")
    assert said["status"] == "True"
    assert "CANCELLED" in said["message"]
    uid = gone["metadata"]["uid"]
    wait.until(lambda: "SlurmJobEnded" in world.reasons(uid), "event")
    world.kube.merge(f"{world.path}/cancelled", {"metadata": {"finalizers": None}})
    world.await_gone("cancelled")
    assert world.placeholder(uid) is None


@pytest.mark.real
def test_newcomers_are_bound_elsewhere_while_a_pod_does_not_end(world: World) -> None:
    """Slurm counts its node as free, and gives it first; on the second node they are bound within seconds."""
    large = support_world.asks(cpu="40")
    stubborn = {**support_world.FOREVER, "kwok.local/terminating": "hang"}
    world.create(support_world.pod("stubborn", world.daemon.scheduler, annotations=stubborn, containers=large))
    first = world.await_pod("stubborn", "a node", support_world.is_bound)
    world.slurm.cancel(support_world.job_id(first))
    world.await_pod("stubborn", "deletion", lambda one: "deletionTimestamp" in one["metadata"])
    names = [f"newcomer-{number}" for number in range(3)]
    made = world.create(
        *(
            support_world.pod(name, world.daemon.scheduler, annotations=support_world.FOREVER, containers=large)
            for name in names
        )
    )
    nodes = {world.await_pod(name, "a node", support_world.is_bound, 12)["spec"]["nodeName"] for name in names}
    assert len(nodes) == 3
    assert first["spec"]["nodeName"] not in nodes
    jobs = [one for pod in made for one in world.placeholders(pod["metadata"]["uid"])]
    assert any("still runs pod" in one.owner.get("note", "") for one in jobs)
    world.delete("stubborn?gracePeriodSeconds=0")
    for name in names:
        world.delete(name)
    world.await_gone("stubborn")


@pytest.mark.real
def test_scancel_of_a_waiting_job_parks_its_pod(world: World) -> None:
    """The administrator's word is written on the pod at once, and only the user's next word brings a new job."""
    pod, first = waits(world, "parked")
    uid = pod["metadata"]["uid"]
    world.slurm.cancel(first)
    parked = world.await_pod("parked", "mark", lambda one: names.ANNOTATION_PARKED in one["metadata"]["annotations"])
    said = world.await_pod("parked", "word", lambda one: "cancel" in message(one).lower())
    assert str(first) in message(said)
    assert parked["metadata"]["uid"] == uid
    assert world.placeholder(uid) is None
    world.annotate("parked", {names.ANNOTATION_RETRY: "please"})
    assert world.await_placeholder(uid).job_id != first
    assert len(world.placeholders(uid)) == 2, "nothing was submitted while the pod was parked"
    world.delete("parked")


def message(pod: Json) -> str:
    """Why it is not scheduled."""
    return str(support_servers.condition(pod, "PodScheduled").get("message", ""))


@pytest.mark.real
def test_deleting_a_waiting_pod_cancels_its_job(world: World) -> None:
    """Slurm keeps why: a note in the owner record."""
    pod, job_id = waits(world, "unwanted")
    world.delete("unwanted")
    assert ended(world, pod) == job_id


@pytest.mark.real
def test_deleting_a_running_pod_cancels_its_job(world: World) -> None:
    """Only when the pod is over, because until then it uses what Slurm would give away."""
    pod = bound(world, "stopped")
    world.delete("stopped")
    assert ended(world, pod) == support_world.job_id(pod)


@pytest.mark.real
def test_ends_of_many_at_once_are_theirs_alone(world: World, foreign: support_foreign.Foreign) -> None:
    """Jobs that are cancelled together end their pods, pods that are deleted together their jobs, and no others."""
    before = foreign.now()
    names_ = [one["metadata"]["name"] for one in world.create_pods("many", 30, support_world.FOREVER)]
    pods = [world.await_pod(name, "a node", support_world.is_bound) for name in names_]
    cancelled, deleted, kept = pods[:14], pods[14:28], pods[28:]
    world.slurm.cancel(*map(support_world.job_id, cancelled))
    support_servers.each(deleted, lambda one: world.delete(one["metadata"]["name"]))
    for one in (*cancelled, *deleted):
        world.await_gone(one["metadata"]["name"])
    over = {one["metadata"]["uid"] for one in (*cancelled, *deleted)}
    wait.until(lambda: not over & living(world), "end of the jobs of deleted pods")
    assert all("SlurmJobEnded" not in world.reasons(one["metadata"]["uid"]) for one in (*deleted, *kept))
    assert {one["metadata"]["uid"] for one in kept} <= living(world)
    assert foreign.now() == before
    support_servers.each(kept, lambda one: world.delete(one["metadata"]["name"]))


def living(world: World) -> set[str]:
    """The uids of pods whose jobs live."""
    return {str(one.owner["uid"]) for one in world.slurm.alive(world.daemon.cluster_id)}


@pytest.mark.real
def test_the_job_of_a_pod_that_fails_ends_too(world: World) -> None:
    """And says that it failed."""
    marks = {support_world.OUTCOME: "fail", "kwok.local/seconds": "1"}
    (pod,) = world.create(support_world.pod("fails", world.daemon.scheduler, annotations=marks))
    world.await_pod("fails", "end", support_world.is_over)
    assert ended(world, pod)
    assert "Failed" in world.placeholders(pod["metadata"]["uid"])[-1].owner["note"]


def ended(world: World, pod: Json) -> int:
    """The job of this pod, once it is over and says why."""
    uid = pod["metadata"]["uid"]
    wait.until(lambda: world.placeholder(uid) is None, f"end of the job of {uid}", 30)
    last = world.placeholders(uid)[-1]
    assert "CANCELLED" in last.states
    assert last.owner.get("note"), "the record says why the job was withdrawn"
    return last.job_id


@pytest.mark.real
@pytest.mark.timeout(150)
def test_a_pod_that_replaces_one_out_of_time_is_submitted_again(world: World, limited: dict[str, Json]) -> None:
    """What serves for ever goes on."""
    again = replacement(world, limited, "always")
    assert world.await_pod(again["metadata"]["name"], "a node", support_world.is_bound)


@pytest.mark.real
@pytest.mark.timeout(150)
def test_a_jobs_pod_that_replaces_one_out_of_time_is_held_where_the_site_says_so(
    world: World, limited: dict[str, Json]
) -> None:
    """A run that never ends in its time does not run for ever; the user reads why, and may say: again."""
    again = replacement(world, limited, "once")
    name, uid = again["metadata"]["name"], again["metadata"]["uid"]
    said = world.await_pod(name, "word", lambda one: "time limit" in message(one).lower())
    assert world.placeholders(uid) == []
    world.annotate(said["metadata"]["name"], {names.ANNOTATION_RETRY: "once more"})
    assert world.await_pod(name, "a node", support_world.is_bound)


def replacement(world: World, limited: dict[str, Json], owner: str) -> Json:
    """The pod that its owner made anew."""
    uid = limited[owner]["metadata"]["uid"]
    wait.until(lambda: owned(world).get(owner, limited[owner])["metadata"]["uid"] != uid, "new pod", LIMIT_SECONDS)
    # Slurm forgets a job half a minute after its end; the event stays.
    jobs = world.placeholders(uid)
    assert len(jobs) <= 1
    assert all("TIMEOUT" in one.states for one in jobs)
    wait.until(lambda: ended_words(world, uid), "event that the job has ended")
    assert ["(TIMEOUT" in said for said in ended_words(world, uid)] == [True]
    return owned(world)[owner]


def ended_words(world: World, uid: str) -> list[str]:
    """What events say of the end of this pod's job."""
    return [one["message"] for one in world.events(uid) if one["reason"] == "SlurmJobEnded"]


@pytest.mark.real
def test_a_daemon_that_comes_back_finds_what_happened_meanwhile(world: World, foreign: support_foreign.Foreign) -> None:
    """A pod that was deleted and one whose job was cancelled while no daemon ran; others' jobs are not touched."""
    before = foreign.now()
    left, lost = bound(world, "left"), bound(world, "lost")
    assert world.daemon.stop() == 0
    world.delete("left")
    world.slurm.cancel(support_world.job_id(lost))
    world.daemon.start()
    world.daemon.await_ready()
    world.await_gone("lost")
    assert ended(world, left) == support_world.job_id(left)
    assert foreign.now() == before
