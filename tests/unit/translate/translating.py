"""Builders: a workload of one pod, a configuration, and Slurm's facts."""

from collections.abc import Mapping
from typing import Any

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
    name: str = "n1", gres: tuple[job.Gres, ...] = (), partitions: tuple[str, ...] = ("debug",)
) -> slurmnode.SlurmNode:
    """One of Slurm's nodes."""
    states = frozenset({"IDLE", "EXTERNAL"})
    return slurmnode.SlurmNode(name=name, states=states, cpus=64, memory_mib=256000, gres=gres, partitions=partitions)


def facts(*partitions: slurmnode.Partition, nodes: tuple[slurmnode.SlurmNode, ...] = ()) -> limits.SlurmFacts:
    """What Slurm has; `debug` with one node unless said otherwise."""
    return limits.SlurmFacts(partitions=partitions or (partition("debug"),), nodes=nodes or (node(),))
