"""The informers of the daemon: our pods, bound pods of other schedulers, nodes, owners of pods, and what hooks need."""

import functools
import random
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.hooks import needs as needs_table
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.informers.informer import Informer
from slurm_bridge.informers.reflector import ReflectorSubject
from slurm_bridge.informers.source import Changed as PodChanged
from slurm_bridge.informers.source import PodSource
from slurm_bridge.informers.store import Store
from slurm_bridge.model import kinds
from slurm_bridge.model.devices import ResourceSlice
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.node import Node
from slurm_bridge.scheduler.core import Core
from slurm_bridge.telemetry.collectors import InformerNumbers
from slurm_bridge.workloads import kind_table, known
from slurm_bridge.workloads.known import Known

#: The time between two checks whether the cluster now serves a kind that it did not serve before.
ASK_AGAIN: Final = 30.0
#: The time until the next check after one that failed.
NO_ANSWER: Final = 2.0

#: A new configuration is refused if the first list of what its hooks need takes longer than this.
FIRST_LIST: Final = 20.0

Changed = Callable[[Object | None, Object | None], None]
Show = Callable[[str, Callable[[], InformerNumbers]], None]


class Feeds:
    """All informers of one daemon. Handlers are connected to the core before any informer starts.

    Some kinds that group pods may not be served; the daemon checks for them now and then and does not wait. It waits
    once, at the start, until the cluster says which kinds it serves: otherwise a pod of a group would be taken for
    a single pod.
    """

    def __init__(self, cluster: ports.Cluster, clock: ports.Clock, dice: random.Random) -> None:
        self._cluster, self._clock, self._dice = cluster, clock, dice
        # Replaced as a whole, because other threads iterate over it while a kind is added.
        self._informers: Mapping[str, Informer[Any]] = {}
        #: Kinds are added by the thread that looks for them, and by one that reads the configuration again.
        self._lock = threading.Lock()
        self._shown: list[Show] = []
        self._stores: dict[Kind[Any], Store[Any]] = {}
        self._lacking: tuple[Kind[Any], ...] = ()
        self._coming: tuple[Kind[Any], ...] = ()
        #: Informers that start once the cluster serves their kind; those in `_unserved` have not started.
        self._optional: dict[str, Informer[Any]] = {}
        self._unserved: Mapping[str, Kind[Any]] = {}
        #: The listeners to ResourceSlices: hooks and the node controller share one informer, for there are many.
        self._of_slices: tuple[Changed, ...] = ()
        self._changed: Changed = lambda _old, _new: None
        self._appeared: Callable[[], None] = lambda: None
        self._due = float("-inf")
        self._settled = True

    def watch(
        self, name: str, kind: Kind[Any], scope: ports.Scope, *handlers: Callable[[Any, Any], None]
    ) -> Informer[Any]:
        """Add an informer."""
        made = self._made(kind, scope, *handlers)
        self._enter(name, made)
        return made

    def _made(self, kind: Kind[Any], scope: ports.Scope, *handlers: Callable[[Any, Any], None]) -> Informer[Any]:
        subject = ReflectorSubject(cluster=self._cluster, kind=kind, scope=scope)
        indexes = kind_table.INDEXES.get(kind)
        return Informer(subject, clock=self._clock, dice=self._dice, handlers=handlers, indexes=indexes)

    def _enter(self, name: str, made: Informer[Any]) -> None:
        with self._lock:
            self._informers = {**self._informers, name: made}
        for show in self._shown:
            show(name, made.numbers)

    def pods(self, scheduler_names: Iterable[str]) -> PodSource:
        """The source of the pods that name one of these schedulers."""
        return _WatchedPods(self, tuple(scheduler_names))

    def join(
        self,
        core: Core,
        scheduler_names: Iterable[str],
        source: PodSource,
        on_pod: PodChanged,
        *on_node: Callable[[Any, Any], None],
    ) -> Callable[[], Sequence[Node]]:
        """Connect the informers of pods and nodes to this core; `source` delivers our own pods, to `on_pod`.

        `on_node` also hear of nodes. The result are all nodes as last heard.
        """
        ours = tuple(scheduler_names)
        source.subscribe(on_pod)
        others = ",".join(["spec.nodeName!=", *(f"spec.schedulerName!={name}" for name in ours)])
        self.watch("pods:others", kinds.PODS, ports.Scope(fields=others), core.on_other_pod)
        nodes: Informer[Node] = self.watch("nodes", kinds.NODES, ports.EVERYWHERE, core.on_node, *on_node)
        return nodes.store.all

    def groups(self, changed: Changed, appeared: Callable[[], None]) -> Known:
        """Watch the kinds that own or group pods, as far as the cluster serves them. The result reads memory only.

        `changed` is called for changes that matter for pods, not for progress; `appeared` when a new kind is served.
        """
        self._changed, self._appeared = changed, appeared
        jobs = self.watch(kinds.JOBS.plural, kinds.JOBS, ports.EVERYWHERE, _when_it_counts(changed))
        self._stores[kinds.JOBS] = jobs.store
        self._lacking = tuple(kind for kind in kind_table.WATCHED if kind is not kinds.JOBS)
        self._settled = False
        return known.Stores(self._stores)

    def look_for_kinds(self) -> None:
        """Check whether missing kinds are served now. To be called often, from one thread; it limits its own rate."""
        self._welcome()
        now = self._clock.now()
        if not (self._lacking or self._unserved) or now < self._due:
            return
        try:
            found = tuple(kind for kind in self._lacking if self._cluster.served(kind) is not None)
            for name in self._unserved:
                self._begin(name)
        except errors.BridgeError as problem:
            self._due = now + NO_ANSWER
            logger.warning("cannot find out which kinds of workloads the cluster serves: {}", problem)
            return
        self._due = now + ASK_AGAIN
        self._lacking = tuple(kind for kind in self._lacking if kind not in found)
        self._coming += found
        for kind in found:
            self._follow(kind)
        self._settled = self._settled or not self._coming

    def _begin(self, name: str) -> None:
        """Start an optional informer if its kind is served now."""
        kind = self._unserved.get(name)
        if kind is None or self._cluster.served(kind) is None:
            return
        with self._lock:
            ours = name in self._unserved
            self._unserved = {other: one for other, one in self._unserved.items() if other != name}
        if ours:
            self._optional[name].start()
            self._enter(name, self._optional[name])

    def _follow(self, kind: Kind[Any]) -> None:
        tell = functools.partial(self._companion_changed, kind) if kind in kind_table.COMPANIONS else self._changed
        made = self._made(kind, ports.EVERYWHERE, _when_it_counts(tell))
        # The store comes before the start, so that a handler finds the object. The informer is listed after the start,
        # because an informer that is listed and does not run counts as dead.
        self._stores[kind] = made.store
        made.start()
        self._enter(_name(kind), made)

    def _welcome(self) -> None:
        """Count the kinds whose first list has arrived."""
        come = tuple(kind for kind in self._coming if self._stores[kind].synced)
        if not come:
            return
        logger.info("the cluster serves {}", ", ".join(f"{kind.plural}.{kind.group}" for kind in come))
        self._coming = tuple(kind for kind in self._coming if kind not in come)
        self._appeared()
        self._settled = self._settled or not self._coming

    def _companion_changed(self, kind: Kind[Any], old: Object | None, new: Object | None) -> None:
        """Pods do not name a companion (a Workload); the objects it describes (PodGroups) connect them."""
        spoken_for, companion = kind_table.COMPANIONS[kind]
        found, objects = new or old, self._stores.get(spoken_for)
        if found is None or objects is None:
            return
        for one in objects.where(companion.index, "/".join(found.key)):
            self._changed(None, one)

    def views(self, needs: Iterable[Need], changed: Callable[[Any, Any], None]) -> Mapping[Need, View]:
        """Watch what hooks declare, and what every chain looks at. A change wakes the workloads that wait for one.

        What a hook declares is waited for before anything is scheduled, also what is optional for all others.
        """
        found: dict[Need, View] = {}
        wanted = frozenset(needs)
        for need in sorted(wanted | needs_table.OPTIONAL, key=lambda one: one.value):
            kind = needs_table.KINDS[need]
            if need not in wanted:
                found[need] = self._when_served(need.value, kind, changed)
            else:
                made = self._made(kind, ports.EVERYWHERE, self._listener(need, changed))
                self._enter(need.value, made)
                found[need] = made.store
        return found

    def slices(self, changed: Callable[[Any, Any], None]) -> Callable[[], Sequence[ResourceSlice] | None]:
        """Watch ResourceSlices, once the cluster serves them. The result is None before their first list."""
        name = Need.RESOURCESLICES.value
        self._of_slices = (*self._of_slices, changed)
        known = self._informers.get(name)
        store = known.store if known is not None else self._when_served(name, kinds.RESOURCESLICES, self._tell_slices)
        return lambda: store.all() if store.synced else None

    def _listener(self, need: Need, changed: Changed) -> Changed:
        if need is not Need.RESOURCESLICES:
            return changed
        self._of_slices = (*self._of_slices, changed)
        return self._tell_slices

    def _tell_slices(self, old: Object | None, new: Object | None) -> None:
        for listener in self._of_slices:
            listener(old, new)

    def _when_served(self, name: str, kind: Kind[Any], changed: Callable[[Any, Any], None]) -> Store[Any]:
        made = self._made(kind, ports.EVERYWHERE, changed)
        self._optional[name], self._unserved = made, {**self._unserved, name: kind}
        return made.store

    def more_views(
        self, needs: Iterable[Need], changed: Callable[[Any, Any], None], within: float = FIRST_LIST
    ) -> Mapping[Need, View]:
        """The same while the daemon runs: all of them, or none and BadConfiguration if one cannot be listed in time."""
        before, wanted = self._of_slices, frozenset(needs)
        shared = self._shared_slices(wanted)
        made = {
            need: self._made(needs_table.KINDS[need], ports.EVERYWHERE, self._listener(need, changed))
            for need in wanted - shared.keys()
        }
        for need in shared:
            self._listener(need, changed)
        for one in made.values():
            one.start()
        end = self._clock.now() + within
        found = {**made, **shared}
        late = [
            need.value for need, one in found.items() if not one.store.wait_synced(max(0.0, end - self._clock.now()))
        ]
        if late:
            self._of_slices = before
            for one in made.values():
                one.stop()
            raise errors.BadConfiguration(
                f"hooks: need {', '.join(sorted(late))}, which could not be listed within {within:.0f} s; "
                "may the service account list and watch them?"
            )
        for need, one in made.items():
            self._enter(need.value, one)
        return {need: one.store for need, one in found.items()}

    def _shared_slices(self, needs: Collection[Need]) -> Mapping[Need, Informer[Any]]:
        """The informer that is there already, or starts once they are served: a second one would displace it."""
        name = Need.RESOURCESLICES.value
        known = self._informers.get(name) or self._optional.get(name)
        if known is None or Need.RESOURCESLICES not in needs:
            return {}
        try:
            self._begin(name)
        except errors.BridgeError as problem:
            logger.warning("cannot find out whether the cluster serves {}: {}", name, problem)
        return {Need.RESOURCESLICES: known}

    def start(self) -> None:
        """Start all informers."""
        for informer in self._informers.values():
            informer.start()

    def stop(self) -> None:
        """Stop all informers."""
        for informer in self._informers.values():
            informer.stop()

    @property
    def synced(self) -> bool:
        """Every cache has a complete list. A kind that is served later does not reset this."""
        return not self._missing()

    def problem(self) -> str:
        """The caches without a complete list; for the readiness probe."""
        missing = self._missing()
        return f"not listed yet: {', '.join(missing)}" if missing else ""

    def _missing(self) -> list[str]:
        late = {*self._optional, *(_name(kind) for kind in self._coming if self._settled)}
        missing = [name for name, one in self._informers.items() if name not in late and not one.store.synced]
        return missing if missing or self._settled else ["the kinds of workloads"]

    def dead(self) -> tuple[str, ...]:
        """The informers whose thread has ended."""
        return tuple(name for name, informer in self._informers.items() if not informer.alive)

    def show(self, to: Show) -> None:
        """Call `to` with the numbers of each informer, including those that are added later."""
        self._shown.append(to)
        for name, informer in self._informers.items():
            to(name, informer.numbers)


class _WatchedPods:
    """A PodSource that watches the API server."""

    def __init__(self, feeds: Feeds, scheduler_names: tuple[str, ...]) -> None:
        self._feeds, self._names = feeds, scheduler_names
        self._informers: list[Informer[Any]] = []

    def subscribe(self, changed: PodChanged) -> None:
        for name in self._names:
            scope = ports.Scope(fields=f"spec.schedulerName={name}")
            self._informers.append(self._feeds.watch(f"pods:{name}", kinds.PODS, scope, changed))

    def problem(self) -> str:
        return "" if all(one.store.synced for one in self._informers) else "the pods are not listed yet"


def _name(kind: Kind[Any]) -> str:
    """The plural; with the API group if another kind has the same plural, as PodGroups do."""
    first = next(one for one in kind_table.WATCHED if one.plural == kind.plural)
    return kind.plural if kind == first else f"{kind.plural}.{kind.group}"


def _when_it_counts(tell: Changed) -> Changed:
    def changed(old: Object | None, new: Object | None) -> None:
        if old is None or new is None or known.meaning(old) != known.meaning(new):
            tell(old, new)

    return changed
