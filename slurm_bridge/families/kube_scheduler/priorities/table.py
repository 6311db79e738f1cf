"""The priorities by name, and how configuration makes them; sites add theirs by the entry point group `GROUP`."""

import importlib.metadata
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

import pydantic

from slurm_bridge.families.kube_scheduler.plugins import PRIORITY_GROUP
from slurm_bridge.families.kube_scheduler.priorities import (
    allocation,
    images,
    interpod,
    nodes,
    numbers,
    service_spread,
    shape,
    topology,
    utilization,
)
from slurm_bridge.families.kube_scheduler.priorities.rule import (
    BadPriority,
    ColumnFunction,
    ColumnMap,
    ColumnReduce,
    PriorityConfig,
    Style,
)
from slurm_bridge.hooks.needs import Need
from slurm_bridge.runtime import packages

#: Installed packages offer priorities here: a callable of the arguments whose result has `function`, or `map` and
#: perhaps `reduce`. With an attribute `Options` (a pydantic model) it gets its arguments checked.
GROUP = PRIORITY_GROUP

Builder = Callable[[Any], object]

_CONTROLLERS = frozenset({Need.SERVICES, Need.REPLICASETS, Need.STATEFULSETS})


class NoArguments(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A priority without any."""


class Scale(pydantic.BaseModel, frozen=True, extra="forbid"):
    """`scale`: the highest score; 10 as in policies, 100 as in newer profiles."""

    scale: Literal[10, 100] = 10


class LabelArguments(Scale, frozen=True, extra="forbid"):
    """`label`: the key of the node label; its value does not matter unless the priority compares values."""

    label: Annotated[str, pydantic.Field(min_length=1)]


class PresenceArguments(LabelArguments, frozen=True, extra="forbid"):
    """`presence`: whether nodes with the label are preferred, or those without."""

    presence: bool = True


class AffinityArguments(Scale, frozen=True, extra="forbid"):
    """`hard_pod_affinity_weight`: how much a pod counts that others must have near; 0 to 100."""

    hard_pod_affinity_weight: Annotated[int, pydantic.Field(ge=0, le=100)] = 1


class ResourceArguments(pydantic.BaseModel, frozen=True, extra="forbid"):
    """`resources`: pairs of a resource and its weight, 1 to 100."""

    resources: tuple[tuple[str, int], ...] = allocation.CPU_AND_MEMORY

    @pydantic.field_validator("resources")
    @classmethod
    def _bounded(cls, resources: allocation.Weighted) -> allocation.Weighted:
        wrong = allocation.invalid(resources)
        if wrong:
            low, high = allocation.LEAST_WEIGHT, allocation.MOST_WEIGHT
            raise ValueError(f"{', '.join(wrong)}: must be from {low} to {high}")
        return resources


class ShapeArguments(ResourceArguments, frozen=True, extra="forbid"):
    """`shape`: points of utilization (0 to 100) and score (0 to 10); `resources` only on the scale to 100."""

    scale: Literal[10, 100] = 10
    shape: tuple[tuple[int, int], ...] = shape.EMPTY_FIRST.points

    @pydantic.field_validator("shape")
    @classmethod
    def _drawable(cls, points: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        shape.checked(points)
        return points

    @pydantic.model_validator(mode="after")
    def _whose(self) -> Self:
        if self.scale == utilization.MOST and self.resources != allocation.CPU_AND_MEMORY:
            raise ValueError(f"resources: on the scale to {utilization.MOST} they are cpu and memory, use scale 100")
        return self


Arguments = TypeVar("Arguments", bound=pydantic.BaseModel)


class Made:
    """A builder of a shipped priority: its arguments are checked before it is asked."""

    def __init__(self, options: type[Arguments], make: Callable[[Arguments], Style]) -> None:
        self.Options = options
        self._make: Callable[[Any], Style] = make

    def __call__(self, options: Any) -> Style:
        return self._make(options)


def _mapped(rate: Any) -> Made:
    return Made(NoArguments, lambda _: Style(map=ColumnMap(rate, by_row=True)))


def _scored(rate: Any, *, reverse: bool = False) -> Made:
    """Raw counts that are brought to the scale."""

    def make(given: Scale) -> Style:
        return Style(map=ColumnMap(rate, by_row=True), reduce=numbers.normalize(given.scale, reverse=reverse))

    return Made(Scale, make)


def _node_affinity(given: Scale) -> Style:
    return Style(map=ColumnMap(nodes.node_affinity(given.scale), by_row=True), reduce=numbers.normalize(given.scale))


def _of_scale(make: Callable[[int], Any]) -> Made:
    return Made(Scale, lambda given: Style(map=ColumnMap(make(given.scale))))


def _of_resources(make: Callable[[allocation.Weighted], Any]) -> Made:
    return Made(ResourceArguments, lambda given: Style(map=ColumnMap(make(given.resources), by_row=True)))


def _by_shape(given: ShapeArguments) -> Style:
    points = shape.checked(given.shape)
    old = given.scale == utilization.MOST
    return Style(map=ColumnMap(utilization.by_shape(points) if old else allocation.by_shape(given.resources, points)))


def _selector_spread(given: Scale) -> Style:
    reduce = ColumnReduce(service_spread.over_nodes_and_zones(given.scale))
    return Style(map=ColumnMap(service_spread.Kinds().selector_count), reduce=reduce, needs=_CONTROLLERS)


def _service_anti_affinity(given: LabelArguments) -> Style:
    reduce = ColumnReduce(service_spread.over_label(given.label, given.scale))
    needs = frozenset({Need.SERVICES})
    return Style(map=ColumnMap(service_spread.Kinds().service_count), reduce=reduce, needs=needs, about=given.label)


def _interpod(given: AffinityArguments) -> Style:
    rate = ColumnMap(interpod.interpod(given.hard_pod_affinity_weight))
    reduce = ColumnReduce(interpod.between(given.scale))
    return Style(map=rate, reduce=reduce, needs=frozenset({Need.NAMESPACES}))


def _node_label(given: PresenceArguments) -> Style:
    rate = nodes.node_label(given.label, given.scale, presence=given.presence)
    return Style(map=ColumnMap(rate), about=given.label if given.presence else f"!{given.label}")


#: All that ship, by kube-scheduler's names without the ending "Priority", which configuration may add.
PRIORITIES: Mapping[str, Made] = {
    "LeastRequested": _mapped(utilization.least_requested),
    "MostRequested": _mapped(utilization.most_requested),
    "BalancedResourceAllocation": _mapped(utilization.balanced),
    "LeastAllocated": _of_resources(allocation.least_allocated),
    "MostAllocated": _of_resources(allocation.most_allocated),
    "BalancedAllocation": _of_resources(allocation.balanced),
    "BalancedAllocationState": _of_resources(allocation.balanced_state),
    "RequestedToCapacityRatio": Made(ShapeArguments, _by_shape),
    "NodeAffinity": Made(Scale, _node_affinity),
    "TaintToleration": _scored(nodes.taint_toleration, reverse=True),
    "ImageLocality": _of_scale(images.image_locality),
    "NodePreferAvoidPods": _of_scale(nodes.prefer_avoid),
    "NodeLabel": Made(PresenceArguments, _node_label),
    "Equal": _mapped(nodes.equal),
    "SelectorSpread": Made(Scale, _selector_spread),
    "ServiceAntiAffinity": Made(LabelArguments, _service_anti_affinity),
    "PodTopologySpread": Made(
        Scale, lambda given: Style(function=ColumnFunction(topology.topology_spread(given.scale)))
    ),
    "InterPodAffinity": Made(AffinityArguments, _interpod),
}

#: What a policy calls something else.
ALIASES: Mapping[str, str] = {"EvenPodsSpread": "PodTopologySpread"}

_ENDING = "Priority"


def configured(
    name: str, weight: int = 1, args: Mapping[str, Any] | None = None, installed: Mapping[str, Any] | None = None
) -> PriorityConfig:
    """A priority by its name; raises BadPriority, which names it and says what is wrong."""
    offered = _offered(name, packages.offered(GROUP) if installed is None else installed)
    try:
        builder: Builder = offered.load() if isinstance(offered, importlib.metadata.EntryPoint) else offered
        model = getattr(builder, "Options", None)
        made = builder(args or {}) if model is None else builder(model.model_validate(dict(args or {})))
    except pydantic.ValidationError as error:
        rows = [(".".join(["args", *map(str, row["loc"])]), row["msg"]) for row in error.errors()]
        raise BadPriority("\n".join(f"priority {name}: {place}: {words}" for place, words in rows)) from error
    except Exception as error:  # foreign code: whatever its import or constructor raises makes only it unusable
        raise BadPriority(f"priority {name}: cannot be built: {type(error).__name__}: {error}") from error
    about = getattr(made, "about", "")
    return PriorityConfig(
        name=f"{name}({about})" if about else name,
        weight=weight,
        function=getattr(made, "function", None),
        map=getattr(made, "map", None),
        reduce=getattr(made, "reduce", None),
        needs=frozenset(getattr(made, "needs", ())),
    )


def known(name: str) -> str:
    """The name in the table for a name in configuration."""
    short = name.removesuffix(_ENDING)
    return ALIASES.get(short, short)


def identity(configured: str) -> str:
    """The same for all names under which one priority can be configured; what it is about tells it from others."""
    name, bracket, about = configured.partition("(")
    return f"{known(name) if known(name) in PRIORITIES else name}{bracket}{about}"


def _offered(name: str, installed: Mapping[str, Any]) -> Any:
    if known(name) in PRIORITIES:
        return PRIORITIES[known(name)]
    if name not in installed:
        every = ", ".join(sorted({*PRIORITIES, *installed}))
        raise BadPriority(f"priority {name}: neither built in nor installed (group {GROUP}); there are {every}")
    return installed[name]
