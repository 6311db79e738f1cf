"""The kinds of workloads in order of precedence, and how a pod becomes the workload it belongs to."""

from typing import Final, Protocol

from slurm_bridge import errors
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.workloads.kinds import job, pod
from slurm_bridge.workloads.owners import Chain, Owners

#: For a server that named no time of its own.
RETRY_AFTER: Final = 5.0


class KindOfWorkload(Protocol):
    """What each module of `workloads.kinds` answers."""

    def claim(self, pod: Pod, /) -> Root | None:
        """The workload that this pod belongs to, None when it is not of this kind. From the pod alone: no look."""

    def gather(self, pod: Pod, chain: Chain, /) -> Workload:
        """The whole workload of a pod that was claimed."""


#: The first that claims a pod has it: what says more about the pod comes before what says less.
KINDS: tuple[KindOfWorkload, ...] = (job, pod)


def root(pod: Pod) -> Root:
    """The workload that this pod belongs to: what the queue is keyed by."""
    return _claimed(pod)[0]


def gather(pod: Pod, owners: Owners) -> Workload | Wait | None:
    """The workload of this pod; Wait while an owner cannot be asked, None when the pod is over or on its way out."""
    if pod.terminal or pod.terminating:
        return None
    try:
        chain = owners.resolve(pod)
    except errors.TryLater as error:
        message = f"the owners of pod {pod.metadata.name} could not be read: {error}"
        return Wait(reason="OwnerUnreadable", message=message, retry_after=error.retry_after or RETRY_AFTER)
    return _claimed(pod)[1].gather(pod, chain)


def _claimed(claimed: Pod) -> tuple[Root, KindOfWorkload]:
    for kind in KINDS:
        found = kind.claim(claimed)
        if found is not None:
            return found, kind
    raise AssertionError(f"no kind claims pod {claimed.key}, although the last one claims every pod")
