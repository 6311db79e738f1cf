"""GPUs: groups on as few machines as they need, leaders and workers that differ, and single pods side by side."""

import contextlib
import dataclasses
from collections.abc import Iterator

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_farm, support_groups, support_kinds, support_servers, support_slots
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

GANG = {names.JOB_PREFIX + "gang": "true"}

#: What machines each case has for itself: the GPUs of each.
MACHINES = {
    "packed": (4, 4),
    "singles": (8,),
    "fits": (4,),
    "differs": (4, 4),
    "torn": (4, 4),
    "mixed": (4,),
    "falls-back": (4, 4),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scene:
    """A daemon that uses what Slurm can do, one that is told not to, and the machines."""

    world: World
    plain: World
    farms: dict[str, Farm]


@pytest.fixture(scope="module")
def farms(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[dict[str, Farm]]:
    """All machines, before any daemon looks."""
    with contextlib.ExitStack() as stack:
        yield {
            name: stack.enter_context(support_farm.built(kube, slurm, *gpus, cpus=32))
            for name, gpus in MACHINES.items()
        }


@pytest.fixture(scope="module")
def scene(farms: dict[str, Farm], open_world: OpenWorld) -> Scene:
    """Everything there is."""
    plain = open_world("plain", workloads={"heterogeneous": "never"})
    return Scene(world=open_world("gpus"), plain=plain, farms=farms)


def at(scene: Scene, case: str, **marks: str) -> dict[str, str]:
    """Annotations of an object that is to run on the machines of this case."""
    partition = {names.JOB_PREFIX + "partition": scene.farms[case].partition}
    return partition | {names.JOB_PREFIX + key: value for key, value in marks.items()}


def leader_and_workers(world: World, workers: int) -> Json:
    """A leader with two GPUs and so many workers with one."""
    worker = support_kinds.served(world, containers=support_kinds.containers(gpus=1))
    leader = support_kinds.served(world, containers=support_kinds.containers(cpu="2", gpus=2))
    return support_kinds.leader_worker_spec(worker, 1 + workers, leader=leader)


@pytest.mark.real
def test_eight_pods_of_one_gpu_fill_two_machines_of_four(scene: Scene) -> None:
    """4 + 4, in the order of their ranks; nothing is asked about the number of nodes."""
    pods = support_kinds.template(scene.world, containers=support_kinds.containers(gpus=1))
    spec = support_kinds.job_spec(pods, 8)
    Objects(scene.world).create("Job", "packed", spec, at(scene, "packed", gang="true", environment="true"))
    members = support_groups.placed(scene.world, "packed", 8)
    job = support_groups.together(scene.world, members)
    found = support_groups.on_nodes(members)
    ranks = [sorted(int(name.split("-")[1]) for name in found[node]) for node in job.node_names]
    assert ranks == [[0, 1, 2, 3], [4, 5, 6, 7]]
    marks = [member["metadata"]["annotations"] for member in members]
    told = {tuple(int(one[key]) for key in (names.ANNOTATION_RANK, names.ANNOTATION_NODE_NUMBER)) for one in marks}
    assert told == {(rank, rank // 4) for rank in range(8)}
    # Slurm names their indices, too, where it knows them.
    assert {one[names.ANNOTATION_DEVICES].partition("(IDX:")[0] for one in marks} == {"gpu:4"}


@pytest.mark.real
def test_eight_single_pods_of_one_gpu_share_a_machine_of_eight(scene: Scene) -> None:
    """Eight jobs on one node."""
    pods = support_kinds.template(scene.world, containers=support_kinds.containers(gpus=1))
    Objects(scene.world).create("Job", "singles", support_kinds.job_spec(pods, 8), at(scene, "singles"))
    members = support_groups.placed(scene.world, "singles", 8)
    assert len(support_groups.apart(scene.world, members)) == 8
    assert set(support_groups.on_nodes(members)) == set(scene.farms["singles"].nodes)


@pytest.mark.real
def test_a_leader_that_differs_from_its_workers_shares_their_machine_where_all_fit(scene: Scene) -> None:
    """Two GPUs and two times one are four: one job that is not heterogeneous, on one node."""
    spec = leader_and_workers(scene.world, 2)
    Objects(scene.world).create("LeaderWorkerSet", "fits", spec, at(scene, "fits"))
    job = support_groups.together(scene.world, support_groups.placed(scene.world, "fits", 3))
    assert not job.text["het_job_id"]["number"]
    assert support_slots.shares(job.job_id, {job.job_id: job})[job.nodes].gpus == 4


@pytest.mark.real
@pytest.mark.timeout(90)
def test_a_leader_that_differs_from_its_workers_gets_a_machine_of_its_own_where_they_do_not_fit(scene: Scene) -> None:
    """Five GPUs on machines of four: a heterogeneous job of two components, and no pod gets more than it requests."""
    spec = leader_and_workers(scene.world, 3)
    Objects(scene.world).create("LeaderWorkerSet", "differs", spec, at(scene, "differs"))
    members = support_groups.placed(scene.world, "differs", 4, support_groups.HET_SECONDS)
    whole = support_groups.together(scene.world, members)
    parts = components(scene.world, whole.job_id)
    held = support_slots.shares(whole.job_id, {one.job_id: one for one in parts})
    assert [held[one.nodes].gpus for one in parts] == [2, 3]
    found = support_groups.on_nodes(members)
    assert found[parts[0].nodes] == ["differs-0"]
    assert found[parts[1].nodes] == ["differs-0-1", "differs-0-2", "differs-0-3"]


def components(world: World, job_id: int) -> list[support_servers.SlurmJob]:
    """In their order."""
    jobs = {one.job_id: one for one in world.slurm.parts_of(world.daemon.cluster_id)}
    return sorted(support_slots.parts(job_id, jobs), key=lambda one: int(one.text["het_job_offset"]["number"]))


@pytest.mark.real
@pytest.mark.timeout(90)
def test_a_component_that_ends_alone_ends_the_whole_group(scene: Scene) -> None:
    """The workers' component is cancelled: the leader's ends too, its pods go, and the group starts anew."""
    spec = leader_and_workers(scene.world, 3)
    objects = Objects(scene.world)
    objects.create("LeaderWorkerSet", "torn", spec, at(scene, "torn"))
    members = support_groups.placed(scene.world, "torn", 4, support_groups.HET_SECONDS)
    first = support_groups.together(scene.world, members).job_id
    scene.world.slurm.cancel(components(scene.world, first)[1].job_id)
    wait.until(lambda: not any(one.alive for one in components(scene.world, first)), "end of all components", 20)
    old = support_kinds.uids(members)
    wait.until(lambda: not old & support_kinds.uids(scene.world.pods()), "end of all members", 20)
    again = support_groups.renewed(scene.world, "torn", members, support_groups.HET_SECONDS)
    assert support_groups.together(scene.world, again).job_id != first
    objects.delete("LeaderWorkerSet", "torn")


@pytest.mark.real
def test_members_with_and_without_gpus_share_a_machine(scene: Scene) -> None:
    """A JobSet of a driver without a GPU and four workers with one: one node has what all of them need together."""
    pods = {
        "driver": support_kinds.template(scene.world, containers=support_kinds.containers(cpu="4", memory="1Gi")),
        "workers": support_kinds.template(scene.world, containers=support_kinds.containers(gpus=1)),
    }
    counts = {"driver": 1, "workers": 4}
    parts = {name: support_kinds.job_spec(pods[name], count) for name, count in counts.items()}
    Objects(scene.world).create("JobSet", "mixed", support_kinds.job_set_spec(parts), at(scene, "mixed"))
    job = support_groups.together(scene.world, support_groups.placed(scene.world, "mixed", 5))
    share = support_slots.shares(job.job_id, {job.job_id: job})[job.nodes]
    assert (share.cpus, share.gpus) == (8, 4)


@pytest.mark.real
def test_without_heterogeneous_jobs_every_member_counts_as_the_largest_and_an_event_says_so(scene: Scene) -> None:
    """Four times two GPUs on two machines; the site does not want heterogeneous jobs."""
    spec = leader_and_workers(scene.plain, 3)
    made = Objects(scene.plain).create("LeaderWorkerSet", "falls-back", spec, at(scene, "falls-back"))
    members = support_groups.placed(scene.plain, "falls-back", 4)
    job = support_groups.together(scene.plain, members)
    assert (job.text["tasks"]["number"], job.text["het_job_id"]["number"]) == (4, 0)
    assert len(job.node_names) == 2
    uid = made["metadata"]["uid"]
    wait.until(lambda: "SlurmJobWidened" in scene.plain.reasons(uid), "event", 15)
    (told,) = [one["message"] for one in scene.plain.events(uid) if one["reason"] == "SlurmJobWidened"]
    assert "each is requested as (2 cpus" in told, told


@pytest.mark.real
def test_typed_gpus_are_given_back(scene: Scene) -> None:
    """Twelve on two machines of eight, twice: what the first group had the second one gets."""
    marks = {
        names.JOB_PREFIX + key: value
        for key, value in {"partition": "gpu", "gres": "gpu:v100:1", "constraints": "v100", "gang": "true"}.items()
    }
    pods = support_kinds.template(scene.world, containers=support_kinds.containers(gpus=1))
    objects = Objects(scene.world)
    for name in ("first", "second"):
        objects.create("Job", name, support_kinds.job_spec(pods, 12), marks)
        members = support_groups.placed(scene.world, name, 12)
        job = support_groups.together(scene.world, members)
        assert [len(found) for found in support_groups.on_nodes(members).values()] == [6, 6]
        objects.delete("Job", name)
        wait.until(lambda gone=job.job_id: not alive(scene.world, gone), f"end of job {job.job_id}", 20)


def alive(world: World, job_id: int) -> bool:
    """It is not over."""
    return any(one.job_id == job_id for one in support_groups.living(world))
