"""Racks of machines in both schedulers, the hook over them, and groups that ask for racks."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kai.hook import Kai
from slurm_bridge.families.kai.options import KaiOptions
from slurm_bridge.families.kai.wishes import PREFERRED, REQUIRED, SUBGROUP, TOPOLOGY
from slurm_bridge.hooks import calls, registry
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.model.job import Gres
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.model.workload import Gang, Root, Source, Workload
from slurm_bridge.translate import resources
from slurm_bridge.translate.shapes import Shape
from slurm_bridge.translate.translator import Translated
from tests.unit.hooks.builders import Around, node, partition, pod, slurm_node, translated

__all__ = ["PREFERRED", "REQUIRED", "SUBGROUP", "TOPOLOGY"]

ZONE, RACK = "zone", "rack"
LEVELS = (ZONE, RACK)
OPTIONS: Mapping[str, Any] = {"topologies": [{"name": "dc", "levels": LEVELS}]}

#: Two zones of two racks of two machines.
PLACES = {f"n{number}": (f"z{number // 4 + 1}", f"r{number // 2 + 1}") for number in range(8)}


def hook(options: Mapping[str, Any] = OPTIONS, name: str = "kai") -> calls.Hook:
    """As configuration makes it."""
    return calls.Hook(name=name, hook=Kai(KaiOptions.model_validate(options)), budget_seconds=60)


def chain(around: Around, *more: calls.Hook, options: Mapping[str, Any] = OPTIONS, **others: Any) -> Chain:
    """With this hook, and maybe some before it."""
    assert "kai" in registry.BUILTIN
    return Chain([*more, hook(options)], around.make(**others))


def cluster(
    places: Mapping[str, tuple[str, ...]] = PLACES,
    *,
    used: Mapping[str, int] | None = None,
    levels: tuple[str, ...] = LEVELS,
    running: Iterable[Pod] = (),
    cpus: int = 16,
    sizes: Mapping[str, int] | None = None,
    drained: Iterable[str] = (),
    **slurm: Any,
) -> ClusterSnapshot:
    """These machines, of `cpus` each unless `sizes` says otherwise; `used` are cpus that Slurm has given to others."""
    made, has = cluster_cache.ClusterCache(resources.requests_of), {**dict.fromkeys(places, cpus), **(sizes or {})}
    for name, place in places.items():
        labels = dict(zip(levels, place, strict=True))
        made.on_node(None, node(name, labels=labels, allocatable={"cpu": str(has[name])}))
    taken = used or {}
    known: list[SlurmNode] = []
    for name in places:
        state = "IDLE DRAIN EXTERNAL" if name in drained else "MIXED EXTERNAL" if taken.get(name) else "IDLE EXTERNAL"
        known.append(slurm_node(name, states=state, cpus=has[name], used_cpus=taken.get(name, 0), **slurm))
    made.set_slurm(known, (partition("debug", *places, default=True),))
    for one in running:
        made.on_pod(None, one)
    return dataclasses.replace(made.snapshot(), heterogeneous=True)


def member(number: int, cpus: str = "8", marks: Mapping[str, str] | None = None, labels: Any = None) -> Pod:
    """One pod of a group."""
    return pod(f"p{number}", requests={"cpu": cpus}, metadata={"annotations": marks or {}, "labels": labels or {}})


def job(*pods: Pod, **marks: str) -> Workload:
    """A Job whose pods start together; `required`, `preferred` and `topology` are its annotations."""
    keys = {"required": REQUIRED, "preferred": PREFERRED, "topology": TOPOLOGY}
    said = {keys.get(key, key): value for key, value in marks.items()}
    return Workload(
        root=Root(kind="Job", namespace="team", name="train", uid="uid-train"),
        pods=pods,
        sources=(Source(kind="Job", name="train", annotations=said),),
        job_name="train",
        gang=Gang(minimum=len(pods)),
    )


def team(count: int = 4, cpus: str = "8", **marks: str) -> Workload:
    """So many equal pods."""
    return job(*(member(number, cpus) for number in range(count)), **marks)


def asked(*shapes: Shape, tasks: int = 1, gres: tuple[Gres, ...] = (), **fields: Any) -> Translated:
    """Its request."""
    return translated(shapes=shapes, tasks=tasks, gres=gres, **fields)


def planned(made: Chain, workload: Workload, seen: ClusterSnapshot, **others: Any) -> Plan:
    """The plan of a workload that gets one."""
    request = others.pop("request", None) or asked(tasks=len(workload.pods))
    plan = made.plan(workload, request, seen, now=others.pop("now", 100.0), **others)
    assert isinstance(plan, Plan), plan
    return plan


def tried(plan: Plan) -> list[str]:
    """The nodes of each attempt, in order; * is any."""
    return ["*" if one.nodes is None else " ".join(sorted(one.nodes)) for one in plan.course.attempts]
