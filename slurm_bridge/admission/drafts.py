"""The workloads of pods that do not exist yet: as far as a pod, or the template of one, tells on its own.

Objects that a pod refers to are not read: their content may be secret to a user with the right to create pods. So a pod
of a group counts as a member of a group of any size, and only what is wrong with every group is found.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import msgspec

from slurm_bridge.admission import templates
from slurm_bridge.model import kinds
from slurm_bridge.model.groups import Job
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Gang, Workload
from slurm_bridge.workloads import base, kind_table, voices
from slurm_bridge.workloads.chain import OwnerChain, OwnerLink
from slurm_bridge.workloads.draft import random_name
from slurm_bridge.workloads.given import Given
from slurm_bridge.workloads.known import NOTHING, Known, Options

T = TypeVar("T", bound=Object)

#: The group of a pod says how many pods it has. That is unknown here, so no number is refused.
_ANY_NUMBER: Final = 1_000_000

#: Their parts are gangs in ways that the labels of their controllers tell.
_GANGS: Final = (kinds.JOBSETS, kinds.LEADERWORKERSETS)

_BY_NAME: Final[Mapping[tuple[str, str], Kind[Any]]] = {(kind.group, kind.kind): kind for kind in kind_table.RESOURCES}


class UnreadableManifest(Exception):
    """An object has a field that the bridge cannot read; the message names it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """The object that will make pods from a template."""

    kind: Kind[Any]
    object: Object


def kind_of(group: str, kind: str) -> Kind[Any]:
    """The kind of this name; one of which only metadata is read where the bridge does not know it."""
    known = _BY_NAME.get((group, kind))
    return known or Kind(group=group, versions=(), plural="", kind=kind, record=Object, custom=True)


def read(kind: Kind[T], manifest: Mapping[str, Any], namespace: str, name: str) -> T:
    """The object, with the name and namespace that it will have. UnreadableManifest names a field."""
    metadata = manifest.get("metadata")
    named = {**(metadata if isinstance(metadata, Mapping) else {}), "namespace": namespace, "name": name}
    try:
        return msgspec.convert(_said({**manifest, "metadata": named}), kind.record)
    except msgspec.ValidationError as error:
        raise UnreadableManifest(f"{kind.kind} {namespace}/{name}: {error}") from error


def from_template(template: templates.PodTemplate, maker: Maker) -> Pod:
    """A pod as the controller of its maker will make it."""
    metadata = template.content.get("metadata")
    head = maker.object.metadata
    reference = {
        "apiVersion": f"{maker.kind.group}/{maker.kind.versions[0] if maker.kind.versions else 'v1'}",
        "kind": maker.kind.kind,
        "name": head.name,
        "uid": head.uid,
        "controller": True,
    }
    named = {**(metadata if isinstance(metadata, Mapping) else {}), "ownerReferences": [reference]}
    manifest = {"metadata": named, "spec": template.spec}
    return read(kinds.PODS, manifest, head.namespace, random_name(head.name))


def workload_of(pod: Pod, options: Options, maker: Maker | None = None) -> Workload | str:
    """The workload of a pod that stands alone or will be made by `maker`, or what is wrong with its group."""
    further = [name for name in base.handles(pod) if maker is None or name != maker.object.metadata.name]
    if further or (maker is not None and maker.kind in _GANGS):
        above = () if maker is None else (voices.source(maker.kind, maker.object),)
        return Workload(
            root=voices.itself(pod),
            pods=(pod,),
            sources=(voices.own(pod), *above),
            job_name=pod.metadata.name,
            gang=Gang(minimum=_ANY_NUMBER),
        )
    given = Given(owners=_MakerChain(maker), options=options, started=True)
    root = base.claim(pod, given.known, options)
    found = base.gather(root, _SinglePod(pod), given, started=True)
    if isinstance(found, Workload):
        return found
    return found.message if isinstance(found, Wait) else ""


class _SinglePod:
    """A Members record of one pod."""

    def __init__(self, pod: Pod) -> None:
        self._pod = pod

    def __len__(self) -> int:
        return 1

    def any(self) -> Pod:
        return self._pod

    def all(self) -> Sequence[Pod]:
        return (self._pod,)


class _MakerChain:
    """OwnerChains of one object, which is all that is known."""

    def __init__(self, maker: Maker | None) -> None:
        self._maker = maker
        self.known: Known = NOTHING if maker is None else _OneJob(maker.object)

    def resolve(self, _pod: Pod) -> OwnerChain:
        if self._maker is None:
            return OwnerChain()
        kind = self._maker.kind
        spec = kind_table.SPECS.get(kind)
        link = OwnerLink(kind=kind, object=self._maker.object, speaks=spec is not None and spec.owner, controls=True)
        return OwnerChain(links=(link,))


class _OneJob:
    """Knows this object if it is a Job: the Job decides whether its pods are a gang."""

    def __init__(self, found: Object) -> None:
        self._found = found

    def served(self, kind: Kind[T]) -> bool:
        return kind is kinds.JOBS

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        ours = kind is kinds.JOBS and isinstance(self._found, Job) and self._found.key == (namespace, name)
        return cast("T | None", self._found) if ours else None

    def spent(self, _namespace: str, _run: str) -> Sequence[Job]:
        return ()


def _said(value: Any) -> Any:
    """Drop null values: the API server treats them as absent."""
    if isinstance(value, dict):
        return {key: _said(inner) for key, inner in value.items() if inner is not None}
    return [_said(inner) for inner in value] if isinstance(value, list) else value
