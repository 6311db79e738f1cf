"""What preemption would come to for a workload that waits: the daemon's own step, taken up to its proposal.

The scheduler's step reads what the daemon has heard; here it is put together from what the servers say now. Nothing is
said to anybody, and nothing is written.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from slurm_bridge.explain.asking import Asked
from slurm_bridge.explain.looking import Scene, Sides
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

#: To which workload a pod belongs.
Claim = Callable[[Pod], Root]

#: Since when everybody waits here: for how long it really was, only the daemon knows.
_LONG_AGO = float("-inf")

NOBODY = (
    "nobody would have to go for it: it may not preempt, or there is no room to be made by pods of this bridge that "
    "have a lower priority (docs/preemption.md says who may, and who may have to go)"
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Preempting:
    """`promised`: nodes that are being cleared for it already. `places`: node by pod, where others would make room."""

    after_seconds: float
    promised: tuple[str, ...] = ()
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)
    victims: tuple[str, ...] = ()


def look(asked: Asked, sides: Sides, scene: Scene, crew: Sequence[Pod], claim: Claim) -> Preempting | None:
    """For a workload that has no nodes; None where the hook is not configured. `crew` are its pods as they are."""
    hook = next((one.hook for one in asked.means.chain.hooks if isinstance(one.hook, Preemption)), None)
    if hook is None or any(pod.bound for pod in crew):
        return None
    found = Preempting(after_seconds=hook.options.after_seconds, promised=tuple(sorted(hooks.promised(crew))))
    proposal = None if found.promised else _proposal(hook, asked, sides, scene, crew, claim)
    if proposal is None:
        return found
    named = {pod.uid: _name(pod) for pod in crew}
    return dataclasses.replace(
        found,
        places={named[uid]: node for uid, node in proposal.places.items()},
        victims=tuple(sorted(map(_name, proposal.victims))),
    )


def lines(found: Preempting) -> Iterator[str]:
    """For people."""
    if found.promised:
        yield f"room is being made for it on {', '.join(found.promised)}"
    elif not found.victims:
        yield NOBODY
    else:
        yield f"once it has waited for {found.after_seconds:g} s, room would be made for it:"
        yield from (f"  {pod} would come to {node}" for pod, node in found.places.items())
        yield f"  evicted, for their lower priority: {', '.join(found.victims)}"


def machine(found: Preempting) -> Mapping[str, Any]:
    """All of it."""
    return {**dataclasses.asdict(found), "promised": list(found.promised), "victims": list(found.victims)}


def _proposal(
    hook: Preemption, asked: Asked, sides: Sides, scene: Scene, crew: Sequence[Pod], claim: Claim
) -> Proposal | None:
    root, table = asked.workload.root, Table(lambda _: None)
    for view in sides.slurm.jobs():
        if view.owner is not None and view.owner.cluster == asked.means.rules.cluster_id:
            table.put(_placeholder(view))
    census = Census(claim, now=lambda: _LONG_AGO)
    for pod in scene.bound:
        if members.job_id_of(pod) is not None:
            census.put(None, pod)
    for pod in crew:
        census.put(None, pod)
        census.move(pod.uid, root)
    tools = _tools(asked, sides, scene, table, census)
    tools.states.of(root.key).desired = asked.wish
    candidates = Candidates(tools, census)
    mine = next(iter(candidates.waiting(hook, ())), None)
    return candidates.proposal(hook, mine) if mine is not None else None


def _placeholder(view: JobView) -> Placeholder:
    assert view.owner is not None
    return Placeholder(job_id=view.job_id, owner=view.owner, state=view.state, since=_LONG_AGO, view=view)


def _tools(asked: Asked, sides: Sides, scene: Scene, table: Table, census: Census) -> Tools:
    means = asked.means
    return Tools(
        cluster=sides.cluster,
        slurm=sides.slurm,
        clock=means.clock,
        table=table,
        mirror=Mirror(sides.slurm, means.clock, table, cluster_id=means.rules.cluster_id),
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
    """Implements StatusReporter and Counters for nobody: an explanation is no news."""

    def waiting(self, pod: Pod, reason: str, message: str, *, key: str = "") -> None:
        """Not said."""

    def waiting_together(self, root: Root, crowd: object, reason: str, message: str, *, key: str = "") -> None:
        """Likewise."""

    def event(self, pod: Pod, reason: str, message: str, *, warning: bool = False) -> None:
        """Likewise."""

    def group(self, workload: object, reason: str, message: str, *, warning: bool = False) -> None:
        """Likewise."""

    def scheduled(self, workload: object) -> None:
        """Likewise."""

    def disrupt(self, pod: Pod, reason: str, message: str) -> None:
        """Likewise."""

    def forget(self, uid: str) -> None:
        """Likewise."""

    def attempt(self, result: str) -> None:
        """Not counted."""

    def surprise(self, where: str) -> None:
        """Likewise."""

    def bound(self, pod: Pod, waited: float | None) -> None:
        """Likewise."""

    def ended(self, reason: str) -> None:
        """Likewise."""

    def resized(self) -> None:
        """Likewise."""
