"""The verbs that change objects: identity, versions, generations, preconditions, finalizers, deletion."""

import dataclasses
import random
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from slurm_bridge import ports
from slurm_bridge.sim.kube import checks, defaults, refusals, resources
from slurm_bridge.sim.kube.ownership import Ownership
from slurm_bridge.sim.kube.resources import Resource
from slurm_bridge.sim.kube.store import Manifest, ObjectStore, StoredObject

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"

Change = Callable[[Manifest], Manifest]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ObjectTarget:
    """An object, and the subresource through which it is changed ("" or "status")."""

    resource: Resource
    namespace: str
    name: str
    subresource: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The options of a DELETE."""

    uid: str = ""
    version: str = ""
    grace: int | None = None
    propagation: str = ""


class Objects:
    """Objects and the rules for changing them."""

    def __init__(self, store: ObjectStore, clock: ports.Clock, *, seed: int = 0) -> None:
        self.store = store
        self.clock = clock
        self.ownership = Ownership()
        #: Fields of any status that are dropped without a word, because a feature gate is off.
        self.gated_off: frozenset[str] = frozenset()
        self._dice = random.Random(seed)

    def now(self, ahead: float = 0.0) -> str:
        """The current time as it is written into objects."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.clock.wall() + ahead))

    def existing(self, target: ObjectTarget) -> StoredObject:
        """The object, or the refusal that it does not exist."""
        stored = self.store.get(target.resource, target.namespace, target.name)
        if stored is None:
            raise refusals.not_found(target.resource, target.name)
        return stored

    def create(self, resource: Resource, namespace: str, manifest: Mapping[str, Any]) -> StoredObject:
        """A new object with defaults, checked."""
        new = {name: value for name, value in manifest.items() if name not in ("kind", "apiVersion")}
        new["metadata"] = self._fresh_metadata(resource, namespace, dict(manifest.get("metadata") or {}))
        new.setdefault("spec", {})
        if resource.has_status:
            new.pop("status", None)
        if resource.key in ("events.events.k8s.io", "configmaps"):
            new.pop("spec")
        with self.store.changed:
            self._name(resource, new["metadata"])
            self._admit(resource, namespace, new["metadata"].get("name", ""))
            checks.new(resource, new)
            defaults.fill(resource.key, new)
            return self.store.write(resource, new)

    def _fresh_metadata(self, resource: Resource, namespace: str, metadata: Manifest) -> Manifest:
        if metadata.get("resourceVersion"):
            raise refusals.plain_error("resourceVersion should not be set on objects to be created")
        if metadata.get("namespace", namespace) != namespace:
            why = "the namespace of the provided object does not match the namespace sent on the request"
            raise refusals.bad_request(why)
        if not metadata.get("name"):
            metadata.pop("name", None)
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"):
            metadata.pop(field, None)
        metadata["uid"] = str(uuid.UUID(int=self._dice.getrandbits(128), version=4))
        metadata["creationTimestamp"] = self.now()
        if resource.namespaced:
            metadata["namespace"] = namespace
        if resource.counted:
            metadata["generation"] = 1
        return metadata

    def _name(self, resource: Resource, metadata: Manifest) -> None:
        if metadata.get("name") or not metadata.get("generateName"):
            return
        while "name" not in metadata or self.store.get(resource, metadata.get("namespace", ""), metadata["name"]):
            metadata["name"] = metadata["generateName"] + "".join(self._dice.choices(_SUFFIX_LETTERS, k=5))

    def _admit(self, resource: Resource, namespace: str, name: str) -> None:
        room = self.store.get(resources.NAMESPACES, "", namespace) if resource.namespaced else None
        if resource.namespaced and room is None:
            raise refusals.not_found(resources.NAMESPACES, namespace)
        if room is not None and room.fields["status.phase"] == "Terminating":
            cause = refusals.StatusCause(
                reason="NamespaceTerminating",
                message=f"namespace {namespace} is being terminated",
                field="metadata.namespace",
            )
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise refusals.forbidden(resource, name, why, cause)
        if self.store.get(resource, namespace if resource.namespaced else "", name) is not None:
            raise refusals.already_exists(resource, name)

    def change(self, target: ObjectTarget, change: Change, *, manager: str = "") -> StoredObject:
        """Change an object through a subresource; a change without effect writes nothing."""
        resource = target.resource
        with self.store.changed:
            stored = self.existing(target)
            old = stored.manifest()
            new = self._through(target, old, change(stored.manifest()))
            if new["metadata"].get("resourceVersion") != old["metadata"]["resourceVersion"]:
                raise refusals.stale(resource, old["metadata"]["name"])
            checks.change(resource, old, new, resized=target.subresource == "resize")
            if new == old:
                return stored
            if resource.counted and old.get("spec") != new.get("spec"):
                new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
            if manager:
                self.ownership.updated(stored.uid, manager, old, new)
            return self._file(resource, new)

    def _file(self, resource: Resource, manifest: Manifest) -> StoredObject:
        metadata = manifest["metadata"]
        stopping = bool(metadata.get("deletionGracePeriodSeconds", 1))
        if "deletionTimestamp" not in metadata or metadata.get("finalizers") or stopping:
            return self.store.write(resource, manifest)
        # The answer to the write that removes the last finalizer still has the version before the removal.
        version = int(metadata["resourceVersion"])
        gone = self._remove(resource, manifest)
        metadata["resourceVersion"] = str(version)
        return dataclasses.replace(gone, version=version, body=msgspec.json.encode(manifest))

    def _remove(self, resource: Resource, manifest: Manifest) -> StoredObject:
        self.ownership.forget(manifest["metadata"]["uid"])
        return self.store.remove(resource, manifest)

    def _through(self, target: ObjectTarget, old: Manifest, new: Manifest) -> Manifest:
        """The part of a change that this subresource accepts; refuses a change of an immutable field."""
        new = {name: value for name, value in new.items() if name not in ("kind", "apiVersion")}
        if target.subresource == "status":
            new = _status_door(target.resource, old, new)
            new["status"] = {name: value for name, value in new["status"].items() if name not in self.gated_off}
        elif target.subresource == "resize":
            new = _resize_door(old, new)
        elif target.resource.has_status:
            new.pop("status", None)
            new.update({"status": old["status"]} if "status" in old else {})
        new["metadata"] = _kept_metadata(old["metadata"], new.get("metadata") or {})
        if target.resource.key == "pods":
            defaults.tolerate(new["spec"])
        return new

    def delete(self, target: ObjectTarget, deletion: Deletion) -> tuple[StoredObject, bool]:
        """The final or marked object, and whether it is gone already."""
        with self.store.changed:
            stored = self.existing(target)
            _check_deletion(target, stored, deletion)
            manifest = stored.manifest()
            grace = _grace(target.resource, manifest, deletion)
            if grace > 0:
                if "deletionTimestamp" not in manifest["metadata"]:
                    _keep_for_dependents(target.resource, manifest["metadata"], deletion)
                return self._mark(target.resource, manifest, grace), False
            return self._end(target.resource, manifest, deletion)

    def _mark(self, resource: Resource, manifest: Manifest, grace: int) -> StoredObject:
        metadata = manifest["metadata"]
        first = "deletionTimestamp" not in metadata
        if not first and grace >= metadata.get("deletionGracePeriodSeconds", grace):
            return self.existing(
                ObjectTarget(resource=resource, namespace=metadata.get("namespace", ""), name=metadata["name"])
            )
        metadata["deletionTimestamp"] = self.now(grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if first and "generation" in metadata:
            metadata["generation"] += 1
        return self.store.write(resource, manifest)

    def _end(self, resource: Resource, manifest: Manifest, deletion: Deletion) -> tuple[StoredObject, bool]:
        metadata = manifest["metadata"]
        if resource.key == "namespaces":
            return self._end_namespace(manifest), False
        _keep_for_dependents(resource, metadata, deletion)
        if metadata.get("finalizers"):
            return self._mark(resource, manifest, 0), False
        if resource.key == "pods":
            self._mark(resource, manifest, 0)
        return self._remove(resource, manifest), True

    def _end_namespace(self, manifest: Manifest) -> StoredObject:
        metadata = manifest["metadata"]
        if "deletionTimestamp" not in metadata:
            metadata["deletionTimestamp"] = self.now()
            manifest["status"]["phase"] = "Terminating"
            return self.store.write(resources.NAMESPACES, manifest)
        return self.existing(ObjectTarget(resource=resources.NAMESPACES, namespace="", name=metadata["name"]))

    def finish(self, resource: Resource, stored: StoredObject) -> None:
        """Remove an object unconditionally: the end of a namespace."""
        with self.store.changed:
            if self.store.get(resource, stored.namespace, stored.name) is not None:
                self._remove(resource, stored.manifest())


def _resize_door(old: Manifest, new: Manifest) -> Manifest:
    """Resize accepts only what a pod's containers request."""
    wanted = {one["name"]: one.get("resources", {}) for one in new["spec"]["containers"]}
    same = [
        {**one, "resources": wanted.get(one["name"], one.get("resources", {}))} for one in old["spec"]["containers"]
    ]
    return {**old, "spec": {**old["spec"], "containers": same}}


def _status_door(resource: Resource, old: Manifest, new: Manifest) -> Manifest:
    if resource.custom:
        passed = dict(old)
    else:
        # Labels and annotations pass through the status subresource of built-in kinds.
        passed = {**old, "metadata": {**(new.get("metadata") or {})}}
        passed["metadata"]["ownerReferences"] = old["metadata"].get("ownerReferences")
        passed["metadata"]["finalizers"] = old["metadata"].get("finalizers")
    if "uid" in (new.get("metadata") or {}):
        passed["metadata"] = {**passed["metadata"], "uid": new["metadata"]["uid"]}
    passed["metadata"] = {**passed["metadata"], "resourceVersion": new["metadata"].get("resourceVersion")}
    passed["status"] = new.get("status") or {}
    return passed


def _kept_metadata(old: Manifest, new: Manifest) -> Manifest:
    kept = {field: old[field] for field in old if field not in ("labels", "annotations", "finalizers")}
    kept.pop("ownerReferences", None)
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if new.get(field):
            kept[field] = new[field]
    kept["uid"] = new.get("uid") or old["uid"]
    kept["resourceVersion"] = new.get("resourceVersion") or old["resourceVersion"]
    return kept


def _check_deletion(target: ObjectTarget, stored: StoredObject, deletion: Deletion) -> None:
    for what, given, found in (
        ("UID", deletion.uid, stored.uid),
        ("ResourceVersion", deletion.version, str(stored.version)),
    ):
        if given and given != found:
            raise refusals.delete_precondition(target.resource, stored.name, what, (given, found))


def _grace(resource: Resource, manifest: Manifest, deletion: Deletion) -> int:
    """Only pods have a grace period, and only those that a kubelet has to stop."""
    if resource.key != "pods" or not manifest["spec"].get("nodeName"):
        return 0
    if manifest["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    if deletion.grace is not None:
        return deletion.grace if deletion.grace >= 0 else 1
    return int(manifest["spec"].get("terminationGracePeriodSeconds", 30))


def _keep_for_dependents(resource: Resource, metadata: Manifest, deletion: Deletion) -> None:
    # By default a Job deleted through the API leaves its pods behind; clients usually ask for Background.
    wanted = deletion.propagation or ("Orphan" if resource.key == "jobs.batch" else "Background")
    finalizer = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(wanted)
    if finalizer and finalizer not in metadata.get("finalizers", ()):
        metadata.setdefault("finalizers", []).append(finalizer)
