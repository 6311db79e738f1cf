"""ports.Cluster on a real API server: each verb is one request (a list: one per page), and no verb repeats itself."""

import contextlib
import dataclasses
import random
import threading
from collections.abc import Iterator
from typing import TypeVar
from urllib.parse import quote

import msgspec

from slurm_bridge import errors, ports
from slurm_bridge.kube import codec, events, leniency, status, transport, watch
from slurm_bridge.kube.kept import KeptFields
from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.lease import Lease
from slurm_bridge.model.meta import Manifest, Object
from slurm_bridge.runtime import retries
from slurm_bridge.runtime.http.messages import HttpLimits, HttpRequest
from slurm_bridge.runtime.oddities import Oddities

T = TypeVar("T", bound=Object)

_MERGE_PATCH = "application/merge-patch+json"
_KEYED_PATCH = "application/strategic-merge-patch+json"
#: Their status has parameters of users, in which `$patch` and null are not for the server; writes name the version.
_PLAIN = frozenset({kinds.RESOURCECLAIMS})
_PAGE = "500"
#: How often a list may be overtaken by compaction before the caller hears of it.
_LISTS = retries.Retries(tries=3)
#: Watches end after this many seconds, each at its own time, so that they do not all come back at once.
_WATCH_SECONDS = (240, 290)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Which annotations of objects are kept, and where it is told what cannot be read."""

    oddities: Oddities
    kept: KeptFields = dataclasses.field(default_factory=KeptFields)


class KubeClient:
    """Implements ports.Cluster; safe to use from any thread."""

    def __init__(
        self,
        access: transport.Access,
        *,
        clock: ports.Clock,
        dice: random.Random,
        limits: HttpLimits | None = None,
        instance: str = events.CONTROLLER,
        reading: Reading | None = None,
    ) -> None:
        reading = reading or Reading(oddities=Oddities(clock.now))
        self._kept, self._oddities = reading.kept, reading.oddities
        self._transport = transport.Transport(access, clock=clock, limits=limits or HttpLimits())
        self._clock = clock
        self._dice = dice
        self._instance = instance
        self._versions: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Give up idle connections; watches are closed by their readers."""
        self._transport.close()

    def served(self, kind: Kind[T]) -> str | None:
        known = self._versions.get((kind.group, kind.plural))
        if known is not None:
            return known
        for version in kind.versions:
            request = HttpRequest(method="GET", path=_base(kind.group, version))
            answer = self._transport.call(request)
            # Where the server does not know the group and version, it serves nothing under them.
            if status.unserved(answer):
                continue
            if kind.plural in codec.resources(transport.checked(request, answer)):
                with self._lock:
                    self._versions[kind.group, kind.plural] = version
                return version
        return None

    def list(self, kind: Kind[T], scope: ports.Scope = ports.EVERYWHERE) -> ports.Listing[T]:
        # Where compaction overtook the pages, what was read is of no use, and a new list is, at once.
        return retries.read(lambda: self._list(kind, scope), _LISTS, pause=lambda _: None, after=(errors.Expired,))

    def watch(self, kind: Kind[T], since: str, scope: ports.Scope = ports.EVERYWHERE) -> ports.Changes[T]:
        query = {
            **_selectors(scope),
            "watch": "1",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._dice.randint(*_WATCH_SECONDS)),
        }
        request = HttpRequest(method="GET", path=self._path(kind, scope.namespace), query=query)
        with self._rediscovering(kind):
            stream = self._transport.stream(request)
        return watch.Watch(stream, codec.codec(kind, self._kept), lambda one: self._met(kind, one))

    def get(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        request = HttpRequest(method="GET", path=self._path(kind, namespace, name))
        try:
            return self._one(kind, request)
        except errors.NotFound:
            return None

    def create(self, kind: Kind[T], namespace: str, manifest: Manifest) -> T:
        return self._write(kind, "POST", self._path(kind, namespace), manifest)

    def patch(self, kind: Kind[T], target: T, changes: Manifest, subresource: str = "") -> T:
        namespace, name = target.key
        pinned = {**changes, "metadata": {**changes.get("metadata", {}), "uid": target.uid}}
        path = self._path(kind, namespace, name, subresource)
        # A plain merge replaces lists: writing one condition would erase those that others wrote meanwhile.
        keyed = subresource == "status" and not kind.custom and kind not in _PLAIN
        return self._write(kind, "PATCH", path, pinned, content_type=_KEYED_PATCH if keyed else _MERGE_PATCH)

    def delete(self, kind: Kind[T], target: T, grace_seconds: int | None = None, version: str = "") -> None:
        pinned = {"uid": target.uid, **({"resourceVersion": version} if version else {})}
        options: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": pinned}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        self._order("DELETE", self._path(kind, *target.key), options)

    def evict(self, namespace: str, name: str, uid: str) -> None:
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        self._order("POST", self._path(kinds.PODS, namespace, name, "eviction"), eviction)

    def bind(self, binding: ports.Binding) -> None:
        metadata = {
            "namespace": binding.namespace,
            "name": binding.pod,
            "uid": binding.uid,
            "resourceVersion": binding.resource_version,
            "annotations": dict(binding.annotations),
            "labels": dict(binding.labels),
        }
        manifest = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {field: value for field, value in metadata.items() if value},
            "target": {"apiVersion": "v1", "kind": "Node", "name": binding.node},
        }
        self._order("POST", self._path(kinds.PODS, binding.namespace, binding.pod, "binding"), manifest)

    def event(self, note: ports.Note) -> None:
        manifest = events.manifest(note, wall=self._clock.wall(), instance=self._instance)
        self._order("POST", self._path(kinds.EVENTS, events.namespace(note)), manifest)

    def lease(self, namespace: str, name: str) -> Lease | None:
        return self.get(kinds.LEASES, namespace, name)

    def write_lease(self, written: Lease) -> Lease:
        # Whole, with the resource version that was read, so that the faster writer wins.
        manifest: Manifest = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **msgspec.to_builtins(written)}
        namespace, name = written.key
        if written.metadata.resource_version:
            return self._write(kinds.LEASES, "PUT", self._path(kinds.LEASES, namespace, name), manifest)
        return self.create(kinds.LEASES, namespace, manifest)

    def _list(self, kind: Kind[T], scope: ports.Scope) -> ports.Listing[T]:
        """All pages of one list."""
        path, reader = self._path(kind, scope.namespace), codec.codec(kind, self._kept)
        items: list[T] = []
        unreadable: set[tuple[str, str]] = set()

        def odd(one: leniency.UnreadableObject) -> None:
            unreadable.add(one.key)
            self._met(kind, one)

        query = {**_selectors(scope), "limit": _PAGE}
        while True:
            with self._rediscovering(kind):
                page = reader.page(self._ask(HttpRequest(method="GET", path=path, query=query)), odd)
            items += page.items or ()
            if not page.metadata.continue_:
                version = page.metadata.resource_version
                return ports.Listing(items=tuple(items), resource_version=version, unreadable=frozenset(unreadable))
            query["continue"] = page.metadata.continue_

    def _met(self, kind: Kind[T], one: leniency.UnreadableObject) -> None:
        self._oddities.met("Kubernetes", kind.kind, "/".join(filter(None, one.key)), one.why)

    def _write(
        self, kind: Kind[T], method: str, path: str, manifest: Manifest, *, content_type: str = "application/json"
    ) -> T:
        body = codec.encode(manifest)
        request = HttpRequest(method=method, path=path, body=body, content_type=content_type)
        return self._one(kind, request)

    def _one(self, kind: Kind[T], request: HttpRequest) -> T:
        """An answer that is one object."""
        with self._rediscovering(kind):
            return codec.codec(kind, self._kept).one(self._ask(request))

    def _order(self, method: str, path: str, manifest: Manifest) -> None:
        """A write whose answer says nothing that we need."""
        self._ask(HttpRequest(method=method, path=path, body=codec.encode(manifest)))

    def _ask(self, request: HttpRequest) -> bytes:
        return transport.checked(request, self._transport.call(request))

    def _path(self, kind: Kind[T], namespace: str | None = None, *rest: str) -> str:
        version = self.served(kind)
        if version is None:
            raise errors.Unavailable(f"the cluster does not serve {kind.plural} of {kind.group or 'the core group'}")
        within = ("namespaces", namespace) if kind.namespaced and namespace else ()
        parts = (*within, kind.plural, *rest)
        return "/".join((_base(kind.group, version), *(quote(part, safe="") for part in parts if part)))

    @contextlib.contextmanager
    def _rediscovering(self, kind: Kind[T]) -> Iterator[None]:
        """An answer that makes no sense may mean that the version went: ask anew what is served, the next time."""
        try:
            yield
        except errors.BadAnswer:
            with self._lock:
                self._versions.pop((kind.group, kind.plural), None)
            raise


def _base(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def _selectors(scope: ports.Scope) -> dict[str, str]:
    chosen = {"labelSelector": scope.labels, "fieldSelector": scope.fields}
    return {name: value for name, value in chosen.items() if value}
