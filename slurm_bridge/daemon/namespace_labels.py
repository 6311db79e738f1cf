"""The labels of namespaces, for the selector of the managed ones. They are watched only where there is a selector."""

import random
import threading
from collections.abc import Callable, Mapping

from slurm_bridge import errors, ports
from slurm_bridge.informers.informer import Informer
from slurm_bridge.informers.reflector import ReflectorSubject
from slurm_bridge.model import kinds
from slurm_bridge.model.meta import Object
from slurm_bridge.telemetry.collectors import InformerNumbers

Labels = Mapping[str, str]


class NamespaceLabels:
    """Read by any thread. `cluster` opens the connection to the API server at the first need; it is kept.

    `reads` opens the one for single namespaces, which reviews wait for; left out, it is the same. `changed` is called
    when a namespace comes, goes, or gets other labels: with its name, and whether it is there.
    """

    def __init__(
        self,
        cluster: Callable[[], ports.Cluster],
        clock: ports.Clock,
        dice: random.Random,
        reads: Callable[[], ports.Cluster] | None = None,
        changed: Callable[[str, bool], None] = lambda _name, _there: None,
    ) -> None:
        self._cluster, self._clock, self._dice = cluster, clock, dice
        self._reads, self._lock, self._changed = reads or cluster, threading.Lock(), changed
        self._opened: ports.Cluster | None = None
        self._informer: Informer[Object] | None = None

    def follow(self) -> None:
        """Watch namespaces from now on."""
        if self._informer is None:
            subject = ReflectorSubject(cluster=self._cluster(), kind=kinds.NAMESPACES, scope=ports.EVERYWHERE)
            made = Informer(subject, clock=self._clock, dice=self._dice, handlers=(self._tell,))
            made.start()
            self._informer = made

    def _tell(self, old: Object | None, new: Object | None) -> None:
        known = new or old
        if known is not None and (old is None or new is None or old.metadata.labels != new.metadata.labels):
            self._changed(known.metadata.name, new is not None)

    def of(self, name: str) -> Labels:
        """The labels of a namespace; read from the API server if it is younger than what the watch has delivered."""
        if self._informer is None:
            return {}
        return self.found(name) or {}

    def found(self, name: str) -> Labels | None:
        """Likewise; None if there is no such namespace."""
        found = self._informer.store.get("", name) if self._informer is not None else None
        if found is None:
            found = self._reader().get(kinds.NAMESPACES, "", name)
        return None if found is None else found.metadata.labels

    def _reader(self) -> ports.Cluster:
        with self._lock:
            if self._opened is None:
                self._opened = self._reads()
            return self._opened

    def stop(self) -> None:
        """Watch no more."""
        if self._informer is not None:
            self._informer.stop()

    def problem(self) -> str:
        """Why the labels are not known yet; empty when they are, or are not needed."""
        late = self._informer is not None and not self._informer.store.synced
        return "not listed yet: namespaces" if late else ""

    def watch_over(self) -> None:
        """Raises BridgeError when the watch has ended."""
        if self._informer is not None and not self._informer.alive:
            raise errors.BridgeError("the watch of namespaces has ended")

    def numbers(self) -> InformerNumbers | None:
        """What the watch shows of itself."""
        return None if self._informer is None else self._informer.numbers()
