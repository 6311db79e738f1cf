"""MPIJobs: which pods are one gang, as the MPI operator makes them, and what forged owner references do not reach."""

from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Deadline, Gang, Root
from slurm_bridge.workloads import base, known
from slurm_bridge.workloads.kinds import mpijob
from tests.unit.workloads.heard import GANG, NO_GANG, Heard, Members, reference

KEY = names.JOB_PREFIX + "partition"
WAITS = {"launcherCreationPolicy": "WaitForWorkersReady"}


def mpi(world: Heard, workers: int | None = 2, *, policy: Any = None, spec: Any = None, **values: Any) -> Object:
    """An MPIJob `pi` of one launcher and so many workers, as the API server has it."""
    replicas: dict[str, Any] = {"Launcher": {"template": {}}, "Worker": {"template": {}}}
    replicas["Worker"] |= {} if workers is None else {"replicas": workers}
    made = {"mpiReplicaSpecs": replicas, "runPolicy": policy or {}, **(spec or {})}
    return world.put(mpijob.MPIJOBS, "pi", spec=made, **values)


def worker(world: Heard, above: Object, number: int = 0, **values: Any) -> Pod:
    """A pod of the MPIJob itself."""
    labels = {names.LABEL_MPI_NAME: above.metadata.name}
    return world.pod(f"pi-worker-{number}", above=(mpijob.MPIJOBS, above), labels=labels, **values)


def launcher(world: Heard, above: Object, *, heard: bool = True, **values: Any) -> Pod:
    """The pod of a Job of the MPIJob; `heard`: a watch has delivered the Job."""
    make = world.put if heard else world.made
    job = make(kinds.JOBS, "pi-launcher", above=(mpijob.MPIJOBS, above), spec={})
    if not heard:
        world.server.there[kinds.JOBS, "default", "pi-launcher"] = job
    labels = {names.LABEL_MPI_NAME: above.metadata.name}
    return world.pod("pi-launcher-x7k2p", above=(kinds.JOBS, job), labels=labels, **values)


def test_launcher_and_workers_start_together_as_the_mpijob_asks() -> None:
    """Under its name, the launcher last."""
    world = Heard()
    found = mpi(world, annotations={KEY: "gpu"})
    pods = [launcher(world, found), worker(world, found, 1), worker(world, found)]
    assert world.wait(*pods[:2]).message == "2 of 3 pods of MPIJob default/pi are there"
    whole = world.whole(*pods)
    assert [pod.metadata.name for pod in whole.pods] == ["pi-worker-0", "pi-worker-1", "pi-launcher-x7k2p"]
    assert (whole.job_name, whole.gang) == ("pi", Gang(minimum=3, size=3))
    assert [str(one) for one in whole.sources] == ["Pod/pi-worker-0", "MPIJob/pi"]
    assert whole.root == whole.controller == Root(kind="MPIJob", namespace="default", name="pi", uid=found.uid)
    assert base.subject(whole.root, world.known) == base.WorkloadObject(kind=mpijob.MPIJOBS, object=found)


def test_a_launcher_that_is_made_once_the_workers_are_ready_is_not_waited_for() -> None:
    """The operator makes it only then, so a gang with it would never be complete."""
    world = Heard()
    found = mpi(world, spec=WAITS)
    whole = world.whole(worker(world, found), worker(world, found, 1))
    assert (whole.job_name, whole.gang) == ("pi-worker", Gang(minimum=2, size=2))
    later = world.whole(launcher(world, found))
    assert (later.job_name, later.gang) == ("pi-launcher", Gang(minimum=1, size=1))
    assert later.root.uid != whole.root.uid


@pytest.mark.parametrize(
    ("workers", "spec", "policy", "least", "most"),
    [
        (4, {}, {}, 5, 5),
        (4, {}, {"schedulingPolicy": {"minAvailable": 3}}, 3, 5),
        (4, {}, {"schedulingPolicy": {"minAvailable": 99}}, 5, 5),
        (4, {}, {"schedulingPolicy": {"minAvailable": -1}}, 1, 5),
        (None, {}, {}, 1, 1),
        (0, WAITS, {}, 1, 1),
        (-3, {}, {}, 1, 1),
        (4, {"mpiReplicaSpecs": {"Launcher": {}, "Worker": None}}, {}, 1, 1),
        (4, {"mpiReplicaSpecs": {"Launcher": {}}}, {}, 1, 1),
    ],
)
def test_with_how_many_pods_an_mpijob_starts(workers: Any, spec: Any, policy: Any, least: int, most: int) -> None:
    """All that the operator will make, or as few as the program says that it can do with."""
    world = Heard()
    found = mpi(world, workers, spec=spec, policy=policy)
    pods = [launcher(world, found), *(worker(world, found, number) for number in range(most - 1))]
    assert world.whole(*pods).gang == Gang(minimum=least, size=most)


def test_an_mpijob_may_ask_for_single_pods() -> None:
    """Each then has a job of its own, as the MPIJob asks."""
    world = Heard()
    found = mpi(world, annotations={**NO_GANG, KEY: "gpu"})
    for pod in (worker(world, found), launcher(world, found)):
        whole = world.whole(pod)
        assert (whole.root.uid, whole.gang, whole.job_name) == (pod.uid, None, pod.metadata.name)
        assert "MPIJob/pi" in [str(one) for one in whole.sources]


def test_a_suspended_mpijob_has_no_placeholder() -> None:
    """Its pods are about to be deleted."""
    world = Heard()
    found = mpi(world, policy={"suspend": True})
    assert world.whole(worker(world, found)).suspended == "MPIJob default/pi"


def test_the_deadline_of_an_mpijob_is_that_of_its_pods() -> None:
    """The operator writes it into the Job of the launcher, and removes the workers when that has failed."""
    world = Heard()
    found = mpi(world, 1, policy={"activeDeadlineSeconds": 90})
    whole = world.whole(worker(world, found), launcher(world, found))
    assert whole.deadline == Deadline(seconds=90, subject="MPIJob default/pi")


def test_a_launcher_whose_job_no_watch_has_delivered_comes_to_the_others() -> None:
    """The Job is read once, and the pod then moves."""
    world = Heard()
    found = mpi(world)
    pod = launcher(world, found, heard=False)
    root = world.claim(pod)
    assert root.kind == "Pod"
    moved = base.gather(root, Members(pod), world.given)
    assert moved == base.Moved(Root(kind="MPIJob", namespace="default", name="pi", uid=found.uid))


def test_pods_wait_for_an_mpijob_that_is_not_known_yet() -> None:
    """Its arrival wakes them: each names it, the launcher by a label."""
    world = Heard()
    made = world.made(mpijob.MPIJOBS, "pi", spec={})
    pods = [worker(world, made), launcher(world, made)]
    assert {world.claim(pod).uid for pod in pods} == {"MPIJob:default/pi"}
    assert world.wait(*pods).reason == "GroupMissing"
    assert all("pi" in base.handles(pod) for pod in pods)


def test_without_the_operator_its_pods_are_grouped_as_without_the_kind() -> None:
    """A cluster that does not serve MPIJobs has none."""
    world = Heard(kinds.JOBS)
    made = world.made(mpijob.MPIJOBS, "pi", spec={})
    assert world.claim(worker(world, made)).kind == "Pod"
    assert world.claim(launcher(world, made)).kind == "Pod"


@pytest.mark.security("identity")
def test_a_forged_owner_reference_reaches_no_mpijob_of_another_namespace() -> None:
    """Neither of a pod nor of a Job, although the uid is right; the gang starts without them and keeps its words."""
    world = Heard()
    found = mpi(world, annotations=GANG)
    pods = [launcher(world, found), worker(world, found), worker(world, found, 1)]
    forged = worker(world, found, 7, namespace="evil")
    job = world.put(kinds.JOBS, "pi-launcher", namespace="evil", above=(mpijob.MPIJOBS, found), spec={})
    other = world.pod("x", namespace="evil", above=(kinds.JOBS, job))
    for pod in (forged, other):
        assert world.claim(pod).key != world.claim(pods[0]).key
        assert world.wait(pod).reason == "GroupMissing"
    assert len(world.whole(*pods).pods) == 3


@pytest.mark.security("identity")
@pytest.mark.parametrize(
    "said", [{"uid": "uid-of-another"}, {"name": "other"}, {"kind": "Job"}, {"apiVersion": "x.example/v1"}]
)
def test_an_owner_reference_that_names_another_object_makes_no_member(said: dict[str, str]) -> None:
    """Name, uid, kind and group have to be those of the MPIJob that was read."""
    world = Heard()
    found = mpi(world)
    member = worker(world, found)
    owners = [{**reference(mpijob.MPIJOBS, found), **said}]
    forged = world.pod("forged", metadata={"ownerReferences": owners}, labels={names.LABEL_MPI_NAME: "pi"})
    assert world.claim(forged).key != world.claim(member).key


@pytest.mark.security("identity")
def test_labels_alone_make_no_member_of_an_mpijob() -> None:
    """They only say which change may matter to a pod."""
    world = Heard()
    mpi(world)
    assert world.claim(world.pod("forged", labels={names.LABEL_MPI_NAME: "pi"})).kind == "Pod"


def test_a_huge_mpijob_is_counted_and_not_looked_through() -> None:
    """A user may write any number of workers."""
    world = Heard()
    found = mpi(world, 2**31 - 1)
    members = Members(worker(world, found))
    wait = base.gather(world.claim(members.any()), members, world.given)
    assert getattr(wait, "message", "") == "1 of 2147483648 pods of MPIJob default/pi is there"
    assert members.looked <= 3


def test_the_object_alone_decides_what_matters_to_its_pods() -> None:
    """Its status changes all the time and wakes nothing."""
    world = Heard()
    assert known.meaning(mpi(world)) == known.meaning(mpi(world, status={"replicaStatuses": {"Worker": {"active": 2}}}))
