"""What every kind says of a pod in the same way: its identity, who made it, and whose annotations count."""

from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root, Source
from slurm_bridge.workloads.owners import Chain


def itself(pod: Pod) -> Root:
    """The workload that is this one incarnation of a pod."""
    return Root(kind=kinds.PODS.kind, namespace=pod.metadata.namespace, name=pod.metadata.name, uid=pod.uid)


def controller(pod: Pod) -> Root | None:
    """Whoever makes such pods; its reference says enough, so that it is known even where it may not be read."""
    for reference in pod.metadata.owner_references:
        if reference.controller:
            namespace = pod.metadata.namespace
            return Root(kind=reference.kind, namespace=namespace, name=reference.name, uid=reference.uid)
    return None


def sources(pod: Pod, chain: Chain) -> tuple[Source, ...]:
    """The pod, and over it the owner that speaks."""
    own = Source(kind=kinds.PODS.kind, name=pod.metadata.name, annotations=pod.metadata.annotations)
    speaker = chain.speaker
    if speaker is None:
        return (own,)
    return own, Source(kind=speaker.kind.kind, name=speaker.name, annotations=speaker.annotations)
