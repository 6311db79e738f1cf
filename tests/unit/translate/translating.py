"""Builders: a workload of one pod, a configuration, and Slurm's facts."""

from collections.abc import Mapping
from typing import Any

import msgspec

from slurm_bridge.model import job, meta, names, pod, slurmnode, verdict, workload
from slurm_bridge.translate import limits, rules, translator

Amounts = Mapping[str, str | int | float]


def container(
    requests: Amounts | None = None, limits: Amounts | None = None, *, name: str = "main", sidecar: bool = False
) -> pod.Container:
    """One container; a sidecar is an init container that stays."""
    needs = pod.ResourceNeeds(requests=dict(requests or {}), limits=dict(limits or {}))
    return pod.Container(name=name, resources=needs, restart_policy="Always" if sidecar else None)


def one_pod(*containers: pod.Container, **spec: Any) -> pod.Pod:
    """Pod team/web-0; without containers, one that asks for nothing."""
    metadata = meta.ObjectMeta(name="web-0", namespace="team", uid="uid-0")
    return pod.Pod(metadata=metadata, spec=pod.PodSpec(containers=containers or (container(),), **spec))


def members(count: int, *containers: pod.Container, first: int = 0, **spec: Any) -> tuple[pod.Pod, ...]:
    """Equal pods team/web-0, team/web-1 ... with uids of the same numbers."""
    return tuple(renamed(one_pod(*containers, **spec), number) for number in range(first, first + count))


def renamed(pod_: pod.Pod, number: int, **metadata: Any) -> pod.Pod:
    """The same pod as member `number`."""
    changed = msgspec.structs.replace(pod_.metadata, name=f"web-{number}", uid=f"uid-{number}", **metadata)
    return msgspec.structs.replace(pod_, metadata=changed)


def asking(cpus: int = 1, memory: str = "1Gi", gpus: int = 0) -> pod.Container:
    """A container that requests so much."""
    devices = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return container({"cpu": str(cpus), "memory": memory}, devices)


def keys(**values: str) -> dict[str, str]:
    """`max_nodes="3"` as it stands in a manifest."""
    return {names.JOB_PREFIX + key.replace("_", "-"): value for key, value in values.items()}


def a_workload(
    pod_: pod.Pod | None = None,
    annotations: Mapping[str, str] | None = None,
    *more: tuple[str, Mapping[str, str]],
    controller: str = "",
) -> workload.Workload:
    """Pod team/web-0 with these annotations; `more` are stronger voices, kind and annotations."""
    sources = [workload.Source(kind="Pod", name="web-0", annotations=annotations or {})]
    sources += [workload.Source(kind=kind, name="web", annotations=said) for kind, said in more]
    return workload.Workload(
        root=workload.Root(kind="Pod", namespace="team", name="web-0", uid="uid-0"),
        pods=(pod_ or one_pod(),),
        sources=tuple(sources),
        job_name="web",
        controller=workload.Root(kind=controller, namespace="team", name="web", uid="u") if controller else None,
    )


def a_gang(
    pods: tuple[pod.Pod, ...], annotations: Mapping[str, str] | None = None, *, minimum: int | None = None
) -> workload.Workload:
    """Job team/web with these pods and annotations."""
    return workload.Workload(
        root=workload.Root(kind="Job", namespace="team", name="web", uid="job-uid"),
        pods=pods,
        sources=(workload.Source(kind="Job", name="web", annotations=annotations or {}),),
        job_name="web",
        gang=workload.Gang(minimum=minimum or len(pods)),
    )


def gang(
    pods: tuple[pod.Pod, ...], annotations: Mapping[str, str] | None = None, **values: Any
) -> translator.Translated:
    """What a good gang becomes, before its form is settled."""
    found = translator.translate(a_gang(pods, annotations), configured(**values))
    assert isinstance(found, translator.Translated), found
    return found


def configured(**values: Any) -> rules.Rules:
    """The shipped defaults, except for these."""
    return rules.Rules(**{"cluster_id": "here", **values})


def translated(
    pod_: pod.Pod | None = None, annotations: Mapping[str, str] | None = None, **values: Any
) -> translator.Translated:
    """What a good workload becomes."""
    found = translator.translate(a_workload(pod_, annotations), configured(**values))
    assert isinstance(found, translator.Translated), found
    return found


def request(pod_: pod.Pod | None = None, annotations: Mapping[str, str] | None = None, **values: Any) -> job.JobRequest:
    """Only the request."""
    return translated(pod_, annotations, **values).request


def rejected(workload_: workload.Workload, **values: Any) -> verdict.Reject:
    """Why a bad workload is refused."""
    found = translator.translate(workload_, configured(**values))
    assert isinstance(found, verdict.Reject), found
    return found


def partition(name: str, **fields: Any) -> slurmnode.Partition:
    """One that is up and has no limits."""
    return slurmnode.Partition(**{"name": name, "states": frozenset({"UP"}), "nodes": ("n1",), **fields})


def node(
    name: str = "n1", gres: tuple[job.Gres, ...] = (), partitions: tuple[str, ...] = ("debug",), **fields: Any
) -> slurmnode.SlurmNode:
    """One of Slurm's nodes."""
    usual = {"states": frozenset({"IDLE", "EXTERNAL"}), "cpus": 64, "memory_mib": 256000}
    return slurmnode.SlurmNode(name=name, gres=gres, partitions=partitions, **{**usual, **fields})


def facts(
    *partitions: slurmnode.Partition, nodes: tuple[slurmnode.SlurmNode, ...] = (), heterogeneous: bool = False
) -> limits.SlurmFacts:
    """What Slurm has; `debug` with one node unless said otherwise, and all of these nodes in `debug`."""
    there = nodes or (node(),)
    debug = partition("debug", nodes=tuple(one.name for one in there))
    return limits.SlurmFacts(partitions=partitions or (debug,), nodes=there, heterogeneous=heterogeneous)


def equal_nodes(count: int, gpus: int = 0, kind: str = "", **fields: Any) -> tuple[slurmnode.SlurmNode, ...]:
    """Nodes n1, n2 ... with so many GPUs each."""
    gres = (job.Gres(name="gpu", type=kind, count=gpus),) if gpus else ()
    return tuple(node(f"n{number}", gres, **fields) for number in range(1, count + 1))
