"""Kubernetes' quality of service, as far as it decides where a pod can run."""

from slurm_bridge.model import quantity
from slurm_bridge.model.pod import Pod, ResourceNeeds

#: What counts for it; a pod that asks only for other things has no more claim on a node than one that asks for nothing.
_COUNTS = ("cpu", "memory")


def best_effort(pod: Pod) -> bool:
    """Nothing is asked for, by the pod or any of its containers."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    needs = (pod.spec.resources, *(one.resources for one in containers))
    return not any(_asks(one) for one in needs if one is not None)


def _asks(needs: ResourceNeeds) -> bool:
    return any(
        quantity.parse(amount) > 0
        for written in (needs.requests, needs.limits)
        for name, amount in written.items()
        if name in _COUNTS
    )
