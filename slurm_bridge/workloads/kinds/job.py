"""A pod of a batch Job that is no gang: each of its pods is placed by itself, under the Job's name."""

from slurm_bridge.model import kinds
from slurm_bridge.model.meta import OwnerReference
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.workloads import voices
from slurm_bridge.workloads.owners import Chain


def claim(pod: Pod) -> Root | None:
    """A pod whose controller is a batch Job."""
    return voices.itself(pod) if _job(pod) is not None else None


def gather(pod: Pod, chain: Chain) -> Workload:
    """One pod of the Job, under the Job's name."""
    job = _job(pod)
    return Workload(
        root=voices.itself(pod),
        pods=(pod,),
        sources=voices.sources(pod, chain),
        job_name=job.name if job is not None else pod.metadata.name,
        controller=voices.controller(pod),
    )


def _job(pod: Pod) -> OwnerReference | None:
    references = (reference for reference in pod.metadata.owner_references if reference.controller)
    return next((reference for reference in references if _is_job(reference)), None)


def _is_job(reference: OwnerReference) -> bool:
    return reference.kind == kinds.JOBS.kind and reference.api_version.startswith(f"{kinds.JOBS.group}/")
