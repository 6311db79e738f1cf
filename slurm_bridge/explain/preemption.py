"""What preemption would do for a workload that waits: what the hook would propose to the daemon.

The daemon knows the state from its watches; here it is built from what the servers say now. Nothing is
written anywhere.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.explain.cluster_view import ClusterView, Servers
from slurm_bridge.explain.context import Inquiry
from slurm_bridge.hooks import evictions
from slurm_bridge.hooks.evictions import Preempts, Proposal
from slurm_bridge.mirror.table import Table
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler import workload_pods
from slurm_bridge.scheduler.context import Limits
from slurm_bridge.scheduler.eviction import preemptors, sites
from slurm_bridge.scheduler.eviction.situation import ClusterSituation
from slurm_bridge.scheduler.pod_index import PodIndex

#: The workload of a pod.
Claim = Callable[[Pod], Root]

#: Every workload has waited since then: for how long it really has, only the daemon knows.
_LONG_AGO = float("-inf")

NO_VICTIMS = (
    "no pod would be evicted for it: it may not preempt, or no eviction of pods of this bridge with a lower priority "
    "would make enough room (docs/preemption.md says which pods may preempt, and which may be evicted)"
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionView:
    """`promised`: nodes that are being cleared already. `places`: node by pod, if evictions would make room."""

    after_seconds: float
    promised: tuple[str, ...] = ()
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)
    victims: tuple[str, ...] = ()


def look(
    inquiry: Inquiry, servers: Servers, scene: ClusterView, members: Sequence[Pod], claim: Claim
) -> PreemptionView | None:
    """For a workload without nodes; None without the hook. `crew` are its pods as they are."""
    hook = inquiry.means.chain.preempts
    if hook is None or any(pod.bound for pod in members):
        return None
    found = PreemptionView(after_seconds=hook.after_seconds, promised=tuple(sorted(evictions.nominated(members))))
    proposal = None if found.promised else _proposal(hook, inquiry, servers, scene, members, claim)
    if proposal is None:
        return found
    named = {pod.uid: _name(pod) for pod in members}
    return dataclasses.replace(
        found,
        places={named[uid]: node for uid, node in proposal.places.items()},
        victims=tuple(sorted(map(_name, proposal.victims))),
    )


def lines(found: PreemptionView) -> Iterator[str]:
    """The text."""
    if found.promised:
        yield f"pods are being evicted for it on {', '.join(found.promised)}"
    elif not found.victims:
        yield NO_VICTIMS
    else:
        yield f"after waiting for {found.after_seconds:g} s, pods would be evicted for it:"
        yield from (f"  {pod} would be bound to {node}" for pod, node in found.places.items())
        yield f"  evicted, because of their lower priority: {', '.join(found.victims)}"


def machine(found: PreemptionView) -> Mapping[str, Any]:
    """The JSON document."""
    return {**dataclasses.asdict(found), "promised": list(found.promised), "victims": list(found.victims)}


def _proposal(
    hook: Preempts, inquiry: Inquiry, servers: Servers, scene: ClusterView, members: Sequence[Pod], claim: Claim
) -> Proposal | None:
    means, root = inquiry.means, inquiry.workload.root
    table = Table(lambda _: None)
    for view in servers.slurm.jobs():
        if view.owner is not None and view.owner.cluster == means.rules.cluster_id:
            table.put(Placeholder(job_id=view.job_id, owner=view.owner, state=view.state, since=_LONG_AGO, view=view))
    pod_index = _pod_index(scene, members, claim, root)
    waits, now, window = pod_index.workload(root.key), means.clock.now(), Limits().window
    one = preemptors.preemptor(hook, inquiry.desired, waits, table, now=now, window=window)
    lowest = sites.lowest(pod_index)
    if one is None or lowest is None or one.priority <= lowest:
        return None
    situation = ClusterSituation(
        ask=one.ask,
        submitted=one.submitted,
        avoided=frozenset(),
        snapshot=scene.snapshot,
        chain=means.chain,
        rules=means.rules,
        table=table,
        pod_index=pod_index,
        wall=means.clock.wall(),
    )
    return preemptors.proposal(hook, one, situation)


def _pod_index(scene: ClusterView, members: Sequence[Pod], claim: Claim, root: Root) -> PodIndex:
    """The pods that jobs have bound, and those of the workload."""
    pod_index = PodIndex(claim, now=lambda: _LONG_AGO)
    for pod in scene.bound:
        if workload_pods.job_id_of(pod) is not None:
            pod_index.put(None, pod)
    for pod in members:
        pod_index.put(None, pod)
        pod_index.move(pod.uid, root)
    return pod_index


def _name(pod: Pod) -> str:
    return "/".join(pod.key)
