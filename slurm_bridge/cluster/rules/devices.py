"""Devices of nodes: which of them a request may get, and one for each of several requests. Pure.

A device counts if its driver has published its whole pool, it is no partition of another one, no taint keeps pods from
it, it is not shared between claims, and it needs no preparation by a third party (binding conditions).
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from slurm_bridge.model import devices
from slurm_bridge.model.devices import Device, DeviceClass, DeviceId, ResourceClaim, ResourceSlice
from slurm_bridge.model.job import Gres
from slurm_bridge.translate import device_claims
from slurm_bridge.translate.device_claims import AskedDevices, DeviceRow, Rows

#: The words about nodes without enough such devices, and about nodes with others beside them.
LACKS: Final = "node(s) do not have the claimed devices"
MIXED: Final = "node(s) have devices of the same gres that do not meet the claims, and Slurm may give these"

#: The longest index that is read as one.
_MOST_DIGITS = 6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeDevice:
    """A device of a node, and what its driver says of it."""

    id: DeviceId
    device: Device

    def index(self, row: DeviceRow) -> int | None:
        """Slurm's index of it; None where the attribute is missing, or is no index."""
        driver, (domain, _, name) = self.id.driver, row.index.rpartition("/")
        found = self.device.attributes.get(f"{domain or driver}/{name}")
        if found is None and domain in ("", driver):
            found = self.device.attributes.get(name)
        if found is None:
            return None
        text = found.string or ""
        if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
            return int(text)
        return found.integer


#: Whether a device (its driver, and what is said of it) meets a condition.
Matches = Callable[[str, str, Device], bool]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSight:
    """Devices, classes and claims as last heard; `on` are the devices of a node that may be given away."""

    rows: Rows
    claim: Callable[[str, str], ResourceClaim | None]
    every_claim: Callable[[], Iterable[ResourceClaim]]
    device_class: Callable[[str], DeviceClass | None]
    on: Callable[[str], Sequence[NodeDevice]]
    matches: Matches

    def of(self, asked: AskedDevices) -> tuple[str, ...] | None:
        """All conditions on a device of this request; None while its class is not known."""
        found = self.device_class(asked.row.device_class)
        if found is None:
            return None
        return (*device_claims.expressions(found.spec.selectors), *asked.selectors)

    def fitting(self, asked: AskedDevices, there: Iterable[NodeDevice]) -> tuple[NodeDevice, ...]:
        """Those that the request may get."""
        conditions = self.of(asked)
        if conditions is None:
            return ()
        of_driver = (one for one in there if one.id.driver == asked.row.driver)
        return tuple(
            one for one in of_driver if all(self.matches(text, one.id.driver, one.device) for text in conditions)
        )

    def lacks(self, asked: Sequence[AskedDevices], node: str) -> str:
        """Why a node cannot serve all of these requests, whatever is in use; "" where it can.

        Slurm gives any devices of a GRES: each of them on this node has to do, or the allocation could be of no use.
        """
        there = self.on(node)
        fitting = [(one, self.fitting(one, there)) for one in asked]
        wanted = [[each.id for each in found] for one, found in fitting for _ in range(min(one.count, len(found) + 1))]
        if assigned(wanted) is None or any(len(found) < one.count for one, found in fitting):
            return LACKS
        return MIXED if any(len(found) < len(self._alike(one, there)) for one, found in fitting) else ""

    def _alike(self, asked: AskedDevices, there: Sequence[NodeDevice]) -> Collection[DeviceId]:
        """The devices that Slurm may give for this request: of all classes that are the same GRES."""
        rows = [row for row in self.rows.values() if _overlap(row.gres, asked.row.gres)]
        if not asked.selectors and rows == [asked.row]:
            return ()
        of_rows = (AskedDevices(request="", row=row, count=1) for row in rows)
        return {one.id for each in of_rows for one in self.fitting(each, there)}


def _overlap(one: Gres, other: Gres) -> bool:
    same_type = one.type.lower() == other.type.lower() or not (one.type and other.type)
    return one.name.lower() == other.name.lower() and same_type


def by_node(slices: Iterable[ResourceSlice]) -> Mapping[str, tuple[NodeDevice, ...]]:
    """The devices that may be given away, by the name of the node, in the order of their names."""
    found: dict[str, list[NodeDevice]] = {}
    for (node, driver, pool), specs in devices.pools(slices).items():
        for one in devices.usable(devices.published(specs) or ()):
            if not one.allow_multiple_allocations and not one.binding_conditions:
                found.setdefault(node, []).append(NodeDevice(id=DeviceId(driver, pool, one.name), device=one))
    return {node: tuple(sorted(there, key=lambda one: one.id)) for node, there in found.items()}


def assigned(wanted: Sequence[Sequence[DeviceId]]) -> tuple[DeviceId, ...] | None:
    """A device for each wish, out of those that it may have; None where there are too few. Always the same one."""
    holder: dict[DeviceId, int] = {}
    for wish in range(len(wanted)):
        if not _seated(wish, wanted, holder, set()):
            return None
    device_of = {wish: device for device, wish in holder.items()}
    return tuple(device_of[wish] for wish in range(len(wanted)))


def _seated(wish: int, wanted: Sequence[Sequence[DeviceId]], holder: dict[DeviceId, int], tried: set[DeviceId]) -> bool:
    """A free device, or one whose holder can have another one."""
    for device in wanted[wish]:
        if device in tried:
            continue
        tried.add(device)
        if device not in holder or _seated(holder[device], wanted, holder, tried):
            holder[device] = wish
            return True
    return False
