"""Objects as informers hold them, pods that belong to them, and members that count how often they are looked at."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from slurm_bridge import errors
from slurm_bridge.informers.store import Store
from slurm_bridge.model import kinds, names
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.ports import Gone, Put
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.workloads import base, kind_table, known
from slurm_bridge.workloads.given import Given
from slurm_bridge.workloads.known import Options
from slurm_bridge.workloads.owners import Owners

T = TypeVar("T", bound=Object)

GANG = {names.ANNOTATION_GANG: "true"}
NO_GANG = {names.ANNOTATION_GANG: "false"}


class Server:
    """A reader of objects that nobody has heard of: some are there, and it counts how often it is asked."""

    def __init__(self) -> None:
        self.there: dict[tuple[Kind[Any], str, str], Object] = {}
        self.asked = 0
        self.silent = False

    def served(self, kind: Kind[T], /) -> str | None:
        """It serves everything."""
        return kind.versions[0]

    def get(self, kind: Kind[T], namespace: str, name: str, /) -> T | None:
        """What is there, unless it does not answer."""
        self.asked += 1
        if self.silent:
            raise errors.Unavailable("no answer")
        return self.there.get((kind, namespace, name))  # type: ignore[return-value]


class Members:
    """Pods that want a node; `looked` counts how many were handed out."""

    def __init__(self, *pods: Pod) -> None:
        self._pods = [pod for pod in pods if known.wants_node(pod)]
        self.looked = 0

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: Pod) -> None:
        """One more."""
        self._pods.append(pod)

    def any(self) -> Pod:
        """The first."""
        self.looked += 1
        if not self._pods:
            raise LookupError("no member")
        return self._pods[0]

    def all(self) -> Sequence[Pod]:
        """Each of them, in no useful order."""
        self.looked += len(self._pods)
        return tuple(reversed(self._pods))


class Heard:
    """A world in memory: put objects, make pods, claim and gather them."""

    def __init__(self, *served: Kind[Any], options: Options | None = None) -> None:
        self.server, self.options = Server(), options or Options()
        kinds_ = served or kind_table.WATCHED
        self.stores: dict[Kind[Any], Store[Any]] = {kind: Store(kind_table.INDEXES.get(kind)) for kind in kinds_}
        for store in self.stores.values():
            store.mark_synced()
        self.known = known.Stores(self.stores)
        self.given = Given(
            owners=Owners(self.server, VirtualClock(), known=self.known),
            options=self.options,
        )
        self._version = 0

    def put(self, kind: Kind[T], name: str, *, above: tuple[Kind[Any], Object] | None = None, **values: Any) -> T:
        """An object appears or changes; its uid is `uid-` and its name unless given."""
        made = self.made(kind, name, above=above, **values)
        self.stores[kind].take(Put(made))
        return made

    def made(self, kind: Kind[T], name: str, *, above: tuple[Kind[Any], Object] | None = None, **values: Any) -> T:
        """An object that nobody has heard of."""
        self._version += 1
        metadata = {"namespace": "default", "uid": f"uid-{name}", **values.pop("metadata", {})}
        metadata |= {key: values.pop(key) for key in ("labels", "annotations", "namespace", "uid") if key in values}
        metadata |= {"name": name, "resourceVersion": str(self._version)}
        if above is not None:
            metadata["ownerReferences"] = [reference(*above)]
        return msgspec.convert({"metadata": metadata, **values}, kind.record)

    def drop(self, kind: Kind[T], found: T) -> None:
        """It is deleted."""
        self.stores[kind].take(Gone(found))

    def pod(self, name: str, *, above: tuple[Kind[Any], Object] | None = None, **values: Any) -> Pod:
        """A pod; nothing keeps pods here."""
        return self.made(kinds.PODS, name, above=above, **values)

    def claim(self, pod: Pod) -> Root:
        """To which workload it belongs."""
        return base.claim(pod, self.given.known, self.options)

    def gather(self, *pods: Pod) -> Workload | Wait | base.Moved | None:
        """The workload of the first, of which these are the members."""
        return base.gather(self.claim(pods[0]), Members(*pods), self.given)

    def whole(self, *pods: Pod) -> Workload:
        """The same where nothing hinders it."""
        found = self.gather(*pods)
        assert isinstance(found, Workload), found
        return found

    def wait(self, *pods: Pod) -> Wait:
        """The same where something is missing."""
        found = self.gather(*pods)
        assert isinstance(found, Wait), found
        return found


def reference(kind: Kind[Any], found: Object) -> dict[str, object]:
    """How its child names it."""
    version = f"{kind.group}/{kind.versions[0]}" if kind.group else kind.versions[0]
    metadata = found.metadata
    return {"apiVersion": version, "kind": kind.kind, "name": metadata.name, "uid": metadata.uid, "controller": True}


def indexed(index: int) -> dict[str, str]:
    """The annotation of a pod of an indexed Job."""
    return {names.ANNOTATION_COMPLETION_INDEX: str(index)}
