"""What is watched, and whom it is told: our pods, everybody else's bound pods, nodes, Jobs, and what hooks need."""

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slurm_bridge import ports
from slurm_bridge.hooks import needs as needs_table
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.informers.informer import Informer
from slurm_bridge.informers.reflector import Subject
from slurm_bridge.model import kinds
from slurm_bridge.model.groups import Job
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.scheduler.core import Core
from slurm_bridge.telemetry.collectors import InformerNumbers


class Feeds:
    """All informers of one daemon. Handlers are joined to the core before anything starts."""

    def __init__(self, cluster: ports.Cluster, clock: ports.Clock, dice: random.Random) -> None:
        self._cluster, self._clock, self._dice = cluster, clock, dice
        self._informers: dict[str, Informer[Any]] = {}

    def watch(
        self, name: str, kind: Kind[Any], scope: ports.Scope, *handlers: Callable[[Any, Any], None]
    ) -> Informer[Any]:
        """One more informer."""
        subject = Subject(cluster=self._cluster, kind=kind, scope=scope)
        made: Informer[Any] = Informer(subject, clock=self._clock, dice=self._dice, handlers=handlers)
        self._informers[name] = made
        return made

    def join(self, core: Core, scheduler_names: Iterable[str]) -> None:
        """Feed this core."""
        ours = tuple(scheduler_names)
        for name in ours:
            self.watch(f"pods:{name}", kinds.PODS, ports.Scope(fields=f"spec.schedulerName={name}"), core.on_pod)
        others = ",".join(["spec.nodeName!=", *(f"spec.schedulerName!={name}" for name in ours)])
        self.watch("pods:others", kinds.PODS, ports.Scope(fields=others), core.on_other_pod)
        self.watch("nodes", kinds.NODES, ports.EVERYWHERE, core.on_node)

    def jobs(self, changed: Callable[[Job | None, Job | None], None]) -> Callable[[str, str], Job | None]:
        """Watch Jobs; the lookup that it gives reads memory only."""
        informer = self.watch("jobs", kinds.JOBS, ports.EVERYWHERE, changed)
        return informer.store.get

    def views(self, needs: Iterable[Need], changed: Callable[[Any, Any], None]) -> Mapping[Need, View]:
        """Watch what hooks have declared, and nothing else; whoever waits may wait for a change of it."""
        return {
            need: self.watch(need.value, needs_table.KINDS[need], ports.EVERYWHERE, changed).store for need in needs
        }

    def start(self) -> None:
        """Follow everything."""
        for informer in self._informers.values():
            informer.start()

    def stop(self) -> None:
        """End all threads."""
        for informer in self._informers.values():
            informer.stop()

    @property
    def synced(self) -> bool:
        """Every cache holds a whole list."""
        return all(informer.store.synced for informer in self._informers.values())

    def problem(self) -> str:
        """Which caches hold nothing yet; for the readiness probe."""
        missing = [name for name, informer in self._informers.items() if not informer.store.synced]
        return f"not listed yet: {', '.join(missing)}" if missing else ""

    def dead(self) -> tuple[str, ...]:
        """Informers whose thread has ended."""
        return tuple(name for name, informer in self._informers.items() if not informer.alive)

    def numbers(self) -> Mapping[str, Callable[[], InformerNumbers]]:
        """What each shows of itself."""
        return {name: lambda one=informer: _numbers(one) for name, informer in self._informers.items()}  # type: ignore[misc]


def _numbers(informer: Informer[Object]) -> InformerNumbers:
    counters = informer.counters
    return InformerNumbers(
        objects=len(informer.store),
        synced=informer.store.synced,
        lists=counters.lists,
        watches=counters.watches,
        events=counters.events,
        failures=counters.failures,
    )
