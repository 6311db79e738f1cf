"""Kubernetes' notation for amounts, `500m`, `1.5Gi`, `2e3`: read exactly, rounded only where integers are needed."""

import functools
import math
import re
from fractions import Fraction

#: Kubernetes keeps no larger amount than this and lowers what is.
MOST = 2**63 - 1

MIB = 2**20

#: Lengths are bounded because annotations bring text that no server has read: `1e999999999` must cost nothing.
_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<digits>[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,2}))?"
)

_SUFFIXES: dict[str | None, Fraction] = {None: Fraction(1)}
_SUFFIXES |= {letter: Fraction(1000) ** power for power, letter in enumerate("kMGTPE", start=1)}
_SUFFIXES |= {f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}
_SUFFIXES |= {letter: Fraction(1, 1000**power) for power, letter in enumerate("mun", start=1)}


@functools.lru_cache(maxsize=4096)
def parse(written: str | float) -> Fraction:
    """The amount; raises ValueError when it is not a quantity. Manifests may also hold plain JSON numbers."""
    found = _GRAMMAR.fullmatch(str(written))
    if found is None:
        raise ValueError(f"{str(written)[:60]!r} is not a Kubernetes quantity")
    digits, exponent = found["digits"], found["exponent"]
    # Kubernetes allows the point at either end, Python only between digits.
    size = Fraction(f"0{digits}0" if "." in digits else digits) * _SUFFIXES[found["suffix"]]
    if exponent:
        size *= Fraction(10) ** int(exponent)
    return min(-size if found["sign"] == "-" else size, Fraction(MOST))


def whole(amount: Fraction) -> int:
    """Rounded up: a part of a thing takes the thing."""
    return math.ceil(amount)


def mebibytes(amount: Fraction) -> int:
    """Bytes in MiB, rounded up: a little memory must never become none, which Slurm takes for all of it."""
    return math.ceil(amount / MIB)
