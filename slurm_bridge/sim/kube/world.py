"""A pocket Kubernetes as one object: the API, its controllers and its time, for tests and the demo."""

import json
import secrets
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from slurm_bridge import ports
from slurm_bridge.model.kinds import Kind
from slurm_bridge.runtime import clock as clocks
from slurm_bridge.sim import http, runner
from slurm_bridge.sim.kube import access, patch, resources, views
from slurm_bridge.sim.kube.api import Api
from slurm_bridge.sim.kube.budgets import Budgets
from slurm_bridge.sim.kube.claims import ResourceClaims
from slurm_bridge.sim.kube.followers import Reconciler
from slurm_bridge.sim.kube.garbage import Garbage
from slurm_bridge.sim.kube.jobs import JobController
from slurm_bridge.sim.kube.kubelet import Kubelet
from slurm_bridge.sim.kube.objects import Deletion, Objects, ObjectTarget
from slurm_bridge.sim.kube.resources import Resource
from slurm_bridge.sim.kube.store import Manifest, ObjectStore

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")

#: Real seconds between two looks of the background controllers at the clock.
_LOOK = 0.05


class PocketKube:
    """The world. Objects are written through the API or, by tests that prepare a state, directly."""

    def __init__(
        self,
        *,
        clock: ports.Clock | None = None,
        tokens: Mapping[str, access.User] | None = None,
        history: int = 100_000,
        served: Mapping[str, tuple[str, ...]] = resources.SERVED,
        seed: int = 0,
    ) -> None:
        self.clock: ports.Clock = clock or clocks.SystemClock()
        self.token = secrets.token_urlsafe(16)
        self.access = access.TokenUsers({self.token: access.ADMIN, **(tokens or {})})
        self.store = ObjectStore(history=history)
        self.objects = Objects(self.store, self.clock, seed=seed)
        self._resources = resources.table(served)
        self._api = Api(self.objects, self.clock, views.of(self._resources), self.access)
        self._settling = threading.Lock()
        self._settled = 0
        self._furnish()

    def __repr__(self) -> str:
        return f"PocketKube(version={self.store.version})"

    def handler(self, request: http.Request) -> http.Response:
        """Answer one request; called by `sim.http.Server`."""
        return self._api.handle(request)

    def _furnish(self) -> None:
        self._controllers: tuple[Reconciler, ...] = (
            Garbage(self.objects, self._resources),
            JobController(self.objects),
            Kubelet(self.objects),
            Budgets(self.objects),
            ResourceClaims(self.objects),
        )
        for name in _NAMESPACES:
            self.objects.create(resources.NAMESPACES, "", {"metadata": {"name": name}})

    def employ(self, *controllers: Reconciler) -> None:
        """Add controllers to those that always run."""
        with self._settling:
            self._controllers = (*self._controllers, *controllers)

    def create(self, kind: Kind[Any], manifest: Manifest) -> Manifest:
        """Create an object in the namespace of its metadata (default: default)."""
        copy: Manifest = msgspec.json.decode(msgspec.json.encode(manifest))
        resource = resources.of(kind)
        namespace = copy.get("metadata", {}).get("namespace") or "default"
        return self.objects.create(resource, namespace if resource.namespaced else "", copy).manifest()

    def get(self, kind: Kind[Any], namespace: str, name: str) -> Manifest | None:
        """The current object."""
        stored = self.store.get(resources.of(kind), namespace, name)
        return stored.manifest() if stored else None

    def list(self, kind: Kind[Any], namespace: str | None = None) -> list[Manifest]:
        """All of a kind, in order of their keys."""
        items = self.store.all(resources.of(kind), namespace)
        return [item.manifest() for item in sorted(items, key=lambda item: item.key)]

    def merge(self, kind: Kind[Any], name: tuple[str, str], changes: Manifest, subresource: str = "") -> Manifest:
        """Merge changes into an object (namespace, name)."""
        target = self._target(resources.of(kind), name, subresource)
        return self.objects.change(target, lambda old: patch.merge(old, changes)).manifest()

    def delete(self, kind: Kind[Any], name: tuple[str, str], *, grace: int | None = None) -> None:
        """Delete an object (namespace, name) as a client would, its dependents in the background."""
        deletion = Deletion(grace=grace, propagation="Background")
        self.objects.delete(self._target(resources.of(kind), name), deletion)

    def _target(self, resource: Resource, name: tuple[str, str], subresource: str = "") -> ObjectTarget:
        return ObjectTarget(resource=resource, namespace=name[0], name=name[1], subresource=subresource)

    def add_nodes(
        self,
        *names: str,
        capacity: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        taints: Iterable[Mapping[str, str]] = (),
    ) -> None:
        """Add nodes that are ready, each with a kubelet."""
        amounts = dict(capacity or {"cpu": "64", "memory": "256000Mi", "pods": "110"})
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": self.objects.now()}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        for name in names:
            marks = {"kubernetes.io/hostname": name, **(labels or {})}
            node = {"metadata": {"name": name, "labels": marks}, "spec": {"taints": [dict(taint) for taint in taints]}}
            self.objects.create(resources.NODES, "", node)
            target = self._target(resources.NODES, ("", name), "status")
            self.objects.change(target, lambda old: {**old, "status": status})

    def settle(self) -> None:
        """Run the controllers until nothing is due at this moment."""
        with self._settling:
            due = self.next_due()
            if self._settled == self.store.version and (due is None or due > self.clock.now()):
                return
            while any(controller.settle() for controller in self._controllers):
                pass
            self._settled = self.store.version

    def next_due(self) -> float | None:
        """The next time at which a controller acts although nothing changes."""
        moments = [moment for controller in self._controllers if (moment := controller.next_due()) is not None]
        return min(moments, default=None)

    def advance(self, seconds: float) -> None:
        """Let virtual time pass; it stops at each time at which something is due."""
        if not isinstance(self.clock, clocks.VirtualClock):
            raise TypeError("real time passes by itself")
        end = self.clock.now() + seconds
        self.settle()
        while (due := self.next_due()) is not None and due <= end:
            self.clock.advance(max(0.0, due - self.clock.now()))
            self.settle()
        self.clock.advance(end - self.clock.now())

    def compact(self) -> None:
        """Drop the history: every version that a client knows is too old now."""
        self.store.compact()

    def wipe(self) -> None:
        """Lose all objects, like a recreated cluster; versions start again."""
        with self._settling:
            self.store.wipe()
            self._furnish()


class PocketKubeServer(runner.RunningServer):
    """Serves a pocket Kubernetes on loopback, with its controllers in the background."""

    def __init__(self, kube: PocketKube) -> None:
        self.kube = kube
        super().__init__(http.Server(kube.handler), self._control, name="pocket-controllers")

    def restart(self, *, keep: bool = True, forget_history: bool = True) -> None:
        """Restart at the same address: without watches and history, and optionally without objects."""
        self.stop()
        if not keep:
            self.kube.wipe()
        elif forget_history:
            self.kube.compact()
        self.start()

    def write_kubeconfig(self, path: Path) -> Path:
        """A kubeconfig for the admin, readable by its owner only."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "pocket", "cluster": {"server": self.url}}],
            "users": [{"name": "pocket", "user": {"token": self.kube.token}}],
            "contexts": [{"name": "pocket", "context": {"cluster": "pocket", "user": "pocket"}}],
            "current-context": "pocket",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(content))
        return path

    def _control(self, stopping: threading.Event) -> None:
        seen = -1
        while not stopping.is_set():
            with self.kube.store.changed:
                if self.kube.store.version == seen:
                    self.kube.store.changed.wait(_LOOK)
            due = self.kube.next_due()
            if self.kube.store.version != seen or (due is not None and due <= self.kube.clock.now()):
                seen = self.kube.store.version
                self.kube.settle()
