"""Daemons of several parts in one world, by the program's own classes, and the promise that none acts elsewhere.

P1  a daemon changes pods and jobs of a namespace only while the record of that namespace names its part
"""

import dataclasses
import functools
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from slurm_bridge import errors, ports
from slurm_bridge.controllers.leader import Election, Terms
from slurm_bridge.controllers.ownership import NamespaceOwnership, OwnershipPorts
from slurm_bridge.daemon import assembly, configuration
from slurm_bridge.daemon.parts import PartFollower
from slurm_bridge.hooks.needs import Need
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.mirror.served import ServedNamespaces
from slurm_bridge.model import kinds, names
from slurm_bridge.model.parts import ClusterParts
from slurm_bridge.overlays.fenced import FencedCluster, FencedSlurm
from slurm_bridge.settings.model import Settings
from slurm_bridge.sim import wire
from slurm_bridge.sim.kube.resources import PODS
from slurm_bridge.workloads import known
from tests.simulation.broken_promise import Broken
from tests.simulation.daemon import SETTINGS, Uncounted
from tests.simulation.play import PATIENCE, QUIET, Play, Running
from tests.simulation.process import Daemon, Views
from tests.simulation.weather import Chore
from tests.simulation.world import World, spec

LEASES, LEASE = "kube-system", "bridge"
#: Longer than a lease lasts.
ASLEEP = 40.0
#: The time between two renewals.
RENEWAL = 2.0


class PartBrain:
    """What `daemon/process.py` builds for a daemon with a part, without threads."""

    def __init__(
        self,
        given: ClusterParts,
        cluster: ports.Cluster,
        slurm: ports.Slurm,
        clock: ports.Clock,
        objects: known.Known,
        views: Views,
    ) -> None:
        settings = Settings.model_validate({**SETTINGS, "parts": {"names": given.every, "own": given.own}})
        self._cluster, self._clock, self._due = cluster, clock, 0.0
        self._namespaces = views({Need.NAMESPACES})[Need.NAMESPACES]
        self.election = self._election(given.lease(given.own), parts=False)
        self.appointment = self._election(given.lease_name, parts=True)
        reach = OwnershipPorts(
            cluster=cluster,
            clock=clock,
            labels=self._labels,
            needed=self._needed,
            leading=lambda: self.election.leading,
            term=lambda: self.election.term + self.appointment.wholes,
            whole=lambda: self.appointment.beside_a_whole,
            lease_seconds=settings.leader_election.lease_seconds,
        )
        self.ownership = NamespaceOwnership(given, reach)
        around = ChainServices(
            clock=clock,
            dice=random.Random(4),
            settle=configuration.settle(),
            limits=configuration.attempt_limits(settings),
            threads=False,
        )
        outside = assembly.CoreInputs(
            cluster=FencedCluster(cluster, self._may_write),
            slurm=FencedSlurm(slurm, self._may_write),
            clock=clock,
            dice=random.Random(3),
            known=objects,
            counters=Uncounted(),
            around=around,
            views=views,
            served=ServedNamespaces(
                serves=self.ownership.serves, schedules=self.ownership.schedules, met=self.ownership.met
            ),
        )
        built = assembly.build(settings, outside)
        self.core, self._voice = built.core, built.reporter
        self.follower = PartFollower(self.core, self.ownership, clock)
        self.on_pod, self.on_other_pod = self.follower.on_pod, self.core.on_other_pod
        self.on_node, self.on_owner = self.core.on_node, self.core.on_owner
        self.on_kinds = self.core.on_kinds

    def _election(self, name: str, *, parts: bool) -> Election:
        terms = Terms(namespace=LEASES, name=name, identity=f"{id(self):x}", parts=parts)
        return Election(self._cluster, self._clock, terms, dice=random.Random(5))

    def _labels(self, namespace: str) -> Mapping[str, str] | None:
        found = self._namespaces.get("", namespace) or self._cluster.get(kinds.NAMESPACES, "", namespace)
        return None if found is None else found.metadata.labels

    def _needed(self, namespace: str) -> bool:
        return self.follower.needed(namespace)

    def _may_write(self) -> bool:
        return self.ownership.current

    def _elect(self) -> None:
        if self._clock.now() >= self._due:
            self._due = self._clock.now() + RENEWAL
            self.election.step()
            self.appointment.step()

    def on_surroundings(self, old: Any, new: Any) -> None:
        """What hooks follow has changed, and namespaces."""
        self.ownership.stirred.set()
        self.core.on_surroundings(old, new)

    def recover(self) -> None:
        """As the scheduler's thread does when it leads anew."""
        self._elect()
        if not self.election.leading:
            raise errors.TryLater("another replica leads")
        self.follower.begin()
        self.core.recover()

    def mirror_step(self) -> None:
        """What the threads do that look at Slurm, at leases, and at other daemons."""
        self._elect()
        if self.ownership.current:
            self.follower.step()
            self.core.mirror_step()
            self.core.preempt_step()
            self.core.tell_step()

    def schedule_step(self) -> bool:
        """What the scheduler's thread does."""
        if not self.ownership.current:
            if not self.election.leading:
                return False
            try:
                self.recover()
            except errors.BridgeError:
                return False
        self.follower.follow()
        return self.core.schedule_step()

    def status_step(self) -> bool:
        """What the reporter's thread does."""
        return self._voice.step()


class PartsPlay(Play):
    """One daemon for each part. `every` may change: daemons that start from then on have the new cut."""

    def __init__(self, world: World, every: tuple[str, ...]) -> None:
        super().__init__(world, lambda *_given: None)  # type: ignore[arg-type, return-value]
        self.every = every
        self.parts: dict[str, Running] = {}
        self._lives = 0
        self._beating: Running | None = None
        self._asleep: list[Running | None] = []
        self._judge = Judge(world)
        world.around_kube.append(self._judge.around)
        world.around_slurm.append(self._judge.around)

    def start(self) -> Running:
        """The first part that has no daemon gets one."""
        missing = [part for part in self.every if self.parts.get(part) not in self.daemons]
        return self.begin(missing[0] if missing else self.every[0])

    def begin(self, part: str) -> Running:
        """A process for this part, beside an older one if there is one."""
        self._lives += 1
        given = ClusterParts(own=part, every=self.every, lease_namespace=LEASES, lease_name=LEASE)
        name = f"{part}{self._lives}"
        self._judge.parts[name] = part
        self.world.weather.note(f"{name} starts, of {self.every}")
        running = Running(daemon=Daemon(self.world, name, functools.partial(PartBrain, given)))
        self.daemons.append(running)
        self.parts[part] = running
        return running

    def begin_all(self) -> None:
        """Every part has a daemon, and no other part has one."""
        for running in list(self.daemons):
            if running not in [self.parts.get(part) for part in self.every]:
                self.end(running)
        for part in self.every:
            if self.parts.get(part) not in self.daemons:
                self.begin(part)

    def holder(self, namespace: str) -> str | None:
        """The part that has a namespace."""
        return holder_of(self.world, namespace)

    def kill(self, part: str) -> None:
        """kill -9 of its daemon."""
        running = self.parts.get(part)
        if running is not None:
            self.end(running)

    def beat(self, running: Running) -> None:
        """One beat; it is known which process makes the calls."""
        before, self._beating = self._beating, running
        try:
            super().beat(running)
        finally:
            self._beating = before

    def asleep(self, act: Callable[[], object]) -> Chore:
        """A chore: the caller stands still in a call for longer than its lease, while the others go on."""

        def chore() -> None:
            still = self._beating
            self._asleep.append(still)
            self.world.weather.note("the caller falls asleep")
            act()
            until = self.world.clock.now() + ASLEEP
            while self.world.clock.now() < until:
                for running in list(self.daemons):
                    if running not in self._asleep and running in self.daemons:
                        self.beat(running)
                self.world.pass_time(1.0)
            self._asleep.remove(still)
            self.world.weather.note("the caller wakes")

        return chore

    def rest(self) -> None:
        """Until nothing is wrong for a while; Broken when that does not come. Leases are renewed at all times."""
        began, good_since = self.world.clock.now(), None
        while True:
            self.step(1.0)
            now = self.world.clock.now()
            if self.world.observer.complaints() or self.world.kube.next_due() is not None:
                good_since = None
            else:
                good_since = now if good_since is None else good_since
                if now - good_since >= QUIET:
                    return
            if now - began > PATIENCE:
                raise Broken("; ".join(self.world.observer.complaints()) or "P: it does not come to rest")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What daemons change, by namespace: pods by uid, jobs by id."""

    pods: Mapping[str, tuple[str, int]]
    jobs: Mapping[int, tuple[str, Any]]


class Judge:
    """Looks before and after every call, beside the observer."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.parts: dict[str, str] = {}

    def around(self, handler: wire.Handler, who: str) -> wire.Handler:
        """What changes while the server serves this call is the caller's deed."""

        def judged(request: wire.Request) -> wire.Response:
            before = self._marks()
            response = handler(request)
            for namespace in sorted(set(self._touched(before, self._marks()))):
                self._judge(namespace, who)
            return response

        return judged

    def _marks(self) -> Marks:
        stored = self._world.kube.store.all(PODS)
        pods = {one.uid: (one.namespace, one.version) for one in stored if self._is_ours(one.manifest())}
        jobs = {
            job.job_id: (owner.namespace, (job.ask, job.held, job.over))
            for job in self._world.slurm.world.jobs.values()
            if (owner := self._world.observer.owner(job)) is not None
        }
        return Marks(pods=pods, jobs=jobs)

    def _is_ours(self, manifest: Mapping[str, Any]) -> bool:
        return bool(manifest["spec"].get("schedulerName") == names.SCHEDULER_NAME)

    def _touched(self, old: Marks, new: Marks) -> Iterator[str]:
        for before, after in ((old.pods, new.pods), (old.jobs, new.jobs)):
            for one in {**before, **after}:  # type: ignore[dict-item]
                was, now = before.get(one), after.get(one)  # type: ignore[call-overload]
                if was != now:
                    yield (now or was)[0]

    def _judge(self, namespace: str, who: str) -> None:
        holder = holder_of(self._world, namespace)
        if holder != self.parts[who]:
            raise Broken(f"P1: {who} of part {self.parts[who]} acts in {namespace}, whose record names {holder}")


def holder_of(world: World, namespace: str) -> str | None:
    """The part that its record names."""
    record = world.kube.get(kinds.LEASES, LEASES, f"{LEASE}.namespace.{namespace}")
    return record["spec"].get("holderIdentity") if record is not None else None


def pod(world: World, namespace: str, name: str, **wishes: str) -> None:
    """A pod of ours there."""
    world.weather.note(f"user creates pod {namespace}/{name} {wishes}")
    kubelet = {f"kwok.local/{wish}": value for wish, value in wishes.items()}
    metadata = {"name": name, "namespace": namespace, "annotations": kubelet}
    world.kube.create(kinds.PODS, {"metadata": metadata, "spec": spec("1")})


def relabel(world: World, namespace: str, part: str | None) -> None:
    """An administrator moves a namespace to another part, or leaves it to its name."""
    world.weather.note(f"admin moves {namespace} to {part}")
    world.kube.merge(kinds.NAMESPACES, ("", namespace), {"metadata": {"labels": {names.LABEL_PART: part}}})
