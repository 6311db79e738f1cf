"""Pods with processes, on nodes that have a kubelet and a slurmd: how they end, talk, and share with native jobs."""

from collections.abc import Iterator, Mapping

import pytest

from tests import wait
from tests.e2e import support_real, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

pytestmark = pytest.mark.real

#: Keeps a deleted pod where it can be looked at; only the test takes it away.
KEPT = "tests.local/kept"

#: slurmctld looks at time limits every half minute.
LIMIT_SECONDS = 75.0

#: After SlurmdTimeout, and what slurmctld takes to notice.
DOWN_SECONDS = 120.0


@pytest.fixture(scope="module")
def world(cluster: Mapping[str, str], open_world: OpenWorld) -> World:
    """One daemon whose pods go to the real nodes."""
    support_real.require(cluster)
    return open_world("real", defaults={"partition": support_real.PARTITION})


def test_a_failed_process_ends_its_job(world: World) -> None:
    """The exit code and the log are those of the process, on a node of the partition; Slurm's node is free again."""
    (made,) = world.create(support_real.pod(world, "fails", "echo said; exit 3"))
    assert support_real.ended(world, "fails")["exitCode"] == 3
    assert support_real.log(world, "fails") == "said\n"
    support_real.await_free(world, made["metadata"]["uid"])


def test_a_process_that_takes_too_much_memory_is_killed(world: World) -> None:
    """By its limit, which is what Slurm was asked for."""
    (made,) = world.create(support_real.pod(world, "greedy", "tail /dev/zero"))
    job = world.await_placeholder(made["metadata"]["uid"])
    assert world.slurm.shown(job.job_id)["MinMemoryNode"] == "64M"
    assert support_real.ended(world, "greedy")["reason"] == "OOMKilled"
    support_real.await_free(world, made["metadata"]["uid"])


def test_a_container_that_is_started_anew_keeps_its_job(world: World) -> None:
    """With restartPolicy OnFailure the kubelet tries again on the same node, and Slurm is not asked again."""
    text = "test -e /shared/tried && exit 0; touch /shared/tried; exit 1"
    containers = support_real.script(text, volumeMounts=[{"name": "shared", "mountPath": "/shared"}])
    volumes = [{"name": "shared", "emptyDir": {}}]
    manifest = support_real.pod(world, "again", text, containers=containers, volumes=volumes, restartPolicy="OnFailure")
    (made,) = world.create(manifest)
    assert support_real.ended(world, "again")["exitCode"] == 0
    found = world.pod("again")
    assert found is not None
    assert support_real.container(found)[1] == 1
    assert len(world.placeholders(made["metadata"]["uid"])) == 1


def test_a_job_gives_up_after_its_backoff(world: World) -> None:
    """Every pod that the Job makes gets an allocation of its own, and none is left when it has failed."""
    support_real.job(world, "gives-up", 1, "exit 1", backoffLimit=1)

    def over() -> bool:
        found = world.kube.get(f"/apis/batch/v1/namespaces/{world.namespace}/jobs/gives-up")
        return support_servers.condition(found, "Failed").get("reason") == "BackoffLimitExceeded"

    wait.until(over, "failed Job", 90)
    pods = [one for one in world.pods() if one["metadata"]["name"].startswith("gives-up")]
    assert len({support_world.job_id(one) for one in pods}) == len(pods) == 2
    for one in pods:
        support_real.await_free(world, one["metadata"]["uid"])


def test_a_process_that_takes_its_time_to_end_keeps_its_job(world: World) -> None:
    """After SIGTERM it cleans up for seconds; until then Slurm gives its cpus to no other job."""
    text = "trap 'echo cleaning; sleep 4; echo clean; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    made = support_real.running(world, "slow", text, terminationGracePeriodSeconds=30)
    wait.until(lambda: "ready" in support_real.log(world, "slow"), "trap", 10)
    world.delete("slow")
    wait.until(lambda: "cleaning" in support_real.log(world, "slow"), "signal", 10)
    assert world.placeholder(made["metadata"]["uid"]) is not None
    world.await_gone("slow")
    support_real.await_free(world, made["metadata"]["uid"])


def test_members_of_a_gang_find_the_first_and_talk(world: World) -> None:
    """Two on each node, ranks from the annotations: the first serves the others, by the name it was given."""
    serve = 'for i in 1 2 3; do echo "0 to $i" | nc -l -p 2950$i & done; wait'
    ask = 'until nc "$MASTER_ADDR" "2950$RANK" 2>/dev/null; do sleep 0.2; done'
    text = f'if [ "$RANK" = 0 ]; then {serve}; else {ask}; fi'
    support_real.headless(world, "talks")
    marks = support_real.marks(gang="true", environment="true", min_nodes="2")
    containers = support_real.script(text, env=support_real.environment())
    manifest = support_world.job(
        "talks", world.daemon.scheduler, 4, annotations=marks, containers=containers, subdomain="talks"
    )
    manifest["metadata"]["annotations"] = marks
    manifest["spec"]["completionMode"] = "Indexed"
    world.create_job(manifest)

    def members() -> list[Json]:
        return [one for one in world.pods() if one["metadata"]["name"].startswith("talks")]

    wait.until(lambda: len(members()) == 4 and all(map(support_world.has_succeeded, members())), "all to succeed", 90)
    said = {name.split("-")[1]: text for name, text in support_real.said_by(world, members()).items()}
    assert said == {"0": "", "1": "0 to 1\n", "2": "0 to 2\n", "3": "0 to 3\n"}
    assert len({one["spec"]["nodeName"] for one in members()}) == 2
    assert len({support_world.job_id(one) for one in members()}) == 1


def test_pods_and_native_jobs_share_a_node(world: World) -> None:
    """Each core is one's alone; what does not fit beside the other waits, whichever side asks."""
    first = support_world.job_id(support_real.running(world, "shares", node="real1", cpu="2"))
    native = support_real.submit(world, "sleep 600", "--nodelist=real1", "--ntasks=2")
    support_real.await_state(world, native, "RUNNING")
    pod, job = support_real.held(world, first)["real1"], support_real.held(world, native)["real1"]
    assert (len(pod.cpus), len(job.cpus), pod.cpus & job.cpus) == (2, 2, frozenset())
    assert support_real.allocated(world, "real1") == 4
    waits = support_real.submit(world, "true", "--nodelist=real1", "--ntasks=1")
    (late,) = world.create(support_real.pod(world, "late", "sleep infinity", node="real1"))
    world.await_placeholder(late["metadata"]["uid"])
    assert support_real.state(world, waits) == "PENDING"
    world.slurm.cancel(waits, native)
    bound = world.await_pod("late", "a process", support_real.runs, support_real.SECONDS)
    assert bound["spec"]["nodeName"] == "real1"
    for name in ("shares", "late"):
        world.delete(name)
        world.await_gone(name)


def test_a_pod_waits_while_native_jobs_have_the_nodes(world: World) -> None:
    """The partition is full of them, and when one ends the pod's process starts there."""
    native = support_real.submit(world, "sleep 600", "--nodes=2", "--ntasks-per-node=4")
    support_real.await_state(world, native, "RUNNING")
    (made,) = world.create(support_real.pod(world, "queues", "echo ran"))
    job = world.await_placeholder(made["metadata"]["uid"])
    assert "PENDING" in job.states
    world.slurm.cancel(native)
    assert support_real.ended(world, "queues")["exitCode"] == 0


def test_scancel_ends_the_process(world: World) -> None:
    """It gets SIGTERM, and the pod says what ended it."""
    text = "trap 'echo told; exit 7' TERM; echo ready; while :; do sleep 0.1; done"
    manifest = support_real.pod(world, "cancelled", text, terminationGracePeriodSeconds=20)
    manifest["metadata"]["finalizers"] = [KEPT]
    world.create(manifest)
    bound = world.await_pod("cancelled", "a process", support_real.runs, support_real.SECONDS)
    wait.until(lambda: "ready" in support_real.log(world, "cancelled"), "trap", 10)
    world.slurm.cancel(support_world.job_id(bound))
    assert support_real.ended(world, "cancelled")["exitCode"] == 7
    found = world.pod("cancelled")
    assert found is not None
    assert "CANCELLED" in support_servers.condition(found, "DisruptionTarget")["message"]
    world.kube.merge(f"{world.path}/cancelled", {"metadata": {"finalizers": None}})
    world.await_gone("cancelled")


def test_a_time_limit_ends_the_process(world: World) -> None:
    """Slurm's TIMEOUT, as for a native job."""
    manifest = support_real.pod(world, "limited", "sleep infinity")
    manifest["metadata"]["finalizers"] = [KEPT]
    world.create(manifest)
    bound = world.await_pod("limited", "a process", support_real.runs, support_real.SECONDS)
    job_id = str(support_world.job_id(bound))
    world.slurm.command("scontrol", "update", f"JobId={job_id}", "EndTime=now+1")
    assert support_real.ended(world, "limited", LIMIT_SECONDS)["exitCode"] != 0
    found = world.pod("limited")
    assert found is not None
    assert "TIMEOUT" in support_servers.condition(found, "DisruptionTarget")["message"]
    world.kube.merge(f"{world.path}/limited", {"metadata": {"finalizers": None}})
    world.await_gone("limited")


# -- what is killed, one part of a node at a time


@pytest.fixture
def healed() -> Iterator[None]:
    """Whatever was killed is started again."""
    yield
    for name in ("real1-machine", "real1-containerd", "real1-kubelet", "real1-dra", "slurmd-real1"):
        support_real.heal(name)


@pytest.mark.disruptive
@pytest.mark.usefixtures("healed")
def test_a_process_that_ends_while_its_kubelet_is_dead(world: World) -> None:
    """The next kubelet reports the exit code, and the job ends with it; until then it stays."""
    made = support_real.running(world, "unseen", "nc -l -p 9000 > /dev/null; exit 4", node="real1")
    support_servers.part("real1-kubelet", "kill")
    support_real.hang_up(made["status"]["podIP"], 9000)
    assert world.placeholder(made["metadata"]["uid"]) is not None
    support_servers.part("real1-kubelet", "start")
    assert support_real.ended(world, "unseen")["exitCode"] == 4
    support_real.await_free(world, made["metadata"]["uid"])


@pytest.mark.disruptive
@pytest.mark.usefixtures("healed")
def test_a_slurmd_that_comes_back_costs_no_pod(world: World) -> None:
    """The pod and its job run on, and Slurm gives their cpus to no native job."""
    made = support_real.running(world, "spared", node="real1")
    before = world.placeholder(made["metadata"]["uid"])
    support_servers.part("slurmd-real1", "kill", "start")
    native = support_real.submit(world, "sleep 600", "--nodelist=real1", "--ntasks=3")
    support_real.await_state(world, native, "RUNNING")
    after, found = world.placeholder(made["metadata"]["uid"]), world.pod("spared")
    assert before is not None
    assert after is not None
    assert found is not None
    assert (after.job_id, support_real.container(found)) == (before.job_id, support_real.container(made))
    pod, job = (support_real.held(world, one)["real1"].cpus for one in (after.job_id, native))
    assert not pod & job
    world.slurm.cancel(native)
    world.delete("spared")
    world.await_gone("spared")


@pytest.mark.disruptive
@pytest.mark.usefixtures("healed")
def test_a_slurmd_that_stays_away_costs_the_pods_of_its_node(world: World) -> None:
    """Slurm ends all jobs of a node that is down, so that the process ends as well, and says why."""
    manifest = support_real.pod(world, "lost", "sleep infinity", node="real1")
    manifest["metadata"]["finalizers"] = [KEPT]
    world.create(manifest)
    world.await_pod("lost", "a process", support_real.runs, support_real.SECONDS)
    support_servers.part("slurmd-real1", "kill")
    support_real.ended(world, "lost", DOWN_SECONDS)
    found = world.pod("lost")
    assert found is not None
    assert "NODE_FAIL" in support_servers.condition(found, "DisruptionTarget")["message"]
    world.kube.merge(f"{world.path}/lost", {"metadata": {"finalizers": None}})
    world.await_gone("lost")
    support_servers.part("slurmd-real1", "start")
    support_real.running(world, "returns", node="real1")
    world.delete("returns")
    world.await_gone("returns")


@pytest.mark.disruptive
@pytest.mark.usefixtures("healed")
def test_a_node_is_rebooted(world: World) -> None:
    """Its pod has failed when it is back, no job stands for it any more, and the next pod runs there."""
    made = support_real.running(world, "rebooted", node="real1")
    support_servers.part("slurmd-real1", "kill")
    support_servers.part("real1-machine", "kill", "start")
    for name in ("real1-containerd", "real1-kubelet", "real1-dra", "slurmd-real1"):
        support_servers.part(name, "start")
    assert support_real.ended(world, "rebooted")["exitCode"] != 0
    support_real.await_free(world, made["metadata"]["uid"])
    support_real.running(world, "afterwards", node="real1")
    world.delete("afterwards")
    world.await_gone("afterwards")
