"""A single pod that nobody groups: bare, or one replica of something that does not end."""

from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.workloads import voices
from slurm_bridge.workloads.owners import Chain


def claim(pod: Pod) -> Root:
    """Every pod can stand for itself: this kind comes last."""
    return voices.itself(pod)


def gather(pod: Pod, chain: Chain) -> Workload:
    """One pod under its own name, described by itself and by the owner that speaks."""
    return Workload(
        root=claim(pod),
        pods=(pod,),
        sources=voices.sources(pod, chain),
        job_name=pod.metadata.name,
        controller=voices.controller(pod),
    )
