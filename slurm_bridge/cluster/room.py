"""Which nodes have room for a pod now, as far as both sides have told: only these are worth preferring.

A node that is full, drained or reserved may be the best of all by some score, and a job that waits for it while others
are idle waits for nothing. It is no reason to exclude it: the job may have it when its turn comes.
"""

import collections
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Mask, NodeColumns, Whole, units
from slurm_bridge.cluster.columns.coded import units_given
from slurm_bridge.cluster.columns.kept import QuestionCache
from slurm_bridge.cluster.facts import NOTHING, NodeFacts
from slurm_bridge.cluster.fewest import takes
from slurm_bridge.cluster.memo import ByPod
from slurm_bridge.cluster.recent_answers import Recent
from slurm_bridge.model.job import JobRequest, MemoryPer
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.translate import resources

#: For so many kinds of pods it is remembered which nodes have room: a byte for each node.
MOST_KINDS = 64

#: At most so many kinds are kept: more than any caller keeps, or what it keeps would be of no use.
_MOST_SORTED = 16 * MOST_KINDS

#: More than one node in so many are many: one pass over the arrays takes no longer then.
_MANY = 8

#: More pods than any node has room for.
_LARGEST = 1 << 40

#: Columns that say whether Slurm takes jobs on a node, and not how much it has.
_STATES = frozenset({"room open", "room known"})

#: Before the name and the type of a generic resource.
_GRES = "room gres "

Rows = NDArray[np.intp]

#: What there is and what is used of it, by node, and how much of the rest is wanted.
_Enough = tuple[Whole, Whole | None, int]

#: A resource of Kubernetes, or what Slurm calls so, and how much of it is wanted.
_Wanted = tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """What is wanted, sorted out once: what Slurm's node is asked for, and what Kubernetes' node.

    One object for each, so that to look it up takes no time.
    """

    wanted: _Wanted
    slurm: tuple[tuple[Callable[[SlurmNode | None], int], int], ...]
    kube: _Wanted


def slots(columns: NodeColumns, pod: Pod, request: JobRequest) -> Whole:
    """For how many such pods each node has room now."""
    return _slots(columns, _wanted(pod, request))


def task_slots(columns: NodeColumns, pods: Sequence[Pod], request: JobRequest) -> Whole:
    """For how many tasks each node has room now, of which each is for all of these pods."""
    amounts: collections.Counter[str] = collections.Counter()
    for pod in pods:
        amounts.update(requested(pod))
    of_slurm = (one for one in _wanted(pods[0], request) if _slurm(one[0]) is not None)
    return _slots(columns, (*of_slurm, *amounts.items()))


def _slots(columns: NodeColumns, wanted: _Wanted) -> Whole:
    found: Whole = np.where(columns.present, _LARGEST, 0)
    for name, least in wanted:
        if least <= 0:
            continue
        of = _slurm(name)
        left = columns.allocatable(name) - columns.used(name) if of is None else columns.of_slurm(name, of)
        # A node that Slurm takes no jobs on has no room, and one on which it does has it for any number.
        there = np.where(left >= least, _LARGEST, 0) if name in _STATES else left // least
        found = np.minimum(found, there)
    return np.maximum(found, 0)


def places(columns: NodeColumns, pod: Pod) -> Whole:
    """For how many such pods each node would have room if it were empty."""
    found: Whole = np.where(columns.present, _LARGEST, 0)
    for name, least in requested(pod).items():
        if least > 0:
            found = np.minimum(found, columns.allocatable(name) // least)
    return found


class NodeRooms:
    """Which nodes have room: of all nodes only those that changed are looked at again; used from any thread."""

    def __init__(self) -> None:
        self._kept: QuestionCache[_Kind] = QuestionCache(MOST_KINDS)
        #: What was asked about some nodes only.
        self._once: Recent[_Kind, bool] = Recent(MOST_KINDS)

    def now(self, columns: NodeColumns, pod: Pod, request: JobRequest) -> Mask:
        """The nodes that could take one such pod of this request at this moment."""
        return self._now(columns, _kind(pod, request))

    def among(self, columns: NodeColumns, rows: Rows, pod: Pod, request: JobRequest) -> Mask:
        """The same of the nodes in these rows, by place.

        All nodes are looked at for many of them, and for pods of a kind that came before.
        """
        kind = _kind(pod, request)
        if len(rows) * _MANY >= len(columns) or self._once.get(kind):
            return self._now(columns, kind)[rows]
        self._once.put(kind, True)
        room: Mask = columns.present[rows]
        for there, used, least in _enough(columns, kind.wanted):
            room = room & ((there[rows] if used is None else there[rows] - used[rows]) >= least)
        return room

    def _now(self, columns: NodeColumns, kind: _Kind) -> Mask:
        return self._kept.get(kind, columns, lambda: _now(columns, kind), lambda facts: _fits(facts, kind))


def _now(columns: NodeColumns, kind: _Kind) -> Mask:
    room: Mask = columns.present
    for there, used, least in _enough(columns, kind.wanted):
        room = room & ((there if used is None else there - used) >= least)
    return room


def _kind(pod: Pod, request: JobRequest) -> _Kind:
    return _sorted_out(_wanted(pod, request))


@functools.lru_cache(maxsize=_MOST_SORTED)
def _sorted_out(wanted: _Wanted) -> _Kind:
    slurm = tuple((of, least) for name, least in wanted if (of := _slurm(name)) is not None)
    return _Kind(wanted, slurm, tuple((name, least) for name, least in wanted if _slurm(name) is None))


def _fits(facts: NodeFacts, kind: _Kind) -> bool:
    """Counted as columns count."""
    slurm, there, used = facts.slurm, facts.allocatable, facts.used
    for of, least in kind.slurm:
        if of(slurm) < least:
            return False
    for name, least in kind.kube:
        if units_given(name, there.get(name, NOTHING)) - units(name, used.get(name, NOTHING)) < least:
            return False
    return True


def _enough(columns: NodeColumns, wanted: _Wanted) -> Iterator[_Enough]:
    for name, least in wanted:
        of = _slurm(name)
        if of is None:
            yield columns.allocatable(name), columns.used(name), least
        else:
            yield columns.of_slurm(name, of), None, least


def _wanted(pod: Pod, request: JobRequest) -> _Wanted:
    """For a job that may use a reservation its nodes look reserved, and they are where it belongs."""
    found = [("room known" if request.reservation else "room open", 1)]
    found += [(name, amount) for name, amount in requested(pod).items() if amount > 0]
    found.append(("room cpus", request.cpus_per_task))
    if request.tasks == 1:
        per_cpu = request.memory.per is MemoryPer.CPU
        found.append(("room memory", request.memory.mib * (request.cpus_per_task if per_cpu else 1)))
    found += [(f"{_GRES}{one.name}:{one.type}", one.count) for one in request.gres]
    return tuple(found)


@ByPod
def requested(pod: Pod) -> Mapping[str, int]:
    """What a pod asks for in all, in the units of columns."""
    return MappingProxyType({name: units(name, amount) for name, amount in resources.requests_of(pod).items()})


def _slurm(name: str) -> Callable[[SlurmNode | None], int] | None:
    """How Slurm's nodes are asked for it, None for a resource of Kubernetes: those have no space in their names."""
    return functools.partial(_free, name) if name.startswith(_GRES) else _SLURM.get(name)


def _open(slurm: SlurmNode | None) -> int:
    return int(slurm is not None and takes(slurm))


def _known(slurm: SlurmNode | None) -> int:
    return int(slurm is not None)


def _cpus(slurm: SlurmNode | None) -> int:
    return slurm.cpus - slurm.used_cpus if slurm is not None else 0


def _memory(slurm: SlurmNode | None) -> int:
    return slurm.memory_mib - slurm.used_memory_mib if slurm is not None else 0


def _free(written: str, slurm: SlurmNode | None) -> int:
    """How many of a generic resource, as it is written in the column's name, are not given away."""
    if slurm is None:
        return 0
    name, _, kind = written.removeprefix(_GRES).rpartition(":")
    there, used = (
        sum(has.count for has in every if has.name == name and kind in ("", has.type))
        for every in (slurm.gres, slurm.used_gres)
    )
    return there - used


#: Columns over what Slurm says.
_SLURM: Mapping[str, Callable[[SlurmNode | None], int]] = {
    "room known": _known,
    "room open": _open,
    "room cpus": _cpus,
    "room memory": _memory,
}
