"""A copy of Slurm's topology.conf or topology.yaml: on which path of switches, or in which blocks, each node is.

    topology.conf            topology.yaml                                path of n1
    SwitchName=rack1 Nodes=  - topology: racks                            core, rack1
    SwitchName=core          tree: {switches: [{switch: rack1, nodes: …
      Switches=rack1           {switch: core, children: rack1}]}
    BlockName=b1 Nodes=      - topology: blocks                           b1; with sizes 4 and 8: b[1-2], b1
    BlockSizes=4,8             block: {block_sizes: [4, 8], blocks: […

Paths go from the coarsest unit to the finest. Blocks are joined in the order in which they are written, as Slurm does.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slurm_bridge.model import hostlist

Path = tuple[str, ...]

_WORD = re.compile(r"(\w+)=(\S*)")


class BadCopy(ValueError):
    """What is wrong with a copy, and where."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The path of each node, by Slurm's name, and that of each lowest unit, whose nodes others may tell."""

    nodes: Mapping[str, Path]
    units: Mapping[str, Path]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """A switch or a block as it is written."""

    name: str
    nodes: tuple[str, ...] = ()
    children: tuple[str, ...] = ()


def of_conf(text: str) -> Copy:
    """What topology.conf says; it is a tree or blocks, never both."""
    switches, blocks, sizes = list[_Unit](), list[_Unit](), tuple[int, ...]()
    # Without comments, and lines that end in a backslash with what follows.
    bare = (line.partition("#")[0].strip() for line in text.replace("\\\n", " ").splitlines())
    for number, line in enumerate(filter(None, bare), start=1):
        words = {key.lower(): value for key, value in _WORD.findall(line)}
        if "switchname" in words:
            switches.append(_unit(words, "switchname", f"line {number}"))
        elif "blockname" in words:
            blocks.append(_unit(words, "blockname", f"line {number}"))
        elif "blocksizes" in words:
            sizes = _sizes(words["blocksizes"].split(","), f"line {number}")
        else:
            raise BadCopy(f"line {number}: {line!r} has none of SwitchName, BlockName and BlockSizes")
    if switches and (blocks or sizes):
        raise BadCopy("has both SwitchName and BlockName; use one of them")
    return _tree(switches) if switches else _blocks(blocks, sizes)


def of_yaml(written: Any, name: str) -> Copy:
    """What topology.yaml, as it was read, says of the topology of this name."""
    if not isinstance(written, Sequence) or not all(isinstance(one, Mapping) for one in written):
        raise BadCopy("is no list of topologies")
    named = {str(one.get("topology", "")): one for one in written}
    if name not in named:
        raise BadCopy(f"has no topology {name!r}; there are {', '.join(sorted(named)) or 'none'}")
    found = named[name]
    match found.get("tree"), found.get("block"):
        case {"switches": list(switches)}, None:
            return _tree([_read(one, "switch") for one in switches])
        case None, {"blocks": list(blocks)} as block:
            sizes = _sizes(block.get("block_sizes") or (), f"topology {name}: block_sizes")
            return _blocks([_read(one, "block") for one in blocks], sizes)
    raise BadCopy(f"topology {name} has neither tree.switches nor block.blocks")


def _unit(words: Mapping[str, str], key: str, where: str) -> _Unit:
    return _named(words[key], words.get("nodes", ""), words.get("switches", ""), where)


def _read(one: Any, key: str) -> _Unit:
    if not isinstance(one, Mapping) or not one.get(key):
        raise BadCopy(f"{one!r} has no {key}")
    name = str(one[key])
    return _named(name, str(one.get("nodes") or ""), str(one.get("children") or ""), f"{key} {name}")


def _named(name: str, nodes: str, children: str, where: str) -> _Unit:
    try:
        return _Unit(name=name, nodes=hostlist.expand(nodes), children=hostlist.expand(children))
    except ValueError as error:
        raise BadCopy(f"{where}: {error}") from error


def _sizes(written: Iterable[Any], where: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(one) for one in written)
    except (TypeError, ValueError) as error:
        raise BadCopy(f"{where}: block sizes are whole numbers") from error
    if any(one < 1 for one in sizes) or any(big % sizes[0] for big in sizes):
        raise BadCopy(f"{where}: block sizes {list(sizes)}; use the first one and multiples of it")
    return sizes


def _tree(switches: Sequence[_Unit]) -> Copy:
    parents: dict[str, str] = {}
    for switch in switches:
        for child in switch.children:
            if parents.setdefault(child, switch.name) != switch.name:
                raise BadCopy(f"switch {child} is below both {parents[child]} and {switch.name}")
    units = {one.name: _path(one.name, parents) for one in switches if one.nodes or not one.children}
    return _copy(switches, units)


def _path(name: str, parents: Mapping[str, str]) -> Path:
    path = [name]
    while (above := parents.get(path[0])) is not None:
        if above in path:
            raise BadCopy(f"switch {name} is below itself")
        path.insert(0, above)
    return tuple(path)


def _blocks(blocks: Sequence[_Unit], sizes: tuple[int, ...]) -> Copy:
    """The first size is that of a block; each further one joins as many neighbours as it has room for."""
    units: dict[str, Path] = {}
    for place, block in enumerate(blocks):
        joined = []
        for size in sorted(sizes[1:], reverse=True):
            count = size // sizes[0]
            first = place - place % count
            joined.append(hostlist.compress(one.name for one in blocks[first : first + count]))
        units[block.name] = (*joined, block.name)
    return _copy(blocks, units)


def _copy(units: Iterable[_Unit], paths: Mapping[str, Path]) -> Copy:
    nodes: dict[str, Path] = {}
    for unit in units:
        for node in unit.nodes:
            if node in nodes:
                raise BadCopy(f"node {node} is in both {nodes[node][-1]} and {unit.name}")
            nodes[node] = paths[unit.name]
    return Copy(nodes=nodes, units=paths)
