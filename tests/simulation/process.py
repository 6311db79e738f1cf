"""One process of a daemon without a thread: it starts, lists and recovers, then goes on beat by beat."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from slurm_bridge import errors, ports
from slurm_bridge.hooks import needs as needs_table
from slurm_bridge.hooks.needs import Need
from slurm_bridge.informers.store import Store
from slurm_bridge.model import kinds, names
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.overlays.fenced import FencedCluster, FencedSlurm
from slurm_bridge.sim.kube import resources
from slurm_bridge.workloads import kind_table, known
from tests.simulation.threadless_watch import Feed
from tests.simulation.world import World

#: Steps in one beat, and some for every pod; more would mean that something spins.
MOST_STEPS, STEPS_PER_POD = 300, 5

#: Slow calls take the time of the world; others have to have their turn.
LONGEST_BEAT = 5.0

#: How often a watch is quicker than the next step.
HEARD_AT_ONCE = 0.2
#: How often the watch of a kind that groups pods is slower than those of pods and nodes.
HEARD_LATE = 0.15

Always: Callable[[], bool] = lambda: True  # noqa: E731 - a constant


class Spinning(AssertionError):
    """The daemon goes on for ever without time passing."""


class Brain(Protocol):
    """What a beat moves: the core of the daemon, or something that a test puts in its place."""

    def on_pod(self, old: Any, new: Any) -> object: ...

    def on_other_pod(self, old: Any, new: Any) -> object: ...

    def on_node(self, old: Any, new: Any) -> object: ...

    def on_owner(self, old: Any, new: Any) -> object: ...

    def on_kinds(self) -> object: ...

    def on_surroundings(self) -> object: ...

    def recover(self) -> object: ...

    def schedule_step(self) -> bool: ...

    def mirror_step(self) -> object: ...

    def status_step(self) -> bool: ...


#: Has what hooks need followed from then on.
Views = Callable[[Iterable[Need]], Mapping[Need, Store[Any]]]

Build = Callable[[ports.Cluster, ports.Slurm, ports.Clock, known.Known, Views], Brain]


class Daemon:
    """Starts as a process does: lists, recovers, then goes on beat by beat."""

    def __init__(self, world: World, name: str, build: Build, *, allowed: Callable[[], bool] = Always) -> None:
        self.name = name
        self._world = world
        clock = world.clock_of(world.dice.choice((0.0, 600.0, -600.0)))
        cluster, slurm = world.cluster(name, clock), world.jobs_of(name, clock)
        groups: dict[Kind[Any], Feed[Any]] = {
            kind: Feed(cluster, kind, self._on_owner, news=world.news(kind)) for kind in kind_table.WATCHED
        }
        stores = known.Stores({kind: feed.store for kind, feed in groups.items()})
        self._recovered = False
        self._needed: dict[Need, Feed[Any]] = {}
        self._follow = lambda need: Feed(
            cluster, needs_table.KINDS[need], self._on_surroundings, news=world.news(needs_table.KINDS[need])
        )
        self.brain = build(FencedCluster(cluster, allowed), FencedSlurm(slurm, allowed), clock, stores, self._views)
        self._groups = tuple(groups.values())
        self.feeds: tuple[Feed[Any], ...] = (
            Feed(cluster, kinds.NODES, self.brain.on_node, news=world.news(kinds.NODES)),
            *self._groups,
            Feed(cluster, kinds.PODS, self._on_pod, news=world.news(kinds.PODS)),
        )
        self._synced = 0
        self._again = 0.0
        self.deaf_until = 0.0
        #: What hooks have followed, of which nothing is heard until then.
        self.lags: dict[Need, float] = {}

    def _views(self, needs: Iterable[Need]) -> Mapping[Need, Store[Any]]:
        """What was not followed yet is asked for at once."""
        wanted = sorted(needs, key=lambda need: need.value)
        for need in wanted:
            if need not in self._needed:
                self._needed[need] = self._follow(need)
                # A process that starts lists with everything else.
                if self._recovered:
                    self._needed[need].pump()
        return {need: self._needed[need].store for need in wanted}

    def _on_surroundings(self, old: Any, new: Any) -> None:
        if self._recovered:
            self.brain.on_surroundings(old, new)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        ours = pod is not None and pod.spec.scheduler_name == names.SCHEDULER_NAME
        (self.brain.on_pod if ours else self.brain.on_other_pod)(old, new)

    def _on_owner(self, old: Object | None, new: Object | None) -> None:
        """As the daemon's own feeds do: progress is ignored."""
        if old is None or new is None or known.meaning(old) != known.meaning(new):
            self.brain.on_owner(old, new)

    def beat(self) -> None:
        """Everything that is to be done at this moment."""
        now = self._world.clock.now()
        needed = [feed for need, feed in self._needed.items() if not (self._recovered and now < self.lags.get(need, 0))]
        told = [self._hear(feed) for feed in (*needed, *self.feeds)]
        self._welcome()
        if not self._recovered and not (all(told) and self._recover()):
            return
        self.brain.mirror_step()
        for feed in self.feeds:
            self._hear(feed)
        self._exhaust(self.brain.schedule_step)
        self._exhaust(self.brain.status_step)

    def _welcome(self) -> None:
        """Kinds count from their first whole list on."""
        synced = sum(feed.store.synced for feed in self._groups)
        if synced > self._synced:
            self._synced = synced
            self.brain.on_kinds()

    def _hear(self, feed: Feed[Any]) -> bool:
        """A watch that is half open says nothing, unnoticed."""
        late = self._recovered and feed in self._groups and self._world.dice.random() < HEARD_LATE
        deaf = feed.store.synced and self._world.clock.now() < self.deaf_until
        return late or deaf or feed.pump()

    def _recover(self) -> bool:
        if self._world.clock.now() < self._again:
            return False
        try:
            self.brain.recover()
        except errors.BridgeError as problem:
            self._world.weather.note(f"{self.name} cannot recover: {problem}")
            self._again = self._world.clock.now() + 2.0
            return False
        self._recovered = True
        return True

    def _exhaust(self, step: Callable[[], bool]) -> None:
        """As long as there is something to do, and the world has not moved on by much meanwhile."""
        until = self._world.clock.now() + LONGEST_BEAT
        most = MOST_STEPS + STEPS_PER_POD * self._world.kube.store.count(resources.PODS)
        for _ in range(most):
            if not step() or self._world.clock.now() > until:
                return
            if self._world.dice.random() < HEARD_AT_ONCE:
                self._hear(self.feeds[-1])
        raise Spinning(f"{self.name} has more to do after {most} steps of {step.__name__}")
