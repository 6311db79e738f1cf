"""A store, the reflector that fills it, and the thread they live in."""

import random
import threading
from collections.abc import Mapping
from typing import Generic, TypeVar

from slurm_bridge import ports
from slurm_bridge.informers.reflector import Handler, Reflector, ReflectorSubject
from slurm_bridge.informers.store import Index, Store
from slurm_bridge.model.meta import Object
from slurm_bridge.telemetry.collectors import InformerNumbers

T = TypeVar("T", bound=Object)


class Informer(Generic[T]):
    """What one kind looks like now, and the handlers of its changes.

    Handlers run in the informer's thread, after the store has changed. One that raises ends the thread: a daemon that
    misses changes would act on a world that is not there. The owner of the process watches `alive`.
    """

    def __init__(
        self,
        subject: ReflectorSubject[T],
        *,
        clock: ports.Clock,
        dice: random.Random,
        handlers: tuple[Handler[T], ...] = (),
        indexes: Mapping[str, Index[T]] | None = None,
    ) -> None:
        self.store: Store[T] = Store(indexes)
        self._stop = threading.Event()
        self._reflector = Reflector(subject, self.store, handlers=handlers, clock=clock, dice=dice)
        name = f"informer-{subject.kind.plural}"
        self._thread = threading.Thread(target=self._reflector.run, args=(self._stop,), name=name, daemon=True)

    def numbers(self) -> InformerNumbers:
        """What it shows of itself."""
        counters = self._reflector.counters
        return InformerNumbers(
            objects=len(self.store),
            synced=self.store.synced,
            lists=counters.lists,
            watches=counters.watches,
            events=counters.events,
            failures=counters.failures,
        )

    @property
    def alive(self) -> bool:
        """It follows the cluster; False before the start, after a stop, and after a handler failed."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to follow; `store.wait_synced` tells when the first list is in."""
        self._thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        """End the thread, and wait for it; a second time does nothing."""
        self._stop.set()
        self._reflector.interrupt()
        if self._thread.is_alive():
            self._thread.join(seconds)
