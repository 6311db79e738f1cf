"""What a Kubernetes node asks for in Slurm: its resources, features, partitions and place in the topology."""

import dataclasses
import itertools
import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from slurm_bridge.controllers.nodes.node_devices import DriverDevices, NodeDevices
from slurm_bridge.controllers.nodes.options import NodeOptions
from slurm_bridge.model import names, quantity, texts
from slurm_bridge.model.job import Gres
from slurm_bridge.model.node import Node
from slurm_bridge.model.slurmnode import NodeShape

#: A feature of every node that the bridge adds: a NodeSet of a partition can name it.
FEATURE: Final = "slurm-bridge"

_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_TOPOLOGY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:,-]{0,1023}")
_ADDRESS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]{0,254}")
#: slurmctld takes these for many nodes.
_MANY: Final = frozenset({"all", "default", "localhost"})
#: A node with more than this is a mistake.
_MOST: Final = 2**31 - 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DesiredNode:
    """A node as it is to be in Slurm."""

    address: str
    shape: NodeShape
    features: tuple[str, ...]
    topology: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unregistrable:
    """Why a node is not added. One that is `early` is no mistake: its kubelet or a driver has not reported all yet."""

    message: str
    early: bool = False


def registered(node: Node) -> bool:
    """An administrator wants it in Slurm, and it is not about to go."""
    asked = node.metadata.labels.get(names.LABEL_EXTERNAL_NODE, "false")
    return asked.lower() != "false" and node.metadata.deletion_timestamp is None


def labelled(node: Node) -> bool:
    """It carries a label of the bridge."""
    return names.LABEL_EXTERNAL_NODE in node.metadata.labels or bool(
        node.metadata.labels.get(names.LABEL_SLURM_NODE_NAME)
    )


def usable_name(name: str) -> bool:
    """Slurm takes it for the name of one node."""
    return _WORD.fullmatch(name) is not None and name.lower() not in _MANY


def of_node(
    node: Node,
    options: NodeOptions,
    partitions: Mapping[str, frozenset[str]],
    devices: Mapping[str, NodeDevices] | None = None,
) -> DesiredNode | Unregistrable:
    """`partitions` are those of Slurm, with the NodeSets of each; `devices` those of all nodes, None if unknown."""
    wanted, topology = _partitions(node), node.metadata.annotations.get(names.ANNOTATION_NODE_TOPOLOGY, "").strip()
    if topology and not _TOPOLOGY.fullmatch(topology):
        return _wrong(names.ANNOTATION_NODE_TOPOLOGY, topology, "has to be like racks:core:rack4,blocks:block2")
    for name in wanted:
        if name not in partitions:
            return _wrong(names.ANNOTATION_EXTERNAL_PARTITIONS, name, "is no partition of Slurm")
    address = next((one.address for one in node.status.addresses if one.type == "InternalIP"), "")
    cpus = math.floor(_offered(node, "cpu") - options.reserved_cpus)
    memory = math.floor((_offered(node, "memory") - options.reserved_memory) / quantity.MIB)
    cores = cpus // options.threads_per_core
    if not _ADDRESS.fullmatch(address) or not node.status.allocatable:
        return Unregistrable(
            message="the kubelet has not reported an InternalIP address and allocatable resources", early=True
        )
    if not (0 < cores <= _MOST and 0 < memory <= _MOST):
        return Unregistrable(message=f"Slurm would get {cores} cores and {memory} MiB of memory, which is no node")
    gres = _all_gres(node, options, devices)
    if isinstance(gres, Unregistrable):
        return gres
    shape = NodeShape(
        cores=cores,
        threads_per_core=options.threads_per_core,
        memory_mib=memory,
        gres=gres,
        partitions=wanted,
    )
    return DesiredNode(
        address=address, shape=shape, features=_features(node, options.feature_labels), topology=topology
    )


def _partitions(node: Node) -> tuple[str, ...]:
    text = node.metadata.annotations.get(names.ANNOTATION_EXTERNAL_PARTITIONS, "")
    return tuple(sorted({name for part in text.split(",") if (name := part.strip())}))


def _offered(node: Node, resource: str) -> Fraction:
    """An amount that cannot be read is none."""
    try:
        return quantity.parse(node.status.allocatable.get(resource, 0))
    except ValueError:
        return Fraction(0)


def _all_gres(
    node: Node, options: NodeOptions, devices: Mapping[str, NodeDevices] | None
) -> tuple[Gres, ...] | Unregistrable:
    """Both tables. The same devices may be published in both ways: one GRES is not counted from both on one node."""
    offered = {resource: math.floor(_offered(node, resource)) for resource in options.gres}
    published, of_node = dict[str, int](), (devices or {}).get(node.metadata.name, {})
    for driver in options.device_gres:
        count = of_node.get(driver, DriverDevices()).count
        if devices is None or count is None:
            return Unregistrable(message=f"driver {driver} has not published all ResourceSlices yet", early=True)
        published[driver] = count
    for driver, resource in itertools.product(published, offered):
        bare = options.device_gres[driver].partition(":")[0].lower()
        if published[driver] > 0 < offered[resource] and bare == options.gres[resource].partition(":")[0].lower():
            return Unregistrable(
                message=f"GRES {bare} would be counted twice: resource {resource} (gres) and driver {driver} "
                "(nodes.device_gres) both have it on this node; switch off the device plugin or the driver here, or "
                "remove the row from one of these tables"
            )
    found = (*_gres(offered, options.gres), *_gres(published, options.device_gres))
    return tuple(sorted(found, key=lambda one: (one.name, one.type)))


def _gres(amounts: Mapping[str, int], table: Mapping[str, str]) -> Iterable[Gres]:
    """Two resources, or two drivers, may stand for the same GRES."""
    counts: dict[str, int] = {}
    for source, kind in sorted(table.items()):
        counts[kind] = counts.get(kind, 0) + amounts[source]
    for kind, count in sorted(counts.items()):
        name, _, type_ = kind.partition(":")
        if 0 < count <= _MOST:
            yield Gres(name=name, type=type_, count=count)


def _features(node: Node, labels: Iterable[str]) -> tuple[str, ...]:
    """The values of labels, as far as they can be features."""
    values = (node.metadata.labels.get(label, "") for label in labels)
    return (FEATURE, *sorted({value for value in values if _WORD.fullmatch(value)} - {FEATURE}))


def _wrong(key: str, value: str, why: str) -> Unregistrable:
    return Unregistrable(message=f"annotation {key}: {texts.shown(value)!r} {why}")
