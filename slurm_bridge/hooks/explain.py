"""What each hook said, in lines: for the pod's owner, or only for the bridge's operators."""

import collections
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from slurm_bridge.hooks.base import Audience, Denied, HookPhase, Nodes

#: The reason under which a workload without any node waits; the message is kube-scheduler's.
UNSCHEDULABLE = "Unschedulable"

#: Likewise, and it was tried often enough.
FAILED = "FailedScheduling"

#: What the user is told in place of reasons that are for operators.
_WITHHELD = "node(s) were ruled out by this cluster's rules"


class Line(NamedTuple):
    """One hook in one phase: nodes in, nodes out, why, and how long it took; `members` where it was about some only."""

    hook: str
    phase: HookPhase
    nodes_in: int
    nodes_out: int
    reason: str = ""
    milliseconds: float = 0.0
    audience: Audience = Audience.USER
    members: str = ""

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        nodes = f" {self.nodes_in} → {self.nodes_out} nodes" if self.nodes_in else ""
        members = f" for {self.members}" if self.members else ""
        return f"{self.phase.value} {self.hook}{nodes}{members} ({self.milliseconds:.1f} ms){reason}"


#: In one step, of all fields: each hook says something in each of its phases.
line: Callable[[tuple[str, HookPhase, int, int, str, float, Audience, str]], Line] = functools.partial(
    tuple.__new__, Line
)


def summary(counts: Mapping[str, int]) -> str:
    """`12 Insufficient nvidia.com/gpu, 8 node(s) were unschedulable`: how often each reason was given."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


def unavailable(nodes: Nodes, layers: Iterable[Denied], few: str = "0") -> str:
    """kube-scheduler's sentence for a pod that fits nowhere (or on too few); a node counts with its first denial."""
    found: collections.Counter[str] = collections.Counter()
    left = nodes
    for layer in layers:
        after = layer.left(left)
        found.update(counted(layer, left, len(left) - len(after)))
        left = after
    said = f": {summary(found)}" if found else ""
    return f"{few}/{len(nodes)} nodes are available{said}."


def counted(layer: Denied, among: Nodes, number: int) -> Mapping[str, int]:
    """How often each reason, of a layer that denies so many of these nodes."""
    if layer.audience is not Audience.USER:
        return {_WITHHELD: number} if number else {}
    if number == len(layer.nodes):
        return layer.counts()
    return collections.Counter(reason for name in among & layer.nodes.keys() for reason in layer.nodes[name])
