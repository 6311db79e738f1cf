"""What becomes of an allocation when earlier pods are still on its nodes, and take the room.

    a forgotten job waits for the node     given back at once: this allocation is what keeps the job from it
    ... and both sides have room for both  kept for a moment: Slurm may start that job beside this one
    Slurm preempted the earlier pods       kept for a while: Slurm has made this room for the job
    as many other nodes have room          given back at once: the next job gets one of these
    otherwise                              kept for a while: there is nothing to be had elsewhere

What is kept for too long is given back, too. All such nodes are avoided until the pods have gone, or there is room
beside them: Slurm, which counts them as free, would give the same nodes again.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Self

from slurm_bridge.cluster import fewest
from slurm_bridge.cluster.facts import Amounts
from slurm_bridge.cluster.rules import ports
from slurm_bridge.cluster.rules.ports import HostPort
from slurm_bridge.cluster.snapshot import NOTHING, ClusterSnapshot, NodeFacts, fits
from slurm_bridge.model import quantity
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.scheduler.avoid import NodeTest
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.placement import remains
from slurm_bridge.scheduler.placement.misfit import Misfit, Occupied
from slurm_bridge.scheduler.reservations import choice
from slurm_bridge.translate import resources

#: A pod that leaves its node wakes workloads that wait for that; room on another node does not.
VACATED_LOOK = 5.0
#: How many seconds an allocation is kept while earlier pods end on its node.
PATIENCE = 60.0
#: The same where a job that was forgotten waits for this very node, and there is room for both.
GIVE_WAY = 10.0

REASON = "NodeNotVacated"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeNeed:
    """What pods need of one node: amounts, ports of the host, and, when it is to be theirs alone, the `whole` of it."""

    amounts: Amounts
    ports: frozenset[HostPort]
    whole: bool

    @classmethod
    def of(cls, pods: Iterable[Pod], *, whole: bool) -> Self:
        """What all of them need."""
        total: dict[str, Fraction] = {}
        claimed: set[HostPort] = set()
        for pod in pods:
            claimed |= ports.of(pod)
            for name, amount in resources.requests_of(pod).items():
                total[name] = total.get(name, NOTHING) + amount
        return cls(amounts=total, ports=frozenset(claimed), whole=whole)

    def lacks(self, node: NodeFacts) -> str | None:
        """What the kubelet would refuse the pods for, beside all that is there; None when it would take them."""
        why = fits(node, self.amounts)
        if why is None and self.ports and any(ports.clash(self.ports, ports.of(pod)) for pod in node.pods):
            return "a host port is taken"
        return why

    def keeps(self, ctx: SchedulerContext) -> NodeTest:
        """Whether earlier pods keep a node from having room for this, from now on."""

        def occupied(now: NodeFacts | None) -> bool:
            if now is None:
                return False
            if remains.forgotten_on(ctx, now.name):
                return True
            return bool(remains.ended_on(ctx, now.name)) and (self.whole or self.lacks(now) is not None)

        return occupied


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OccupiedNode:
    """A node of an allocation, what is needed there, by one pod and by all, and the earlier pods that are `left`.

    `why`: what there is too little of beside them. `forgotten`: the job of some of them waits for the node; `blocking`:
    as far as is known, it waits for what is given back here.
    """

    name: str
    each: NodeNeed
    need: NodeNeed
    left: Sequence[Pod]
    forgotten: bool
    blocking: bool
    why: str | None

    @property
    def message(self) -> str:
        """For users."""
        pod, lacking = "/".join(self.left[0].key), f" ({self.why})" if self.why is not None else ""
        return f"node {self.name} still runs pod {pod}, whose Slurm job does not hold it any more{lacking}"


def verdict(
    ctx: SchedulerContext,
    occupied: Sequence[OccupiedNode],
    snapshot: ClusterSnapshot,
    read: Placeholder,
    *,
    give_back: bool,
) -> Misfit | Occupied:
    """Give the allocation back, or keep it for so many seconds; `give_back`: it is given back anyhow."""
    back, patience = _misfit(ctx, occupied), PATIENCE
    if any(one.forgotten for one in occupied):
        give_back, patience = give_back or any(one.blocking for one in occupied), GIVE_WAY
    elif not give_back:
        give_back = not any(remains.preempted(ctx, one.left) for one in occupied) and _elsewhere(
            snapshot, read, occupied
        )
    if give_back:
        return _with_likes(ctx, back, occupied[0].each, snapshot, read)
    return Occupied(
        reason=back.reason,
        message=back.message,
        retry_after=min(VACATED_LOOK, patience),
        nodes=back.nodes,
        patience=patience,
        occupied=back.occupied,
    )


def _misfit(ctx: SchedulerContext, occupied: Sequence[OccupiedNode]) -> Misfit:
    more = f" (and {len(occupied) - 1} more nodes likewise)" if len(occupied) > 1 else ""
    return Misfit(
        reason=REASON,
        message=f"{occupied[0].message}{more}",
        nodes=tuple(one.name for one in occupied),
        occupied={one.name: one.need.keeps(ctx) for one in occupied},
    )


def _elsewhere(snapshot: ClusterSnapshot, read: Placeholder, occupied: Sequence[OccupiedNode]) -> bool:
    """As many other nodes have room now, as far as both sides tell; what only Slurm knows of its nodes may be wrong."""
    view, found = read.view, 0
    if view is None or view.constraints or view.reservation:
        return False
    largest = max((one.need for one in occupied), key=lambda need: sorted(need.amounts.items()))
    for name in choice.allowed(view, snapshot).difference(view.nodes or ()):
        node = snapshot.by_slurm_name(name)
        if node is not None and node.slurm is not None and _has_room(largest, node, node.slurm):
            found += 1
            if found == len(occupied):
                return True
    return False


def _has_room(need: NodeNeed, node: NodeFacts, slurm: SlurmNode) -> bool:
    if not fewest.takes(slurm) or need.lacks(node) is not None:
        return False
    if need.whole:
        return not slurm.used_cpus and not any(node.placed.values())
    memory = Fraction(slurm.memory_mib - slurm.used_memory_mib) * quantity.MIB
    cpus = Fraction(slurm.cpus - slurm.used_cpus)
    return need.amounts.get("cpu", NOTHING) <= cpus and need.amounts.get("memory", NOTHING) <= memory


def _with_likes(
    ctx: SchedulerContext, back: Misfit, need: NodeNeed, snapshot: ClusterSnapshot, read: Placeholder
) -> Misfit:
    """The same, and all other nodes that the next job would have to give back for the same reason."""
    if read.view is None:
        return back
    occupied, holds = dict(back.occupied), need.keeps(ctx)
    for name in choice.allowed(read.view, snapshot).difference(read.view.nodes or ()):
        node = snapshot.by_slurm_name(name)
        if node is not None and (need.whole or need.lacks(node) is not None) and holds(node):
            occupied[node.name] = holds
    return dataclasses.replace(back, nodes=tuple(sorted(occupied)), occupied=occupied)
