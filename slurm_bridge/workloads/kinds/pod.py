"""A single pod that no object groups: bare, or one replica of a workload that does not end."""

from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.workloads import voices
from slurm_bridge.workloads.given import Given, Members
from slurm_bridge.workloads.kind_spec import KindPage, KindSpec
from slurm_bridge.workloads.known import Known, Options


def handles(_pod: Pod) -> tuple[str, ...]:
    """No object decides what it belongs to."""
    return ()


def claim(pod: Pod, _known: Known, _options: Options) -> Root:
    """Every pod can stand for itself: this kind comes last."""
    return voices.itself(pod)


def gather(_root: Root, members: Members, given: Given) -> Workload:
    """One pod under its own name, with its own annotations and those of its owner."""
    pod = members.any()
    return voices.alone(pod, given.owners.resolve(pod), pod.metadata.name)


SPEC = KindSpec(
    name=kinds.PODS.kind,
    handles=handles,
    claim=claim,
    gather=gather,
    page=KindPage(
        title="anything else",
        pods="ReplicaSets, StatefulSets, operators of any kind, bare pods",
        one="each pod",
        minimum="",
        sources="pod, owner",
    ),
)
