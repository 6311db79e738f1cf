"""Slurm's notation for many host names, `ext[001-004,7]`: read and written.

Slurm compresses names that differ in one number and keeps leading zeros; two digits and three digits are different
names. Only one bracket per name is written; several are read.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

#: A list longer than this is a mistake (or an attack), not a cluster.
MOST_HOSTS = 100_000

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_NUMBERED = re.compile(r"(.*?)(\d+)$", re.DOTALL)


def expand(text: str) -> tuple[str, ...]:
    """`a[1-3],b` → `("a1", "a2", "a3", "b")`, in the order written; raises ValueError when it is not a hostlist."""
    hosts = [host for part in _split(text.strip()) for host in _expand_one(part)]
    if len(hosts) > MOST_HOSTS:
        raise ValueError(f"hostlist names more than {MOST_HOSTS} hosts")
    return tuple(hosts)


def compress(hosts: Iterable[str]) -> str:
    """The shortest usual spelling of these names; sorted, each name once."""
    groups: dict[tuple[str, int], set[int]] = {}
    plain: set[str] = set()
    for host in hosts:
        found = _NUMBERED.fullmatch(host)
        if found is None or len(found[2]) > 18:  # noqa: PLR2004 - longer numbers are names, not counters
            plain.add(host)
        else:
            groups.setdefault((found[1], len(found[2])), set()).add(int(found[2]))
    numbered = [_bracket(prefix, width, sorted(numbers)) for (prefix, width), numbers in groups.items()]
    return ",".join(sorted([*plain, *numbered]))


def _split(text: str) -> Iterator[str]:
    """Commas outside brackets separate hosts; commas inside separate ranges."""
    depth, start = 0, 0
    for position, letter in enumerate(text):
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if depth not in (0, 1):
            raise ValueError(f"unbalanced brackets in hostlist {text!r}")
        if letter == "," and depth == 0:
            yield text[start:position]
            start = position + 1
    if depth:
        raise ValueError(f"unbalanced brackets in hostlist {text!r}")
    if text:
        yield text[start:]


def _expand_one(part: str) -> Iterator[str]:
    if not part or part != part.strip():
        raise ValueError(f"empty or padded name in hostlist: {part!r}")
    pieces = re.split(r"\[([^\[\]]*)\]", part)
    choices: list[Sequence[str]] = [_numbers(piece) if index % 2 else [piece] for index, piece in enumerate(pieces)]
    return ("".join(chosen) for chosen in itertools.islice(itertools.product(*choices), MOST_HOSTS + 1))


def _numbers(ranges: str) -> list[str]:
    found: list[str] = []
    for text in ranges.split(","):
        match = _RANGE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a range of numbers")
        low, high = match[1], match[2] or match[1]
        if int(high) - int(low) > MOST_HOSTS:
            raise ValueError(f"range {text!r} is too large")
        found += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
    return found


def _bracket(prefix: str, width: int, numbers: Sequence[int]) -> str:
    spans = [_span(run, width) for run in _runs(numbers)]
    only = spans[0] if len(spans) == 1 and "-" not in spans[0] else None
    return prefix + (only if only is not None else f"[{','.join(spans)}]")


def _runs(numbers: Sequence[int]) -> Iterator[list[int]]:
    for _, run in itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        yield [number for _, number in run]


def _span(run: Sequence[int], width: int) -> str:
    first, last = str(run[0]).zfill(width), str(run[-1]).zfill(width)
    return first if first == last else f"{first}-{last}"
