"""What is explained: a pod that exists, or the one that a manifest would lead to."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from slurm_bridge import errors
from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object, ObjectMeta, OwnerReference
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Workload
from slurm_bridge.workloads import base
from slurm_bridge.workloads.owners import Chain, Link

#: Stands for what the API server gives to an object that does not exist yet.
NO_UID = "00000000-0000-0000-0000-000000000000"

#: Objects that make pods from `spec.template`.
MAKERS: Mapping[tuple[str, str], Kind[Any]] = {
    (kind.group, kind.kind): kind
    for kind in (kinds.JOBS, kinds.REPLICASETS, kinds.STATEFULSETS, kinds.DEPLOYMENTS, kinds.DAEMONSETS)
}

#: Finds the owners above a pod.
Resolve = Callable[[Pod], Chain]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """`title` names it for people; `exists`: the cluster has it, so that its uid and its placeholder are real."""

    title: str
    pod: Pod
    workload: Workload
    exists: bool = False
    notes: tuple[str, ...] = ()


def of_pod(pod: Pod, resolve: Resolve) -> Subject:
    """A pod that exists. One that is bound is explained as if it were to be scheduled now."""
    chain = resolve(pod)
    state = _state(pod)
    waiting = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
    return Subject(
        title=f"Pod {'/'.join(pod.key)}",
        pod=pod,
        workload=gather(waiting, chain),
        exists=True,
        notes=(*state, *_problem(chain)),
    )


def of_manifest(manifest: Manifest, resolve: Resolve) -> Subject | None:
    """What this object leads to, None for one that makes no pods; BadConfiguration where it is misshapen."""
    group, _, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    if (group, manifest["kind"]) == (kinds.PODS.group, kinds.PODS.kind):
        return _bare(manifest, resolve)
    maker = MAKERS.get((group, manifest["kind"]))
    return _made(manifest, maker) if maker is not None else None


def gather(pod: Pod, chain: Chain) -> Workload:
    """The workload that the pod is, as the scheduler would gather it."""
    kind = next(kind for kind in base.KINDS if kind.claim(pod) is not None)
    return kind.gather(pod, chain)


def _bare(manifest: Manifest, resolve: Resolve) -> Subject:
    pod = _read(Pod, _named(manifest), "Pod")
    chain = resolve(pod)
    return Subject(
        title=f"Pod {'/'.join(pod.key)}", pod=pod, workload=gather(pod, chain), notes=(*_later(), *_problem(chain))
    )


def _made(manifest: Manifest, maker: Kind[Any]) -> Subject:
    """Through the pod that its template makes."""
    owner = _read(maker.record, _named(manifest), maker.kind)
    meta: ObjectMeta = owner.metadata
    template = (manifest.get("spec") or {}).get("template") or {}
    reference = OwnerReference(
        api_version=f"{maker.group}/{maker.versions[0]}",
        kind=maker.kind,
        name=meta.name,
        uid=meta.uid or NO_UID,
        controller=True,
    )
    pod = _read(Pod, {"metadata": template.get("metadata") or {}, "spec": template.get("spec") or {}}, maker.kind)
    named = msgspec.structs.replace(
        pod.metadata, name=f"{meta.name}-xxxxx", namespace=meta.namespace, uid=NO_UID, owner_references=(reference,)
    )
    pod = msgspec.structs.replace(pod, metadata=named)
    chain = Chain(links=(Link(kind=maker, object=owner),))
    return Subject(
        title=f"{maker.kind} {meta.namespace}/{meta.name}, through a pod that it makes",
        pod=pod,
        workload=gather(pod, chain),
        notes=(*_later(), *_suspended(manifest)),
    )


def _named(manifest: Manifest) -> Manifest:
    """With what the API server fills in where the user says nothing."""
    metadata = manifest["metadata"]
    name = metadata.get("name") or f"{metadata.get('generateName', '')}xxxxx"
    given = {**metadata, "name": name, "namespace": metadata.get("namespace") or "default"}
    return {**manifest, "metadata": {**given, "uid": metadata.get("uid") or NO_UID}}


def _read(record: type[Any], manifest: Manifest, what: str) -> Any:
    """Strictly: what is no text here, the API server would refuse."""
    try:
        found: Object = msgspec.convert(manifest, record)
    except msgspec.ValidationError as error:
        name = manifest["metadata"].get("name", "")
        raise errors.BadConfiguration(f"{what} {name}: {error}") from error
    return found


def _later() -> tuple[str, ...]:
    return ("its uid, and with it the job id, are given when the pod is created; zeros stand for them here",)


def _suspended(manifest: Manifest) -> tuple[str, ...]:
    suspended = (manifest.get("spec") or {}).get("suspend") is True
    return ("it is suspended: it makes no pod before somebody sets spec.suspend to false",) if suspended else ()


def _problem(chain: Chain) -> tuple[str, ...]:
    return (f"owners: {chain.problem}",) if chain.problem else ()


def _state(pod: Pod) -> tuple[str, ...]:
    if pod.terminal:
        return (f"it is over ({pod.status.phase}); what follows is what would be asked for it today",)
    if pod.terminating:
        return ("it is being deleted; what follows is what would be asked for it today",)
    if pod.bound:
        return (f"it is bound to node {pod.spec.node_name}; what follows is what would be asked for it today",)
    return ()
