"""Dynamic Resource Allocation: classes of devices, the devices that drivers publish, and the claims to them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from slurm_bridge.model import cpuset
from slurm_bridge.model.meta import Manifest, Object, Record

#: With this finalizer Kubernetes' own controller takes an allocation back after the last pod, and not before.
FINALIZER: Final = "resource.kubernetes.io/delete-protection"

EXACT_COUNT: Final = "ExactCount"
ALL_DEVICES: Final = "All"

_KEEPS_PODS_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})


class DeviceId(NamedTuple):
    """What a device is called in the whole cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


#: Claims are found by the devices that they have.
BY_DEVICE: Final = "device"


class CelExpression(Record, frozen=True, kw_only=True):
    """A condition on a device, in CEL."""

    expression: str = ""


class DeviceSelector(Record, frozen=True, kw_only=True):
    """One condition; `cel` is None for kinds that this version does not know."""

    cel: CelExpression | None = None


class _ForDriver(Record, frozen=True, kw_only=True):
    driver: str = ""


_for_driver = msgspec.json.Decoder(_ForDriver)


class DeviceConfiguration(Record, frozen=True, kw_only=True):
    """Parameters for the driver, handed on as they are; `requests` empty: for all requests of the claim.

    They are kept as they were written: read, they would take twenty times as much memory.
    """

    requests: tuple[str, ...] = ()
    opaque: msgspec.Raw = msgspec.Raw()

    def __post_init__(self) -> None:
        # Otherwise the whole answer that this was read from would stay.
        msgspec.structs.force_setattr(self, "opaque", self.opaque.copy())

    @property
    def size(self) -> int:
        """In bytes."""
        return memoryview(self.opaque).nbytes

    @property
    def driver(self) -> str:
        """For which they are; "" where that is not said."""
        try:
            return _for_driver.decode(self.opaque).driver if self.size else ""
        except (msgspec.DecodeError, RecursionError):
            return ""


class DeviceClassSpec(Record, frozen=True, kw_only=True):
    """Which devices belong to a class; by the extended resource pods may ask for one of them without a claim."""

    extended_resource_name: str | None = None
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class DeviceClass(Object, frozen=True, kw_only=True):
    """A DeviceClass."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaint(Record, frozen=True, kw_only=True):
    """A taint keeps pods away from a device."""

    effect: str = ""


class CounterConsumption(Record, frozen=True, kw_only=True):
    """A part of what several devices share; of the counters only the names are read."""

    counter_set: str = ""
    counters: dict[str, Any] = {}


class CounterSet(Record, frozen=True, kw_only=True):
    """What several devices share."""

    name: str = ""
    counters: dict[str, Any] = {}


class DeviceAttribute(Record, frozen=True, kw_only=True):
    """One value, of one of four types; none of them where this version does not know the type."""

    integer: int | None = msgspec.field(default=None, name="int")
    boolean: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class CapacityRange(Record, frozen=True, kw_only=True):
    """Amounts from `min` to `max`, in steps."""

    min: str | int | float | None = None
    max: str | int | float | None = None
    step: str | int | float | None = None


class CapacityPolicy(Record, frozen=True, kw_only=True):
    """Which parts of a capacity may be used."""

    valid_values: tuple[str | int | float, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Record, frozen=True, kw_only=True):
    """An amount, as a Kubernetes quantity."""

    value: str | int | float = 0
    request_policy: CapacityPolicy | None = None


class Device(Record, frozen=True, kw_only=True):
    """One device, or a partition of one: these consume counters that they share with others.

    Attributes and capacities have names with or without a domain; without one it is that of the driver.
    """

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[CounterConsumption, ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    allow_multiple_allocations: bool = False
    binding_conditions: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """No taint keeps pods from it."""
        return not any(taint.effect in _KEEPS_PODS_AWAY for taint in self.taints)

    @property
    def counter_sets(self) -> frozenset[str]:
        """Of a partition: what it has a part of."""
        return frozenset(one.counter_set for one in self.consumes_counters)


class ResourcePool(Record, frozen=True, kw_only=True):
    """The pool of a slice: only slices of its newest generation count, and there are so many of them."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Record, frozen=True, kw_only=True):
    """Devices of one driver. `node_name` is empty where they are not those of one node."""

    driver: str = ""
    node_name: str = ""
    pool: ResourcePool = ResourcePool()
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Object, frozen=True, kw_only=True):
    """A ResourceSlice."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class ExactRequest(Record, frozen=True, kw_only=True):
    """Devices of one class; in a list of alternatives each has a name."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: int = 1
    admin_access: bool | None = None
    tolerations: tuple[dict[str, Any], ...] = ()
    capacity: dict[str, Any] | None = None


class DeviceRequest(Record, frozen=True, kw_only=True):
    """One request of a claim: exactly these devices, or the first of several alternatives that there is."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: tuple[ExactRequest, ...] = ()


class DeviceClaim(Record, frozen=True, kw_only=True):
    """What a claim asks for. Of constraints only their number matters: this version honours none."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[dict[str, Any], ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class ResourceClaimSpec(Record, frozen=True, kw_only=True):
    """It never changes."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Record, frozen=True, kw_only=True):
    """A device that a claim holds, for one of its requests."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    consumed_capacity: dict[str, str | int | float] | None = None

    @property
    def id(self) -> DeviceId:
        """The device itself."""
        return DeviceId(self.driver, self.pool, self.device)


class AllocatedDevices(Record, frozen=True, kw_only=True):
    """All devices of a claim, and the parameters with which drivers prepare them."""

    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()

    def ids(self, result: AllocatedDevice) -> tuple[DeviceId, ...]:
        """The device; of a group of CPUs those that the parameters name, else the group."""
        if result.consumed_capacity is None:
            return (result.id,)
        names = {result.request, result.request.partition("/")[0]}
        mine = (one for one in self.config if not one.requests or names.intersection(one.requests))
        # Which of several the driver follows is not known.
        found = frozenset[int]().union(*(cpus_in(one, result.driver) or () for one in mine))
        return tuple(cpu_id(result.id, cpu) for cpu in sorted(found)) if found else (result.id,)


class _CpuConfig(Record, frozen=True, kw_only=True):
    cpuset: str = ""


class _CpuParameters(Record, frozen=True, kw_only=True):
    cpu_config: _CpuConfig = _CpuConfig()


class _CpuOpaque(_ForDriver, frozen=True, kw_only=True):
    parameters: _CpuParameters = _CpuParameters()


_cpu_opaque = msgspec.json.Decoder(_CpuOpaque)


def cpu_id(group: DeviceId, cpu: int) -> DeviceId:
    """A CPU of a group, as if it were a device."""
    return group._replace(device=f"{group.device}/{cpu}")


def group_of(cpu: DeviceId) -> DeviceId:
    """What `cpu_id` was made of."""
    return cpu._replace(device=cpu.device.rpartition("/")[0])


def cpus_in(config: DeviceConfiguration, driver: str) -> frozenset[int] | None:
    """The CPUs that the parameters for this driver name; None where they name none."""
    if not config.size:
        return None
    try:
        found = _cpu_opaque.decode(config.opaque)
    except (msgspec.DecodeError, RecursionError):
        return None
    return cpuset.parse(found.parameters.cpu_config.cpuset) if found.driver == driver else None


def cpu_parameters(driver: str, cpus: Collection[int]) -> Manifest:
    """What `cpus_in` reads."""
    parameters = {"apiVersion": "v1alpha1", "cpuConfig": {"cpuset": cpuset.write(cpus)}}
    return {"driver": driver, "parameters": parameters}


class ClaimAllocation(Record, frozen=True, kw_only=True):
    """The devices of a claim, and the nodes from which they can be used."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: dict[str, Any] | None = None


class Consumer(Record, frozen=True, kw_only=True):
    """An object that may use a claim: a pod, where the group is empty and the resource is `pods`."""

    api_group: str = msgspec.field(default="", name="apiGroup")
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Record, frozen=True, kw_only=True):
    """What a claim holds, and for which pods."""

    allocation: ClaimAllocation | None = None
    reserved_for: tuple[Consumer, ...] = ()


class ResourceClaim(Object, frozen=True, kw_only=True):
    """A ResourceClaim."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def held(self) -> tuple[DeviceId, ...]:
        """The devices that no other claim may get. Administrators look at devices beside their users."""
        return self.held_for(None)

    def held_for(self, request: str | None) -> tuple[DeviceId, ...]:
        """Those of one request; None: of all."""
        found = self.status.allocation.devices if self.status.allocation is not None else AllocatedDevices()
        return tuple(
            device
            for one in found.results
            if request in (None, one.request) and not one.admin_access
            for device in found.ids(one)
        )


def held_devices(claim: ResourceClaim) -> Iterable[str]:
    """Under which a claim is found."""
    return map(str, claim.held)


def pools(slices: Iterable[ResourceSlice]) -> Mapping[tuple[str, str, str], Sequence[ResourceSliceSpec]]:
    """The slices of nodes, by node, driver and pool."""
    found: dict[tuple[str, str, str], list[ResourceSliceSpec]] = {}
    for spec in (one.spec for one in slices):
        if spec.node_name:
            found.setdefault((spec.node_name, spec.driver, spec.pool.name), []).append(spec)
    return found


def published(specs: Sequence[ResourceSliceSpec]) -> tuple[Device, ...] | None:
    """The devices of one pool of one node, by its newest generation; None while the driver is still publishing it."""
    current = _newest(specs)
    if any(spec.pool.resource_slice_count != len(current) for spec in current):
        return None
    return tuple(device for spec in current for device in spec.devices)


def _newest(specs: Sequence[ResourceSliceSpec]) -> Sequence[ResourceSliceSpec]:
    newest = max(spec.pool.generation for spec in specs)
    return [spec for spec in specs if spec.pool.generation == newest]


def miscounted(specs: Sequence[ResourceSliceSpec]) -> bool:
    """Whether a set of counters is there twice, or devices of the pool consume what is not there.

    Kubernetes gives away no device of such a pool.
    """
    current = _newest(specs)
    sets = [one for spec in current for one in spec.shared_counters]
    there = {one.name: one.counters.keys() for one in sets}
    consumed = (one for spec in current for device in spec.devices for one in device.consumes_counters)
    return len(there) < len(sets) or any(
        one.counter_set not in there or not one.counters.keys() <= there[one.counter_set] for one in consumed
    )


def usable(devices: Sequence[Device]) -> tuple[Device, ...]:
    """Those that count and are no partitions."""
    return tuple(one for one in with_partitions(devices) if not one.consumes_counters)


def with_partitions(devices: Sequence[Device]) -> tuple[Device, ...]:
    """Those that count. A name that is there twice is a mistake of the driver: nothing may speak against either."""
    left_out = {device.name for device in devices if not device.counts}
    return tuple({device.name: device for device in devices if device.name not in left_out}.values())
