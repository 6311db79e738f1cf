"""Slurm's notation for many host names, `ext[001-004,7]`: read and written.

Slurm compresses names that differ in one number and keeps leading zeros; two digits and three digits are different
names. Only one bracket per name is written; several are read.
"""

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

#: Slurm has no longer range; a longer list is a mistake or an attack.
MOST_HOSTS = 65_536

#: Likewise for names and ranges, and for letters. Users of Slurm write such lists, and Slurm repeats them.
MOST_PARTS = 20_000
MOST_LETTERS = 1 << 20

_MARK = re.compile(r"[\[\],]")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")

#: Longer numbers are names, not counters.
_WIDEST = 18

_SHOWN = 200

#: What hosts have in common that differ in one number, and its digits; 0: the whole name of a host without a number.
Stem = tuple[str, int]

#: Numbers that follow each other, as the first and the last of them.
Run = tuple[int, int]


def expand(text: str) -> tuple[str, ...]:
    """`a[1-3],b` → `("a1", "a2", "a3", "b")`, in the order written; raises ValueError when it is not a hostlist."""
    if len(text) > MOST_LETTERS or text.count(",") + text.count("[") > MOST_PARTS:
        raise ValueError(f"hostlist has more than {MOST_PARTS} names and ranges, or {MOST_LETTERS} letters")
    found = itertools.chain.from_iterable(map(_expand_one, _split(text.strip())))
    hosts = tuple(itertools.islice(found, MOST_HOSTS + 1))
    if len(hosts) > MOST_HOSTS:
        raise ValueError(f"hostlist names more than {MOST_HOSTS} hosts")
    return hosts


def compress(hosts: Iterable[str]) -> str:
    """The shortest usual spelling of these names; sorted, each name once."""
    return join(write(stem, runs(numbers)) for stem, numbers in group(hosts).items())


def in_order(hosts: Iterable[str]) -> str:
    """These names as they come, `b[1-2],a1,b3`: only neighbours whose numbers rise share a bracket."""
    spelled: list[str] = []
    current: tuple[Stem, list[int]] | None = None
    for host in hosts:
        ((stem, (number,)),) = group((host,)).items()
        if current is not None and current[0] == stem and stem[1] and number > current[1][-1]:
            current[1].append(number)
            continue
        if current is not None:
            spelled.append(write(current[0], runs(current[1])))
        current = stem, [number]
    if current is not None:
        spelled.append(write(current[0], runs(current[1])))
    return ",".join(spelled)


def group(hosts: Iterable[str]) -> Mapping[Stem, Collection[int]]:
    """The numbers of these hosts by stem."""
    groups: dict[Stem, set[int]] = {}
    for host in hosts:
        text = host.rstrip("0123456789")
        width = len(host) - len(text)
        if 0 < width <= _WIDEST:
            groups.setdefault((text, width), set()).add(int(host[-width:]))
        else:
            groups[host, 0] = {0}
    return groups


def runs(numbers: Iterable[int]) -> list[Run]:
    """In order."""
    found: list[Run] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def write(stem: Stem, numbers: Sequence[Run]) -> str:
    """The hosts of one stem with these numbers, of which there is at least one."""
    text, width = stem
    if not width:
        return text
    spans = [f"{low:0{width}}" if low == high else f"{low:0{width}}-{high:0{width}}" for low, high in numbers]
    single = len(numbers) == 1 and numbers[0][0] == numbers[0][1]
    return f"{text}{spans[0]}" if single else f"{text}[{','.join(spans)}]"


def join(written: Iterable[str]) -> str:
    """The list of what was written for each stem."""
    return ",".join(sorted(written))


def _split(text: str) -> Iterator[str]:
    """Commas outside brackets separate hosts; commas inside separate ranges."""
    depth, start = 0, 0
    for mark in _MARK.finditer(text):
        depth += {"[": 1, "]": -1}.get(mark[0], 0)
        if depth not in (0, 1):
            raise ValueError(f"unbalanced brackets in hostlist {_short(text)}")
        if mark[0] == "," and depth == 0:
            yield text[start : mark.start()]
            start = mark.end()
    if depth:
        raise ValueError(f"unbalanced brackets in hostlist {_short(text)}")
    if text:
        yield text[start:]


def _expand_one(part: str) -> Iterable[str]:
    if not part or part != part.strip():
        raise ValueError(f"empty or padded name in hostlist: {_short(part)}")
    if "[" not in part:
        return (part,)
    choices, hosts = list[Sequence[str]](), 1
    for index, piece in enumerate(re.split(r"\[([^\[\]]*)\]", part)):
        choices.append(_numbers(piece) if index % 2 else (piece,))
        hosts *= len(choices[-1]) or 1
        if hosts > MOST_HOSTS:
            raise ValueError(f"hostlist names more than {MOST_HOSTS} hosts")
    return map("".join, itertools.product(*choices))


def _numbers(ranges: str) -> list[str]:
    found: list[str] = []
    for text in ranges.split(","):
        if text.isascii() and text.isdigit():
            found.append(text)
            continue
        match = _RANGE.fullmatch(text)
        if match is None:
            raise ValueError(f"{_short(text)} is not a range of numbers")
        low, high = match[1], match[2] or match[1]
        if int(high) - int(low) > MOST_HOSTS or len(found) > MOST_HOSTS:
            raise ValueError(f"range {_short(text)} is too large")
        found += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
    return found


def _short(text: str) -> str:
    """The text as far as an error shows it."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
