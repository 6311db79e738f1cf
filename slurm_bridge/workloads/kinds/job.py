"""A batch Job: pod by pod under the Job's name, or on request all its pods as a gang."""

from collections.abc import Iterable

from slurm_bridge.model import kinds, names
from slurm_bridge.model.groups import Job
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.workloads import gangs, voices
from slurm_bridge.workloads.draft import ChildDraft, numbers, random_name, spec_of
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.kind_spec import KindPage, KindSpec
from slurm_bridge.workloads.known import Known, Options


def handles(pod: Pod) -> tuple[str, ...]:
    """The name of the Job."""
    reference = kinds.JOBS.maker_of(pod)
    return (reference.name,) if reference is not None else ()


def claim(pod: Pod, known: Known, options: Options) -> Root | None:
    """A pod whose controller is a batch Job. A Job that is not known counts as one that does not ask for a gang."""
    if kinds.JOBS.maker_of(pod) is None:
        return None
    job = _job(pod, known)
    if job is None or not _is_gang(job, options):
        return voices.itself(pod)
    return Root(kind=kinds.JOBS.kind, namespace=job.metadata.namespace, name=job.metadata.name, uid=job.uid)


def gather(root: Root, members: Members, given: Given) -> Workload | Wait:
    """The gang, or one pod of the Job."""
    pod = members.any()
    chain = given.owners.resolve(pod)
    job = _job(pod, given.known)
    if job is None or not _is_gang(job, given.options):
        reference = kinds.JOBS.maker_of(pod)
        if reference is not None and chain.gone and not chain.links:
            text = f"Job {reference.name} of pod {pod.metadata.name} has been deleted; the pod will be deleted too"
            return Wait(reason="OwnerGone", message=text, retry_after=gangs.PROGRESS)
        return voices.alone(pod, chain, reference.name if reference is not None else pod.metadata.name)
    size = max(1, job.pods_to_come)
    plan = gangs.GangPlan(
        called=str(root),
        job_name=root.name,
        minimum=size,
        size=size,
        sources=lambda first: (voices.own(first), *voices.above(chain)),
        topmost=voices.topmost(chain),
        suspended=voices.suspended(chain),
        deadline=voices.deadline(chain),
        retry_after=gangs.PROGRESS,
    )
    return gangs.whole(root, plan, members, given)


def _is_gang(job: Job, options: Options) -> bool:
    said = voices.together(job.metadata.annotations)
    return options.job == "gang" if said is None else said


def _job(pod: Pod, known: Known) -> Job | None:
    reference = kinds.JOBS.maker_of(pod)
    job = known.find(kinds.JOBS, pod.metadata.namespace, reference.name) if reference is not None else None
    return job if job is not None and reference is not None and job.uid == reference.uid else None


def makes(job: Job, manifest: Manifest) -> Iterable[ChildDraft]:
    """Its pods; those of an indexed Job carry their index in the name."""
    name, count, template = job.metadata.name, job.spec.pods, spec_of(manifest).get("template") or {}
    for number in numbers(kinds.JOBS, job, "spec.parallelism", count):
        index: dict[str, str] = {}
        pod = random_name(name, number, count)
        if job.spec.completion_mode == "Indexed":
            index = {names.ANNOTATION_COMPLETION_INDEX: str(number)}
            pod = random_name(f"{name}-{number}")
        labels = {"batch.kubernetes.io/job-name": name, **index}
        yield ChildDraft(kind=kinds.PODS, name=pod, template=template, labels=labels, annotations=index)


SPEC = KindSpec(
    name=kinds.JOBS.kind,
    handles=handles,
    claim=claim,
    gather=gather,
    resource=kinds.JOBS,
    owner=True,
    suspended=lambda job: job.spec.suspend,
    deadline=lambda job: job.spec.active_deadline_seconds,
    makes=makes,
    counted="spec.parallelism and spec.completions",
    prefixes=frozenset({"batch.kubernetes.io"}),
    page=KindPage(
        title="Job",
        pods="its pods",
        one="each pod, or the Job if it asks for a gang",
        minimum="all pods that still have to run",
        sources="pod, owner",
    ),
)
