"""What is asked of the arithmetic for a workload: its tasks, and where others of it run."""

import collections
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from slurm_bridge.cluster.columns import NodeColumns, Numbers, units
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kai.choice import PlacementQuery, Task
from slurm_bridge.families.kai.present import TYPES
from slurm_bridge.families.kai.stock import Stock
from slurm_bridge.families.kai.topology import Amounts, TaskOwner
from slurm_bridge.families.kai.wishes import Wish
from slurm_bridge.hooks.base import Ask, Nodes
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate import resources


def asked(seen: ClusterSnapshot, ask: Ask, pods: Sequence[Pod]) -> PlacementQuery:
    """Of these pods, which are those of the workload, and in a simulation maybe others."""
    root = ask.workload.root
    return PlacementQuery(
        job=TaskOwner(namespace=root.namespace, name=root.name),
        tasks=_tasks(ask, pods),
        active=active(seen.columns, ask.workload),
        components=len(ask.shapes) > 1,
        apart=seen.heterogeneous and len(ask.shapes) > 1,
    )


def by_row(columns: NodeColumns, scores: Mapping[str, int]) -> Numbers:
    """The same scores by row, for comparing all nodes."""
    rows = np.fromiter((columns.members.index[name] for name in scores), np.intp, len(scores))
    values, mask = np.zeros(len(columns), np.int64), np.zeros(len(columns), np.bool_)
    values[rows], mask[rows] = np.fromiter(scores.values(), np.int64, len(scores)), True
    return Numbers(columns, lambda: (values, mask))


def enough(columns: NodeColumns, stock: Stock, scores: Numbers, asked: PlacementQuery) -> int:
    """How many of the best nodes have room for all tasks together, as amounts; domains are not cut."""
    points = scores.values_of(columns)
    chosen = np.argsort(-points, kind="stable")[: len(scores)]
    wanted = collections.Counter[str]()
    for task in asked.tasks:
        wanted.update(task.amounts)
    needed = [int(np.searchsorted(np.cumsum(stock.free(kind)[chosen]), most)) + 1 for kind, most in wanted.items()]
    last = min(max(needed, default=1), len(chosen)) - 1
    return int(np.count_nonzero(points >= points[chosen[last]]))


def _tasks(ask: Ask, pods: Sequence[Pod]) -> tuple[Task, ...]:
    """Pods of one shape are looked at once."""
    shape_of = {pod.uid: place for place, shape in enumerate(ask.shapes) for pod in shape.pods}
    known: dict[int | str, Amounts] = {}
    found = []
    for pod in pods:
        key = shape_of.get(pod.uid, pod.uid)
        if key not in known:
            # That there may be only so many pods on a node is counted apart.
            asked_for = ((name, most) for name, most in resources.requests_of(pod).items() if most > 0)
            known[key] = {TYPES.get(name, name): units(name, most) for name, most in asked_for if name != "pods"}
        found.append(Task(amounts=known[key], uid=pod.uid))
    return tuple(found)


def active(columns: NodeColumns, workload: Workload) -> Callable[[Wish], Nodes]:
    """The nodes where pods of the same makers run that a wish is about: a member made anew goes to the others."""
    makers = {maker for pod in workload.pods if (maker := _maker(pod))} if workload.gang is not None else set()
    if not makers:
        return lambda _wish: frozenset()
    pods = columns.pods
    living = pods.attribute("kai maker", lambda pod: "" if pod.terminal else _maker(pod))
    here: list[int] = np.flatnonzero(living.among(makers) & pods.present).tolist()

    def about(wish: Wish) -> Nodes:
        rows = here
        if rows and wish.within is not None:
            mine = {pod.uid for pod in wish.pods}
            rows = [row for row in rows if (pod := pods.pods[row]) and (pod.uid in mine or wish.means(pod))]
        return frozenset(columns.names[pods.node_rows[rows]].tolist())

    return about


def _maker(pod: Pod) -> str:
    """Its controller, as it says: it counts among pods of its own namespace only."""
    uid = next((one.uid for one in pod.metadata.owner_references if one.controller), "")
    return f"{pod.metadata.namespace}/{uid}" if uid else ""
