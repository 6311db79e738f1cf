"""What is watched, and whom it is told: our pods, others' bound pods, nodes, who groups pods, and what hooks need."""

import functools
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.hooks import needs as needs_table
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.informers.informer import Informer
from slurm_bridge.informers.reflector import Subject
from slurm_bridge.informers.source import Changed as PodChanged
from slurm_bridge.informers.source import PodSource
from slurm_bridge.informers.store import Store
from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.scheduler.core import Core
from slurm_bridge.telemetry.collectors import InformerNumbers
from slurm_bridge.workloads import kind_table, known
from slurm_bridge.workloads.known import Known

#: The time between two questions whether the cluster serves a kind by now that it did not serve before.
ASK_AGAIN: Final = 30.0
#: The same after a question that got no answer.
NO_ANSWER: Final = 2.0

#: The first list of what a hook newly needs has to be in by then, or the new configuration is not taken.
FIRST_LIST: Final = 20.0

Changed = Callable[[Object | None, Object | None], None]
Show = Callable[[str, Callable[[], InformerNumbers]], None]


class Feeds:
    """All informers of one daemon. Handlers are joined to the core before anything starts.

    Kinds that group pods and that the cluster does not serve are looked for now and then; none of them is waited for,
    except that once the cluster has to say which it serves: a pod of a group must not be taken for a single one.
    """

    def __init__(self, cluster: ports.Cluster, clock: ports.Clock, dice: random.Random) -> None:
        self._cluster, self._clock, self._dice = cluster, clock, dice
        # Replaced as a whole: others go through it while a kind is added.
        self._informers: Mapping[str, Informer[Any]] = {}
        self._shown: list[Show] = []
        self._stores: dict[Kind[Any], Store[Any]] = {}
        self._lacking: tuple[Kind[Any], ...] = ()
        self._coming: tuple[Kind[Any], ...] = ()
        #: What is followed once the cluster serves it, and nobody waits for; those of it that do not run yet.
        self._optional: dict[str, Informer[Any]] = {}
        self._unserved: tuple[Need, ...] = ()
        self._changed: Changed = lambda _old, _new: None
        self._appeared: Callable[[], None] = lambda: None
        self._due = float("-inf")
        self._settled = True

    def watch(
        self, name: str, kind: Kind[Any], scope: ports.Scope, *handlers: Callable[[Any, Any], None]
    ) -> Informer[Any]:
        """One more informer."""
        made = self._made(kind, scope, *handlers)
        self._enter(name, made)
        return made

    def _made(self, kind: Kind[Any], scope: ports.Scope, *handlers: Callable[[Any, Any], None]) -> Informer[Any]:
        subject = Subject(cluster=self._cluster, kind=kind, scope=scope)
        indexes = kind_table.INDEXES.get(kind)
        return Informer(subject, clock=self._clock, dice=self._dice, handlers=handlers, indexes=indexes)

    def _enter(self, name: str, made: Informer[Any]) -> None:
        self._informers = {**self._informers, name: made}
        for show in self._shown:
            show(name, made.numbers)

    def pods(self, scheduler_names: Iterable[str]) -> PodSource:
        """The pods that name one of these, as the API server shows them."""
        return _Watched(self, tuple(scheduler_names))

    def join(self, core: Core, scheduler_names: Iterable[str], source: PodSource) -> None:
        """Feed this core; our pods are those of the source."""
        ours = tuple(scheduler_names)
        source.subscribe(core.on_pod)
        others = ",".join(["spec.nodeName!=", *(f"spec.schedulerName!={name}" for name in ours)])
        self.watch("pods:others", kinds.PODS, ports.Scope(fields=others), core.on_other_pod)
        self.watch("nodes", kinds.NODES, ports.EVERYWHERE, core.on_node)

    def groups(self, changed: Changed, appeared: Callable[[], None]) -> Known:
        """Watch whoever makes or groups pods, as far as the cluster serves it; the answer reads memory only.

        `changed` hears what counts for pods and not of progress, `appeared` that a kind has come to be served.
        """
        self._changed, self._appeared = changed, appeared
        jobs = self.watch(kinds.JOBS.plural, kinds.JOBS, ports.EVERYWHERE, _when_it_counts(changed))
        self._stores[kinds.JOBS] = jobs.store
        self._lacking = tuple(kind for kind in kind_table.WATCHED if kind is not kinds.JOBS)
        self._settled = False
        return known.Stores(self._stores)

    def look_for_kinds(self) -> None:
        """One question now and then for each kind that is not served; call it often, from one thread."""
        self._welcome()
        now = self._clock.now()
        if not (self._lacking or self._unserved) or now < self._due:
            return
        try:
            found = tuple(kind for kind in self._lacking if self._cluster.served(kind) is not None)
            self._follow_optional()
        except errors.BridgeError as problem:
            self._due = now + NO_ANSWER
            logger.warning("cannot ask which kinds of workloads the cluster serves: {}", problem)
            return
        self._due = now + ASK_AGAIN
        self._lacking = tuple(kind for kind in self._lacking if kind not in found)
        self._coming += found
        for kind in found:
            self._follow(kind)
        self._settled = self._settled or not self._coming

    def _follow(self, kind: Kind[Any]) -> None:
        tell = functools.partial(self._companion_changed, kind) if kind in kind_table.COMPANIONS else self._changed
        made = self._made(kind, ports.EVERYWHERE, _when_it_counts(tell))
        # Whoever is told of an object finds it there; and whoever looks for dead informers finds only what has lived.
        self._stores[kind] = made.store
        made.start()
        self._enter(_name(kind), made)

    def _follow_optional(self) -> None:
        """Those that are served now."""
        for need in self._unserved:
            if self._cluster.served(needs_table.KINDS[need]) is not None:
                self._unserved = tuple(one for one in self._unserved if one is not need)
                self._optional[need.value].start()
                self._enter(need.value, self._optional[need.value])

    def _welcome(self) -> None:
        """Whose first list is in counts from now on."""
        come = tuple(kind for kind in self._coming if self._stores[kind].synced)
        if not come:
            return
        logger.info("the cluster serves {}", ", ".join(f"{kind.plural}.{kind.group}" for kind in come))
        self._coming = tuple(kind for kind in self._coming if kind not in come)
        self._appeared()
        self._settled = self._settled or not self._coming

    def _companion_changed(self, kind: Kind[Any], old: Object | None, new: Object | None) -> None:
        """No pod names a companion (a Workload); the objects it speaks for (PodGroups) stand between them."""
        spoken_for, companion = kind_table.COMPANIONS[kind]
        found, objects = new or old, self._stores.get(spoken_for)
        if found is None or objects is None:
            return
        for one in objects.where(companion.index, "/".join(found.key)):
            self._changed(None, one)

    def views(self, needs: Iterable[Need], changed: Callable[[Any, Any], None]) -> Mapping[Need, View]:
        """Watch what hooks have declared, and nothing else; whoever waits may wait for a change of it."""
        found: dict[Need, View] = {}
        for need in needs:
            made = self._made(needs_table.KINDS[need], ports.EVERYWHERE, changed)
            if need in needs_table.OPTIONAL:
                self._optional[need.value], self._unserved = made, (*self._unserved, need)
            else:
                self._enter(need.value, made)
            found[need] = made.store
        return found

    def more_views(
        self, needs: Iterable[Need], changed: Callable[[Any, Any], None], within: float = FIRST_LIST
    ) -> Mapping[Need, View]:
        """Likewise while everything else runs: all of them or, when one cannot be listed, none (BadConfiguration)."""
        made = {need: self._made(needs_table.KINDS[need], ports.EVERYWHERE, changed) for need in needs}
        for one in made.values():
            one.start()
        end = self._clock.now() + within
        late = [
            need.value for need, one in made.items() if not one.store.wait_synced(max(0.0, end - self._clock.now()))
        ]
        if late:
            for one in made.values():
                one.stop()
            raise errors.BadConfiguration(
                f"hooks: need {', '.join(sorted(late))}, which could not be listed within {within:.0f} s; "
                "may the service account list and watch them?"
            )
        for need, one in made.items():
            self._enter(need.value, one)
        return {need: one.store for need, one in made.items()}

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
        """Every cache holds a whole list. A kind that came to be served later does not hold up the others."""
        return not self._missing()

    def problem(self) -> str:
        """Which caches hold nothing yet; for the readiness probe."""
        missing = self._missing()
        return f"not listed yet: {', '.join(missing)}" if missing else ""

    def _missing(self) -> list[str]:
        late = {*self._optional, *(_name(kind) for kind in self._coming if self._settled)}
        missing = [name for name, one in self._informers.items() if name not in late and not one.store.synced]
        return missing if missing or self._settled else ["the kinds of workloads"]

    def dead(self) -> tuple[str, ...]:
        """Informers whose thread has ended."""
        return tuple(name for name, informer in self._informers.items() if not informer.alive)

    def show(self, to: Show) -> None:
        """Let this see what each informer shows of itself, those that come later too."""
        self._shown.append(to)
        for name, informer in self._informers.items():
            to(name, informer.numbers)


class _Watched:
    """The PodSource that is a watch."""

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
    """The plural; with the API group where another kind has the plural already, as PodGroups do."""
    first = next(one for one in kind_table.WATCHED if one.plural == kind.plural)
    return kind.plural if kind == first else f"{kind.plural}.{kind.group}"


def _when_it_counts(tell: Changed) -> Changed:
    def changed(old: Object | None, new: Object | None) -> None:
        if old is None or new is None or known.meaning(old) != known.meaning(new):
            tell(old, new)

    return changed
