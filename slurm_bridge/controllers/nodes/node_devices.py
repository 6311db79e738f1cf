"""The devices that DRA drivers publish of each node, counted by the rules of Kubernetes.

    slice                                               counts
    another generation of its pool is newer             no
    not as many slices of its generation as it says     unknown: the driver is still publishing
    of a pool without the counters that devices use     no: Kubernetes gives away no device of the pool
    of no single node (network devices)                 no

    device                                              counts
    consumes counters: a partition, or its whole        no: it would be counted several times; an event says so
    taint NoSchedule or NoExecute                       no, as unhealthy devices are not allocatable
    any other                                           once for each name

A pool is looked at as far as it is the node's own: slices of other nodes change nothing, whatever pool they name.
"""

import dataclasses
from collections.abc import Container, Iterable, Mapping, Sequence

from slurm_bridge.model import devices
from slurm_bridge.model.devices import ResourceSlice, ResourceSliceSpec


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DriverDevices:
    """The devices of one driver on one node; `count` is None while it is unknown.

    `shared` tells of partitions, `wrong` of a pool without the counters that its devices use.
    """

    count: int | None = 0
    shared: bool = False
    wrong: bool = False


#: By the driver.
NodeDevices = Mapping[str, DriverDevices]


def by_node(slices: Iterable[ResourceSlice], drivers: Container[str]) -> Mapping[str, NodeDevices]:
    """The devices of these drivers, by the Kubernetes name of the node."""
    found: dict[str, dict[str, DriverDevices]] = {}
    for (node, driver, _), specs in devices.pools(slices).items():
        if driver in drivers:
            drivers_of_node = found.setdefault(node, {})
            drivers_of_node[driver] = _sum(drivers_of_node.get(driver, DriverDevices()), _of_pool(specs))
    return found


def _of_pool(specs: Sequence[ResourceSliceSpec]) -> DriverDevices:
    found = devices.published(specs)
    if found is None:
        return DriverDevices(count=None)
    if devices.miscounted(specs):
        return DriverDevices(wrong=True)
    return DriverDevices(count=len(devices.usable(found)), shared=any(device.consumes_counters for device in found))


def _sum(one: DriverDevices, other: DriverDevices) -> DriverDevices:
    known = one.count is not None and other.count is not None
    count = (one.count or 0) + (other.count or 0) if known else None
    return DriverDevices(count=count, shared=one.shared or other.shared, wrong=one.wrong or other.wrong)
