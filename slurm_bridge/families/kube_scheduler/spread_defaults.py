"""Topology spread constraints of pods that have none: configured ones, about pods of the same services and controller.

A pod that belongs to no service, replica set or stateful set has none.
"""

import dataclasses
from collections.abc import Sequence

from slurm_bridge.cluster.rules.spread import SpreadConstraint
from slurm_bridge.families.kube_scheduler.options import KubeSchedulerOptions
from slurm_bridge.families.kube_scheduler.scene import Labels
from slurm_bridge.hooks.base import Session
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model import selectors
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.selectors import Requirement
from slurm_bridge.model.services import Controller

#: Where the controllers of pods are found, by kind.
_OWNERS = {"ReplicaSet": Need.REPLICASETS, "StatefulSet": Need.STATEFULSETS}

#: kube-scheduler's own. Many clusters have no zones: hosts count without them.
_SYSTEM = tuple(
    SpreadConstraint(topology_key=key, max_skew=skew, hard=False, selector=None, everywhere=True)
    for key, skew in (("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5))
)


def configured(options: KubeSchedulerOptions) -> tuple[SpreadConstraint, ...]:
    """As the options have them, without selectors."""
    if options.spread_defaulting == "system":
        return _SYSTEM
    return tuple(
        SpreadConstraint(
            topology_key=one.topology_key,
            max_skew=one.max_skew,
            hard=one.when_unsatisfiable == "DoNotSchedule",
            selector=None,
            minimum_domains=one.min_domains,
            honor_affinity=one.node_affinity_policy == "Honor",
            honor_taints=one.node_taints_policy == "Honor",
        )
        for one in options.default_spread_constraints
    )


def needs(options: KubeSchedulerOptions) -> frozenset[Need]:
    """What has to be watched where there are any."""
    return frozenset({Need.SERVICES, *_OWNERS.values()}) if configured(options) else frozenset()


def of(
    pod: Pod, defaults: Sequence[SpreadConstraint], services: Sequence[Labels], session: Session
) -> tuple[SpreadConstraint, ...]:
    """Those of one pod; `services` are the selectors of the services in its namespace."""
    labels, namespace = pod.metadata.labels, pod.metadata.namespace
    wanted: dict[str, str] = {}
    for selector in services:
        if selector.items() <= labels.items():
            wanted |= selector
    found = [Requirement(key, "In", (value,)) for key, value in wanted.items()]
    owner = next((one for one in pod.metadata.owner_references if one.controller), None)
    if owner is not None and owner.kind in _OWNERS and owner.api_version.startswith("apps/"):
        controller = session.view(_OWNERS[owner.kind]).get(namespace, owner.name)
        if isinstance(controller, Controller):
            found += selectors.read(controller.spec.selector) or ()
    return tuple(dataclasses.replace(one, selector=tuple(found)) for one in defaults) if found else ()
