"""Resources as amounts by type: arithmetic, whether one fits into another, and shares.

An amount may be negative. A type that is absent is undefined, which differs from 0; None is no resource at all.
Only `add` changes what it is given. What each pass asks of each ask is written without calls: it takes half as long.
"""

import math
from collections.abc import Collection, Mapping, Sequence

Amount = Mapping[str, int]
Known = Amount | None

#: What sorts behind every positive share and before every further one: see `share_key`.
_END: tuple[float, float] = (0, math.inf)


# -- arithmetic ------------------------------------------------------------------------------------------------------


def plus(left: Known, right: Known) -> dict[str, int]:
    """The sum by type, of all types of either side."""
    total = dict(left or ())
    if right:
        for kind in right:
            total[kind] = total[kind] + right[kind] if kind in total else right[kind]
    return total


def add(total: dict[str, int], amount: Known) -> None:
    """The sum in place, as usage is kept; a type of which nothing is left is no longer there."""
    if not amount:
        return
    for kind in amount:
        added = total[kind] + amount[kind] if kind in total else amount[kind]
        if added:
            total[kind] = added
        else:
            total.pop(kind, None)


def minus(left: Known, right: Known) -> dict[str, int]:
    """The difference by type, of all types of either side."""
    total = dict(left or ())
    if right:
        for kind in right:
            total[kind] = total[kind] - right[kind] if kind in total else -right[kind]
    return total


def times(amount: Known, factor: int) -> dict[str, int]:
    """So many times as much of every type."""
    return {kind: one * factor for kind, one in (amount or {}).items()}


def smaller(left: Known, right: Known) -> Known:
    """The smaller value by type; a type that only one side defines is taken over from it, and None limits nothing."""
    if left is None or right is None:
        return right if left is None else left
    return {**left, **{kind: min(amount, left.get(kind, amount)) for kind, amount in right.items()}}


def is_positive(amount: Known) -> bool:
    """There is something of one type at least, and less than nothing of none."""
    if not amount:
        return False
    least = min(amount.values())
    return least > 0 or (least == 0 and any(amount.values()))


def is_empty(amount: Known) -> bool:
    """No resource, no types, or nothing of any."""
    return not amount or not any(amount.values())


def same(left: Known, right: Known) -> bool:
    """Equal by type, where an undefined type counts as 0."""
    return is_empty(minus(left, right))


# -- fit tests -------------------------------------------------------------------------------------------------------


def fit_in(smaller: Known, larger: Known) -> bool:
    """No type of the smaller one exceeds the larger one, in which less than nothing and undefined count as 0."""
    if not smaller:
        return True
    room = larger or {}
    for kind in smaller:
        amount = smaller[kind]
        if amount > 0 and (kind not in room or amount > room[kind]):
            return False
    return True


def fit_in_max_undefined(smaller: Known, larger: Known) -> bool:
    """As `fit_in`, but a type that the larger one leaves undefined is unlimited."""
    if not smaller or not larger:
        return True
    for kind in smaller:  # noqa: SIM110 - `all` is half as fast
        if kind in larger and 0 < smaller[kind] > larger[kind]:
            return False
    return True


def fit_in_actual(smaller: Known, larger: Known) -> bool:
    """As `fit_in_max_undefined`, but less than nothing is compared as it is."""
    room = larger or {}
    return all(amount <= room.get(kind, amount) for kind, amount in (smaller or {}).items())


def fit_in_score(fit: Known, available: Known) -> float:
    """How badly it exceeds what is available: 0 where it fits, at most 1 more for each type that does not."""
    if available is None:
        return float(len(fit or {}))
    wanted = [(amount, available.get(kind, 0)) for kind, amount in (fit or {}).items() if amount > 0]
    return math.fsum(1.0 if there <= 0 else max(0, amount - there) / amount for amount, there in wanted)


# -- shares ----------------------------------------------------------------------------------------------------------


def fair_share(allocated: Known, guaranteed: Known, fair_max: Known) -> float:
    """The largest part that is used of any type's guarantee, or of its fair maximum where there is no guarantee."""
    own, most, largest = guaranteed or {}, fair_max or {}, 0.0
    for kind, amount in (allocated or {}).items():
        entitled = own.get(kind, most.get(kind))
        if amount >= 0 and entitled is not None:
            largest = max(largest, amount / entitled if entitled > 0 else float(amount > 0))
    return largest


def shares(resource: Known, total: Known) -> list[float]:
    """What it is of the total, a value for each of its types, ascending; the amount itself where there is no total."""
    wholes = total or {}
    return sorted(
        [amount / whole if (whole := wholes.get(kind)) else amount for kind, amount in (resource or {}).items()]
    )


def shares_of_types(resource: Known, total: Known, types: Collection[str] | None) -> list[float]:
    """The shares of these types only, as far as there is something of them; of None, all shares."""
    if types is None:
        return shares(resource, total)
    return shares({kind: amount for kind, amount in (resource or {}).items() if amount and kind in types}, total)


def share_key(ascending: Sequence[float]) -> tuple[float, ...]:
    """A key by which usages are compared: the largest shares first, and further zeros decide nothing.

    It is the list from its largest share, as if zeros without end followed. Behind the last share that counts stands
    a 0, which a positive share exceeds and a negative one does not reach, and then what exceeds all: if the other side
    has a 0 in that place, only negative ones can follow there.
    """
    if not ascending or ascending[0]:
        # As a rule there is something of everything.
        return (*ascending[::-1], *_END)
    last = next((place for place, share in enumerate(ascending) if share), len(ascending))
    return (*reversed(ascending[last:]), *_END)


def type_matching(resource: Known, other: Known) -> int:
    """How many percent of its types the other one has too, without the fraction."""
    if not resource or not other:
        return 0
    return 100 * len(resource.keys() & other.keys()) // len(resource)
