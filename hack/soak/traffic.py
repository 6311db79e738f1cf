"""Pods that come and go by the thousand, through every outage of the API server, each exactly once."""

import concurrent.futures
import random
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from slurm_bridge import errors
from slurm_bridge.kube import client
from slurm_bridge.model import kinds
from slurm_bridge.model.meta import Manifest
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime import backoff

T = TypeVar("T")

#: No such scheduler runs, so nothing touches these pods but us.
SCHEDULER = "soak-nobody"


class OutOfTime(Exception):
    """The whole run took longer than it may."""


class Traffic:
    """Creates and deletes pods of one namespace with many hands; a name is only ever used by one of them."""

    def __init__(self, cluster: client.KubeClient, namespace: str, *, hands: int, over: threading.Event) -> None:
        self.namespace = namespace
        self.done = 0
        self.retries = 0
        self._cluster = cluster
        self._hands = hands
        self._over = over
        self._counting = threading.Condition()

    def open(self) -> None:
        """Make the namespace."""
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self._insist(lambda: self._cluster.create(kinds.NAMESPACES, "", manifest))

    def close(self) -> None:
        """Remove the namespace and whatever is left in it."""
        namespace = self._insist(lambda: self._cluster.get(kinds.NAMESPACES, "", self.namespace))
        if namespace is not None:
            self._insist(lambda: self._cluster.delete(kinds.NAMESPACES, namespace))

    def churn(self, names: Iterable[str], *, keep: bool) -> list[Pod]:
        """Create a pod of each name, and delete it unless it is kept; returns those that stay."""

        def one(name: str) -> Pod:
            made = self.create(name)
            if not keep:
                self.delete(made)
            return made

        made = self._all(one, names)
        return made if keep else []

    def clear(self, pods: Iterable[Pod]) -> None:
        """Delete these pods."""
        self._all(self.delete, pods)

    def create(self, name: str) -> Pod:
        """Create the pod, or find it when an earlier try was lost on the way back."""
        pod = self._insist(lambda: self._create_once(name))
        self._count()
        return pod

    def delete(self, pod: Pod) -> None:
        """Delete exactly this pod, at once."""
        self._insist(lambda: self._delete_once(pod))
        self._count()

    def wait_until(self, steps: int) -> bool:
        """Wait until so many creations and deletions are done; False when time is over."""
        with self._counting:
            return (
                self._counting.wait_for(lambda: self.done >= steps or self._over.is_set()) and not self._over.is_set()
            )

    def give_up(self) -> None:
        """End every wait: time is over."""
        self._over.set()
        with self._counting:
            self._counting.notify_all()

    def _create_once(self, name: str) -> Pod:
        try:
            return self._cluster.create(kinds.PODS, self.namespace, manifest(name))
        except errors.Conflict as taken:
            found = self._cluster.get(kinds.PODS, self.namespace, name)
            if found is None:
                raise errors.Unanswered(f"{name} is taken and not there") from taken
            return found

    def _delete_once(self, pod: Pod) -> None:
        try:
            self._cluster.delete(kinds.PODS, pod, grace_seconds=0)
        except errors.NotFound:
            return

    def _all(self, work: Callable[..., T], items: Iterable[object]) -> list[T]:
        with concurrent.futures.ThreadPoolExecutor(self._hands) as pool:
            return list(pool.map(work, items))

    def _insist(self, call: Callable[[], T]) -> T:
        """Until it works: an API server that comes up refuses tokens and rights for a moment, too."""
        pauses = backoff.Backoff(random.Random(), first=0.05, most=1.0)
        while True:
            try:
                return call()
            except (errors.TryLater, errors.OperatorMustAct):
                self.retries += 1
                if self._over.wait(pauses.next()):
                    raise OutOfTime from None

    def _count(self) -> None:
        with self._counting:
            self.done += 1
            self._counting.notify_all()


def manifest(name: str) -> Manifest:
    """A pod about as large as those of real clusters."""
    variables = [{"name": f"SETTING_{number}", "value": "x" * 24} for number in range(30)]
    resources = {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"cpu": "8", "memory": "16Gi"}}
    container = {"name": "main", "image": "registry.example/team/app:1.2.3", "env": variables, "resources": resources}
    metadata = {
        "name": name,
        "labels": {f"example.com/label-{number}": f"value-{number}" for number in range(6)},
        "annotations": {f"example.com/annotation-{number}": "y" * 60 for number in range(6)},
    }
    spec = {"schedulerName": SCHEDULER, "containers": [container], "tolerations": [{"operator": "Exists"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
