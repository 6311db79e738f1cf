"""The devices that DRA drivers publish of each node, counted by the rules of Kubernetes.

    slice                                               counts
    another generation of its pool is newer             no
    not as many slices of its generation as it says     unknown: the driver is still publishing
    of no single node (network devices)                 no

    device                                              counts
    consumes counters: a partition, or its whole        no: it would be counted several times; an event says so
    taint NoSchedule or NoExecute                       no, as unhealthy devices are not allocatable
    any other                                           once for each name

A pool is looked at as far as it is the node's own: slices of other nodes change nothing, whatever pool they name.
"""

import dataclasses
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from slurm_bridge.model.devices import Device, ResourceSlice, ResourceSliceSpec

_KEEPS_PODS_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DriverDevices:
    """The devices of one driver on one node; `count` is None while it is unknown. `shared` tells of partitions."""

    count: int | None = 0
    shared: bool = False


#: By the driver.
NodeDevices = Mapping[str, DriverDevices]


def by_node(slices: Iterable[ResourceSlice], drivers: Container[str]) -> Mapping[str, NodeDevices]:
    """The devices of these drivers, by the Kubernetes name of the node."""
    pools: dict[tuple[str, str, str], list[ResourceSliceSpec]] = {}
    for spec in (one.spec for one in slices):
        if spec.node_name and spec.driver in drivers:
            pools.setdefault((spec.node_name, spec.driver, spec.pool.name), []).append(spec)
    found: dict[str, dict[str, DriverDevices]] = {}
    for (node, driver, _), specs in pools.items():
        drivers_of_node = found.setdefault(node, {})
        drivers_of_node[driver] = _sum(drivers_of_node.get(driver, DriverDevices()), _of_pool(specs))
    return found


def _of_pool(specs: Sequence[ResourceSliceSpec]) -> DriverDevices:
    newest = max(spec.pool.generation for spec in specs)
    current = [spec for spec in specs if spec.pool.generation == newest]
    if any(spec.pool.resource_slice_count != len(current) for spec in current):
        return DriverDevices(count=None)
    devices = [device for spec in current for device in spec.devices]
    # A name that is there twice is a mistake of the driver: it counts once, and only if nothing speaks against it.
    left_out = {device.name for device in devices if not _counts(device)}
    return DriverDevices(
        count=len({device.name for device in devices} - left_out),
        shared=any(device.consumes_counters for device in devices),
    )


def _counts(device: Device) -> bool:
    return not device.consumes_counters and not any(taint.effect in _KEEPS_PODS_AWAY for taint in device.taints)


def _sum(one: DriverDevices, other: DriverDevices) -> DriverDevices:
    known = one.count is not None and other.count is not None
    count = (one.count or 0) + (other.count or 0) if known else None
    return DriverDevices(count=count, shared=one.shared or other.shared)
