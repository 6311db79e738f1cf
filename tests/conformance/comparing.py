"""Whether a result is the expected one, by the rules of the case files."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

#: Of a result: names of nodes in the order of choice, where several orders are right.
_TIERS = "tiers"
_ONE_OF = "_one_of"


def differences(actual: Any, expected: Any, where: str) -> list[str]:
    """What differs from what is expected, one line for each place; more keys in a result are no difference."""
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping):
            return [f"{where}: is {actual!r}, expected {expected!r}"]
        return [line for key in expected for line in _keyed(actual, key, expected[key], f"{where}.{key}")]
    if isinstance(expected, list | tuple):
        if not _listed(actual) or len(actual) != len(expected):
            return [f"{where}: is {actual!r}, expected {expected!r}"]
        pairs = enumerate(zip(actual, expected, strict=True))
        return [line for place, (one, other) in pairs for line in differences(one, other, f"{where}[{place}]")]
    return [] if _equal(actual, expected) else [f"{where}: is {actual!r}, expected {expected!r}"]


def _keyed(actual: Mapping[str, Any], key: str, expected: Any, where: str) -> list[str]:
    result = key.removesuffix(_ONE_OF)
    if result not in actual:
        return [f"{where}: is not a result that anything gives; there are {', '.join(map(str, actual)) or 'none'}"]
    if key.endswith(_ONE_OF):
        right = any(_equal(actual[result], one) for one in expected or [None])
        return [] if right else [f"{where}: is {actual[result]!r}, expected one of {expected!r}"]
    if key == _TIERS:
        return _tiered(actual[key], expected, where)
    return differences(actual[key], expected, where)


def _tiered(actual: Any, tiers: Sequence[Mapping[str, Any]], where: str) -> list[str]:
    left = list(actual)
    for place, tier in enumerate(tiers):
        if tier.keys() != {"from", "count"}:
            return [f"{where}[{place}]: has {', '.join(map(str, tier))}; a tier has 'from' and 'count'"]
        first, left = left[: tier["count"]], left[tier["count"] :]
        if len(set(first)) != tier["count"] or not set(first) <= set(tier["from"]):
            return [f"{where}[{place}]: is {first!r} of {actual!r}, expected {tier['count']} of {tier['from']!r}"]
    return [f"{where}: has {left!r} beyond what is expected"] if left else []


def _equal(actual: Any, expected: Any) -> bool:
    """Floats nearly, everything else exactly; true is not 1."""
    if isinstance(actual, bool) or isinstance(expected, bool) or actual is None or expected is None:
        return actual is expected
    if isinstance(expected, float) and isinstance(actual, int | float):
        return math.isclose(actual, expected, rel_tol=1e-9, abs_tol=1e-9)
    return isinstance(actual, str) == isinstance(expected, str) and bool(actual == expected)


def _listed(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
