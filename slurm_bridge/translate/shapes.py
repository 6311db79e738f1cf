"""Members of a workload by what they ask for, and the forms in which one job can hold them all."""

import dataclasses
import enum
from collections.abc import Callable, Iterable, Sequence

from slurm_bridge.model.job import Gres
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime import frozen_records


class Form(enum.Enum):
    """How a request stands for its pods."""

    SINGLE = "one pod"
    TASKS = "one task for each pod"
    PER_NODE = "a fixed number of nodes, and what each of them has to give"
    SUM = "all pods together on one node"
    HET = "one component for each shape"
    BOUND = "one task for each pod, as large as the largest of them"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Amounts of all resources: for one pod, or for several together."""

    cpus: int
    memory_mib: int
    gres: tuple[Gres, ...] = ()


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Pods that ask a node for the same, in rank order, and what Slurm is asked for each of them.

    `part` is the part of the workload that they are, where that part has to have nodes of its own.
    """

    pods: tuple[Pod, ...]
    cpus: int
    memory_mib: int
    gres: tuple[Gres, ...] = ()
    part: str = ""

    @property
    def needs(self) -> Needs:
        """What each of its pods asks for."""
        return Needs(cpus=self.cpus, memory_mib=self.memory_mib, gres=self.gres)


def kinds(shapes: Iterable[Shape]) -> tuple[Needs, ...]:
    """The different amounts: shapes may also differ only in where their pods may run."""
    return tuple(dict.fromkeys(shape.needs for shape in shapes))


def bound(needs: Sequence[Needs]) -> Needs:
    """The least that is enough for each of them."""
    return Needs(
        cpus=max(one.cpus for one in needs),
        memory_mib=max(one.memory_mib for one in needs),
        gres=_joined([one.gres for one in needs], max),
    )


def total(shapes: Sequence[Shape]) -> Needs:
    """What all of their pods need together."""
    return Needs(
        cpus=sum(shape.cpus * len(shape.pods) for shape in shapes),
        memory_mib=sum(shape.memory_mib * len(shape.pods) for shape in shapes),
        gres=_joined([times(shape.needs, len(shape.pods)).gres for shape in shapes], sum),
    )


def times(needs: Needs, count: int) -> Needs:
    """The same for so many pods."""
    return Needs(
        cpus=needs.cpus * count,
        memory_mib=needs.memory_mib * count,
        gres=tuple(dataclasses.replace(one, count=one.count * count) for one in needs.gres),
    )


def added(lists: Sequence[tuple[Gres, ...]]) -> tuple[Gres, ...]:
    """All of these resources together."""
    return _joined(lists, sum)


def _joined(lists: Sequence[tuple[Gres, ...]], join: Callable[[list[int]], int]) -> tuple[Gres, ...]:
    """Slurm takes no request that names a resource with a type and without: then any of it counts as that type."""
    typed = {one.name: one.type for gres in reversed(lists) for one in reversed(gres) if one.type}
    counts: dict[tuple[str, str], list[int]] = {}
    for gres in lists:
        own: dict[tuple[str, str], int] = {}
        for one in gres:
            key = (one.name, one.type or typed.get(one.name, ""))
            own[key] = own.get(key, 0) + one.count
        for key, count in own.items():
            counts.setdefault(key, []).append(count)
    return tuple(Gres(name=name, type=kind, count=join(each)) for (name, kind), each in counts.items())
