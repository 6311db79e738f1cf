"""Which nodes are kept for a workload: those that would hold it and are the first to be free. Pure.

Of the nodes on which Slurm may start its job now, the least used ones, as many as hold all of its tasks once they are
empty of all other jobs. What pods that Slurm knows nothing of use is never free.
"""

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from slurm_bridge.cluster.facts import NOTHING, Amounts, NodeFacts
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks import emitter
from slurm_bridge.model.job import JobView, MemoryPer, Phase
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.scheduler.eviction import preemptors, sites
from slurm_bridge.translate import layout, resources, shapes
from slurm_bridge.translate.shapes import Needs, Shape

_NO_ENDS: Mapping[str, int] = {}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What each task of a job needs: in Slurm, and in Kubernetes."""

    needs: Needs
    amounts: Amounts


def allowed(view: JobView, snapshot: ClusterSnapshot) -> frozenset[str]:
    """Slurm's names of the nodes that this job may come to, as it is asked for now."""
    within = emitter.members(snapshot, view.partition).difference(view.excluded_nodes)
    return within.intersection(view.required_nodes) if view.required_nodes else within


def task(alike: Sequence[Shape], view: JobView) -> Task:
    """Pods that differ are asked for as the largest; of fewer tasks than pods each is several pods."""
    pods = sum(len(shape.pods) for shape in alike)
    each = -(-pods // max(1, view.tasks or 1))
    needs = shapes.times(shapes.bound(shapes.kinds(alike)), each)
    node = view.memory.mib if view.memory is not None and view.memory.per is MemoryPer.NODE else 0
    amounts: dict[str, Fraction] = {}
    for shape in alike:
        for name, amount in resources.requests_of(shape.pods[0]).items():
            amounts[name] = max(amount * each, amounts.get(name, NOTHING))
    largest = dataclasses.replace(
        needs, cpus=max(needs.cpus, view.cpus_per_task or 1), memory_mib=max(needs.memory_mib, node)
    )
    return Task(needs=largest, amounts=amounts)


def choose(
    one: Task,
    view: JobView,
    facts: Iterable[NodeFacts],
    *,
    last: Collection[str] = frozenset(),
    ends: Mapping[str, int] = _NO_ENDS,
) -> tuple[str, ...]:
    """Slurm's names of nodes of these that hold all tasks, as many as the job may have; none where they do not.

    Those that come `last` were kept before, and were not free in time; of nodes that are used equally the one whose
    jobs have to end first is the first, where that is known.
    """
    tasks, least, most = view.tasks or 1, view.minimum_nodes or 1, view.maximum_nodes or view.tasks or 1
    rooms = {there.slurm_name: (there, room(one, there)) for there in facts}
    usable = [there for there, number in rooms.values() if number >= -(-tasks // most)]
    chosen: list[str] = []
    found = 0
    for there in sorted(usable, key=lambda there: (there.slurm_name in last, *_when_free(there, ends))):
        if found >= tasks and len(chosen) >= least:
            break
        chosen.append(there.slurm_name)
        found += rooms[there.slurm_name][1]
    enough = found >= tasks and least <= len(chosen) <= most
    return tuple(sorted(chosen)) if enough else ()


def room(one: Task, facts: NodeFacts) -> int:
    """How many tasks it holds when all jobs that Slurm knows have gone."""
    slurm = facts.slurm
    if slurm is None or sites.closed(slurm):
        return 0
    found = layout.room_of_tasks(one.needs, slurm)
    for name, amount in one.amounts.items():
        if amount > 0:
            strangers = facts.used.get(name, NOTHING) - facts.placed.get(name, NOTHING)
            found = min(found, int((facts.allocatable.get(name, NOTHING) - strangers) // amount))
    return max(0, found)


def _when_free(facts: NodeFacts, ends: Mapping[str, int]) -> tuple[Fraction, float, str]:
    """The less of it is used, the fewer jobs have to end; equal ones by name, so that every daemon finds the same."""
    slurm = facts.slurm
    assert slurm is not None
    return Fraction(slurm.used_cpus, max(1, slurm.cpus)), ends.get(facts.slurm_name) or math.inf, facts.slurm_name


def supported(view: JobView) -> bool:
    """It waits for nodes; Slurm alone knows where features are, and what others have reserved for it."""
    beyond = view.constraints or view.reservation or view.licenses
    return preemptors.waits_for_nodes(view) and not beyond and view.het_job_id is None


def ends_of(alive: Iterable[Placeholder]) -> Mapping[str, int]:
    """When the last of our jobs ends on each node at the latest, where Slurm has said so."""
    found: dict[str, int] = {}
    for one in alive:
        view = one.view
        if view is not None and one.phase is Phase.RUNNING and view.state.phase is Phase.RUNNING:
            found |= {node: max(view.end_time, found.get(node, 0)) for node in view.nodes or ()}
    return found
