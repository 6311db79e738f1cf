"""The hook "preemption", off unless it is configured.

It says which workloads may preempt, and proposes victims; the scheduler, which knows the job of each pod, evicts them.
"""

from collections.abc import Iterable
from typing import Annotated

import pydantic

from slurm_bridge.families.kube_scheduler.extenders import verdicts
from slurm_bridge.families.kube_scheduler.options import ExtenderOptions
from slurm_bridge.families.kube_scheduler.preemption import search
from slurm_bridge.families.kube_scheduler.preemption.choice import Extender
from slurm_bridge.hooks.base import Ask, Nodes, NodeSet, Session, Subsets
from slurm_bridge.hooks.evictions import Proposal, Situation, nominated
from slurm_bridge.hooks.needs import Need
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model.pod import Pod

#: The preemptionPolicy of a pod that waits in its place, and has no pod evicted.
NEVER = "Never"


class PreemptionOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """When pods are evicted for others, and how many at a time."""

    after_seconds: Annotated[float, pydantic.Field(ge=0)] = 30.0
    """How long a workload has to wait before others are evicted for it. If no eviction helps, it is tried again at
    growing intervals."""
    at_once: Annotated[int, pydantic.Field(ge=1, le=100)] = 3
    """How many preemptions are under way at the same time."""
    keep_seconds: Annotated[float, pydantic.Field(gt=0)] = 300.0
    """How long nodes are kept for a workload at most; the grace period of the evicted pods has to end within this
    time."""
    most_nodes: Annotated[int, pydantic.Field(ge=1)] = 200
    """How many nodes with pods of a lower priority are compared, those with the least important pods first."""
    most_members: Annotated[int, pydantic.Field(ge=1)] = 16
    """The largest gang for which other pods are evicted."""
    extenders: tuple[ExtenderOptions, ...] = ()
    """Services that are asked, with their `preempt_verb`, on which nodes pods may be evicted; they are written as for
    `kube-scheduler`."""


class Preemption:
    """`subset` lets a workload for which nodes were cleared try these first, and any others after them."""

    Options = PreemptionOptions
    services = True
    needs = frozenset({Need.PDBS})

    def __init__(self, options: PreemptionOptions, services: HookServices) -> None:
        self.options, self._services = options, services
        self.after_seconds, self.at_once = options.after_seconds, options.at_once
        self.keep_seconds = options.keep_seconds

    def subset(self, _session: Session, _ask: Ask, tasks: tuple[Pod, ...], nodes: Nodes) -> Subsets:
        """The nominated nodes are on the pods themselves, so that a restart knows them too."""
        cleared = nodes & nominated(tasks)
        if not cleared or cleared == nodes:
            return Subsets(relevant=False)
        return Subsets(sets=(NodeSet(nodes=cleared, name="cleared for it"), NodeSet(nodes=nodes, name="any")))

    def supports(self, ask: Ask) -> bool:
        """Equal pods, of a request of which a node's amounts tell whether it fits there."""
        request, pods = ask.request, ask.workload.pods
        beyond = request.constraints or request.reservation or request.licenses or request.components
        alike = len(ask.shapes) <= 1 and len(pods) <= self.options.most_members
        return alike and not beyond and may(pods)

    def propose(self, ask: Ask, situation: Situation) -> Proposal | None:
        """The pods of a lower priority whose eviction costs least."""
        return search.VictimSearch(ask, situation, self.options.most_nodes, self._extenders).proposal()

    def _extenders(self, pod: Pod) -> tuple[Extender, ...]:
        """Services that have a say about this pod; asking them takes as long as they take."""
        return tuple(verdicts.preempting(one, self._services.post, pod) for one in self.options.extenders)

    def count(self, what: str, amount: int = 1) -> None:
        """Something happened to a preemption."""
        self._services.counters.happened("preemption", what, amount)


def may(pods: Iterable[Pod]) -> bool:
    """Whether other pods may be evicted for these."""
    return all(pod.spec.preemption_policy != NEVER for pod in pods)
