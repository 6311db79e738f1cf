"""Garbage collection: deletes or releases dependents, removes protections, empties namespaces."""

import collections
from collections.abc import Iterable, Iterator

from slurm_bridge.sim.kube import defaults, followers
from slurm_bridge.sim.kube.followers import Tail
from slurm_bridge.sim.kube.objects import Change, Deletion, Objects, ObjectTarget
from slurm_bridge.sim.kube.resources import NAMESPACES, Resource
from slurm_bridge.sim.kube.store import Event, Manifest, StoredObject

Place = tuple[Resource, str, str]


class Garbage:
    """Follows every resource, because any object may own others."""

    def __init__(self, objects: Objects, resources: Iterable[Resource]) -> None:
        self._objects = objects
        self._resources = tuple(resources)
        self._tails = {resource: Tail(objects.store, resource) for resource in self._resources}
        self._owned: dict[str, set[Place]] = collections.defaultdict(set)
        #: Owners in foreground deletion whose dependents still exist.
        self._last: dict[str, Place] = {}

    def next_due(self) -> float | None:
        return None

    def settle(self) -> bool:
        news = [(resource, event) for resource, tail in self._tails.items() for event in tail.news()]
        for resource, event in news:
            if b'"ownerReferences"' in event.new.body:
                for owner in event.new.manifest()["metadata"].get("ownerReferences") or ():
                    self._owned[owner["uid"]].add((resource, *event.new.key))
        return followers.each(self._objects.store, self._follow, news)

    def _follow(self, told: tuple[Resource, Event]) -> bool:
        resource, event = told
        if event.gone:
            uid = event.new.uid
            self._last.pop(uid, None)
            # Dependents that have no other owner go with their owner.
            dependents = list(self._dependents(uid))
            self._owned.pop(uid, None)
            for kind, dependent in dependents:
                self._delete(kind, dependent)
            return self._follow_dependents(event.new) or bool(dependents) or self._empty_again(event.new)
        if b'"deletionTimestamp"' not in event.new.body:
            return False
        if resource == NAMESPACES:
            return self._end_namespace(event.new)
        return self._release(resource, event.new)

    def _follow_dependents(self, gone: StoredObject) -> bool:
        """Delete owners that waited for their last dependent."""
        owners = gone.manifest()["metadata"].get("ownerReferences") or () if self._last else ()
        places = [self._last[owner["uid"]] for owner in owners if owner["uid"] in self._last]
        waiting = [(place[0], self._objects.store.get(*place)) for place in places]
        released = [self._release(resource, owner) for resource, owner in waiting if owner is not None]
        return any(released)

    def _dependents(self, uid: str) -> Iterator[tuple[Resource, StoredObject]]:
        for resource, namespace, name in sorted(self._owned.get(uid, ()), key=str):
            stored = self._objects.store.get(resource, namespace, name)
            if stored is not None and f'"{uid}"'.encode() in stored.body:
                yield resource, stored

    def _release(self, resource: Resource, stored: StoredObject) -> bool:
        held = stored.manifest()["metadata"].get("finalizers") or []
        dependents = list(self._dependents(stored.uid))
        if "orphan" in held:

            def set_free(manifest: Manifest) -> Manifest:
                owners = manifest["metadata"].get("ownerReferences") or ()
                manifest["metadata"]["ownerReferences"] = [one for one in owners if one["uid"] != stored.uid]
                return manifest

            for kind, dependent in dependents:
                self._change(kind, dependent, set_free)
            return self._let_go(resource, stored, "orphan")
        if "foregroundDeletion" in held:
            self._last[stored.uid] = (resource, stored.namespace, stored.name)
            waiting = [self._delete(kind, dependent) for kind, dependent in dependents]
            return any(waiting) or (not dependents and self._let_go(resource, stored, "foregroundDeletion"))
        if defaults.GROUP_PROTECTION in held:
            return self._let_go(resource, stored, defaults.GROUP_PROTECTION)
        return False

    def _let_go(self, resource: Resource, stored: StoredObject, finalizer: str) -> bool:
        def change(manifest: Manifest) -> Manifest:
            kept = [name for name in manifest["metadata"].get("finalizers") or () if name != finalizer]
            manifest["metadata"]["finalizers"] = kept
            return manifest

        return self._change(resource, stored, change)

    def _change(self, resource: Resource, stored: StoredObject, change: Change) -> bool:
        target = ObjectTarget(resource=resource, namespace=stored.namespace, name=stored.name)
        if self._objects.store.get(resource, *stored.key) is None:
            return False
        self._objects.change(target, change)
        return True

    def _delete(self, resource: Resource, stored: StoredObject) -> bool:
        target = ObjectTarget(resource=resource, namespace=stored.namespace, name=stored.name)
        now = self._objects.store.get(resource, *stored.key)
        if now is None or now.uid != stored.uid or b'"deletionTimestamp"' in now.body:
            return False
        self._objects.delete(target, Deletion(propagation="Background"))
        return True

    def _end_namespace(self, namespace: StoredObject) -> bool:
        """Delete everything in a namespace; the namespace goes after its last object."""
        name = namespace.name
        inside = [
            (resource, stored)
            for resource in self._resources
            if resource.namespaced
            for stored in self._objects.store.all(resource, name)
        ]
        for resource, stored in inside:
            self._delete(resource, stored)
        if not inside:
            self._objects.finish(NAMESPACES, namespace)
        return True

    def _empty_again(self, gone: StoredObject) -> bool:
        namespace = self._objects.store.get(NAMESPACES, "", gone.namespace) if gone.namespace else None
        if namespace is None or namespace.fields["status.phase"] != "Terminating":
            return False
        return self._end_namespace(namespace)
