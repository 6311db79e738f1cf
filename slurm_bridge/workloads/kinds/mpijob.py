"""An MPIJob of the MPI operator (`kubeflow.org/v2beta1`): its workers and its launcher start together.

    launcherCreationPolicy   one workload is
    AtStartup                the launcher and all workers
    WaitForWorkersReady      the workers; the launcher, whose Job is made once they are ready, by itself

The workers are pods of the MPIJob itself. The launcher is the pod of a Job of it, which makes another one after a
failure.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from slurm_bridge.model import kinds, names
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object, OwnerReference, Record
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Deadline, Root, Workload
from slurm_bridge.workloads import gangs, voices
from slurm_bridge.workloads.draft import ChildDraft, numbers, spec_of
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.kind_spec import KindPage, KindSpec
from slurm_bridge.workloads.known import Known, Options

_LAUNCHER, _WORKER = "Launcher", "Worker"


class MpiReplicas(Record, frozen=True, kw_only=True):
    """How many pods of one role; without a number one launcher, and no worker."""

    replicas: int | None = None


class MpiSchedulingPolicy(Record, frozen=True, kw_only=True):
    """With how many pods the program starts that can do with fewer than all."""

    min_available: int | None = None


class MpiRunPolicy(Record, frozen=True, kw_only=True):
    """Whether it may run, and how long."""

    suspend: bool = False
    active_deadline_seconds: int | None = None
    scheduling_policy: MpiSchedulingPolicy | None = None


class MpiJobSpec(Record, frozen=True, kw_only=True):
    """The fields that are read."""

    mpi_replica_specs: Mapping[str, MpiReplicas | None] = {}
    run_policy: MpiRunPolicy = MpiRunPolicy()
    launcher_creation_policy: str = "AtStartup"

    @property
    def in_steps(self) -> bool:
        """The launcher is made once the workers are ready, so that they never wait at the same time."""
        return self.launcher_creation_policy == "WaitForWorkersReady" and self.pods_of(_WORKER) > 0

    def pods_of(self, *roles: str) -> int:
        """How many pods these roles have at the same time."""
        found = {role: self.mpi_replica_specs.get(role) for role in roles}
        usual = {_LAUNCHER: 1, _WORKER: 0}
        return sum(
            usual[role] if one.replicas is None else max(0, one.replicas)
            for role, one in found.items()
            if one is not None
        )


class MpiJob(Object, frozen=True, kw_only=True):
    """An MPIJob."""

    spec: MpiJobSpec = MpiJobSpec()


MPIJOBS: Final = Kind(
    group="kubeflow.org", versions=("v2beta1",), plural="mpijobs", kind="MPIJob", record=MpiJob, custom=True
)


def handles(pod: Pod) -> tuple[str, ...]:
    """The name of the MPIJob; the Job of its launcher is an owner of that pod."""
    name = pod.metadata.labels.get(names.LABEL_MPI_NAME)
    return (name,) if name else ()


def claim(pod: Pod, known: Known, _options: Options) -> Root | None:
    """A worker by its controller, the launcher by that of its Job. Both wait for an MPIJob that is not known."""
    reference = _reference(pod, known) if known.served(MPIJOBS) else None
    if reference is None:
        return None
    namespace = pod.metadata.namespace
    found = _find(reference, namespace, known)
    if found is None:
        uid = f"{MPIJOBS.kind}:{namespace}/{reference.name}"
    elif voices.together(found.metadata.annotations) is False:
        return voices.itself(pod)
    else:
        uid = f"{found.uid}:{_role(pod).lower()}" if found.spec.in_steps else found.uid
    return Root(kind=MPIJOBS.kind, namespace=namespace, name=reference.name, uid=uid)


def gather(root: Root, members: Members, given: Given) -> Workload | Wait:
    """The gang, a part of it, or one pod."""
    pod = members.any()
    reference = _reference(pod, given.known)
    found = _find(reference, root.namespace, given.known) if reference is not None else None
    if found is None:
        return gangs.missing(root)
    if voices.together(found.metadata.annotations) is False:
        return voices.alone(pod, given.owners.resolve(pod), pod.metadata.name)
    spec, role = found.spec, _role(pod)
    size = max(1, spec.pods_of(role) if spec.in_steps else spec.pods_of(_LAUNCHER, _WORKER))
    itself = Root(kind=MPIJOBS.kind, namespace=root.namespace, name=found.metadata.name, uid=found.uid)
    seconds = spec.run_policy.active_deadline_seconds
    plan = gangs.GangPlan(
        called=f"the {role.lower()}s of {root}" if spec.in_steps else str(root),
        job_name=f"{itself.name}-{role.lower()}" if spec.in_steps else itself.name,
        minimum=_minimum(spec, size),
        size=size,
        sources=lambda first: (voices.own(first), voices.source(MPIJOBS, found)),
        controller=itself,
        suspended=str(itself) if spec.run_policy.suspend else "",
        deadline=Deadline(seconds=seconds, subject=str(itself)) if seconds is not None else None,
    )
    return gangs.whole(root, plan, members, given)


def _minimum(spec: MpiJobSpec, size: int) -> int:
    """The number that the operator would write into a PodGroup: of all pods, or as a program wants that can resize."""
    policy = spec.run_policy.scheduling_policy
    least = policy.min_available if policy is not None else None
    return size if least is None else min(size, max(1, least))


def _reference(pod: Pod, known: Known) -> OwnerReference | None:
    """What the pod, or the known Job that made it, says of the MPIJob above."""
    job = kinds.JOBS.maker_of(pod)
    if job is None:
        return MPIJOBS.maker_of(pod)
    found = known.find(kinds.JOBS, pod.metadata.namespace, job.name)
    return MPIJOBS.maker_of(found) if found is not None and found.uid == job.uid else None


def _find(reference: OwnerReference, namespace: str, known: Known) -> MpiJob | None:
    found = known.find(MPIJOBS, namespace, reference.name)
    return found if found is not None and found.uid == reference.uid else None


def _role(pod: Pod) -> str:
    return _WORKER if kinds.JOBS.maker_of(pod) is None else _LAUNCHER


def makes(found: MpiJob, manifest: Manifest) -> Iterable[ChildDraft]:
    """Its workers, and the Job of its launcher."""
    roles = spec_of(manifest).get("mpiReplicaSpecs") or {}
    labels = {names.LABEL_MPI_NAME: found.metadata.name}
    worker = (roles.get(_WORKER) or {}).get("template") or {}
    for number in numbers(MPIJOBS, found, "the replicas of Worker", found.spec.pods_of(_WORKER)):
        name = f"{found.metadata.name}-worker-{number}"
        yield ChildDraft(kind=kinds.PODS, name=name, template=worker, labels=labels, role="worker")
    if found.spec.pods_of(_LAUNCHER):
        job = {"spec": {"template": (roles.get(_LAUNCHER) or {}).get("template") or {}}}
        yield ChildDraft(kind=kinds.JOBS, name=f"{found.metadata.name}-launcher", template=job, role="launcher")


SPEC = KindSpec(
    name=MPIJOBS.kind,
    handles=handles,
    claim=claim,
    gather=gather,
    resource=MPIJOBS,
    owner=True,
    suspended=lambda found: found.spec.run_policy.suspend,
    deadline=lambda found: found.spec.run_policy.active_deadline_seconds,
    makes=makes,
    counted="spec.mpiReplicaSpecs",
    part=" ".join,
    prefixes=frozenset({"training.kubeflow.org"}),
    page=KindPage(
        title="MPIJob",
        pods="its workers, and the pod of its launcher's Job",
        one="the MPIJob; workers and launcher each, if the launcher is made once the workers are ready",
        minimum="all its pods, or `minAvailable`",
        sources="pod, MPIJob",
    ),
)
