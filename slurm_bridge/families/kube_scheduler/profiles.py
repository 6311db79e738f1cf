"""The hook "kube-scheduler": one set of predicates and priorities for each scheduler name that pods can have."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from slurm_bridge.families.kube_scheduler.hook import KubeScheduler
from slurm_bridge.families.kube_scheduler.options import KubeSchedulerOptions
from slurm_bridge.hooks.base import Admit, Ask, Denied, Deny, Nodes, Scores, Session, Subsets
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model.features import Feature
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Workload


class Profiles:
    """Pods are placed by the profile of their scheduler name, those of a gang by that of its first pod."""

    name = "kube-scheduler"
    Options: ClassVar = KubeSchedulerOptions
    services = True

    def __init__(self, options: KubeSchedulerOptions, services: HookServices) -> None:
        self._general = KubeScheduler(options, services)
        self._named = {
            one.scheduler_name: KubeScheduler(options.of(one), services, beside=self._general)
            for one in options.profiles
        }
        every = (self._general, *self._named.values())
        self.needs = self._general.needs.union(*(one.needs for one in every))
        #: Only what each profile honours is honoured for every pod.
        self.honours: frozenset[Feature] = self._general.honours.intersection(*(one.honours for one in every))
        self.foreign = any(one.foreign for one in every)

    def filter(self, session: Session, ask: Ask, nodes: Nodes) -> Denied | Wait:
        """Predicates, and then what extenders say of the nodes that these leave."""
        return self._of(ask.workload).filter(session, ask, nodes)

    def score(self, session: Session, ask: Ask, nodes: Nodes) -> Scores:
        """As for the pods of the largest shape."""
        return self._of(ask.workload).score(session, ask, nodes)

    def subset(self, session: Session, ask: Ask, tasks: Sequence[Pod], nodes: Nodes) -> Subsets:
        """The nodes on which its pods come to lie as they ask, where they ask for anything of their neighbours."""
        return self._of(ask.workload).subset(session, ask, tasks, nodes)

    def verify(self, session: Session, workload: Workload, nodes: Mapping[str, str]) -> Admit | Deny | Wait:
        """By what is free now."""
        return self._of(workload).verify(session, workload, nodes)

    def forget(self, workload: WorkloadKey) -> None:
        """Its pods have their nodes, or are gone."""
        self._general.forget(workload)

    def close(self) -> None:
        """End the threads that ask extenders."""
        self._general.close()

    def _of(self, workload: Workload) -> KubeScheduler:
        return self._named.get(workload.pods[0].spec.scheduler_name, self._general)
