"""How the hook "kube-scheduler" is configured."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import pydantic

from slurm_bridge.families.kube_scheduler import plugins

Capacity = Literal["allocatable", "free"]

#: In the order in which kube-scheduler asks: what is cheap and final first. CheckNodeCondition is not among them, as in
#: Kubernetes since conditions became taints: it would refuse a cordoned node to pods that tolerate that.
STANDARD_PREDICATES = (
    "CheckNodeUnschedulable",
    "GeneralPredicates",
    "NoDiskConflict",
    "PodToleratesNodeTaints",
    "MaxCSIVolumeCount",
    "CheckVolumeBinding",
    "NoVolumeZoneConflict",
    "CheckNodeMemoryPressure",
    "CheckNodePIDPressure",
    "CheckNodeDiskPressure",
    "EvenPodsSpread",
    "MatchInterPodAffinity",
)

#: On the scale from 0 to 10, with kube-scheduler's own weights: what a node's owner asks to avoid outweighs all else.
STANDARD_PRIORITIES = {
    "SelectorSpread": 1,
    "InterPodAffinity": 1,
    "LeastRequested": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPods": 10000,
    "NodeAffinity": 1,
    "TaintToleration": 1,
    "ImageLocality": 1,
    "PodTopologySpread": 1,
}


class PredicateOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """One predicate; a bare name is one without arguments."""

    name: Annotated[str, pydantic.Field(min_length=1)]
    """Its name, or that of an installed one."""
    args: Mapping[str, Any] = {}
    """Its arguments, for those that take some."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _bare(cls, written: Any) -> Any:
        return {"name": written} if isinstance(written, str) else written


class PriorityOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """One priority, and how much it counts."""

    name: Annotated[str, pydantic.Field(min_length=1)]
    """Its name, with or without the ending `Priority`, or that of an installed one."""
    weight: Annotated[int, pydantic.Field(ge=1, le=1_000_000)] = 1
    """What its score is multiplied by before all are added."""
    args: Mapping[str, Any] = {}
    """Its arguments, for those that take some."""


class ExtenderOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """A service that is asked over HTTP beside the predicates and priorities; verbs left empty are not asked."""

    url: Annotated[str, pydantic.Field(min_length=1)]
    """The address of the service; verbs are paths below it."""
    filter_verb: str = ""
    """The path at which it is asked which nodes it excludes."""
    prioritize_verb: str = ""
    """The path at which it is asked to rate nodes."""
    preempt_verb: str = ""
    """The path at which the hook `preemption` asks on which nodes pods may be evicted."""
    weight: Annotated[int, pydantic.Field(ge=1, le=1_000_000)] = 1
    """What its scores are multiplied by."""
    timeout_seconds: Annotated[float, pydantic.Field(gt=0)] = 5.0
    """The deadline of one question."""
    ignorable: bool = False
    """Go on without it when it does not answer; else the workload waits."""
    node_cache_capable: bool = False
    """The service has the nodes itself, and is sent only their names."""
    managed_resources: tuple[str, ...] = ()
    """The service is asked only about pods that request one of these resources; empty: about all pods."""
    token_file: str = ""
    """The file with the bearer token for it."""
    ca_file: str = ""
    """The authorities that may sign its certificate, in place of the system's."""


class SpreadOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """A topology spread constraint for pods that have none; the pods that count follow from each pod."""

    topology_key: Annotated[str, pydantic.Field(min_length=1)]
    """The label of nodes by which pods are spread."""
    max_skew: Annotated[int, pydantic.Field(ge=1)]
    """How many pods more than the emptiest domain another one may have."""
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    """Whether it must hold, or only counts for PodTopologySpread."""
    min_domains: Annotated[int, pydantic.Field(ge=1)] = 1
    """With fewer domains than this the emptiest one counts as empty."""
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    """Whether nodes that the pod's node affinity rules out are left out of the domains."""
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
    """Whether nodes whose taints the pod does not tolerate are left out of the domains."""


class ConditionOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """What a label or the name of a node has to be."""

    key: Annotated[str, pydantic.Field(min_length=1)]
    """The key of the label; of fields there is only `metadata.name`."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How the value is compared."""
    values: tuple[str, ...] = ()
    """With what; of `Gt` and `Lt` one whole number."""

    @pydantic.model_validator(mode="after")
    def _comparable(self) -> Self:
        match self.operator:
            case "In" | "NotIn" if not self.values:
                raise ValueError(f"{self.operator} needs values")
            case "Exists" | "DoesNotExist" if self.values:
                raise ValueError(f"{self.operator} takes no values")
            case "Gt" | "Lt" if not re.fullmatch(r"[+-]?[0-9]{1,19}", ",".join(self.values)):
                raise ValueError(f"{self.operator} needs one whole number")
        return self


class TermOptions(
    pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True
):
    """Conditions that all have to hold, as in node affinity; without any, no node meets it."""

    match_expressions: tuple[ConditionOptions, ...] = pydantic.Field(default=(), alias="matchExpressions")
    """Conditions on labels; may be written `matchExpressions`."""
    match_fields: tuple[ConditionOptions, ...] = pydantic.Field(default=(), alias="matchFields")
    """Conditions on the name of the node; may be written `matchFields`."""

    @pydantic.field_validator("match_fields")
    @classmethod
    def _of_the_name(cls, rows: tuple[ConditionOptions, ...]) -> tuple[ConditionOptions, ...]:
        for one in rows:
            if one.key != "metadata.name":
                raise ValueError(f"matchFields: the only field is metadata.name, not {one.key}")
            if one.operator not in ("In", "NotIn"):
                raise ValueError(f"matchFields: the operator is In or NotIn, not {one.operator}")
        return rows


class PreferenceOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """A term, and how much it counts."""

    weight: Annotated[int, pydantic.Field(ge=1, le=100)]
    """What a node that meets it gets."""
    preference: TermOptions
    """What it has to meet."""


class AffinityOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Node affinity that every pod has beside its own."""

    required: tuple[TermOptions, ...] = ()
    """Terms of which a node has to meet one, or else MatchNodeSelector and GeneralPredicates exclude it; empty: any
    node may be used."""
    preferred: tuple[PreferenceOptions, ...] = ()
    """Terms that count for NodeAffinity."""


class ProfileOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Predicates and priorities by name, and what they evaluate for pods that say nothing themselves."""

    predicates: tuple[PredicateOptions, ...] = tuple(PredicateOptions(name=name) for name in STANDARD_PREDICATES)
    """Predicates in the order in which they are evaluated; a bare name is a predicate without arguments."""
    priorities: tuple[PriorityOptions, ...] = tuple(
        PriorityOptions(name=name, weight=weight) for name, weight in STANDARD_PRIORITIES.items()
    )
    """Priorities with their weights."""
    percentage_of_nodes: Annotated[int, pydantic.Field(ge=0, le=100)] = 100
    """How many nodes that fit are rated, in percent of all nodes, at least 100; 0: 50 % less 1 % for every 125 nodes,
    but 5 % at least."""
    hard_pod_affinity_weight: Annotated[int, pydantic.Field(ge=0, le=100)] = 1
    """The weight in InterPodAffinity of a running pod whose required affinity selects the pod."""
    added_affinity: AffinityOptions = AffinityOptions()
    """Node affinity that every pod has beside its own."""
    spread_defaulting: Literal["list", "system"] = "list"
    """Which topology spread constraints pods without any get that belong to a service, replica set or stateful set:
    `default_spread_constraints`, or kube-scheduler's own, which are wishes for hosts and zones."""
    default_spread_constraints: tuple[SpreadOptions, ...] = ()
    """With `spread_defaulting: list`, the constraints for such pods."""

    @pydantic.model_validator(mode="after")
    def _spread(self) -> Self:
        if self.spread_defaulting == "system" and self.default_spread_constraints:
            raise ValueError("default_spread_constraints: must be empty with spread_defaulting: system")
        given = [(one.topology_key, one.when_unsatisfiable) for one in self.default_spread_constraints]
        for key, when in given:
            if given.count((key, when)) > 1:
                raise ValueError(f"default_spread_constraints: has {key} with {when} twice")
        return self


class NamedProfile(ProfileOptions, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """What is different for pods with one scheduler name."""

    scheduler_name: Annotated[str, pydantic.Field(min_length=1)]
    """The `schedulerName` of the pods, one of the daemon's `scheduler_names`."""


class KubeSchedulerOptions(ProfileOptions, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Predicates and priorities by name, and how scores become attempts."""

    always_check_all: bool = False
    """Evaluate all predicates for every node; otherwise the first that fails excludes the node, and only its reasons
    are shown."""
    capacity: Capacity = "allocatable"
    """What resources are compared with: all that a node has (what is in use is a matter of Slurm's queue), or what is
    free now."""
    tiers: Annotated[int, pydantic.Field(ge=1, le=10)] = 3
    """In how many steps all nodes that fit are offered to Slurm, the best first; 1: all at once."""
    first_tier: Annotated[int, pydantic.Field(ge=1)] | None = None
    """Nodes of the first tier; `null`: twice as many as the job needs, at least 10."""
    widen_after_seconds: Annotated[float, pydantic.Field(gt=0)] = 15.0
    """How long Slurm may use only the nodes of a tier, counted from its first look at the job."""
    score_seconds: Annotated[float, pydantic.Field(ge=0, le=10)] = 0.25
    """How long the scores of a pod also serve equal pods, while no node changes; 0: each pod is rated."""
    parallelism: Annotated[int, pydantic.Field(ge=1, le=64)] = 16
    """How many nodes a site's own priorities rate at the same time."""
    extenders: tuple[ExtenderOptions, ...] = ()
    """Services that are asked over HTTP, too."""
    profiles: Annotated[tuple[NamedProfile, ...], pydantic.Field(max_length=64)] = ()
    """What is different for pods with some scheduler names: options of the profile that are left out are as here."""
    configuration: Mapping[str, Any] | None = None
    """A KubeSchedulerConfiguration of kube-scheduler 1.36, in place of the options that follow from it."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _configured(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or not isinstance(given.get("configuration"), Mapping):
            return given
        said = plugins.options(given["configuration"])
        if twice := sorted(said.keys() & given.keys()):
            raise ValueError(
                f"{', '.join(twice)}: cannot be given together with configuration, which sets it: leave out one of them"
            )
        return {**given, **said}

    @pydantic.model_validator(mode="after")
    def _different(self) -> Self:
        names = [one.scheduler_name for one in self.profiles]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"profiles: scheduler_name {', '.join(twice)} is given twice")
        return self

    def of(self, profile: ProfileOptions) -> "KubeSchedulerOptions":
        """These options, with those that a profile has instead."""
        given = {name: getattr(profile, name) for name in profile.model_fields_set & ProfileOptions.model_fields.keys()}
        return self.model_copy(update={**given, "profiles": ()})
