"""PodFitsResources: enough of everything that the pod asks for, on a node that takes one more pod."""

from collections.abc import Mapping
from typing import Annotated, Any

import pydantic

from slurm_bridge.cluster.columns import Mask, units
from slurm_bridge.families.kube_scheduler.predicates import reasons
from slurm_bridge.families.kube_scheduler.predicates.base import Failures, PredicateRule, failing
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.translate import resources

PODS = "pods"

#: In this order shortages are told, all others follow by name.
FIRST = (PODS, "cpu", "memory", "ephemeral-storage")


class Arguments(pydantic.BaseModel, frozen=True, extra="forbid"):
    """`ignored_resources`: extended resources that another scheduler manages."""

    ignored_resources: tuple[Annotated[str, pydantic.Field(min_length=1)], ...] = ()


def build(args: Mapping[str, Any]) -> PredicateRule:
    """The predicate that leaves some resources out of it."""
    ignored = frozenset(Arguments.model_validate(dict(args)).ignored_resources)

    def fits_resources(scene: Scene) -> Failures:
        columns, found = scene.columns, list[tuple[Mask, str]]()
        for name, amount in wanted(scene, ignored).items():
            room = columns.allocatable(name)
            if scene.capacity == "free":
                room = room - columns.used(name)
            found += failing((room < amount) & columns.present, reasons.insufficient(name))
        return tuple(found)

    return PredicateRule(failures=fits_resources, moving=lambda scene: scene.capacity == "free")


def wanted(scene: Scene, ignored: frozenset[str]) -> Mapping[str, int]:
    """What is compared, in the order in which it is told.

    Only what the pod asks for: of all else a node may have given away more than it has.
    """
    asked = {name: units(name, amount) for name, amount in resources.requests_of(scene.pod).items()}
    others = sorted(asked.keys() - set(FIRST))
    return {name: asked[name] for name in (*FIRST, *others) if asked.get(name) and name not in ignored}
