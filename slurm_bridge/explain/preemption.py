"""What preemption would do for a workload that waits: the step of the scheduler up to its proposal.

The scheduler knows the state from its watches; here it is built from what the servers say now. Nothing is written.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.explain.cluster_view import ClusterView, Servers
from slurm_bridge.explain.context import Inquiry
from slurm_bridge.families.kube_scheduler.preempting import hook as hooks
from slurm_bridge.families.kube_scheduler.preempting.hook import Preemption
from slurm_bridge.hooks.evictions import Proposal
from slurm_bridge.mirror.jobs import Mirror
from slurm_bridge.mirror.table import Table
from slurm_bridge.model.job import JobView
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root
from slurm_bridge.scheduler import members
from slurm_bridge.scheduler.avoid import Avoided, Holds
from slurm_bridge.scheduler.candidates import Candidates
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.tools import Config, Limits, Tools

#: The workload of a pod.
Claim = Callable[[Pod], Root]

#: Pods wait since then here; only the daemon knows for how long they really do.
_LONG_AGO = float("-inf")

NO_VICTIMS = (
    "no pod would be evicted for it: it may not preempt, or evicting this bridge's pods of lower priority would not "
    "make room for it (docs/preemption.md says which pods may preempt, and which may be evicted)"
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionOutlook:
    """`promised`: nodes that are being cleared already. `places`: node by pod, if evictions would make room."""

    after_seconds: float
    promised: tuple[str, ...] = ()
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)
    victims: tuple[str, ...] = ()


def look(
    inquiry: Inquiry, servers: Servers, scene: ClusterView, crew: Sequence[Pod], claim: Claim
) -> PreemptionOutlook | None:
    """For a workload without nodes; None without the hook. `crew` are its pods as they are."""
    hook = next((one.hook for one in inquiry.means.chain.hooks if isinstance(one.hook, Preemption)), None)
    if hook is None or any(pod.bound for pod in crew):
        return None
    found = PreemptionOutlook(after_seconds=hook.options.after_seconds, promised=tuple(sorted(hooks.promised(crew))))
    proposal = None if found.promised else _proposal(hook, inquiry, servers, scene, crew, claim)
    if proposal is None:
        return found
    named = {pod.uid: _name(pod) for pod in crew}
    return dataclasses.replace(
        found,
        places={named[uid]: node for uid, node in proposal.places.items()},
        victims=tuple(sorted(map(_name, proposal.victims))),
    )


def lines(found: PreemptionOutlook) -> Iterator[str]:
    """The text."""
    if found.promised:
        yield f"pods are being evicted for it on {', '.join(found.promised)}"
    elif not found.victims:
        yield NO_VICTIMS
    else:
        yield f"after waiting for {found.after_seconds:g} s, pods would be evicted for it:"
        yield from (f"  {pod} would be bound to {node}" for pod, node in found.places.items())
        yield f"  evicted, because of their lower priority: {', '.join(found.victims)}"


def machine(found: PreemptionOutlook) -> Mapping[str, Any]:
    """The JSON document."""
    return {**dataclasses.asdict(found), "promised": list(found.promised), "victims": list(found.victims)}


def _proposal(
    hook: Preemption, inquiry: Inquiry, servers: Servers, scene: ClusterView, crew: Sequence[Pod], claim: Claim
) -> Proposal | None:
    root, table = inquiry.workload.root, Table(lambda _: None)
    for view in servers.slurm.jobs():
        if view.owner is not None and view.owner.cluster == inquiry.means.rules.cluster_id:
            table.put(_placeholder(view))
    census = Census(claim, now=lambda: _LONG_AGO)
    for pod in scene.bound:
        if members.job_id_of(pod) is not None:
            census.put(None, pod)
    for pod in crew:
        census.put(None, pod)
        census.move(pod.uid, root)
    tools = _tools(inquiry, servers, scene, table, census)
    tools.states.of(root.key).desired = inquiry.wish
    candidates = Candidates(tools, census)
    mine = next(iter(candidates.waiting(hook, ())), None)
    return candidates.proposal(hook, mine) if mine is not None else None


def _placeholder(view: JobView) -> Placeholder:
    assert view.owner is not None
    return Placeholder(job_id=view.job_id, owner=view.owner, state=view.state, since=_LONG_AGO, view=view)


def _tools(inquiry: Inquiry, servers: Servers, scene: ClusterView, table: Table, census: Census) -> Tools:
    means = inquiry.means
    return Tools(
        cluster=servers.cluster,
        slurm=servers.slurm,
        clock=means.clock,
        table=table,
        mirror=Mirror(servers.slurm, means.clock, table, cluster_id=means.rules.cluster_id),
        keeper=scene.keeper,
        census=census,
        voice=_Mute(),
        tally=_Mute(),
        gather=lambda *_, **__: None,
        config=Config(rules=means.rules, chain=means.chain),
        limits=Limits(ids=means.ids),
        avoided=Avoided(),
        held=Holds(),
        facts_at=means.clock.now(),
    )


def _name(pod: Pod) -> str:
    return "/".join(pod.key)


class _Mute:
    """Implements StatusReporter and Counters without effect."""

    def waiting(self, pod: Pod, reason: str, message: str, *, key: str = "") -> None:
        """Writes nothing."""

    def waiting_together(self, root: Root, crowd: object, reason: str, message: str, *, key: str = "") -> None:
        """Writes nothing."""

    def event(self, pod: Pod, reason: str, message: str, *, warning: bool = False) -> None:
        """Writes nothing."""

    def group(self, workload: object, reason: str, message: str, *, warning: bool = False) -> None:
        """Writes nothing."""

    def scheduled(self, workload: object) -> None:
        """Writes nothing."""

    def disrupt(self, pod: Pod, reason: str, message: str) -> None:
        """Writes nothing."""

    def forget(self, uid: str) -> None:
        """Writes nothing."""

    def attempt(self, result: str) -> None:
        """Counts nothing."""

    def surprise(self, where: str) -> None:
        """Counts nothing."""

    def bound(self, pod: Pod, waited: float | None) -> None:
        """Counts nothing."""

    def ended(self, reason: str) -> None:
        """Counts nothing."""

    def resized(self) -> None:
        """Counts nothing."""
