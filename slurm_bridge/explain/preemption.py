"""What preemption would come to for a workload that waits: what the hook would propose to the daemon.

The daemon asks the hook about what it has heard; here that is put together from what the servers say now. Nothing is
written anywhere.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.explain.asking import Asked
from slurm_bridge.explain.looking import Scene, Sides
from slurm_bridge.hooks import evictions
from slurm_bridge.hooks.evictions import Preempts, Proposal
from slurm_bridge.mirror.table import Table
from slurm_bridge.model.job import JobView
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler import members
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.eviction import preemptors, sites
from slurm_bridge.scheduler.eviction.situation import ClusterSituation
from slurm_bridge.scheduler.tools import Limits

#: To which workload a pod belongs.
Claim = Callable[[Pod], Root]

#: Every workload has waited since then: for how long it really has, only the daemon knows.
_LONG_AGO = float("-inf")

NOBODY = (
    "nobody would have to go for it: it may not preempt, or there is no room to be made by pods of this bridge that "
    "have a lower priority (docs/preemption.md says who may, and who may have to go)"
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionView:
    """`promised`: nodes that are being cleared for it already. `places`: node by pod, where others would make room."""

    after_seconds: float
    promised: tuple[str, ...] = ()
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)
    victims: tuple[str, ...] = ()


def look(asked: Asked, sides: Sides, scene: Scene, crew: Sequence[Pod], claim: Claim) -> PreemptionView | None:
    """For a workload that has no nodes; None where the hook is not configured. `crew` are its pods as they are."""
    hook = asked.means.chain.preempts
    if hook is None or any(pod.bound for pod in crew):
        return None
    found = PreemptionView(after_seconds=hook.after_seconds, promised=tuple(sorted(evictions.nominated(crew))))
    proposal = None if found.promised else _proposal(hook, asked, sides, scene, crew, claim)
    if proposal is None:
        return found
    named = {pod.uid: _name(pod) for pod in crew}
    return dataclasses.replace(
        found,
        places={named[uid]: node for uid, node in proposal.places.items()},
        victims=tuple(sorted(map(_name, proposal.victims))),
    )


def lines(found: PreemptionView) -> Iterator[str]:
    """For people."""
    if found.promised:
        yield f"room is being made for it on {', '.join(found.promised)}"
    elif not found.victims:
        yield NOBODY
    else:
        yield f"once it has waited for {found.after_seconds:g} s, room would be made for it:"
        yield from (f"  {pod} would come to {node}" for pod, node in found.places.items())
        yield f"  evicted, for their lower priority: {', '.join(found.victims)}"


def machine(found: PreemptionView) -> Mapping[str, Any]:
    """All of it."""
    return {**dataclasses.asdict(found), "promised": list(found.promised), "victims": list(found.victims)}


def _proposal(
    hook: Preempts, asked: Asked, sides: Sides, scene: Scene, crew: Sequence[Pod], claim: Claim
) -> Proposal | None:
    means, root = asked.means, asked.workload.root
    table = _table(sides, means.rules.cluster_id)
    census = _census(scene, crew, claim, root)
    waits, now, window = census.crew(root.key), means.clock.now(), Limits().window
    one = preemptors.preemptor(hook, asked.wish, waits, table, now=now, window=window)
    lowest = sites.lowest(census)
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
        census=census,
        wall=means.clock.wall(),
    )
    return preemptors.proposal(hook, one, situation)


def _table(sides: Sides, cluster: str) -> Table:
    """The jobs of this bridge that Slurm has."""
    table = Table(lambda _: None)
    for view in sides.slurm.jobs():
        if view.owner is not None and view.owner.cluster == cluster:
            table.put(_placeholder(view))
    return table


def _census(scene: Scene, crew: Sequence[Pod], claim: Claim, root: Root) -> Census:
    """The pods that jobs have bound, and those of the workload."""
    census = Census(claim, now=lambda: _LONG_AGO)
    for pod in scene.bound:
        if members.job_id_of(pod) is not None:
            census.put(None, pod)
    for pod in crew:
        census.put(None, pod)
        census.move(pod.uid, root)
    return census


def _placeholder(view: JobView) -> Placeholder:
    assert view.owner is not None
    return Placeholder(job_id=view.job_id, owner=view.owner, state=view.state, since=_LONG_AGO, view=view)


def _name(pod: Pod) -> str:
    return "/".join(pod.key)
