"""Sees when pods get their nodes and are deleted, by a watch of its own that costs the same in every turn."""

import pathlib
import random
import threading
import time
from typing import Self

from slurm_bridge import errors, ports
from slurm_bridge.kube import client, config
from slurm_bridge.model import kinds, names
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.clock import SystemClock


class Observer:
    """The pods of one namespace, by name: when each was first seen on a node and being deleted, and its job."""

    def __init__(self, kubeconfig: pathlib.Path, namespace: str) -> None:
        access = config.from_kubeconfig(kubeconfig)
        self._client = client.KubeClient(access, clock=SystemClock(), dice=random.Random())
        self._scope = ports.Scope(namespace=namespace)
        self._over = False
        self._changes: ports.Changes[Pod] | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.bound: dict[str, float] = {}
        self.leaving: dict[str, float] = {}
        self.jobs: dict[str, int] = {}
        self.nodes: dict[str, str] = {}
        self.left: set[str] = set()
        self.failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        if self._changes is not None:
            self._changes.close()
        self._thread.join(timeout=10)
        self._client.close()

    def bound_of(self, prefix: str) -> dict[str, float]:
        """Moments of the pods whose names begin so."""
        return {name: when for name, when in dict(self.bound).items() if name.startswith(prefix)}

    def _watch(self) -> None:
        try:
            since = self._client.list(kinds.PODS, self._scope).resource_version
            while not self._over:
                since = self._follow(since)
        except (errors.BridgeError, OSError) as error:
            if not self._over:
                self.failure = error

    def _follow(self, since: str) -> str:
        """Until the server ends the watch, as it does every few minutes."""
        self._changes = self._client.watch(kinds.PODS, since, self._scope)
        for change in self._changes:
            if isinstance(change, ports.Bookmark):
                since = change.resource_version
                continue
            pod = change.object
            since = pod.metadata.resource_version
            if isinstance(change, ports.Gone):
                self.leaving.setdefault(pod.metadata.name, time.time())
                self.left.discard(pod.metadata.name)
            else:
                self._see(pod)
        return since

    def _see(self, pod: Pod) -> None:
        name = pod.metadata.name
        self.left.add(name)
        if pod.terminating:
            self.leaving.setdefault(name, time.time())
        if pod.spec.node_name and name not in self.bound:
            self.bound[name] = time.time()
            self.nodes[name] = pod.spec.node_name
            self.jobs[name] = int(pod.metadata.labels.get(names.LABEL_JOB_ID, 0))
