"""Objects and pods that do not exist yet, as they would be: with the names, marks and owners that they would get."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast

import msgspec

from slurm_bridge import errors
from slurm_bridge.model import kinds
from slurm_bridge.model.groups import Job
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object, ObjectMeta, OwnerReference
from slurm_bridge.model.pod import Pod
from slurm_bridge.workloads.kind_table import WATCHED
from slurm_bridge.workloads.known import Known
from slurm_bridge.workloads.owners import Reader

#: Stands for what the API server gives to an object that does not exist yet.
NO_UID: Final = "00000000-0000-0000-0000-000000000000"

T = TypeVar("T", bound=Object)
R = TypeVar("R", bound=Object)


class Sketch:
    """What was drawn so far. The same drawing has the same uids: zeros with a number, where none is given."""

    def __init__(self) -> None:
        self.pods: list[Pod] = []
        self._objects: dict[tuple[Kind[Any], str, str], Object] = {}
        self._origins: dict[str, str] = {}

    def add(self, kind: Kind[R], manifest: Manifest, above: tuple[Kind[Any], Object] | None = None) -> R:
        """An object, made by the one above it; BadConfiguration where it is misshapen."""
        found = _read(kind.record, named(manifest), kind.kind)
        uid = found.metadata.uid or f"00000000-0000-0000-0001-{len(self._objects):012}"
        owners = (_reference(*above),) if above is not None else found.metadata.owner_references
        metadata = msgspec.structs.replace(found.metadata, uid=uid, owner_references=owners)
        found = msgspec.structs.replace(found, metadata=metadata)
        self._objects[kind, *found.key] = found
        return found

    def pod(self, manifest: Manifest, above: tuple[Kind[Any], Object] | None, origin: str) -> Pod:
        """A pod; those of one `origin` are alike but for their place."""
        found = _read(Pod, named(manifest), kinds.PODS.kind if above is None else origin)
        uid = found.metadata.uid or f"{NO_UID[:-12]}{len(self.pods):012}"
        owners = (_reference(*above),) if above is not None else found.metadata.owner_references
        metadata = msgspec.structs.replace(found.metadata, uid=uid, owner_references=owners)
        found = msgspec.structs.replace(found, metadata=metadata)
        self.pods.append(found)
        self._objects[kinds.PODS, *found.key] = found
        self._origins[uid] = origin
        return found

    def origin(self, pod: Pod) -> str:
        """What the pod was made from."""
        return self._origins[pod.uid]

    def has(self, kind: Kind[Any]) -> bool:
        """Something of this kind was drawn."""
        return any(drawn is kind for drawn, _, _ in self._objects)

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """What was drawn under this name."""
        return cast("T | None", self._objects.get((kind, namespace, name)))


class Drawn:
    """Implements Known over a sketch, and where that shows nothing over what is there."""

    def __init__(self, sketch: Sketch, beneath: Known) -> None:
        self._sketch, self._beneath = sketch, beneath

    def served(self, kind: Kind[T]) -> bool:
        """What somebody draws, a cluster has to serve."""
        return (kind in WATCHED and self._sketch.has(kind)) or self._beneath.served(kind)

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """The drawing comes first: it is what is to be."""
        return self._sketch.find(kind, namespace, name) or self._beneath.find(kind, namespace, name)

    def spent(self, namespace: str, run: str) -> Sequence[Job]:
        """What is only drawn has not begun."""
        return self._beneath.spent(namespace, run)


class Drawing:
    """Implements Reader over a sketch, and where that shows nothing over the server, if there is one."""

    def __init__(self, sketch: Sketch, server: Reader | None) -> None:
        self._sketch, self._server = sketch, server

    def served(self, kind: Kind[T]) -> str | None:
        """Without a server, whatever we can read."""
        return kind.versions[0] if self._server is None else self._server.served(kind)

    def get(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """The drawing comes first; what nobody has looked at is refused, not missing."""
        drawn = self._sketch.find(kind, namespace, name)
        if drawn is not None:
            return drawn
        if self._server is None:
            raise errors.Disagreement("offline it was not looked at; what it says may win over what the pod says")
        return self._server.get(kind, namespace, name)


def named(manifest: Manifest) -> Manifest:
    """With what the API server fills in where the user says nothing."""
    metadata = manifest.get("metadata") or {}
    name = metadata.get("name") or f"{metadata.get('generateName', '')}xxxxx"
    given = {**metadata, "name": name, "namespace": metadata.get("namespace") or "default"}
    return {**manifest, "metadata": given}


def _reference(kind: Kind[Any], found: Object) -> OwnerReference:
    meta: ObjectMeta = found.metadata
    version = f"{kind.group}/{kind.versions[0]}" if kind.group else kind.versions[0]
    return OwnerReference(api_version=version, kind=kind.kind, name=meta.name, uid=meta.uid, controller=True)


def _read(record: type[R], manifest: Manifest, what: str) -> R:
    """Strictly: what is no text here, the API server would refuse."""
    try:
        return msgspec.convert(manifest, record)
    except msgspec.ValidationError as error:
        name = manifest["metadata"].get("name", "")
        raise errors.BadConfiguration(f"{what} {name}: {error}") from error
