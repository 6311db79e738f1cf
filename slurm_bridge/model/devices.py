"""Classes of devices that pods claim, with the extended resource of each."""

from slurm_bridge.model.meta import Object, Record


class DeviceClassSpec(Record, frozen=True, kw_only=True):
    """The extended resource by which pods may ask for a device of this class without a claim."""

    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True, kw_only=True):
    """A DeviceClass."""

    spec: DeviceClassSpec = DeviceClassSpec()
