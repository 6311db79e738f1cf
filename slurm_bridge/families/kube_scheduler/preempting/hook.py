"""The hook "preemption", off unless it is configured.

It says who may preempt and what is tried first; the scheduler, which knows whose job a pod runs in, does what follows.
"""

from collections.abc import Iterable
from typing import Annotated

import pydantic

from slurm_bridge.cluster.rules import budgets
from slurm_bridge.cluster.rules.budgets import Budget
from slurm_bridge.families.kube_scheduler.extenders import asking
from slurm_bridge.families.kube_scheduler.options import ExtenderOptions
from slurm_bridge.families.kube_scheduler.preempting.choosing import Extender
from slurm_bridge.hooks.background import Backstage
from slurm_bridge.hooks.base import Ask, Nodes, NodeSet, Session, Subsets
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model.budget import PodDisruptionBudget
from slurm_bridge.model.pod import Pod

#: A pod that says so waits in its place, and sends nobody away.
NEVER = "Never"


class PreemptionOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """When pods are sent away for others, and how many at a time."""

    after_seconds: Annotated[float, pydantic.Field(ge=0)] = 30.0
    """A workload has to wait for so long first. When nobody can make room it asks again, later and later."""
    at_once: Annotated[int, pydantic.Field(ge=1, le=100)] = 3
    """So many preemptions are under way at the same time."""
    keep_seconds: Annotated[float, pydantic.Field(gt=0)] = 300.0
    """Nodes are kept for whom they are cleared for at most so long; victims need their grace period within it."""
    most_nodes: Annotated[int, pydantic.Field(ge=1)] = 200
    """So many nodes with pods of a lower priority are compared, those whose pods are least important first."""
    most_members: Annotated[int, pydantic.Field(ge=1)] = 16
    """Gangs of more pods do not preempt."""
    extenders: tuple[ExtenderOptions, ...] = ()
    """Services that are asked which nodes may be cleared, by their `preempt_verb`; as those of kube-scheduler."""


class Preemption:
    """`subset` lets a workload for which nodes were cleared try these first, and any others after them."""

    Options = PreemptionOptions
    backstage = True
    needs = frozenset({Need.PDBS})

    def __init__(self, options: PreemptionOptions, backstage: Backstage) -> None:
        self.options, self._backstage = options, backstage

    def subset(self, _session: Session, _ask: Ask, tasks: tuple[Pod, ...], nodes: Nodes) -> Subsets:
        """What was promised is on the pods themselves, so that a restart knows it too."""
        cleared = nodes & promised(tasks)
        if not cleared or cleared == nodes:
            return Subsets(relevant=False)
        return Subsets(sets=(NodeSet(nodes=cleared, name="cleared for it"), NodeSet(nodes=nodes, name="any")))

    def extenders(self, pod: Pod) -> tuple[Extender, ...]:
        """Who outside has a say about this pod; it takes as long as they take."""
        return tuple(asking.preempting(one, self._backstage.post, pod) for one in self.options.extenders)

    def count(self, what: str, amount: int = 1) -> None:
        """Something happened to a preemption."""
        self._backstage.tally.happened("preemption", what, amount)


def promised(pods: Iterable[Pod]) -> Nodes:
    """The nodes that were cleared for some of these pods."""
    return frozenset(pod.status.nominated_node_name for pod in pods if pod.status.nominated_node_name)


def may(pods: Iterable[Pod]) -> bool:
    """Whether these pods want others to go for them."""
    return all(pod.spec.preemption_policy != NEVER for pod in pods)


def known_budgets(session: Session) -> tuple[Budget, ...]:
    """The disruption budgets of the cluster as last heard."""
    return tuple(budgets.of(one) for one in session.view(Need.PDBS).all() if isinstance(one, PodDisruptionBudget))
