"""Whether pods may be bound to the nodes that Slurm gave: usable, with room for them, and left by earlier pods."""

import dataclasses
from collections.abc import Sequence

from slurm_bridge.cluster.snapshot import ClusterSnapshot, NodeFacts
from slurm_bridge.hooks.base import Deny
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.placement import misfit, remains, vacancy
from slurm_bridge.scheduler.placement.misfit import Misfit
from slurm_bridge.scheduler.placement.vacancy import OccupiedNode

#: A node that a hook has denied is avoided for so many seconds at most: filters keep the workload away while the
#: reason holds, and the reason may be on another node.
DENIED_SECONDS = 30.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A pod and the node for it, under both of its names."""

    pod: Pod
    slurm_name: str
    node: NodeFacts


def problem(
    ctx: SchedulerContext,
    workload: Workload,
    spots: tuple[Spot, ...],
    snapshot: ClusterSnapshot,
    read: Placeholder,
    *,
    whole: bool,
) -> Misfit | Wait | None:
    """What keeps these pods from their nodes; `whole` says that their job shares a node with no other job."""
    by_node: dict[str, list[Spot]] = {}
    for spot in spots:
        by_node.setdefault(spot.node.name, []).append(spot)
    checked = [_check(ctx, there, whole=whole) for there in by_node.values()]
    full = [one for one in checked if isinstance(one, Misfit)]
    occupied = [one for one in checked if isinstance(one, OccupiedNode)]
    for one in occupied:
        ctx.node_waiters.add(one.name, workload.root.key)
    if occupied:
        verdict = vacancy.verdict(ctx, occupied, snapshot, read, give_back=bool(full))
        if isinstance(verdict, Wait):
            return verdict
        full.append(verdict)
    return misfit.together(full) or _verified(ctx, workload, spots, snapshot)


def _verified(
    ctx: SchedulerContext, workload: Workload, spots: tuple[Spot, ...], snapshot: ClusterSnapshot
) -> Misfit | Wait | None:
    """What hooks say to these nodes."""
    verdict = ctx.config.chain.verify(workload, {one.pod.uid: one.node.name for one in spots}, snapshot)
    if verdict is None or isinstance(verdict, Wait):
        return verdict
    if isinstance(verdict, Deny):
        nodes = tuple(sorted(verdict.nodes))
        return Misfit(reason="NodeDenied", message=verdict.message, nodes=nodes, seconds=DENIED_SECONDS)
    return Misfit(reason=verdict.reason, message=verdict.message)


def _check(ctx: SchedulerContext, spots: Sequence[Spot], *, whole: bool) -> Misfit | OccupiedNode | None:
    """Whether one node can take all pods that are to be bound to it."""
    node = spots[0].node
    # A pod that is counted there since an earlier try, whose answer was lost, must not block itself.
    new = [spot.pod for spot in spots if not ctx.keeper.holds(spot.pod.uid, node.name)]
    need = vacancy.NodeNeed.of(new, whole=whole)
    why = need.lacks(node)
    forgotten = remains.forgotten_on(ctx, node.name)
    if not forgotten and not whole and why is None:
        # It has room beside all that is there: what of that may soon go does not matter.
        return None
    left = remains.ended_on(ctx, node.name)
    if forgotten or (left and (whole or why is not None)):
        blocking = bool(forgotten) and (whole or why is not None or remains.refused_on(ctx, node.name))
        return OccupiedNode(
            name=node.name,
            each=vacancy.NodeNeed.of(new[:1], whole=whole),
            need=need,
            left=(*left, *forgotten),
            forgotten=bool(forgotten),
            blocking=blocking,
            why=why,
        )
    if why is not None:
        text = f"node {node.name} has no room: {why}"
        return Misfit(reason="NodeFull", message=text, nodes=(node.name,), lacking={node.name: need.amounts})
    return None
