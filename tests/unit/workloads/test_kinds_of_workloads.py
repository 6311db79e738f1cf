"""How pods become workloads: identity, name, and the order of voices."""

import dataclasses

import msgspec
import pytest

from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.sim import faults
from slurm_bridge.workloads import base, known
from slurm_bridge.workloads.given import Given
from tests.unit.workloads.heard import Members
from tests.unit.workloads.owned import Family, reference


@pytest.fixture
def family() -> Family:
    """A world in which objects own each other."""
    return Family()


def gathered(family: Family, pod: Pod) -> Workload:
    """The workload of a pod of which nothing hinders one."""
    found = gathering(family, pod)
    assert isinstance(found, Workload)
    return found


def root(pod: Pod) -> Root:
    """The workload of a pod of which no owner is known."""
    return base.claim(pod, known.NOTHING, known.Options())


def gathering(family: Family, pod: Pod) -> Workload | Wait | base.Moved | None:
    """Whatever comes of a single pod."""
    return base.gather(root(pod), Members(pod), Given(owners=family.owners(), options=known.Options()))


def test_a_bare_pod_is_a_workload_of_its_own(family: Family) -> None:
    """It has its own name and annotations, and no controller replaces it."""
    pod = family.child(annotations={"a": "1"})
    found = gathered(family, pod)
    assert found.root == Root(kind="Pod", namespace="default", name="pod", uid=pod.uid) == root(pod)
    assert (found.pods, found.job_name, found.controller) == ((pod,), "pod", None)
    assert [(str(source), source.annotations) for source in found.sources] == [("Pod/pod", {"a": "1"})]


def test_each_pod_of_a_job_is_a_workload_under_the_jobs_name(family: Family) -> None:
    """The Job's annotations are stronger than those of its template, and it is the Job that replaces the pod."""
    job = family.owner(kinds.JOBS, "train", partition="gpu")
    pod = family.child(job, annotations={"partition": "cpu"})
    found = gathered(family, pod)
    assert found.root.uid == pod.uid
    assert found.job_name == "train"
    assert found.controller == Root(kind="Job", namespace="default", name="train", uid=str(job["uid"]))
    assert [source.annotations["partition"] for source in found.sources] == ["cpu", "gpu"]


def test_a_job_names_its_pods_even_while_a_jobset_speaks(family: Family) -> None:
    """Names are the nearest's, annotations the highest's."""
    job = family.owner(kinds.JOBS, "j", family.owner(kinds.JOBSETS, "set", partition="big"))
    found = gathered(family, family.child(job))
    assert found.job_name == "j"
    assert [str(source) for source in found.sources] == ["Pod/pod", "JobSet/set"]


def test_a_replica_bears_its_own_name(family: Family) -> None:
    """A ReplicaSet's pods are told apart in squeue."""
    found = gathered(family, family.child(family.owner(kinds.REPLICASETS, "r")))
    assert found.job_name == "pod"
    assert found.controller is not None
    assert found.controller.kind == "ReplicaSet"


def test_a_job_of_another_group_is_no_batch_job(family: Family) -> None:
    """Volcano calls its own kind Job too."""
    foreign = {**reference(kinds.JOBS, "v"), "apiVersion": "batch.volcano.sh/v1alpha1"}
    assert gathered(family, family.child(foreign)).job_name == "pod"


def test_a_controller_is_known_where_it_may_not_be_read(family: Family) -> None:
    """What was learned from one pod holds for its replacement, whichever controller makes it."""
    found = gathered(family, family.child(reference(kinds.REPLICASETS, "r", "u")))
    assert found.controller == Root(kind="ReplicaSet", namespace="default", name="r", uid="u")


def test_an_owner_that_is_no_controller_makes_no_pods(family: Family) -> None:
    """No controller replaces a pod that is only owned."""
    owner = {**family.owner(kinds.REPLICASETS, "r"), "controller": False}
    assert gathered(family, family.child(owner)).controller is None


def test_t10_the_same_name_in_two_namespaces_stays_apart(family: Family) -> None:
    """Workloads are told apart by uid and namespace, never by name."""
    family.kube.create(kinds.NAMESPACES, {"metadata": {"name": "other"}})
    here, there = family.pod("same"), family.pod("same", namespace="other")
    there = family.cluster.get(kinds.PODS, "other", "same") or there
    assert root(here) != root(there)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_t11_a_pod_that_is_over_is_no_workload(family: Family, phase: str) -> None:
    """It needs no place any more."""
    pod = family.child()
    over = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=phase))
    assert gathering(family, over) is None


def test_t11_a_pod_on_its_way_out_is_no_workload(family: Family) -> None:
    """A place given to it now would be given in vain."""
    pod = family.child()
    leaving = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    assert gathering(family, msgspec.structs.replace(pod, metadata=leaving)) is None


def test_an_unreadable_owner_is_a_reason_to_wait(family: Family) -> None:
    """Annotations that could not be read may change everything; the message says what was asked."""
    pod = family.child(family.owner(kinds.REPLICASETS, "r"))
    family.line.faults.plan(faults.Reset(), target="replicasets/r")
    found = gathering(family, pod)
    assert isinstance(found, Wait)
    assert (found.reason, found.retry_after) == ("OwnerUnreadable", base.RETRY_AFTER)
    assert "pod pod" in found.message
    assert "replicasets/r" in found.message


def test_the_servers_own_wish_is_kept(family: Family) -> None:
    """A server that asks for patience gets it."""
    pod = family.child(family.owner(kinds.REPLICASETS, "r"))
    busy = faults.Answer(status=429, headers=(("retry-after", "17"),))
    family.line.faults.plan(busy, target="replicasets/r")
    found = gathering(family, pod)
    assert isinstance(found, Wait)
    assert found.retry_after == 17


def test_a_workload_is_frozen(family: Family) -> None:
    """It is shared between threads."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        gathered(family, family.child()).job_name = "x"  # type: ignore[misc]
