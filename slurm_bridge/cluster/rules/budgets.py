"""Disruption budgets, as far as they say which pods may be evicted."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from slurm_bridge.cluster.rules import selectors
from slurm_bridge.cluster.rules.selectors import Requirement
from slurm_bridge.model.budget import PodDisruptionBudget
from slurm_bridge.model.pod import Pod


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many of the pods that it selects in its namespace may be evicted now; without requirements it selects none.

    `whole`: it selects all pods of the namespace, as the empty selector of policy/v1 means it.
    """

    namespace: str
    requirements: tuple[Requirement, ...]
    allowed: int
    whole: bool = False

    def selects(self, pod: Pod) -> bool:
        """A pod without labels is selected by nothing."""
        labels = pod.metadata.labels
        if pod.metadata.namespace != self.namespace or not (labels or self.whole):
            return False
        return self.whole or (bool(self.requirements) and selectors.all_hold(self.requirements, labels))


def of(found: PodDisruptionBudget) -> Budget:
    """As the cluster describes it; the controller's count of what it allows may lag, the API server's word is last."""
    selector = found.spec.selector
    return Budget(
        namespace=found.metadata.namespace,
        requirements=requirements(selector or {}),
        allowed=found.status.disruptions_allowed,
        whole=selector is not None and not requirements(selector),
    )


def requirements(selector: Mapping[str, object]) -> tuple[Requirement, ...]:
    """The conditions of a label selector as it is written in manifests."""
    labels, rows = selector.get("matchLabels"), selector.get("matchExpressions")
    equal = [(str(key), "In", (str(value),)) for key, value in labels.items()] if isinstance(labels, Mapping) else []
    others = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, Sequence) else []
    written = [
        (str(row.get("key", "")), str(row.get("operator", "")), selectors.words(row.get("values")) or ())
        for row in others
    ]
    return tuple(Requirement(*parts) for parts in (*equal, *written))


def guards(budgets: Iterable[Budget], pod: Pod) -> bool:
    """Some budget that selects it allows no eviction."""
    return any(one.allowed <= 0 and one.selects(pod) for one in budgets)


def overdrawn(budgets: Iterable[Budget], leaving: Iterable[Pod]) -> bool:
    """All of them together are more than some budget allows."""
    pods = tuple(leaving)
    taken = collections.Counter(one for one in budgets for pod in pods if one.selects(pod))
    return any(count > max(0, one.allowed) for one, count in taken.items())
