"""Slurm's notations for generic resources: `gres/gpu:v100:2` out, three kinds of it back."""

import re
from collections.abc import Iterable

from slurm_bridge.model.job import Gres

#: Commas inside parentheses list indices, they do not separate resources.
_ONE = re.compile(r"([^,()]+)(?:\(([^)]*)\))?")
#: What Slurm prints where there is nothing.
_NONE = "(null)"

_COUNT = re.compile(r"CNT:(\d+)")


def write(gres: Iterable[Gres]) -> str:
    """As a request wants it."""
    return ",".join(f"gres/{':'.join(part for part in (one.name, one.type, str(one.count)) if part)}" for one in gres)


def read(text: str) -> tuple[Gres, ...]:
    """`gpu:v100:8(S:0-1)` of a node, `gpu:v100(CNT:2)` or `gpu:2(IDX:0,3)` of a job, or what we wrote."""
    found: list[Gres] = []
    for match in _ONE.finditer("" if text == _NONE else text):
        head = match[1].strip()
        if head:
            name, *rest = head.removeprefix("gres/").split(":")
            counted = _COUNT.search(match[2] or "")
            count = int(rest.pop()) if rest and rest[-1].isdigit() else int(counted[1]) if counted else 0
            found.append(Gres(name=name, type=":".join(rest), count=count))
    return tuple(found)
