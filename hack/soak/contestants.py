"""Two informers with the same face: ours, and the one that the `kubernetes` package ships."""

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import kubernetes.client
import kubernetes.informer
from loguru import logger

from slurm_bridge import ports
from slurm_bridge.informers import informer, reflector
from slurm_bridge.kube import client
from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.telemetry.collectors import InformerNumbers

#: What a cache holds: uid to resource version.
Held = dict[str, str]


class Contestant(Protocol):
    """An informer in the race."""

    name: str
    events: int

    @property
    def troubles(self) -> int:
        """How often it met an error."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def held(self) -> Held: ...

    def cpu(self) -> float:
        """Seconds of processor time that its thread has used."""


class _Running:
    """The thread that appeared when something was started, and its processor time."""

    def __init__(self, start: Callable[[], None]) -> None:
        before = set(threading.enumerate())
        start()
        (thread,) = set(threading.enumerate()) - before
        self._clock = time.pthread_getcpuclockid(thread.ident or 0)

    def cpu(self) -> float:
        return time.clock_gettime(self._clock)


class Ours:
    """slurm_bridge.informers; what its handlers heard is replayed, and has to give the same as its store."""

    name = "slurm-bridge"

    def __init__(self, cluster: client.KubeClient, scope: ports.Scope) -> None:
        self.heard: Held = {}
        self.events = 0
        subject = reflector.ReflectorSubject(cluster=cluster, kind=kinds.PODS, scope=scope)
        self._informer = informer.Informer(subject, clock=SystemClock(), dice=random.Random(), handlers=(self._handle,))

    @property
    def troubles(self) -> int:
        return self._informer.numbers().failures

    @property
    def counters(self) -> InformerNumbers:
        """Lists, watches and so on."""
        return self._informer.numbers()

    def start(self) -> None:
        self._running = _Running(self._informer.start)
        if not self._informer.store.wait_synced(30):
            raise TimeoutError("the informer never came into step")

    def stop(self) -> None:
        self._informer.stop()

    def held(self) -> Held:
        return {pod.uid: pod.metadata.resource_version for pod in self._informer.store.all()}

    def cpu(self) -> float:
        return self._running.cpu()

    def _handle(self, old: Pod | None, new: Pod | None) -> None:
        self.events += 1
        if old is not None:
            del self.heard[old.uid]
        if new is not None:
            self.heard[new.uid] = new.metadata.resource_version


class Package:
    """kubernetes.informer.SharedInformer, as its documentation starts it."""

    name = "kubernetes package"

    def __init__(self, list_pods: Callable[..., object], *, field_selector: str | None = None) -> None:
        self.events = 0
        self.troubles = 0
        untyped: Any = kubernetes.informer.SharedInformer
        self._informer = untyped(list_func=list_pods, field_selector=field_selector)
        for word in (kubernetes.informer.ADDED, kubernetes.informer.MODIFIED, kubernetes.informer.DELETED):
            self._informer.add_event_handler(word, self._count)
        self._informer.add_event_handler(kubernetes.informer.ERROR, self._trouble)

    def start(self) -> None:
        self._running = _Running(self._informer.start)

    def stop(self) -> None:
        self._informer.stop()

    def held(self) -> Held:
        return {pod.metadata.uid: pod.metadata.resource_version for pod in self._informer.cache.list()}

    def cpu(self) -> float:
        return self._running.cpu()

    def _count(self, _: object) -> None:
        self.events += 1

    def _trouble(self, _: object) -> None:
        self.troubles += 1


def quiet() -> None:
    """Both complain of every outage, one of them some thousand times; they are counted, not read."""
    logger.remove()
    for name in ("kubernetes", "urllib3"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def wait_until(holds: Callable[[], bool], *, seconds: float, over: threading.Event) -> bool:
    """Look ten times a second whether something holds, since the package's cache can only be looked at."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until or over.wait(0.1):
            return False
    return True
