"""Numbers of CPUs as Linux writes them: `0-3,8`."""

import re
from collections.abc import Collection
from typing import Final

#: No machine has more, and no list of them is longer.
MOST_CPUS: Final = 8192
_LONGEST: Final = 1 << 16
_PART: Final = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


def parse(text: str) -> frozenset[int] | None:
    """None where it is no such list, or has numbers beyond any machine's."""
    found: set[int] = set()
    if len(text) > _LONGEST:
        return None
    for part in text.split(","):
        numbers = _PART.fullmatch(part)
        if numbers is None:
            return None
        first = int(numbers[1])
        last = int(numbers[2] or first)
        if not first <= last < MOST_CPUS:
            return None
        found.update(range(first, last + 1))
    return frozenset(found)


def write(cpus: Collection[int]) -> str:
    """With as few parts as possible."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1][1:] = [cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(map(str, part)) for part in parts)
