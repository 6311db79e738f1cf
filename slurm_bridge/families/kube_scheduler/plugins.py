"""From a KubeSchedulerConfiguration to the options of the hook: its plugins as predicates and priorities.

plugins ─► merged with the default plugins ─► predicates, priorities ┐
pluginConfig ─► args of these, added affinity, default spread ───────┼─► options of the hook, by profile
extenders, percentageOfNodesToScore, parallelism ────────────────────┘
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import pydantic

from slurm_bridge.families.kube_scheduler.scheduler_configuration import (
    ARGS,
    AffinityArgs,
    BalancedArgs,
    FitArgs,
    HttpExtender,
    InterPodArgs,
    PluginArgs,
    PluginConfig,
    PluginEntry,
    PluginSet,
    SchedulerConfiguration,
    SchedulerProfile,
    SpreadArgs,
    WeightedResource,
)
from slurm_bridge.runtime import packages

#: Entry points of packages that bring predicates and priorities, which a document names as plugins.
PREDICATE_GROUP: Final = "slurm_bridge.predicates"
PRIORITY_GROUP: Final = "slurm_bridge.priorities"

#: kube-scheduler's default plugins in its order, with the weights of their scores.
DEFAULTS: Final = (
    *(PluginEntry(name=name) for name in ("SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName")),
    PluginEntry(name="TaintToleration", weight=3),
    PluginEntry(name="NodeAffinity", weight=2),
    PluginEntry(name="NodePorts"),
    PluginEntry(name="NodeResourcesFit", weight=1),
    *(PluginEntry(name=name) for name in ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")),
    PluginEntry(name="PodTopologySpread", weight=2),
    PluginEntry(name="InterPodAffinity", weight=2),
    *(PluginEntry(name=name) for name in ("DynamicResources", "DefaultPreemption")),
    PluginEntry(name="NodeResourcesBalancedAllocation", weight=1),
    PluginEntry(name="ImageLocality", weight=1),
    *(PluginEntry(name=name) for name in ("DefaultBinder", "NodeDeclaredFeatures")),
)

#: The predicate that does what a plugin does as a filter.
PREDICATES: Final[Mapping[str, str]] = {
    "NodeUnschedulable": "CheckNodeUnschedulable",
    "NodeName": "HostName",
    "TaintToleration": "PodToleratesNodeTaints",
    "NodeAffinity": "MatchNodeSelector",
    "NodePorts": "PodFitsHostPorts",
    "NodeResourcesFit": "PodFitsResources",
    "VolumeRestrictions": "NoDiskConflict",
    "NodeVolumeLimits": "MaxCSIVolumeCount",
    "VolumeBinding": "CheckVolumeBinding",
    "VolumeZone": "NoVolumeZoneConflict",
    "PodTopologySpread": "EvenPodsSpread",
    "InterPodAffinity": "MatchInterPodAffinity",
}

#: The priority that does what a plugin does as a score; that of NodeResourcesFit is named by its strategy.
PRIORITIES: Final[Mapping[str, str]] = {
    "TaintToleration": "TaintToleration",
    "NodeAffinity": "NodeAffinity",
    "NodeResourcesFit": "",
    "PodTopologySpread": "PodTopologySpread",
    "InterPodAffinity": "InterPodAffinity",
    "NodeResourcesBalancedAllocation": "BalancedAllocation",
    "ImageLocality": "ImageLocality",
}

_FULL_SCALE: Final = {"scale": 100}
_MOST_PARALLEL: Final = 64
_DURATION: Final = re.compile(r"(?:(\d{1,6})m)?(?:(\d{1,6}(?:\.\d{1,9})?)s)?")

Part = TypeVar("Part", bound=pydantic.BaseModel)
Args = TypeVar("Args", bound=PluginArgs)


class BadDocument(ValueError):
    """The document asks for what does not exist, or is not done here; the message names each place."""


def options(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of the hook that do what the document says; raises BadDocument."""
    read = _checked(SchedulerConfiguration, document, "configuration")
    ignored = [one.name for each in read.extenders for one in each.managed_resources if one.ignored_by_scheduler]
    profiles = [
        _profile(f"configuration.profiles.{place}", one, read, ignored) for place, one in enumerate(read.profiles)
    ]
    named = zip(read.profiles, profiles, strict=True)
    return {
        **profiles[0],
        "parallelism": min(read.parallelism, _MOST_PARALLEL),
        "extenders": [_extender(f"configuration.extenders.{place}", one) for place, one in enumerate(read.extenders)],
        "profiles": [{"scheduler_name": one.scheduler_name, **made} for one, made in named if one.scheduler_name],
    }


def _checked(model: type[Part], given: Mapping[str, Any], place: str) -> Part:
    try:
        return model.model_validate(given)
    except pydantic.ValidationError as error:
        rows = [(".".join(map(str, (place, *row["loc"]))), row["msg"]) for row in error.errors()]
        raise BadDocument("; ".join(f"{at}: {words.removeprefix('Value error, ')}" for at, words in rows)) from error


def _profile(
    place: str, profile: SchedulerProfile, read: SchedulerConfiguration, ignored: Sequence[str]
) -> dict[str, Any]:
    """The options of one profile; `ignored` are resources that extenders alone look after."""
    args = _arguments(f"{place}.pluginConfig", profile.plugin_config)
    fit, spread = _of(args, FitArgs), _of(args, SpreadArgs)
    added, percentage = _of(args, AffinityArgs).added_affinity, profile.percentage_of_nodes_to_score
    left = sorted({*fit.ignored_resources, *ignored})
    rated = {
        "NodeResourcesFit": _by_strategy(f"{place}.pluginConfig", fit),
        "NodeResourcesBalancedAllocation": {
            "name": "BalancedAllocation",
            "args": _resources(_of(args, BalancedArgs).resources),
        },
    }
    everywhere = _merged(DEFAULTS, profile.plugins.multi_point)
    filters = _known(f"{place}.plugins.filter", PREDICATES, PREDICATE_GROUP, everywhere, profile.plugins.filter)
    scores = _known(f"{place}.plugins.score", PRIORITIES, PRIORITY_GROUP, everywhere, profile.plugins.score)
    return {
        "predicates": [
            {"name": PREDICATES.get(name, name), "args": {"ignored_resources": left}}
            if name == "NodeResourcesFit" and left
            else PREDICATES.get(name, name)
            for name in filters
        ],
        "priorities": [
            {
                "name": name,
                "args": _FULL_SCALE if name in PRIORITIES else {},
                **rated.get(name, {}),
                "weight": weight or 1,
            }
            for name, weight in scores.items()
        ],
        "percentage_of_nodes": read.percentage_of_nodes_to_score if percentage is None else percentage,
        "hard_pod_affinity_weight": _of(args, InterPodArgs).hard_pod_affinity_weight,
        "added_affinity": {
            "required": added.required_during_scheduling_ignored_during_execution.node_selector_terms,
            "preferred": added.preferred_during_scheduling_ignored_during_execution,
        },
        "spread_defaulting": spread.defaulting_type.lower(),
        "default_spread_constraints": [one.model_dump() for one in spread.default_constraints],
    }


def _arguments(place: str, configs: Sequence[PluginConfig]) -> Mapping[type[PluginArgs], PluginArgs]:
    """The arguments of plugins by the model that reads them."""
    found: dict[type[PluginArgs], PluginArgs] = {}
    for number, one in enumerate(configs):
        model = ARGS.get(one.name)
        if model in found:
            raise BadDocument(f"{place}.{number}: {one.name} is given twice")
        if model is not None:
            found[model] = _checked(model, one.args, f"{place}.{number}.args")
        elif not any(one.name == default.name for default in DEFAULTS):
            raise BadDocument(f"{place}.{number}: {one.name} takes no args here")
    return found


def _of(given: Mapping[type[PluginArgs], PluginArgs], model: type[Args]) -> Args:
    found = given.get(model)
    return found if isinstance(found, model) else model()


def _merged(plugins: Sequence[PluginEntry], custom: PluginSet) -> Sequence[PluginEntry]:
    """With what is added and without what is disabled; what is enabled again stays in its place."""
    disabled, enabled = {one.name for one in custom.disabled}, {one.name: one for one in custom.enabled}
    kept = [one for one in plugins if one.name not in disabled and "*" not in disabled]
    again = {one.name for one in kept} & enabled.keys()
    return [*(enabled.get(one.name, one) for one in kept), *(one for one in custom.enabled if one.name not in again)]


def _known(
    place: str, ours: Mapping[str, str], group: str, everywhere: Sequence[PluginEntry], custom: PluginSet
) -> Mapping[str, int]:
    """The plugins of one extension point with their weights, in kube-scheduler's order.

    First those that are enabled here and for all points, then the others for all points, then the others here.
    """
    installed, here = packages.offered(group), {one.name: one.weight for one in custom.enabled}
    disabled = {one.name for one in custom.disabled}
    named = {one.name for one in (*everywhere, *custom.enabled)}
    known = {one.name for one in DEFAULTS}.union(*map(packages.offered, (PREDICATE_GROUP, PRIORITY_GROUP)))
    if strange := sorted(named - known):
        raise BadDocument(f"{place}: {', '.join(strange)}: neither a plugin of kube-scheduler, nor installed")
    general = {one.name: one.weight for one in everywhere if one.name not in disabled and "*" not in disabled}
    order = dict.fromkeys([*(name for name in here if name in general), *general, *here])
    weights = {**general, **here}
    return {name: weights[name] for name in order if name in ours or name in installed}


def _by_strategy(place: str, fit: FitArgs) -> Mapping[str, Any]:
    """The priority of NodeResourcesFit."""
    strategy = fit.scoring_strategy
    args = _resources(strategy.resources)
    if strategy.type != "RequestedToCapacityRatio":
        return {"name": strategy.type, "args": args}
    if strategy.requested_to_capacity_ratio is None:
        raise BadDocument(f"{place}: NodeResourcesFit: {strategy.type} needs requestedToCapacityRatio.shape")
    points = [(one.utilization, one.score) for one in strategy.requested_to_capacity_ratio.shape]
    return {"name": strategy.type, "args": {**_FULL_SCALE, "shape": points, **args}}


def _resources(given: Sequence[WeightedResource]) -> Mapping[str, Any]:
    return {"resources": [(one.name, one.weight or 1) for one in given]} if given else {}


def _extender(place: str, given: HttpExtender) -> Mapping[str, Any]:
    found = _DURATION.fullmatch(given.http_timeout) if given.http_timeout else None
    if found is None:
        raise BadDocument(f"{place}.httpTimeout: must be a time such as 5s or 1m30s, not {given.http_timeout!r}")
    minutes, seconds = found.groups(default="0")
    return {
        "url": given.url_prefix,
        "filter_verb": given.filter_verb,
        "prioritize_verb": given.prioritize_verb,
        "preempt_verb": given.preempt_verb,
        "weight": given.weight or 1,
        "timeout_seconds": int(minutes) * 60 + float(seconds),
        "ignorable": given.ignorable,
        "node_cache_capable": given.node_cache_capable,
        "managed_resources": [one.name for one in given.managed_resources],
        "ca_file": given.tls_config.ca_file,
    }
