"""A KubeSchedulerConfiguration as a document: its fields as kube-scheduler 1.36 has them, with its defaults.

Fields that concern kube-scheduler's own process (leader election, connections, back-off) may be there and are not used.
A field that asks for what the bridge does not do is refused, with its place in the document.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import pydantic
from pydantic.alias_generators import to_camel

Name = Annotated[str, pydantic.Field(min_length=1, max_length=253)]
Percentage = Annotated[int, pydantic.Field(ge=0, le=100)]


class DocumentPart(pydantic.BaseModel, frozen=True, extra="forbid", alias_generator=to_camel):
    """A part of the document, whose fields are in camel case."""


class PluginEntry(DocumentPart, frozen=True):
    """A plugin that is enabled or disabled; a weight of 0 is no weight."""

    name: Name
    weight: Annotated[int, pydantic.Field(ge=0, le=1_000_000)] = 0


class PluginSet(DocumentPart, frozen=True):
    """What is added to the plugins of an extension point, and what is taken out, `*` for all."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


class PluginSets(DocumentPart, frozen=True):
    """By extension point. Only these two, and `multiPoint` for both, choose predicates and priorities."""

    multi_point: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()


class PluginArgs(DocumentPart, frozen=True):
    """The arguments of a plugin, which may repeat version and kind."""

    api_version: str = ""
    kind: str = ""


class WeightedResource(DocumentPart, frozen=True):
    """A resource, and how much it counts."""

    name: Name
    weight: Annotated[int, pydantic.Field(ge=0, le=100)] = 1


class ShapePoint(DocumentPart, frozen=True):
    """A point of a function from utilization to score."""

    utilization: int
    score: int


class RatioParameters(DocumentPart, frozen=True):
    """The function of RequestedToCapacityRatio."""

    shape: tuple[ShapePoint, ...]


class ScoringStrategy(DocumentPart, frozen=True):
    """How NodeResourcesFit scores."""

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[WeightedResource, ...] = ()
    requested_to_capacity_ratio: RatioParameters | None = None


class FitArgs(PluginArgs, frozen=True):
    """Of NodeResourcesFit."""

    ignored_resources: tuple[Name, ...] = ()
    ignored_resource_groups: Annotated[tuple[Name, ...], pydantic.Field(max_length=0)] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class BalancedArgs(PluginArgs, frozen=True):
    """Of NodeResourcesBalancedAllocation."""

    resources: tuple[WeightedResource, ...] = ()


class InterPodArgs(PluginArgs, frozen=True):
    """Of InterPodAffinity."""

    hard_pod_affinity_weight: Percentage = 1
    ignore_preferred_terms_of_existing_pods: Literal[False] = False


class SelectorTerms(DocumentPart, frozen=True):
    """Terms as in manifests."""

    node_selector_terms: tuple[Any, ...] = ()


class PodNodeAffinity(DocumentPart, frozen=True):
    """Node affinity as in manifests."""

    required_during_scheduling_ignored_during_execution: SelectorTerms = SelectorTerms()
    preferred_during_scheduling_ignored_during_execution: tuple[Any, ...] = ()


class AffinityArgs(PluginArgs, frozen=True):
    """Of NodeAffinity."""

    added_affinity: PodNodeAffinity = PodNodeAffinity()


class DefaultConstraint(DocumentPart, frozen=True):
    """A topology spread constraint without a selector."""

    topology_key: str
    max_skew: int
    when_unsatisfiable: str
    min_domains: int = 1
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class SpreadArgs(PluginArgs, frozen=True):
    """Of PodTopologySpread."""

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"


class PluginConfig(DocumentPart, frozen=True):
    """The arguments of one plugin by its name."""

    name: Name
    args: Mapping[str, Any] = {}


class SchedulerProfile(DocumentPart, frozen=True):
    """How pods with one scheduler name are placed."""

    scheduler_name: str = ""
    percentage_of_nodes_to_score: Percentage | None = None
    plugins: PluginSets = PluginSets()
    plugin_config: tuple[PluginConfig, ...] = ()


class ManagedResource(DocumentPart, frozen=True):
    """A resource that an extender is asked about."""

    name: Name
    ignored_by_scheduler: bool = False


class ExtenderTls(DocumentPart, frozen=True):
    """How the certificate of an extender is checked."""

    ca_file: str = ""
    insecure: Literal[False] = False


class HttpExtender(DocumentPart, frozen=True):
    """A service that is asked over HTTP."""

    url_prefix: Name
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: Literal[""] = ""
    weight: Annotated[int, pydantic.Field(ge=0)] = 1
    enable_https: Annotated[bool, pydantic.Field(alias="enableHTTPS")] = False
    tls_config: ExtenderTls = ExtenderTls()
    http_timeout: Annotated[str, pydantic.Field(alias="httpTimeout")] = "5s"
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False

    @pydantic.model_validator(mode="after")
    def _secured(self) -> Self:
        if self.enable_https and not self.url_prefix.startswith("https://"):
            raise ValueError(f"with enableHTTPS, urlPrefix must begin with https://, not {self.url_prefix!r}")
        return self


class SchedulerConfiguration(DocumentPart, frozen=True):
    """The document."""

    api_version: Literal["kubescheduler.config.k8s.io/v1"]
    kind: Literal["KubeSchedulerConfiguration"]
    parallelism: Annotated[int, pydantic.Field(ge=1)] = 16
    percentage_of_nodes_to_score: Percentage = 0
    profiles: Annotated[tuple[SchedulerProfile, ...], pydantic.Field(min_length=1, max_length=64)] = (
        SchedulerProfile(),
    )
    extenders: tuple[HttpExtender, ...] = ()
    client_connection: Any = None
    leader_election: Any = None
    pod_initial_backoff_seconds: Any = None
    pod_max_backoff_seconds: Any = None
    delay_cache_until_active: Any = None
    enable_profiling: Any = None
    enable_contention_profiling: Any = None

    @pydantic.model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [one.scheduler_name for one in self.profiles]
        if len(names) > 1 and not all(names):
            raise ValueError("profiles: with several, each needs a schedulerName")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"profiles: schedulerName {', '.join(twice)} is given twice")
        return self


#: The arguments of plugins that have a say here. Of others the bridge does the work in its own way.
ARGS: Mapping[str, type[PluginArgs]] = {
    "NodeResourcesFit": FitArgs,
    "NodeResourcesBalancedAllocation": BalancedArgs,
    "InterPodAffinity": InterPodArgs,
    "NodeAffinity": AffinityArgs,
    "PodTopologySpread": SpreadArgs,
}
