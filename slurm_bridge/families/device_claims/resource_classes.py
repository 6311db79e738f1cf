"""The DeviceClasses behind extended resources, and the resources that nodes have by device plugins."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Self

from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.model import quantity
from slurm_bridge.model.devices import DeviceClass
from slurm_bridge.model.meta import Object
from slurm_bridge.translate import class_resources
from slurm_bridge.translate.class_resources import DEVICE_CLASS
from slurm_bridge.translate.device_claims import DeviceRow, Rows


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceClasses:
    """The name of the class by each resource that classes name; resources that some node has are left out."""

    named: Mapping[str, str]

    @classmethod
    def of(cls, classes: Iterable[Object], snapshot: ClusterSnapshot) -> Self:
        """Of several classes with one resource the newest counts, then the first by name, as for kube-scheduler."""
        named: dict[str, DeviceClass] = {}
        for one in sorted(filter(_is_class, classes), key=_name):
            resource = one.spec.extended_resource_name if isinstance(one, DeviceClass) else None
            if isinstance(one, DeviceClass) and resource:
                known = named.get(resource)
                if known is None or _age(one) > _age(known):
                    named[resource] = one
        if named:
            plugged = snapshot.columns.attribute("resources of device plugins", _plugged)
            for resource in set(named).intersection(*[set().union(*plugged.values)]):
                del named[resource]
        return cls({resource: one.metadata.name for resource, one in named.items()})

    def behind(self, resource: str) -> str:
        """The class of a resource; "" where there is none."""
        return (
            resource.removeprefix(DEVICE_CLASS) if resource.startswith(DEVICE_CLASS) else self.named.get(resource, "")
        )

    def rows(self, rows: Rows) -> Mapping[str, DeviceRow]:
        """The resources of all classes of the table whose devices are just one GRES."""
        rows = {name: row for name, row in rows.items() if row.plain}
        found = {resource: rows[name] for resource, name in self.named.items() if name in rows}
        return {**found, **{f"{DEVICE_CLASS}{name}": row for name, row in rows.items()}}


def _is_class(one: Object) -> bool:
    return isinstance(one, DeviceClass)


def _age(one: Object) -> str:
    return one.metadata.creation_timestamp or ""


def _name(one: Object) -> str:
    return one.metadata.name


def _plugged(facts: NodeFacts) -> frozenset[str]:
    """The resources that the kubelet of a node has devices of."""
    there = facts.node.status.allocatable
    return frozenset(name for name in there if class_resources.may_be_of_a_class(name) and _some(there[name]))


def _some(amount: str | float) -> bool:
    try:
        return quantity.parse(amount) > 0
    except ValueError:
        return False
