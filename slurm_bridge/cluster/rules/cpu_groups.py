"""Groups of CPUs, which a driver publishes as one device with a capacity: taken apart, and put together again. Pure.

Each CPU of a group counts like a device of its own, so that claims get the CPUs of the cores that Slurm has given. A
group can be taken apart if its driver says which CPUs it has (`cpuIDs`), which of them are of one core (`smtLayout`),
and on which socket and NUMA node all of them are.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from slurm_bridge.model import cpuset, quantity
from slurm_bridge.model.devices import Device, DeviceAttribute, DeviceCapacity

#: The attributes, as dra-driver-cpu calls them.
CPUS: Final = "cpuIDs"
_LAYOUT: Final = "smtLayout"
_MOST_ENTRIES: Final = 4096

#: So many choices are made anew where the first ones leave nothing for a later wish.
MOST_TRIES: Final = 200


class Cpu(NamedTuple):
    """A CPU of a group, its core by the lowest CPU of it, and the capacity that counts such CPUs."""

    number: int
    core: int
    capacity: str


def cpus(driver: str, device: Device) -> tuple[Cpu, ...]:
    """The CPUs of a group, core by core; none where the device is no such group, or says too little."""
    there, layout = _text(driver, device, CPUS), _text(driver, device, _LAYOUT)
    numbers = cpuset.parse(there) if there else None
    if not device.allow_multiple_allocations or not numbers or len(device.capacity) != 1:
        return ()
    ((capacity, amount),) = device.capacity.items()
    core_of = _cores(layout)
    if not _counts(amount, len(numbers)) or core_of is None or not numbers <= core_of.keys():
        return ()
    return tuple(sorted((Cpu(cpu, core_of[cpu], capacity) for cpu in numbers), key=lambda one: (one.core, one.number)))


def takes(device: Device, capacity: str, amount: int) -> bool:
    """Whether so much of a group may be used as it is: a driver may want it to be rounded up."""
    policy = device.capacity[capacity].request_policy
    if policy is None:
        return True
    if policy.valid_values:
        return any(_amount(one) == amount for one in policy.valid_values)
    within = policy.valid_range
    if within is None:
        return True
    least, step, most = _amount(within.min), _amount(within.step), _amount(within.max)
    return (
        (least is None or amount >= least)
        and (most is None or amount <= most)
        and (not step or (amount - (least or 0)) % step == 0)
    )


@dataclasses.dataclass(frozen=True, slots=True)
class GroupWish:
    """So many CPUs of one group, out of these: by group those that it may have, in the order in which it gets them."""

    count: int
    by_group: Mapping[str, Sequence[str]]


def packed(wishes: Sequence[GroupWish]) -> tuple[tuple[str, ...], ...] | None:
    """CPUs for each wish, by their names; None where there are too few. The largest wish chooses first.

    Where a choice leaves nothing for a later wish, another one is tried, up to `MOST_TRIES`.
    """
    maps = {id(wish.by_group): wish.by_group for wish in wishes}
    if len({cpu for one in maps.values() for there in one.values() for cpu in there}) < sum(x.count for x in wishes):
        return None
    order = sorted(range(len(wishes)), key=lambda one: (-wishes[one].count, one))
    found: dict[int, tuple[str, ...]] = {}
    taken: set[str] = set()
    # For each wish that has chosen, and for the next one: what it has not tried yet.
    ways: list[list[tuple[str, ...]]] = []
    tries = 0
    while len(found) < len(order):
        if len(ways) == len(found):
            ways.append(_ways(wishes[order[len(found)]], taken)[::-1])
            tries += 1
        if ways[-1]:
            chosen = ways[-1].pop()
            found[order[len(found)]] = chosen
            taken.update(chosen)
            continue
        ways.pop()
        if not ways or tries > len(order) + MOST_TRIES:
            return None
        taken.difference_update(found.pop(order[len(found) - 1]))
    return tuple(found[place] for place in range(len(wishes)))


def _ways(wish: GroupWish, taken: Collection[str]) -> list[tuple[str, ...]]:
    """What it may have, the best first: a group that is nearly full stays so."""
    left = {group: [cpu for cpu in there if cpu not in taken] for group, there in wish.by_group.items()}
    enough = [group for group, there in left.items() if len(there) >= wish.count]
    return [tuple(left[one][: wish.count]) for one in sorted(enough, key=lambda group: (len(left[group]), group))]


def _cores(layout: str) -> Mapping[int, int] | None:
    """`0-7>4;8-11`: CPUs 0 and 4 are of one core, CPU 8 is one alone. Of each CPU the lowest one of its core."""
    entries = layout.split(";")
    if not layout or len(entries) > _MOST_ENTRIES:
        return None
    found: dict[int, int] = {}
    for entry in entries:
        text, _, stride = entry.partition(">")
        numbers = cpuset.parse(text)
        apart = int(stride) if stride.isascii() and stride.isdecimal() and len(stride) < len("99999") else 0
        if numbers is None or bool(stride) != bool(apart):
            return None
        for cpu in sorted(numbers):
            if cpu not in found:
                found[cpu] = cpu
                if apart:
                    found[cpu + apart] = cpu
    return found


def _text(driver: str, device: Device, name: str) -> str:
    found: Iterable[DeviceAttribute | None] = (device.attributes.get(one) for one in (f"{driver}/{name}", name))
    return next((one.string or "" for one in found if one is not None), "")


def _counts(amount: DeviceCapacity, count: int) -> bool:
    return _amount(amount.value) == count


def _amount(written: str | float | None) -> int | None:
    """A whole number; None for anything else."""
    if written is None:
        return None
    try:
        found = quantity.parse(written)
    except ValueError:
        return None
    return found.numerator if found.denominator == 1 else None
