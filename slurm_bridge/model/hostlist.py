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

#: Longer numbers are names, not counters.
_WIDEST = 18


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
        stem = host.rstrip("0123456789")
        width = len(host) - len(stem)
        if 0 < width <= _WIDEST:
            groups.setdefault((stem, width), set()).add(int(host[-width:]))
        else:
            plain.add(host)
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


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of numbers that follow each other."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last


def _span(run: tuple[int, int], width: int) -> str:
    first, last = (str(number).zfill(width) for number in run)
    return first if first == last else f"{first}-{last}"
