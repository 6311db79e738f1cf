"""Which nodes have room for a pod now, as far as both sides have told: only these are worth preferring.

A node that is full, drained or reserved may be the best of all by some score, and a job that waits for it while others
are idle waits for nothing. It is no reason to exclude it: the job may have it when its turn comes.
"""

from collections.abc import Iterator

import numpy as np

from slurm_bridge.hooks.columns import Mask, NodeColumns, units
from slurm_bridge.hooks.facts import NodeFacts
from slurm_bridge.hooks.fewest import takes
from slurm_bridge.model.job import Gres, JobRequest, MemoryPer
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import resources


def now(columns: NodeColumns, pod: Pod, request: JobRequest) -> Mask:
    """The nodes that could take one such pod of this request at this moment."""
    # Who may use a reservation finds its nodes reserved, and that is where the job belongs.
    room: Mask = (columns.whole("room known", _known) if request.reservation else columns.whole("room open", _open)) > 0
    for enough in _enough(columns, pod, request):
        room = room & enough
    return room


def _enough(columns: NodeColumns, pod: Pod, request: JobRequest) -> Iterator[Mask]:
    for name, amount in resources.requests_of(pod).items():
        if amount > 0:
            yield columns.allocatable(name) - columns.used(name) >= units(name, amount)
    yield columns.whole("room cpus", _cpus) >= request.cpus_per_task
    if request.tasks == 1:
        yield columns.whole("room memory", _memory) >= _mib(request)
    for one in request.gres:
        yield _gres(columns, one) >= one.count


def _open(facts: NodeFacts) -> int:
    return int(facts.slurm is not None and takes(facts.slurm))


def _known(facts: NodeFacts) -> int:
    return int(facts.slurm is not None)


def _cpus(facts: NodeFacts) -> int:
    return facts.slurm.cpus - facts.slurm.used_cpus if facts.slurm is not None else 0


def _memory(facts: NodeFacts) -> int:
    return facts.slurm.memory_mib - facts.slurm.used_memory_mib if facts.slurm is not None else 0


def _mib(request: JobRequest) -> int:
    per_cpu = request.memory.per is MemoryPer.CPU
    return request.memory.mib * (request.cpus_per_task if per_cpu else 1)


def _gres(columns: NodeColumns, one: Gres) -> np.typing.NDArray[np.int64]:
    def free(facts: NodeFacts) -> int:
        if facts.slurm is None:
            return 0
        there, used = (
            sum(has.count for has in every if has.name == one.name and one.type in ("", has.type))
            for every in (facts.slurm.gres, facts.slurm.used_gres)
        )
        return there - used

    return columns.whole(f"room gres {one.name}:{one.type}", free)
