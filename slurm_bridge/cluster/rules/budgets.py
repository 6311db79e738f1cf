"""Disruption budgets, as far as they say which pods may be evicted."""

import collections
import dataclasses
from collections.abc import Iterable

from slurm_bridge.model import selectors
from slurm_bridge.model.budget import PodDisruptionBudget
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.selectors import Requirement


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many of the pods that it selects in its namespace may be evicted now.

    Requirements of None select no pod; without any, all pods are selected, as the empty selector of policy/v1 means it.
    """

    namespace: str
    requirements: tuple[Requirement, ...] | None
    allowed: int

    def selects(self, pod: Pod) -> bool:
        """A pod without labels is selected only by a budget for all pods."""
        labels, wanted = pod.metadata.labels, self.requirements
        if wanted is None or pod.metadata.namespace != self.namespace:
            return False
        return not wanted or (bool(labels) and selectors.all_hold(wanted, labels))


def of(found: PodDisruptionBudget) -> Budget:
    """As the cluster describes it; the controller's count of what it allows may lag, the API server's word is last."""
    return Budget(
        namespace=found.metadata.namespace,
        requirements=selectors.read(found.spec.selector),
        allowed=found.status.disruptions_allowed,
    )


def guards(budgets: Iterable[Budget], pod: Pod) -> bool:
    """Some budget that selects it allows no eviction."""
    return any(one.allowed <= 0 and one.selects(pod) for one in budgets)


def overdrawn(budgets: Iterable[Budget], leaving: Iterable[Pod]) -> bool:
    """All of them together are more than some budget allows."""
    pods = tuple(leaving)
    taken = collections.Counter(one for one in budgets for pod in pods if one.selects(pod))
    return any(count > max(0, one.allowed) for one, count in taken.items())
