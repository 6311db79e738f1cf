"""The options of the hook: what the devices of each class are in Slurm."""

from typing import Annotated, Literal

import pydantic

from slurm_bridge.cluster.rules import cpu_groups
from slurm_bridge.translate import gres
from slurm_bridge.translate.device_claims import DeviceRow, Rows

_Name = Annotated[str, pydantic.Field(min_length=1, max_length=253)]


class DeviceClassOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Devices of one DeviceClass, and what they are in Slurm."""

    device_class: _Name
    """The name of the DeviceClass."""
    driver: str = ""
    """The DRA driver whose devices these are. Left out: the name of the class."""
    gres: str = pydantic.Field(default="", max_length=253)
    """The generic resource in Slurm, `name` or `name:type`, of which each device is one."""
    type: str = ""
    """The attribute of a device whose value is the type of its GRES, such as `profile`; `gres` is only the name then.
    Slurm is asked for the type of the devices that meet the claim."""
    cpus: bool = False
    """Instead of `gres`: each device is a CPU, or with `capacity` a group of CPUs."""
    capacity: str = pydantic.Field(default="", max_length=253)
    """Of groups of CPUs (`cpus: true`), as the driver writes it: the capacity that counts the CPUs of a group, such as
    `dra.cpu/cpu`. `index` is left out: the driver has to publish the attributes `cpuIDs` and `smtLayout`."""
    partitions: bool = False
    """The devices are parts of what Slurm counts, and share counters (dynamic MIG): each costs a whole one, of which no
    other claim has a part. `index` is that of the whole one."""
    index: str = ""
    """The attribute of a device whose value is the index of the device in Slurm, such as `index` or
    `gpu.example.com/index`; of a CPU its number in Linux."""
    without_index: Literal["refuse", "choose"] = "refuse"
    """What happens if Slurm gives no indices: the nodes are given back (`refuse`), or any devices are taken that no
    other claim holds (`choose`; right only where native jobs do not use this generic resource)."""

    @pydantic.field_validator("gres")
    @classmethod
    def _known_form(cls, text: str) -> str:
        if text and gres.parse_kind(text).name.lower() == gres.CPU:
            raise ValueError("Slurm has no GRES of this name; of CPUs say cpus: true")
        return text

    @pydantic.model_validator(mode="after")
    def _usable(self) -> "DeviceClassOptions":
        if bool(self.gres) == self.cpus:
            raise ValueError(f"class {self.device_class}: say either gres or cpus: true")
        if self.type and (self.cpus or gres.parse_kind(self.gres).type):
            raise ValueError(f"class {self.device_class}: type is an attribute, of which gres is only the name")
        if self.partitions and self.cpus:
            raise ValueError(f"class {self.device_class}: CPUs have no partitions")
        if self.capacity and (not self.cpus or self.index):
            raise ValueError(f"class {self.device_class}: capacity is for groups of CPUs (cpus: true), without index")
        if self.cpus and (not (self.index or self.capacity) or self.without_index == "choose"):
            raise ValueError(f"class {self.device_class}: of CPUs say index, and leave out without_index")
        if not self.index and not self.capacity and self.without_index == "refuse":
            raise ValueError(f"class {self.device_class}: say index, or without_index: choose")
        return self


class DeviceClaimsOptions(pydantic.BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Which classes of devices pods may claim."""

    classes: tuple[DeviceClassOptions, ...]
    """One row for each DeviceClass. Pods whose claims ask for another class wait, and are told so."""

    @pydantic.model_validator(mode="after")
    def _once(self) -> "DeviceClaimsOptions":
        names = [one.device_class for one in self.classes]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"classes: {', '.join(twice)} is there twice")
        return self

    @property
    def rows(self) -> Rows:
        """The table."""
        return {
            one.device_class: DeviceRow(
                device_class=one.device_class,
                driver=one.driver or one.device_class,
                gres=gres.parse_kind(one.gres or gres.CPU),
                type=one.type,
                index=cpu_groups.CPUS if one.capacity else one.index,
                capacity=one.capacity,
                partitions=one.partitions,
                chosen=one.without_index == "choose",
            )
            for one in self.classes
        }
