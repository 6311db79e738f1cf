"""Slurm's notations of amounts: `gres/gpu:v100:2`, `matlab:2,ansys`, `cpu=8,mem=250G,node=1,billing=8`."""

import re
from collections.abc import Iterable, Mapping, Sequence

from slurm_bridge.sim.slurm import state

#: A type may begin with a digit (`1g.10gb`), but only digits are a count.
_GRES = re.compile(r"gres[/:]([A-Za-z_]\w*)(?::((?=[\w.-]*[A-Za-z_])[\w.-]+))?(?:[:=](\d+))?")
_LICENSE = re.compile(r"([A-Za-z_][\w.@/-]*)(?:[:=](\d+))?")


class BadAmount(ValueError):
    """The text is no amount that Slurm reads."""


def parse_gres(text: str) -> tuple[state.Gres, ...]:
    """`gres/gpu:2,gres/gpu:v100=1`; a missing count is one."""
    return tuple(_gres(part) for part in text.split(",")) if text else ()


def _gres(text: str) -> state.Gres:
    found = _GRES.fullmatch(text)
    if found is None:
        raise BadAmount(text)
    return state.Gres(name=found[1], type=found[2] or "", count=int(found[3] or 1))


def parse_licenses(text: str) -> dict[str, int]:
    """`matlab:2,ansys`; a missing count is one."""
    return dict(_license(part) for part in text.split(",")) if text else {}


def _license(text: str) -> tuple[str, int]:
    found = _LICENSE.fullmatch(text)
    if found is None:
        raise BadAmount(text)
    return found[1], int(found[2] or 1)


def memory(mib: int) -> str:
    """1000 → `1000M`, 256000 → `250G`: the largest unit without a fraction."""
    for unit in "MGT":
        if mib % 1024 or unit == "T":
            return f"{mib}{unit}"
        mib //= 1024
    raise AssertionError("unreachable")


def write(*, cpus: int, mib: int, nodes: int | None = None) -> str:
    """The amounts of a job (with nodes) or of a node (without)."""
    middle = "" if nodes is None else f"node={nodes},"
    return f"cpu={cpus},mem={memory(mib)},{middle}billing={cpus}"


def write_gres(pools: Iterable[state.Gres], used: Mapping[tuple[str, str], int] | None = None) -> str:
    """`gpu:v100:8`, as a node's `gres`, or the part of it in use."""
    shown = []
    for pool in pools:
        count = pool.count if used is None else used.get((pool.name, pool.type), 0)
        shown.append(":".join(word for word in (pool.name, pool.type, str(count)) if word))
    return ",".join(shown)


def details(gres: Iterable[state.Gres]) -> str:
    """`gpu:v100(CNT:2)`, or `gpu:v100:2(IDX:0-1)` with indices, as a job's `gres_detail` of one node."""
    names = ((f"{part.name}:{part.type}" if part.type else part.name, part) for part in gres)
    return ",".join(
        f"{name}:{part.count}(IDX:{ranges(part.indices)})" if part.indices else f"{name}(CNT:{part.count})"
        for name, part in names
    )


def ranges(numbers: Sequence[int]) -> str:
    """`0-1,3`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)
