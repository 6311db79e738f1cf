"""Whether pods may be bound to the nodes that Slurm gave: usable, with room for them, and left by earlier pods."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from slurm_bridge.cluster.snapshot import ClusterSnapshot, NodeFacts, fits
from slurm_bridge.hooks.base import Deny
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.scheduler.context import SchedulerContext
from slurm_bridge.scheduler.placement import remains
from slurm_bridge.translate import resources

#: A pod that leaves its node wakes workloads that wait for that; one whose job holds the node again does not.
VACATED_LOOK = 5.0
#: How many seconds an allocation is kept while earlier pods end on its node.
PATIENCE = 60.0
#: A node that a hook has denied is avoided for so many seconds at most: filters keep the workload away while the
#: reason holds, and the reason may be on another node.
DENIED_SECONDS = 30.0
#: The same where a job that was forgotten waits for this very node: this allocation may be all that keeps it from it.
GIVE_WAY = 10.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A pod and the node for it, under both of its names."""

    pod: Pod
    slurm_name: str
    node: NodeFacts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """Why an allocation is of no use. `nodes` are what to avoid from now on, none when no node is to blame.

    `seconds`: for how long at most; None: as long as is configured. `lacking`: what there has to be room for by node.
    `unseen`: nothing that Kubernetes says of a node tells whether the reason still holds.
    """

    reason: str
    message: str
    nodes: tuple[str, ...] = ()
    seconds: float | None = None
    lacking: Mapping[str, Mapping[str, Fraction]] = dataclasses.field(default_factory=dict)
    unseen: bool = False

    def holds(self, node: str, then: NodeFacts | None) -> Callable[[NodeFacts | None], bool]:
        """Whether the reason is still to be seen of a node, which was so `then`."""
        if self.unseen:
            return lambda now: now is not None
        needed = self.lacking.get(node)
        if needed is not None:
            return lambda now: now is not None and fits(now, needed) is not None
        seen = _seen(then)
        return lambda now: _seen(now) == seen


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Occupied(Wait):
    """Earlier pods keep these nodes; after so many seconds the allocation is given back, and the nodes are avoided."""

    nodes: tuple[str, ...]
    patience: float

    @property
    def expired(self) -> Misfit:
        """Why the nodes are given back after that time."""
        return Misfit(reason=self.reason, message=self.message, nodes=self.nodes)


def problem(
    ctx: SchedulerContext, workload: Workload, spots: tuple[Spot, ...], snapshot: ClusterSnapshot, *, whole: bool
) -> Misfit | Wait | None:
    """What keeps these pods from their nodes; `whole` says that their job shares a node with no other job."""
    by_node: dict[str, list[Spot]] = {}
    for spot in spots:
        by_node.setdefault(spot.node.name, []).append(spot)
    checked = [_check(ctx, workload.root.key, there, whole=whole) for there in by_node.values()]
    problem = _together(one for one in checked if one is not None)
    if problem is not None:
        return problem
    verdict = ctx.config.chain.verify(workload, {one.pod.uid: one.node.name for one in spots}, snapshot)
    if verdict is None or isinstance(verdict, Wait):
        return verdict
    if isinstance(verdict, Deny):
        nodes = tuple(sorted(verdict.nodes))
        return Misfit(reason="NodeDenied", message=verdict.message, nodes=nodes, seconds=DENIED_SECONDS)
    return Misfit(reason=verdict.reason, message=verdict.message)


def _check(ctx: SchedulerContext, key: WorkloadKey, spots: Sequence[Spot], *, whole: bool) -> Misfit | Occupied | None:
    """Whether one node can take all pods that are to be bound to it."""
    node = spots[0].node
    # A pod that is counted there since an earlier try, whose answer was lost, must not block itself.
    new = [spot.pod for spot in spots if not ctx.keeper.holds(spot.pod.uid, node.name)]
    why = fits(node, _sum(new)) if new else None
    left, forgotten = remains.all_on(ctx, node.name), remains.forgotten_on(ctx, node.name)
    if left and (whole or forgotten or why is not None):
        ctx.node_waiters.add(node.name, key)
        by, patience = "/".join(left[0].key), GIVE_WAY if forgotten else PATIENCE
        text = f"node {node.name} still runs pod {by}, whose Slurm job does not hold it any more"
        return Occupied(
            reason="NodeNotVacated", message=text, retry_after=VACATED_LOOK, nodes=(node.name,), patience=patience
        )
    if why is not None:
        text = f"node {node.name} has no room: {why}"
        return Misfit(reason="NodeFull", message=text, nodes=(node.name,), lacking={node.name: _sum(new)})
    return None


def _together(problems: Iterable[Misfit | Occupied]) -> Misfit | Occupied | None:
    """All nodes that are to blame are told of at once: each costs a group the whole of an allocation."""
    found = list(problems)
    misfits = [one for one in found if isinstance(one, Misfit)]
    same = misfits or found
    if len(same) < 2:  # noqa: PLR2004
        return next(iter(same), None)
    nodes = tuple(node for one in same for node in one.nodes)
    text = f"{same[0].message} (and {len(same) - 1} more nodes likewise)"
    if not misfits:
        return dataclasses.replace(same[0], message=text, nodes=nodes)
    lacking = {node: needed for one in misfits for node, needed in one.lacking.items()}
    return dataclasses.replace(misfits[0], message=text, nodes=nodes, lacking=lacking)


def _seen(node: NodeFacts | None) -> tuple[str, frozenset[str]] | None:
    """What Kubernetes says of a node and of the pods there, in short: it is kept for a while."""
    if node is None:
        return None
    return node.node.metadata.resource_version, frozenset(pod.uid for pod in node.pods)


def _sum(pods: Iterable[Pod]) -> Mapping[str, Fraction]:
    """What all of them need."""
    total: dict[str, Fraction] = {}
    for pod in pods:
        for name, amount in resources.requests_of(pod).items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total
