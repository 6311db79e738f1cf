"""A place for each of some equal pods, and the pods that would have to leave for that."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from slurm_bridge.cluster.parties import Victims
from slurm_bridge.cluster.rules import budgets
from slurm_bridge.cluster.rules.budgets import Budget
from slurm_bridge.families.kube_scheduler.preemption import choice, room
from slurm_bridge.families.kube_scheduler.preemption.choice import Extender
from slurm_bridge.hooks.evictions import Proposal, Site
from slurm_bridge.model.pod import Pod

#: The services that have a say about this pod.
Asked = Callable[[Pod], Sequence[Extender]]


def no_extenders(pod: Pod) -> Sequence[Extender]:  # noqa: ARG001 - an Asked
    """No extender is asked."""
    return ()


def propose(
    pods: Sequence[Pod],
    priority: int,
    sites: Sequence[Site],
    known: Sequence[Budget],
    asked: Asked = no_extenders,
) -> Proposal | None:
    """One pod after the other takes the place that costs least; None when one of them finds none.

    Raises NotAnswered of an extender that counts.

    No budget is broken, not even by all victims together: an eviction that is refused half-way would have cost the
    others their place for nothing.
    """
    standing = {site.node: site for site in sites}
    settled: dict[str, list[Pod]] = {site.node: [] for site in sites}
    places: dict[str, str] = {}
    victims: tuple[Pod, ...] = ()
    for pod in pods:
        choice = _choose(pod, priority, _Scene(standing, settled, victims, known), asked(pod))
        if choice is None:
            return None
        places[pod.uid] = choice.node
        settled[choice.node].append(pod)
        victims += choice.victims.pods
        gone = {one.uid for one in choice.victims.pods}
        standing = {node: _without(site, gone) for node, site in standing.items()} if gone else standing
    return Proposal(places=places, victims=victims)


@dataclasses.dataclass(frozen=True, slots=True)
class _Scene:
    sites: Mapping[str, Site]
    settled: Mapping[str, Sequence[Pod]]
    victims: tuple[Pod, ...]
    known: Sequence[Budget]


def _choose(pod: Pod, priority: int, scene: _Scene, extenders: Sequence[Extender]) -> choice.VictimChoice | None:
    def fits(node: str, others: Sequence[Pod]) -> bool:
        beside = (*scene.settled[node], *others)
        return room.fits(pod, beside, scene.sites[node].has, scene.sites[node].needs_of)

    def within_budgets(candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        return {
            node: victims
            for node, victims in candidates.items()
            if not budgets.overdrawn(scene.known, (*scene.victims, *victims.pods))
        }

    return choice.preempt(
        priority,
        {node: site.parties for node, site in scene.sites.items()},
        fits,
        lambda one: budgets.guards(scene.known, one),
        [*extenders, Extender(name="disruption budgets", ask=within_budgets)],
    )


def _without(site: Site, gone: set[str]) -> Site:
    """The same node when these have left it; a party leaves as a whole."""
    left = tuple(party for party in site.parties if not any(pod.uid in gone for pod in party.here))
    return site if len(left) == len(site.parties) else dataclasses.replace(site, parties=left)
