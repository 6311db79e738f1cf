"""Tables of the pages about hooks: their options, predicates, priorities and plugins, as the code has them.

What a row says in words stands here, beside the tables that it has to be complete for; a name without words, or words
without a name, is an error.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import docs_options
from slurm_bridge.cluster.rules import attachments
from slurm_bridge.families import policy
from slurm_bridge.families.kube_scheduler import plugins as scheduler
from slurm_bridge.families.kube_scheduler.options import (
    STANDARD_PREDICATES,
    STANDARD_PRIORITIES,
    NamedProfile,
    TermOptions,
)
from slurm_bridge.families.kube_scheduler.predicates import nodes, resources, services, standard
from slurm_bridge.families.kube_scheduler.priorities import table as priorities
from slurm_bridge.families.vela import catalogue
from slurm_bridge.hooks import registry

#: What each predicate keeps a pod away from.
AWAY_FROM: Mapping[str, str] = {
    "CheckNodeCondition": "nodes that are not ready, have no network, or are cordoned, whatever the pod tolerates",
    "CheckNodeUnschedulable": "cordoned nodes, unless the pod tolerates that",
    "GeneralPredicates": "all that PodFitsResources, HostName, PodFitsHostPorts and MatchNodeSelector say together",
    "HostName": "none: a pod that names its node in `spec.nodeName` is on that node, and no hook sees it",
    "PodFitsHostPorts": "nodes where another pod has a host port that it claims",
    "MatchNodeSelector": "nodes that its node selector or required node affinity does not match",
    "PodFitsResources": "nodes with too little of what it requests (cpu, memory, extended resources, number of pods)",
    "NoDiskConflict": "nodes where another pod uses a disk that it names, and the two may not share it; "
    "every node while another pod uses a claim of it with ReadWriteOncePod",
    "PodToleratesNodeTaints": "nodes with NoSchedule or NoExecute taints that it does not tolerate",
    "PodToleratesNodeNoExecuteTaints": "nodes with NoExecute taints that it does not tolerate",
    "CheckNodeLabelPresence": "nodes that lack labels, or have them",
    "CheckServiceAffinity": "nodes that differ in some labels from where the first pod of its service is",
    "MaxCSIVolumeCount": "nodes that could attach no further volume of a CSI driver",
    **{name: f"the same, of `{driver}` alone" for name, driver in attachments.TAKEN_OVER.items()},
    "CheckVolumeBinding": "nodes that do not reach its volumes, or where none could be found or made for its claims",
    "NoVolumeZoneConflict": "nodes in another zone than a volume of it",
    "CheckNodeMemoryPressure": "nodes short of memory, if it requests nothing (best effort)",
    "CheckNodePIDPressure": "nodes short of process ids",
    "CheckNodeDiskPressure": "nodes short of disk",
    "EvenPodsSpread": "nodes where its topology spread constraints (`DoNotSchedule`) would be broken",
    "MatchInterPodAffinity": "nodes that required pod affinity or anti-affinity forbids, its own or that of pods there",
}

#: Arguments of predicates.
TAKES: Mapping[str, docs_options.Model] = {
    "CheckNodeLabelPresence": nodes.LabelArguments,
    "CheckServiceAffinity": services.Arguments,
    "GeneralPredicates": resources.Arguments,
    "PodFitsResources": resources.Arguments,
}

#: What each priority prefers.
PREFERS: Mapping[str, str] = {
    "LeastRequested": "nodes with more cpu and memory left",
    "MostRequested": "fuller nodes, so that whole ones stay free",
    "BalancedResourceAllocation": "nodes whose cpu and memory are used to the same degree",
    "LeastAllocated": "as LeastRequested, of any resources, to 100",
    "MostAllocated": "as MostRequested, of any resources, to 100",
    "BalancedAllocation": "nodes that are used more evenly with the pod than without, of any resources, to 100",
    "BalancedAllocationState": "as BalancedResourceAllocation, of any resources, to 100",
    "RequestedToCapacityRatio": "what a function that you draw says of a node's utilization",
    "NodeAffinity": "nodes that match its preferred node affinity",
    "TaintToleration": "nodes with fewer PreferNoSchedule taints that it does not tolerate",
    "ImageLocality": "nodes that have its images already, the more of them in bytes",
    "NodePreferAvoidPods": "nodes whose annotation does not ask to avoid the pods of its controller",
    "NodeLabel": "nodes with a label, or without",
    "Equal": "all nodes alike",
    "SelectorSpread": "nodes, and zones, with fewer pods of its services and controllers",
    "ServiceAntiAffinity": "nodes whose value of a label has fewer pods of its service",
    "PodTopologySpread": "what its topology spread constraints wish for (`ScheduleAnyway`)",
    "InterPodAffinity": "nodes whose neighbourhood it prefers, and that prefers it",
}

#: What each plugin of Vela is about.
PLUGINS: Mapping[str, str] = {
    "NodeRules": "ready, not being deleted, not cordoned, taints tolerated, node selector and required affinity met",
    "ResourcesFit": "what the pod requests within what a node has; scores how empty (or full) it is, in percent",
    "GeoLocation": "distance from the place that the pod names; 100 at the place, 1 at the farthest that is allowed",
    "BatteryLevel": "the battery, if the pod asks for a charge: a node whose label has too small a charge, or that "
    "lacks the label of the capacity, is excluded; a node without the label of the charge has no battery, and is not",
    "LeastRecentlyUsed": "the node that has got no pod for the longest time has 100",
}


#: What arguments mean of which their classes say nothing.
ARGUMENTS: Mapping[str, str] = {
    "labels": "the keys of the labels",
    "node_location": "the annotation of nodes with LATITUDE,LONGITUDE",
    "pod_target": "the annotation of pods with the place to be near",
    "pod_max_distance_km": "the annotation of pods with the farthest distance",
    "max_distance_km": "the farthest distance where the pod does not say",
    "node_level": "the label of nodes with the charge in percent",
    "node_capacity_mah": "the label of nodes with the capacity",
    "pod_min_level": "the annotation of pods with the least charge in percent",
    "pod_min_capacity_mah": "the annotation of pods with the least capacity; only beside that of the charge",
}

#: Groups of options that are explained in tables or sentences of their own.
APART = (catalogue.Filter, catalogue.Score, policy.PolicyDefaults, TermOptions, NamedProfile)


def options(hook: str, *more: docs_options.Model) -> str:
    """Of one hook that ships; `more` are groups that another page explains."""
    model = getattr(registry.shipped(hook), "Options")  # noqa: B009 - builders are any callables; those of ours have it
    return docs_options.table(model, leaves=(*APART, *more))


def predicates() -> str:
    """The table of kube-scheduler's predicates, those that are asked by default first."""
    _complete("predicates", standard.PREDICATES, AWAY_FROM)
    places = {name: str(number) for number, name in enumerate(STANDARD_PREDICATES, 1)}
    ordered = [*STANDARD_PREDICATES, *(name for name in standard.PREDICATES if name not in places)]
    rows = ((f"`{name}`", places.get(name, ""), AWAY_FROM[name], _names(TAKES.get(name))) for name in ordered)
    return _table(("predicate", "place by default", "keeps a pod away from", "`args`"), rows)


def ratings() -> str:
    """The table of priorities, likewise."""
    _complete("priorities", priorities.PRIORITIES, PREFERS)
    ordered = [*STANDARD_PRIORITIES, *(name for name in priorities.PRIORITIES if name not in STANDARD_PRIORITIES)]
    rows = (
        (
            f"`{name}`",
            str(STANDARD_PRIORITIES.get(name, "")),
            PREFERS[name],
            _names(priorities.PRIORITIES[name].Options),
        )
        for name in ordered
    )
    return _table(("priority", "weight by default", "prefers", "`args`"), rows)


def scheduler_plugins() -> str:
    """kube-scheduler's plugins that filter or score, with the predicate and the priority that do the same."""
    weights = {one.name: one.weight for one in scheduler.DEFAULTS}
    fit = "LeastAllocated, MostAllocated or RequestedToCapacityRatio, as `scoringStrategy` says"
    names = [one.name for one in scheduler.DEFAULTS if one.name in {*scheduler.PREDICATES, *scheduler.PRIORITIES}]
    rows = (
        (f"`{name}`", _named(scheduler.PREDICATES, name), _named(scheduler.PRIORITIES, name) or fit, str(weights[name]))
        if name in scheduler.PRIORITIES
        else (f"`{name}`", _named(scheduler.PREDICATES, name), "", "")
        for name in names
    )
    return _table(("plugin", "predicate", "priority", "weight by default"), rows)


def _named(table: Mapping[str, str], name: str) -> str:
    return f"`{table[name]}`" if table.get(name) else ""


def arguments() -> str:
    """Of predicates and priorities."""
    rated = {name: made.Options for name, made in priorities.PRIORITIES.items()}
    return docs_options.arguments({**TAKES, **rated}, ARGUMENTS)


def plugins() -> str:
    """The table of Vela's plugins, and that of their arguments."""
    _complete("plugins", catalogue.PLUGINS, PLUGINS)
    models = {name: found for name, plugin in catalogue.PLUGINS.items() if (found := getattr(plugin, "Options", None))}
    rows = (
        (f"`{name}`", _uses(plugin), PLUGINS[name], _names(models.get(name)))
        for name, plugin in catalogue.PLUGINS.items()
    )
    table = _table(("plugin", "use", "what it looks at", "`args`"), rows)
    return f"{table}\n{docs_options.arguments(models, ARGUMENTS)}"


def _uses(plugin: Any) -> str:
    return " and ".join(word for word, method in (("filter", "fits"), ("score", "score")) if hasattr(plugin, method))


def _names(model: docs_options.Model | None) -> str:
    return ", ".join(f"`{name}`" for name in model.model_fields) if model is not None else ""


def _complete(what: str, names: Iterable[str], words: Iterable[str]) -> None:
    odd = set(names) ^ set(words)
    if odd:
        raise SystemExit(f"hack/docs_hooks.py: {what}: no words, or words for nothing: {', '.join(sorted(odd))}")


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (f"| {' | '.join(map(docs_options.cell, row))} |" for row in rows)
    return "\n".join([f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *lines]) + "\n"
