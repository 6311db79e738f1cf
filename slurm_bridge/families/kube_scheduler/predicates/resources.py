"""PodFitsResources: enough of everything that the pod asks for, on a node that takes one more pod."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import numpy as np
import pydantic

from slurm_bridge.cluster.columns import Whole, units
from slurm_bridge.families.kube_scheduler.predicates import reasons
from slurm_bridge.families.kube_scheduler.predicates.base import Failures, PredicateRule, failing
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.translate import resources

PODS = "pods"

#: What every pod is compared by, asked for or not; in this order shortages are told, all others follow by name.
FIRST = (PODS, "cpu", "memory", "ephemeral-storage")


class Arguments(pydantic.BaseModel, frozen=True, extra="forbid"):
    """`ignored_resources`: extended resources that another scheduler manages."""

    ignored_resources: tuple[Annotated[str, pydantic.Field(min_length=1)], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What a pod asks for, what is used on the node and what there is; cpu in milli cores, all else whole."""

    resource: str
    requested: int
    used: int
    capacity: int


def build(args: Mapping[str, Any]) -> PredicateRule:
    """The predicate that leaves some resources out of it."""
    ignored = frozenset(Arguments.model_validate(dict(args)).ignored_resources)

    def fits_resources(scene: Scene) -> Failures:
        return tuple(
            failure
            for name, wanted in _wanted(scene, ignored).items()
            for failure in failing((_room(scene, name) < wanted) & scene.columns.present, reasons.insufficient(name))
        )

    return PredicateRule(failures=fits_resources, moving=lambda scene: scene.capacity == "free")


def shortages(scene: Scene, node: str, ignored: frozenset[str] = frozenset()) -> tuple[Shortage, ...]:
    """What there is too little of on one node."""
    row = scene.columns.row(node)
    return () if row is None else tuple(_shortages(scene, row, ignored))


def _shortages(scene: Scene, row: int, ignored: frozenset[str]) -> Iterator[Shortage]:
    for name, wanted in _wanted(scene, ignored).items():
        used, capacity = int(_used(scene, name)[row]), int(scene.columns.allocatable(name)[row])
        if capacity - used < wanted:
            yield Shortage(resource=name, requested=wanted, used=used, capacity=capacity)


def _wanted(scene: Scene, ignored: frozenset[str]) -> Mapping[str, int]:
    """What is compared, in the order in which it is told.

    A pod that asks for something at all is kept from nodes that have given away more than they have of the first ones,
    even where it asks for none of it.
    """
    asked = {name: units(name, amount) for name, amount in resources.requests_of(scene.pod).items()}
    others = sorted(asked.keys() - set(FIRST))
    if not others and not any(asked.get(name) for name in FIRST if name != PODS):
        return {PODS: asked[PODS]}
    return {name: asked.get(name, 0) for name in (*FIRST, *others) if name not in ignored}


def _room(scene: Scene, resource: str) -> Whole:
    """What counts as there: all of it, or what pods have left."""
    there = scene.columns.allocatable(resource)
    return there - _used(scene, resource) if scene.capacity == "free" else there


def _used(scene: Scene, resource: str) -> Whole:
    if scene.capacity == "free":
        return scene.columns.used(resource)
    return np.zeros(len(scene.columns), np.int64)
