"""Quantities of resources as they are written in the configuration of queues."""

import re

from slurm_bridge.errors import BadConfiguration

#: The type that counts processors; it is kept in thousandths of one.
VCORE = "vcore"
LARGEST = 2**63 - 1

_MILLI = "m"
_WRITTEN = re.compile(r"(?P<digits>[0-9]+) *(?P<suffix>[a-zA-Z]*)")
_FACTORS = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}
_MOST_DIGITS = len(str(LARGEST))


class BadQuantity(BadConfiguration):
    """Not a quantity of its type, or too large a number."""


class Overflow(BadQuantity):
    """Larger than what fits into a signed number of 64 bits."""


def parse(kind: str, text: str) -> int:
    """The amount of this type of resource; BadQuantity for what is none, Overflow for more than can be counted."""
    written = _WRITTEN.fullmatch(text.strip())
    factor = _factor(kind, written["suffix"]) if written else None
    if written is None or factor is None:
        suffixes = ", ".join((*((_MILLI,) if kind == VCORE else ()), *filter(None, _FACTORS)))
        raise BadQuantity(f"{kind}: {text!r} is no quantity; use digits, alone or with one of {suffixes}")
    digits = written["digits"].lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS or int(digits) * factor > LARGEST:
        unit = " in thousandths" if kind == VCORE else ""
        raise Overflow(f"{kind}: {text!r} is too large; at most {LARGEST} can be counted{unit}")
    return int(digits) * factor


def _factor(kind: str, suffix: str) -> int | None:
    """What the digits stand for with this suffix; None where the type does not have it."""
    if kind != VCORE:
        return _FACTORS.get(suffix)
    return 1 if suffix == _MILLI else _FACTORS[suffix] * 1000 if suffix in _FACTORS else None
