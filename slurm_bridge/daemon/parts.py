"""One of several daemons: pods are routed by their namespace, and the core takes up namespaces and lets them go."""

import threading
from collections.abc import Iterable

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.controllers.ownership import NamespaceOwnership, Standing
from slurm_bridge.model import texts
from slurm_bridge.model.names import namespace_of
from slurm_bridge.model.parts import ClusterParts
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.core import Core
from slurm_bridge.settings.model import Settings

#: The time between two tries to read the jobs of namespaces that were claimed.
AGAIN = 2.0
#: After such a reading the next one waits for so many times as long, and for so many seconds at most.
RARELY, RAREST = 4.0, 60.0
#: The time between two steps while namespaces are on their way, and while nothing is heard of any.
STEP, IDLE = 2.0, 30.0


def of(settings: Settings) -> ClusterParts | None:
    """The parts in the settings, None without any."""
    if settings.parts.own is None:
        return None
    election = settings.leader_election
    return ClusterParts(
        own=settings.parts.own,
        every=settings.parts.names,
        lease_namespace=election.namespace,
        lease_name=election.name,
    )


class PartFollower:
    """`on_pod` is called by watches, `step` by a thread of its own, everything else by the scheduler's thread."""

    def __init__(self, core: Core, ownership: NamespaceOwnership, clock: ports.Clock) -> None:
        self._core, self._clock, self.ownership = core, clock, ownership
        #: Pods with our scheduler names, by namespace, of all parts.
        self._pods: dict[str, dict[str, Pod]] = {}
        self._lock = threading.Lock()
        #: Held by whatever acts beside the workers: while namespaces come or go, nothing else looks at workloads.
        self.still = threading.Lock()
        self._again = self._due = 0.0

    @property
    def current(self) -> bool:
        """This daemon leads its part, and what it serves is what the records say."""
        return self.ownership.current

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod with one of our scheduler names; a pod of another part only takes room."""
        pod = new or old
        if pod is None:
            return
        namespace = pod.metadata.namespace
        with self._lock:
            there = self._pods.setdefault(namespace, {})
            if new is not None:
                there[new.uid] = new
            else:
                there.pop(pod.uid, None)
                if not there:
                    del self._pods[namespace]
            if self.ownership.serves(namespace):
                self._core.on_pod(old, new)
            else:
                self._core.on_other_pod(old, new)
        if new is not None:
            self.ownership.met(namespace, by_job=False)

    def needed(self, namespace: str) -> bool:
        """Pods or jobs of ours are known of this namespace."""
        if namespace in self._pods:
            return True
        return any(one.owner.namespace == namespace for one in self._core.context.table.all())

    def begin(self) -> None:
        """A leadership begins, and nothing is under way: the core gets what the records give to this part."""
        term, served = self.ownership.begin()
        with self.still, self._lock:
            for namespace in self._followed() - served:
                self._core.let_go(namespace)
            before = self._followed()
            self.ownership.commence(term, served)
            self._again = 0.0
            for pod in self._of(served - before):
                self._core.on_pod(None, pod)
        logger.info("part: {} served", texts.counted(len(served), "namespace"))

    def _followed(self) -> frozenset[str]:
        return frozenset(self.ownership.standing(Standing.SERVED, Standing.LEAVING))

    def _of(self, namespaces: Iterable[str]) -> list[Pod]:
        return [pod for name in sorted(namespaces) for pod in self._pods.get(name, {}).values()]

    def follow(self) -> None:
        """Take up what was claimed, and let go what belongs to another part. Mostly there is nothing to do."""
        if not self.ownership.unsettled:
            return
        claimed = self.ownership.standing(Standing.CLAIMED)
        if claimed and self._clock.now() >= self._again:
            self._take_up(claimed)
        leaving = self.ownership.standing(Standing.LEAVING)
        if leaving:
            busy = {namespace_of(key) for key in self._core.queue.flying()}
            self._let_go([name for name in leaving if name not in busy])

    def _take_up(self, claimed: Iterable[str]) -> None:
        """Their jobs first: without them their pods would get others."""
        with self.still:
            served, began = self.ownership.serve(claimed), self._clock.now()
            try:
                self._core.context.mirror.recover()
                # Each reading is a list of all jobs: they take at most a fifth of the time, unless they are very slow.
                self._again = self._clock.now() + min(RARELY * (self._clock.now() - began), RAREST)
            except errors.BridgeError as problem:
                logger.warning(
                    "jobs for {} cannot be read, next try in {} s: {}",
                    texts.counted(len(served), "namespace"),
                    AGAIN,
                    problem,
                )
                self._again = self._clock.now() + AGAIN
                with self._lock:
                    self.ownership.defer(served)
                    for namespace in served:
                        self._core.let_go(namespace)
                return
            with self._lock:
                self._core.take_up(served, self._of(served))

    def _let_go(self, leaving: Iterable[str]) -> None:
        with self.still, self._lock:
            for namespace in leaving:
                self._core.let_go(namespace)
                self.ownership.left([namespace])

    def step(self) -> None:
        """Agree with the other daemons: at once when something has changed, and from time to time."""
        now = self._clock.now()
        if now >= self._due or self.ownership.stirred.is_set():
            self.ownership.step()
            self._due = now + (STEP if self.ownership.busy else IDLE)
