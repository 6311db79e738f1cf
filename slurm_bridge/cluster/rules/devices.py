"""Devices of nodes: which of them a request may get, and one for each of several requests. Pure.

A device counts if its driver has published its whole pool, with all counters that devices share, no taint keeps pods
from it, it is not shared between claims, and it needs no preparation by a third party (binding conditions). Of groups
of CPUs, which claims share, each CPU counts by itself. Partitions, which share counters, count where the table says
that Slurm gives the whole.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from slurm_bridge.cluster.rules import cpu_groups
from slurm_bridge.cluster.rules.cpu_groups import Cpu, GroupWish
from slurm_bridge.model import devices
from slurm_bridge.model.devices import Device, DeviceAttribute, DeviceClass, DeviceId, ResourceClaim, ResourceSlice
from slurm_bridge.model.job import Gres
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import class_resources, device_claims, gres
from slurm_bridge.translate.class_resources import ClassOf
from slurm_bridge.translate.device_claims import AskedDevices, ClaimKey, DeviceRow, Forms, Option, Rows, Unrequestable

#: The words about nodes without enough such devices, and about nodes with others beside them.
LACKS: Final = "node(s) do not have the claimed devices"
MIXED: Final = "node(s) have devices of the same gres that do not meet the claims, and Slurm may give these"

#: The longest index that is read as one.
_MOST_DIGITS = 6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeDevice:
    """A device of a node, and what its driver says of it. `cpu`: it is a CPU of this group of CPUs.

    `part_of` names all counter sets that hang together with its own, by devices that have parts of several. It is the
    same for all devices of the pool that have a part of any of these, and no device's name.
    """

    id: DeviceId
    device: Device
    cpu: Cpu | None = None
    part_of: str = ""

    def index(self, row: DeviceRow) -> int | None:
        """Slurm's index of it, or the number of the CPU; None where the attribute is missing, or is no index."""
        return self.number(row.index) if self.cpu is None else self.cpu.number

    def number(self, attribute: str) -> int | None:
        """The value of an attribute, whose domain may be left out; None where it is missing, or is no number."""
        found = self._attribute(attribute)
        if found is None:
            return None
        text = found.string or ""
        if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
            return int(text)
        return found.integer

    def type(self, row: DeviceRow) -> str:
        """Slurm's type of it; "" where the attribute is missing, or is no type."""
        found = self._attribute(row.type)
        text = (found.string or "") if found is not None else ""
        return text if gres.is_type(text) else ""

    def _attribute(self, written: str) -> DeviceAttribute | None:
        driver, (domain, _, name) = self.id.driver, written.rpartition("/")
        found = self.device.attributes.get(f"{domain or driver}/{name}")
        if found is None and domain in ("", driver):
            found = self.device.attributes.get(name)
        return found


#: Whether a device (its driver, and what is said of it) meets a condition.
Matches = Callable[[str, str, Device], bool]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSight:
    """Devices, classes and claims as last heard; `on` are the devices of a node that may be given away.

    `kept_back` are its others; one without a name stands for those of a pool that is not published as a whole.
    """

    rows: Rows
    claim: Callable[[str, str], ResourceClaim | None]
    holder: Callable[[DeviceId], ResourceClaim | None]
    device_class: Callable[[str], DeviceClass | None]
    on: Callable[[str], Sequence[NodeDevice]]
    matches: Matches
    class_of: ClassOf = class_resources.no_class
    kept_back: Callable[[str], Sequence[NodeDevice]] = dataclasses.field(default=lambda _node: ())

    def all_on(self, node: str) -> Iterator[NodeDevice]:
        """All devices of a node that have names: what keeps one back takes it from none that has it."""
        return itertools.chain(self.on(node), (one for one in self.kept_back(node) if one.id.device))

    def options(self, pod: Pod, forms: Forms = device_claims.no_forms) -> tuple[Option, ...] | Unrequestable:
        """What its claims may ask for."""
        return device_claims.options(pod, self.claim, self.rows, self.class_of, forms)

    def asks(self, pod: Pod) -> bool:
        """Whether it has claims, or gets one."""
        return device_claims.asks(pod, self.class_of)

    def names(self, pod: Pod) -> frozenset[ClaimKey]:
        """The claims of a pod as far as they have names, whatever is known of them."""
        return device_claims.names(pod, self.class_of)

    def of(self, asked: AskedDevices) -> tuple[str, ...] | None:
        """All conditions on a device of this request; None while its class is not known."""
        found = self.device_class(asked.row.device_class)
        if found is None:
            return None
        return (*device_claims.expressions(found.spec.selectors), *asked.selectors)

    def fitting(self, asked: AskedDevices, there: Iterable[NodeDevice]) -> tuple[NodeDevice, ...]:
        """Those that the request may get."""
        conditions, row = self.of(asked), asked.row
        if conditions is None:
            return ()
        of_driver = (one for one in there if one.id.driver == row.driver and _of_sort(one, asked))
        return tuple(
            one for one in of_driver if all(self.matches(text, one.id.driver, one.device) for text in conditions)
        )

    def forms(self, asked: AskedDevices, node: str) -> tuple[AskedDevices, ...]:
        """What an open request is for on this node: devices of each type; all devices only where one type is all."""
        fitting = self.fitting(asked, self.on(node))
        types = {one.type(asked.row) if asked.row.open else asked.row.gres.type for one in fitting}
        if not asked.every:
            return tuple(asked.as_of(kind, asked.count) for kind in sorted(types - {""}))
        named = not asked.row.open or "" not in types
        if len(types) != 1 or not named or len(fitting) > device_claims.MOST_DEVICES or self._incomplete(asked, node):
            return ()
        return (asked.as_of(types.pop(), len(fitting)),)

    def has_all(self, asked: AskedDevices, node: str) -> bool:
        """Whether a request for all devices is for as many as there are."""
        return not asked.every or self.forms(asked.as_of("" if asked.row.type else asked.row.gres.type, 0), node) == (
            asked,
        )

    def _incomplete(self, asked: AskedDevices, node: str) -> bool:
        """Whether there are more that meet it, or may be, and cannot be given away."""
        others = [one for one in self.kept_back(node) if one.id.driver == asked.row.driver]
        parts = any(one.device.consumes_counters and one.id.driver == asked.row.driver for one in self.on(node))
        return parts or any(not one.id.device for one in others) or bool(self.fitting(asked, others))

    def judged(self, asked: Sequence[AskedDevices], node: str) -> tuple[str, int]:
        """Why a node cannot serve all of these requests, whatever is in use, and "" where it can; for how many pods.

        Slurm gives any devices of a GRES: each of them on this node has to do, or the allocation could be of no use.
        """
        there, once = self.on(node), self.once()
        alike = dict.fromkeys(one.nameless for one in asked)
        if any(one.open or not once.has_all(one, node) for one in alike):
            return LACKS, 0
        different = {one: once.fitting(one, there) for one in alike}
        if distributed([(one, different[one.nameless]) for one in asked]) is None:
            return LACKS, 0
        if any(once.alike(one, there) - {_unit(each, one.row) for each in found} for one, found in different.items()):
            return MIXED, 0
        counts: dict[str, int] = {}
        for one in asked:
            counts[one.row.driver] = counts.get(one.row.driver, 0) + one.count
        return "", min((_wholes(driver, different) // count for driver, count in counts.items()), default=0)

    def once(self) -> "DeviceSight":
        """Each condition is looked at once for each device, however many requests have it."""
        known: dict[tuple[str, int], bool] = {}

        def matches(text: str, driver: str, device: Device) -> bool:
            key = (text, id(device))
            if key not in known:
                known[key] = self.matches(text, driver, device)
            return known[key]

        return dataclasses.replace(self, matches=matches)

    def alike(self, asked: AskedDevices, there: Sequence[NodeDevice]) -> frozenset[object]:
        """What Slurm may give for this request: devices of all classes that are the same GRES."""
        rows = [row for row in self.rows.values() if _overlap(row.gres, asked.row.gres)]
        if not asked.selectors and rows == [asked.row]:
            return frozenset()
        of_rows = (
            AskedDevices(request="", row=row.of_type(asked.row.gres.type) if row.type else row, count=1) for row in rows
        )
        return frozenset(_unit(one, each.row) for each in of_rows for one in self.fitting(each, there))


def _unit(one: NodeDevice, row: DeviceRow) -> object:
    """What Slurm gives with the device: different classes may have devices for the same one."""
    index = one.index(row) if row.index else None
    return whole(one, row) if index is None else index


def _wholes(driver: str, fitting: Mapping[AskedDevices, Sequence[NodeDevice]]) -> int:
    """How many wholes of a driver there are for requests, at most."""
    mine = [(one, found) for one, found in fitting.items() if one.row.driver == driver]
    return len({whole(each, one.row) for one, found in mine for each in found})


def _of_sort(one: NodeDevice, asked: AskedDevices) -> bool:
    """Of the type in Slurm that is asked for; a CPU of a group only where a part of one is asked for."""
    row = asked.row
    if one.cpu is not None or row.capacity:
        return (
            one.cpu is not None
            and one.cpu.capacity == row.capacity
            and cpu_groups.takes(one.device, row.capacity, asked.count)
        )
    if bool(one.device.consumes_counters) != row.partitions:
        return False
    return not row.type or row.open or one.type(row).lower() == row.gres.type.lower()


def _overlap(one: Gres, other: Gres) -> bool:
    same_type = one.type.lower() == other.type.lower() or not (one.type and other.type)
    return one.name.lower() == other.name.lower() and same_type


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeInventory:
    """The devices of a node that may be given away, in the order of their names, and the others (`kept_back`)."""

    usable: tuple[NodeDevice, ...] = ()
    kept_back: tuple[NodeDevice, ...] = ()


def by_node(slices: Iterable[ResourceSlice]) -> Mapping[str, NodeInventory]:
    """By the name of the node."""
    usable: dict[str, list[NodeDevice]] = {}
    others: dict[str, list[NodeDevice]] = {}
    for (node, driver, pool), specs in devices.pools(slices).items():
        published = devices.published(specs)
        sound = () if published is None or devices.miscounted(specs) else published
        counting = {one.name: one for one in devices.with_partitions(sound)}
        together = _together(one.counter_sets for one in published or ())
        for one in published if published is not None else (Device(),):
            id_ = DeviceId(driver, pool, one.name)
            counts = counting.get(one.name) is one and not one.binding_conditions
            parts = [
                NodeDevice(id=devices.cpu_id(id_, cpu.number), device=one, cpu=cpu)
                for cpu in (cpu_groups.cpus(driver, one) if counts else ())
            ]
            if counts and not one.allow_multiple_allocations:
                part_of = f"/{together[min(one.counter_sets)]}" if one.consumes_counters else ""
                parts = [NodeDevice(id=id_, device=one, part_of=part_of)]
            if parts:
                usable.setdefault(node, []).extend(parts)
            else:
                others.setdefault(node, []).append(NodeDevice(id=id_, device=one))
    return {
        node: NodeInventory(usable=_sorted(usable.get(node, ())), kept_back=_sorted(others.get(node, ())))
        for node in usable.keys() | others.keys()
    }


def _together(each: Iterable[frozenset[str]]) -> Mapping[str, str]:
    """For each counter set the first of those that devices connect with it."""
    members: dict[str, set[str]] = {}
    for sets in each:
        known = [members.get(one) or {one} for one in sets]
        joined = max(known, key=len, default=set[str]())
        for other in known:
            if other is not joined:
                # The smaller one goes into the larger one: a set moves seldom.
                joined |= other
                members.update(dict.fromkeys(other, joined))
        members.update(dict.fromkeys(sets - members.keys(), joined))
    first = {key: min(one) for key, one in {id(one): one for one in members.values()}.items()}
    return {name: first[id(one)] for name, one in members.items()}


def _sorted(found: Iterable[NodeDevice]) -> tuple[NodeDevice, ...]:
    return tuple(sorted(found, key=lambda one: one.id))


def distributed(wanted: Sequence[tuple[AskedDevices, Sequence[NodeDevice]]]) -> tuple[tuple[DeviceId, ...], ...] | None:
    """Devices for each request, out of those that it may have; None where there are too few.

    CPUs of groups are all of one group for a request. Always the same ones.
    """
    parts = [pair for pair in wanted if pair[0].row.capacity]
    # Requests for the same have the very same CPUs to choose from.
    there = {id(found): found for _, found in parts}
    groups = {key: _groups(found) for key, found in there.items()}
    packed = cpu_groups.packed([GroupWish(asked.count, groups[id(found)]) for asked, found in parts])
    if packed is None:
        return None
    single = _single([pair for pair in wanted if not pair[0].row.capacity])
    if single is None:
        return None
    names = {str(one.id): one.id for found in there.values() for one in found}
    of_groups, of_others = iter(packed), iter(single)
    return tuple(
        tuple(names[name] for name in next(of_groups))
        if asked.row.capacity
        else tuple(itertools.islice(of_others, asked.count))
        for asked, _ in wanted
    )


def _single(wanted: Sequence[tuple[AskedDevices, Sequence[NodeDevice]]]) -> list[DeviceId] | None:
    """One after the other; of what can be divided each request gets one part of each, and no two have parts of one."""
    choices: list[dict[DeviceId, DeviceId]] = []
    alike: dict[tuple[DeviceRow, int], dict[DeviceId, DeviceId]] = {}
    for asked, found in wanted:
        # Requests for the same have the very same devices to choose from.
        parts = alike.setdefault((asked.row, id(found)), {})
        for one in found if not parts else ():
            parts.setdefault(whole(one, asked.row), one.id)
        # A device more than there are is enough to know that there are too few.
        choices += [parts] * min(asked.count, len(parts) + 1)
    given = assigned([list(parts) for parts in choices])
    return None if given is None else [parts[one] for one, parts in zip(given, choices, strict=True)]


def whole(one: NodeDevice, row: DeviceRow) -> DeviceId:
    """What a claim has to itself, which is no device's name: what Slurm gives, else all that shares counters."""
    index = one.index(row) if row.index else None
    if index is not None:
        return DeviceId(one.id.driver, "", f"/{row.gres.name.lower()}/{index}")
    return one.id._replace(device=one.part_of) if one.part_of else one.id


def _groups(found: Sequence[NodeDevice]) -> Mapping[str, Sequence[str]]:
    by_group: dict[str, list[NodeDevice]] = {}
    for one in found:
        by_group.setdefault(str(one.id).rpartition("/")[0], []).append(one)
    return {group: [str(one.id) for one in sorted(there, key=_core)] for group, there in by_group.items()}


def _core(one: NodeDevice) -> tuple[int, int]:
    """Whole cores come together."""
    return (one.cpu.core, one.cpu.number) if one.cpu is not None else (0, 0)


def assigned(wanted: Sequence[Sequence[DeviceId]]) -> tuple[DeviceId, ...] | None:
    """A device for each wish, out of those that it may have; None where there are too few. Always the same one."""
    sorts = list(dict.fromkeys(map(tuple, wanted)))
    if len(set[DeviceId]().union(*sorts)) < len(wanted):
        return None
    if len(sorts) == 1:
        return tuple(dict.fromkeys(sorts[0]))[: len(wanted)]
    number = {sort: place for place, sort in enumerate(sorts)}
    seats = _Seats(sorts, [number[tuple(one)] for one in wanted])
    if not all(map(seats.give, range(len(wanted)))):
        return None
    return tuple(seats.device_of[wish] for wish in range(len(wanted)))


class _Seats:
    """Which wish has which device so far. Wishes of one sort may have the same devices: one look at these is enough."""

    def __init__(self, sorts: Sequence[Sequence[DeviceId]], sort_of: Sequence[int]) -> None:
        self._sorts, self._sort_of = sorts, sort_of
        # A device that is held stays held, by one wish or another: what was passed over is not looked at again.
        self._left = [iter(one) for one in sorts]
        self._next: list[DeviceId | None] = [None] * len(sorts)
        self.holder: dict[DeviceId, int] = {}
        self.device_of: dict[int, DeviceId] = {}

    def give(self, wish: int) -> bool:
        """A free device, else one whose holder can have another one."""
        came: dict[DeviceId, int] = {}
        looked, waiting = set[int](), [wish]
        for one in waiting:
            sort = self._sort_of[one]
            if sort in looked:
                continue
            looked.add(sort)
            free = self._free(sort)
            if free is not None:
                self._hand_on(wish, one, free, came)
                return True
            for device in self._sorts[sort]:
                if device not in came:
                    came[device] = one
                    waiting.append(self.holder[device])
        return False

    def _free(self, sort: int) -> DeviceId | None:
        found = self._next[sort]
        while found is None or found in self.holder:
            found = next(self._left[sort], None)
            if found is None:
                break
        self._next[sort] = found
        return found

    def _hand_on(self, wish: int, last: int, free: DeviceId, came: Mapping[DeviceId, int]) -> None:
        """The last one takes what is free, and gives its own to the one that asked for it, up to the wish."""
        while True:
            before = self.device_of.get(last)
            self.holder[free], self.device_of[last] = last, free
            if last == wish or before is None:
                return
            last, free = came[before], before
