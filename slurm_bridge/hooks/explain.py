"""What each hook said, in lines: for the pod's owner, or only for those who run the bridge."""

import collections
import dataclasses
from collections.abc import Iterable

from slurm_bridge.hooks.base import Audience, Denied, Nodes, Phase

#: The reason under which a workload without any node waits; the message is kube-scheduler's.
UNSCHEDULABLE = "Unschedulable"

#: What the user is told in place of reasons that are for operators.
_WITHHELD = "node(s) were ruled out by this cluster's rules"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One hook in one phase: nodes in, nodes out, why, and how long it took; `members` where it was about some only."""

    hook: str
    phase: Phase
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


def for_user(lines: Iterable[Line]) -> str:
    """What the user may know of a plan, in one short text; empty when there is nothing to say."""
    return "; ".join(
        f"{line.members}: {line.reason}" if line.members else line.reason
        for line in lines
        if line.reason and line.audience is Audience.USER
    )


def summary(reasons: Iterable[str]) -> str:
    """`12 Insufficient nvidia.com/gpu, 8 node(s) were unschedulable`: how often each reason was given."""
    counted = collections.Counter(reasons)
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counted.items()))


def unavailable(nodes: Nodes, layers: Iterable[Denied], few: str = "0") -> str:
    """kube-scheduler's sentence for a pod that fits nowhere (or on too few); a node counts with its first denial."""
    found: list[str] = []
    left = nodes
    for layer in layers:
        for name in left & layer.nodes.keys():
            found += layer.nodes[name] if layer.audience is Audience.USER else (_WITHHELD,)
        left = left - layer.nodes.keys()
    said = f": {summary(found)}" if found else ""
    return f"{few}/{len(nodes)} nodes are available{said}."
