"""Where a workload would go if some pods left, in a situation that the scheduler describes.

now      what all hooks say of the workload today: one that is against it altogether ends the search
nodes    those whose pods are least important, and those that have room already
cleared  what all hooks would say if these nodes were empty: their filters and node sets bound the search
propose  victims for one pod after the other
checked  what all hooks would say without just these victims: they know more rules than the search looks at
"""

from collections.abc import Callable, Mapping, Sequence

from slurm_bridge.cluster import columns, hypothetical
from slurm_bridge.cluster.parties import priority_of
from slurm_bridge.cluster.rules import budgets
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler.preemption import choice
from slurm_bridge.families.kube_scheduler.preemption import proposal as proposing
from slurm_bridge.families.kube_scheduler.preemption.choice import Extender
from slurm_bridge.hooks.base import Ask, Nodes
from slurm_bridge.hooks.evictions import Answers, Proposal, Situation
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import resources

#: The services that have a say about a pod.
Extenders = Callable[[Pod], Sequence[Extender]]


class VictimSearch:
    """For one workload, in one situation; at most `most` nodes are compared."""

    def __init__(self, ask: Ask, situation: Situation, most: int, extenders: Extenders) -> None:
        self._ask, self._situation, self._most, self._extenders = ask, situation, most, extenders
        self._pods = ask.workload.pods

    def proposal(self) -> Proposal | None:
        """None where there is nothing to gain; raises NotAnswered of an extender that counts."""
        on_node = self._situation.on_node
        if not all(choice.eligible(priority_of(pod), pod.status.nominated_node_name, on_node) for pod in self._pods):
            return None
        now = self._situation.answers(self._situation.snapshot)
        if now is None or (now.nodes and not self._situation.submitted):
            # A hook is against it altogether, or it waits for something else than nodes.
            return None
        # Without victims there is room, and what keeps Slurm from using it is nothing that an eviction changes.
        found = self._proposed(now)
        if found is None or not found.victims:
            return None
        answers = self._situation.answers(hypothetical.without(self._situation.snapshot, found.victims))
        if answers is None or not found.nodes <= answers.nodes:
            return None
        return found if any(found.nodes <= within for within in answers.sets) else None

    def _proposed(self, now: Answers) -> Proposal | None:
        situation, avoided, evictable = self._situation, self._situation.avoided, self._situation.evictable()
        ranked = sorted(
            (name for name in evictable if name not in avoided), key=lambda name: _rank(name, evictable, now.nodes)
        )[: self._most]
        cleared = situation.answers(
            hypothetical.without(situation.snapshot, (p for name in ranked for p in evictable[name]))
        )
        if cleared is None:
            return None
        roomy = (_roomy(situation.snapshot, self._ask.workload.lead) & now.nodes).difference(avoided)
        limits, priority = tuple(map(budgets.of, now.budgets)), self._ask.workload.priority
        for within in cleared.sets:
            names = [name for name in ranked if name in cleared.nodes & within]
            free = sorted((roomy & within).difference(names))
            sites = situation.sites(now.request, (*names, *free[: self._most]))
            found = proposing.propose(self._pods, priority, sites, limits, self._extenders)
            if found is not None:
                return found
        return None


def _rank(name: str, evictable: Mapping[str, Sequence[Pod]], fitting: Nodes) -> tuple[bool, int, int, str]:
    """Nodes first on which only room is lacking, then those whose pods are least important, and few."""
    pods = evictable[name]
    return name not in fitting, max(map(priority_of, pods)), len(pods), name


def _roomy(snapshot: ClusterSnapshot, pod: Pod) -> Nodes:
    """The nodes that have what the pod asks for left, as Kubernetes counts."""
    seen = snapshot.columns
    mask = seen.present
    for resource, amount in resources.requests_of(pod).items():
        if amount > 0:
            mask = mask & (seen.allocatable(resource) - seen.used(resource) >= columns.units(resource, amount))
    return seen.nodes(mask)
