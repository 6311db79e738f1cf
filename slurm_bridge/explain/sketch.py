"""Objects and pods that do not exist yet, with the names, labels, annotations and owners that they would get."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast

import msgspec

from slurm_bridge import errors
from slurm_bridge.model import kinds
from slurm_bridge.model.groups import Job
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Manifest, Object, OwnerReference
from slurm_bridge.model.pod import Pod
from slurm_bridge.workloads import draft
from slurm_bridge.workloads.kind_table import WATCHED
from slurm_bridge.workloads.known import Known
from slurm_bridge.workloads.owners import Reader

#: Stands for the uid that the API server will assign.
NO_UID: Final = "00000000-0000-0000-0000-000000000000"

T = TypeVar("T", bound=Object)
R = TypeVar("R", bound=Object)


class Sketch:
    """The objects drawn so far. Missing uids are zeros with a number, so that the same drawing has the same uids."""

    def __init__(self) -> None:
        self.pods: list[Pod] = []
        self._objects: dict[tuple[Kind[Any], str, str], Object] = {}
        self._origins: dict[str, str] = {}

    def add(self, kind: Kind[R], manifest: Manifest, above: tuple[Kind[Any], Object] | None = None) -> R:
        """Add an object that the one above creates; BadConfiguration if it is malformed."""
        return self._draw(kind, manifest, above, kind.kind, f"00000000-0000-0000-0001-{len(self._objects):012}")

    def pod(self, manifest: Manifest, above: tuple[Kind[Any], Object] | None, origin: str) -> Pod:
        """Add a pod; pods of one `origin` differ only in their position."""
        called = kinds.PODS.kind if above is None else origin
        found = self._draw(kinds.PODS, manifest, above, called, f"{NO_UID[:-12]}{len(self.pods):012}")
        self.pods.append(found)
        self._origins[found.uid] = origin
        return found

    def _draw(
        self, kind: Kind[R], manifest: Manifest, above: tuple[Kind[Any], Object] | None, called: str, uid: str
    ) -> R:
        """Strict: a value that is no string here would be refused by the API server as well."""
        manifest = named(manifest)
        if max(len(self._objects), len(self.pods)) >= draft.MOST:
            whole = f"these manifests make more than {draft.MOST} pods and other objects, the most that is drawn"
            raise errors.BadConfiguration(f"{called} {manifest['metadata']['name']}: {whole}")
        try:
            found = msgspec.convert(manifest, kind.record)
        except msgspec.ValidationError as error:
            raise errors.BadConfiguration(f"{called} {manifest['metadata'].get('name', '')}: {error}") from error
        owners = found.metadata.owner_references
        if above is not None:
            owner, meta = above[0], above[1].metadata
            version = f"{owner.group}/{owner.versions[0]}" if owner.group else owner.versions[0]
            reference = OwnerReference(
                api_version=version, kind=owner.kind, name=meta.name, uid=meta.uid, controller=True
            )
            owners = (reference,)
        metadata = msgspec.structs.replace(found.metadata, uid=found.metadata.uid or uid, owner_references=owners)
        found = msgspec.structs.replace(found, metadata=metadata)
        self._objects[kind, *found.key] = found
        return found

    def origin(self, pod: Pod) -> str:
        """What the pod was made from."""
        return self._origins[pod.uid]

    def has(self, kind: Kind[Any]) -> bool:
        """Whether an object of this kind was drawn."""
        return any(drawn is kind for drawn, _, _ in self._objects)

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """The drawn object of this name."""
        return cast("T | None", self._objects.get((kind, namespace, name)))


class SketchKnown:
    """Implements Known on a sketch; what is not drawn is looked up in the Known beneath."""

    def __init__(self, sketch: Sketch, beneath: Known) -> None:
        self._sketch, self._beneath = sketch, beneath

    def served(self, kind: Kind[T]) -> bool:
        """A kind that is drawn counts as served."""
        return (kind in WATCHED and self._sketch.has(kind)) or self._beneath.served(kind)

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """A drawn object comes before an existing one: it is the new state."""
        return self._sketch.find(kind, namespace, name) or self._beneath.find(kind, namespace, name)

    def spent(self, namespace: str, run: str) -> Sequence[Job]:
        """A drawn object has no finished Jobs."""
        return self._beneath.spent(namespace, run)


class SketchReader:
    """Implements Reader on a sketch; what is not drawn is read from the server, if there is one."""

    def __init__(self, sketch: Sketch, server: Reader | None) -> None:
        self._sketch, self._server = sketch, server

    def served(self, kind: Kind[T]) -> str | None:
        """Without a server, every kind that we can read."""
        return kind.versions[0] if self._server is None else self._server.served(kind)

    def get(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """A drawn object comes first. Without a server, anything else is refused instead of reported as missing."""
        drawn = self._sketch.find(kind, namespace, name)
        if drawn is not None:
            return drawn
        if self._server is None:
            raise errors.Disagreement("it was not read offline; its values may override those of the pod")
        return self._server.get(kind, namespace, name)


def named(manifest: Manifest) -> Manifest:
    """Fill in the name and the namespace, as the API server does."""
    metadata = manifest.get("metadata") or {}
    name = metadata.get("name") or f"{metadata.get('generateName', '')}xxxxx"
    given = {**metadata, "name": name, "namespace": metadata.get("namespace") or "default"}
    return {**manifest, "metadata": given}
