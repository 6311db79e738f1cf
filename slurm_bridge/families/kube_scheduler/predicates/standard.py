"""All predicates by name; those that a site has installed stand beside them."""

import importlib.metadata
from collections.abc import Mapping
from typing import Any

import pydantic

from slurm_bridge.cluster.rules import taints
from slurm_bridge.cluster.rules.attachments import TAKEN_OVER
from slurm_bridge.families.kube_scheduler.predicates import (
    attachments,
    even_spread,
    exclusive,
    neighbours,
    nodes,
    own,
    resources,
    services,
    volume_nodes,
)
from slurm_bridge.families.kube_scheduler.predicates.base import BadPredicate, Builder, Failures, PredicateRule
from slurm_bridge.families.kube_scheduler.predicates.own import GROUP
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model.features import Feature

_STORAGE = frozenset({Need.PVCS, Need.PVS, Need.STORAGECLASSES})

_PORTS = frozenset({Feature.HOST_PORTS})
_NEIGHBOURS = frozenset({Feature.POD_AFFINITY, Feature.POD_ANTI_AFFINITY})
_SOLE = frozenset({Feature.SOLE_CLAIMS})
_WAITING = frozenset({Feature.WAITING_CLAIMS})
_SPREAD = frozenset({Feature.TOPOLOGY_SPREAD})


def plain(rule: PredicateRule) -> Builder:
    """Of a rule without arguments."""

    def build(args: Mapping[str, Any]) -> PredicateRule:
        if args:
            raise BadPredicate(f"takes no args, and was given {', '.join(sorted(args))}")
        return rule

    return build


def general(args: Mapping[str, Any]) -> PredicateRule:
    """GeneralPredicates: the four that every pod has to pass, all asked, so that all reasons are told."""
    fits_resources = resources.build(args)
    parts = (fits_resources, nodes.host_name, exclusive.host_ports, nodes.node_selector)

    def all_of_them(scene: Scene) -> Failures:
        return tuple(failure for part in parts for failure in part(scene))

    return PredicateRule(
        failures=all_of_them,
        moving=lambda scene: fits_resources.moving(scene) or exclusive.claims_ports(scene),
        honours=_PORTS,
    )


_LIMITED = _STORAGE | {Need.CSINODES}

_ATTACHING = {
    name: plain(PredicateRule(failures=attachments.volume_count((driver,)), needs=_LIMITED, moving=attachments.claims))
    for name, driver in TAKEN_OVER.items()
}

#: Names are kube-scheduler's.
PREDICATES: Mapping[str, Builder] = {
    "CheckNodeCondition": plain(PredicateRule(failures=nodes.condition, moving=nodes.ill("NetworkUnavailable"))),
    "CheckNodeUnschedulable": plain(PredicateRule(failures=nodes.unschedulable)),
    "GeneralPredicates": general,
    "HostName": plain(PredicateRule(failures=nodes.host_name)),
    "PodFitsHostPorts": plain(
        PredicateRule(failures=exclusive.host_ports, moving=exclusive.claims_ports, honours=_PORTS)
    ),
    "MatchNodeSelector": plain(PredicateRule(failures=nodes.node_selector)),
    "PodFitsResources": resources.build,
    "NoDiskConflict": plain(
        PredicateRule(
            failures=exclusive.disk_conflict,
            needs=frozenset({Need.PVCS}),
            moving=exclusive.names_disks,
            honours=_SOLE,
        )
    ),
    "PodToleratesNodeTaints": plain(PredicateRule(failures=nodes.tolerating(*taints.HARD))),
    "PodToleratesNodeNoExecuteTaints": plain(PredicateRule(failures=nodes.tolerating("NoExecute"))),
    "CheckNodeLabelPresence": nodes.label_presence,
    "CheckServiceAffinity": services.build,
    "MaxCSIVolumeCount": plain(
        PredicateRule(failures=attachments.volume_count(), needs=_LIMITED, moving=attachments.claims)
    ),
    **_ATTACHING,
    "CheckVolumeBinding": plain(
        PredicateRule(failures=volume_nodes.volume_binding, needs=_STORAGE, moving=attachments.claims, honours=_WAITING)
    ),
    "NoVolumeZoneConflict": plain(
        PredicateRule(failures=volume_nodes.volume_zone, needs=_STORAGE, moving=attachments.claims)
    ),
    "CheckNodeMemoryPressure": plain(PredicateRule(failures=nodes.memory_pressure, moving=nodes.ill("MemoryPressure"))),
    "CheckNodePIDPressure": plain(PredicateRule(failures=nodes.pid_pressure, moving=nodes.ill("PIDPressure"))),
    "CheckNodeDiskPressure": plain(PredicateRule(failures=nodes.disk_pressure, moving=nodes.ill("DiskPressure"))),
    "EvenPodsSpread": plain(
        PredicateRule(failures=even_spread.even_pods_spread, moving=even_spread.constrained, honours=_SPREAD)
    ),
    "MatchInterPodAffinity": plain(
        PredicateRule(
            failures=neighbours.inter_pod_affinity,
            needs=frozenset({Need.NAMESPACES}),
            moving=neighbours.neighbourly,
            honours=_NEIGHBOURS,
        )
    ),
}


def build(name: str, args: Mapping[str, Any], offered: Mapping[str, importlib.metadata.EntryPoint]) -> PredicateRule:
    """The rule of this name; raises BadPredicate saying what there is, or which arguments it takes."""
    if name not in PREDICATES and name not in offered:
        every = ", ".join(sorted({*PREDICATES, *offered}))
        raise BadPredicate(
            f"predicate {name}: neither built in nor installed (entry point group {GROUP}); use one of {every}"
        )
    try:
        return PREDICATES[name](args) if name in PREDICATES else plain(own.load(name, offered[name]))(args)
    except pydantic.ValidationError as error:
        wrong = (
            f"predicate {name}: {'.'.join(['args', *map(str, row['loc'])])}: {row['msg']}" for row in error.errors()
        )
        raise BadPredicate("\n".join(wrong)) from error
    except BadPredicate as bad:
        raise BadPredicate(f"predicate {name}: {bad}") from bad
