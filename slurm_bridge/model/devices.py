"""Classes of devices that pods claim, with the extended resource of each, and the devices that drivers publish."""

from slurm_bridge.model.meta import Object, Record


class DeviceClassSpec(Record, frozen=True, kw_only=True):
    """The extended resource by which pods may ask for a device of this class without a claim."""

    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True, kw_only=True):
    """A DeviceClass."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaint(Record, frozen=True, kw_only=True):
    """A taint keeps pods away from a device."""

    effect: str = ""


class CounterConsumption(Record, frozen=True, kw_only=True):
    """A part of what several devices share."""

    counter_set: str = ""


class Device(Record, frozen=True, kw_only=True):
    """One device, or a partition of one: these consume counters that they share with others."""

    name: str = ""
    consumes_counters: tuple[CounterConsumption, ...] = ()
    taints: tuple[DeviceTaint, ...] = ()


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


class ResourceSlice(Object, frozen=True, kw_only=True):
    """A ResourceSlice."""

    spec: ResourceSliceSpec = ResourceSliceSpec()
