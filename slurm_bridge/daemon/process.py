"""The life of the daemon: start, serve, drain, stop.

start   caches fill, the HTTP servers listen, an election begins
serve   the leader recovers and schedules; the other replicas keep their caches warm
drain   nothing new is decided; actions that were decided are finished
stop    the lease is released, so that another replica takes over at once; caches and HTTP servers close
"""

import dataclasses
import functools
import os
import random
import socket
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from loguru import logger

import slurm_bridge
from slurm_bridge import errors, ports
from slurm_bridge.agents.json_client import JsonClient
from slurm_bridge.checks.findings import Finding
from slurm_bridge.controllers.leader import Election, Terms
from slurm_bridge.controllers.nodes.controller import NodeController, NodePorts
from slurm_bridge.controllers.ownership import NamespaceOwnership, OwnershipPorts
from slurm_bridge.daemon import (
    admin_api,
    admission_api,
    assembly,
    configuration,
    counters,
    hook_observer,
    live_view,
    parts,
    preflight,
    queue_view,
    submission_api,
)
from slurm_bridge.daemon.feeds import Feeds
from slurm_bridge.daemon.loops import LOOK, Loops, WorkerPool
from slurm_bridge.daemon.namespace_labels import NamespaceLabels
from slurm_bridge.daemon.parts import PartFollower
from slurm_bridge.daemon.reload import Reload, SettingsReader, Use
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.informers.source import PodSource
from slurm_bridge.mirror.served import ALL_NAMESPACES, ServedNamespaces
from slurm_bridge.model import texts
from slurm_bridge.model.devices import ResourceSlice
from slurm_bridge.model.meta import Object
from slurm_bridge.model.node import Node
from slurm_bridge.model.parts import ClusterParts
from slurm_bridge.model.slurmtoken import TokenLife
from slurm_bridge.overlays import fenced, metered
from slurm_bridge.runtime.hands import Hands
from slurm_bridge.runtime.oddities import Oddities
from slurm_bridge.runtime.threads import Supervisor
from slurm_bridge.settings.model import Settings
from slurm_bridge.telemetry import health
from slurm_bridge.telemetry.health import Health
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.view.pages import Explain
from slurm_bridge.web import probes
from slurm_bridge.web.routes import Routes

#: The threads have this long to end.
STOP_SECONDS = 20.0
#: Pods of gangs that are bound at the same time, all gangs together.
HANDS = 4
#: Jobs that are read from Slurm at the same time, where many are.
READERS = 4
#: A loop that makes no progress for this long hangs: every call has a shorter timeout.
HUNG = 120.0
#: The process restarts when this many hooks of a site never returned.
MOST_ABANDONED = 8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """Optional parts of a daemon: the preflight checks, and a client that acts with the token of a caller."""

    check: Callable[[], Sequence[Finding]] | None = None
    callers: ports.Callers | None = None
    #: Explains a pod, for the live view.
    explain: Explain | None = None
    #: Counts objects that the adapters cannot read.
    oddities: Oddities | None = None
    #: When the current token for Slurm was made, and when it ends.
    token_life: Callable[[], TokenLife | None] = lambda: None
    #: Called with the annotations that hooks read: before the first list, and after each change of the configuration.
    declare: Callable[[Iterable[str]], None] = lambda _keys: None


T = TypeVar("T")


class _Later(Generic[T]):
    """What a part reads that is built before its source; `of` is the source as soon as there is one."""

    def __init__(self, nothing: Callable[[], T]) -> None:
        self.of = nothing

    def __call__(self) -> T:
        return self.of()


class Daemon:
    """All parts of the daemon, connected; `run` is its whole life."""

    def __init__(
        self,
        settings: Settings,
        cluster: ports.Cluster,
        slurm: ports.Slurm,
        clock: ports.Clock,
        source: SettingsReader | None = None,
        extras: Extras | None = None,
    ) -> None:
        extras = extras or Extras()
        self.settings, self._clock, self._check, self._declare = settings, clock, extras.check, extras.declare
        self._dice = random.Random()  # noqa: S311 - jitter is no secret
        self.metrics, self.health = Metrics(version=slurm_bridge.__version__), Health(clock.now)
        if extras.oddities is not None:
            extras.oddities.counted_by(lambda server, kind: self.metrics.unreadable.labels(server, kind).inc())
        metered_cluster = metered.MeteredCluster(cluster, clock, self._asked_kubernetes)
        metered_slurm = metered.MeteredSlurm(slurm, clock, self._asked_slurm)
        self.supervisor = Supervisor(_report)
        self._parts = parts.of(settings)
        self.election = self._new_election(metered_cluster, self._parts)
        #: Of the daemons of all parts one does what concerns the whole cluster.
        self._appointment = self._new_appointment(metered_cluster) if self._parts is not None else self.election
        self._feeds = Feeds(metered_cluster, clock, self._dice)
        self._labels = NamespaceLabels(lambda: metered_cluster, clock, self._dice, changed=self._on_labels)
        self._hands, self._readers, self._post = Hands(HANDS), Hands(READERS), JsonClient(clock)
        self._ownership = self._new_ownership(metered_cluster)
        self._pods = self._pod_source(extras.callers)
        self._views: Mapping[Need, View] = {}
        self._nodes: NodeController | None = None
        self._follower: PartFollower | None = None
        made = self._assembled(metered_cluster, metered_slurm)
        self.core, self.reporter, self._around = made.core, made.reporter, made.around
        self._declare(self.core.context.config.chain.annotations)
        self._pool = WorkerPool(self.core, settings.scheduling.workers)
        self._loops = Loops(self.core, self._pool, clock, self.health, self._leads, self._follower)
        self._reviewer = self._new_reviewer()
        self._reloader: Reload | None = None
        if source is not None:
            use = Use(
                apply=self._apply,
                told=self._report_reload,
                stored=lambda: admin_api.stored(self.core.context.config.chain),
            )
            self._reloader = Reload(settings, source, use, clock)
        self.server = submission_api.opened(settings, self._routes(extras))
        self.probes = submission_api.probed(settings, probes.alone(self.health))
        self._supervise()

    def run(self) -> int:
        """Run until stopped; returns the exit status."""
        if self._parts is not None:
            self._labels.follow()
        self._feeds.start()
        logger.info("slurm-bridge {} serves on port {}", slurm_bridge.__version__, self.server.port)
        try:
            return self.supervisor.live(self._drain, seconds=STOP_SECONDS)
        finally:
            self._feeds.stop()
            self._labels.stop()
            self.core.context.config.chain.close()
            self._hands.close()
            self._readers.close()
            self._post.close()

    def stop(self) -> None:
        """Stop in order; safe to call from any thread."""
        self.supervisor.stop.set()

    def _asked_slurm(self, operation: str, outcome: str, seconds: float) -> None:
        self.metrics.request_to_slurm(operation, outcome, seconds)
        # A recovery may ask for tens of thousands of jobs: each answer is progress of the loop that asked.
        self.health.beat(threading.current_thread().name)

    def _asked_kubernetes(self, operation: str, outcome: str, seconds: float) -> None:
        self.metrics.request_to_kubernetes(operation, outcome, seconds)
        if outcome == "ok":
            self.health.read("kubernetes")

    def _new_reviewer(self) -> admission_api.AdmissionReviewer | None:
        """The admission webhook, if it is served here: by every replica, not only by the leader."""
        if not self.settings.admission.enabled:
            return None
        config = self.core.context.config
        return admission_api.AdmissionReviewer(self.settings, config, self._labels, self.metrics, self._clock)

    def _leads(self) -> bool:
        return self.election is None or self.election.leading

    def _may_write(self) -> bool:
        return self._leads() and (self._ownership is None or self._ownership.current)

    def _may_change_nodes(self) -> bool:
        return self._may_write() and self._is_appointed()

    def _is_appointed(self) -> bool:
        """This daemon does what only one of all parts may do."""
        return self._appointment is None or self._appointment.leading

    def _stands(self) -> bool:
        """A replica that stands by, or cannot begin, would do nothing when appointed; but it has to mark the lease."""
        owned = self._ownership
        return self._leads() and (self._loops.acting or (owned is not None and not owned.marked))

    def _new_appointment(self, cluster: ports.Cluster) -> Election:
        """On the lease of a daemon without parts, so that none of these acts beside daemons with parts."""
        given = self.settings.leader_election
        return Election(cluster, self._clock, self._terms(given.name, with_parts=True), dice=self._dice)

    def _new_ownership(self, cluster: ports.Cluster) -> NamespaceOwnership | None:
        election = self.election
        if self._parts is None or election is None:
            return None
        reach = OwnershipPorts(
            cluster=cluster,
            clock=self._clock,
            labels=self._labels.found,
            needed=lambda namespace: self._follower is None or self._follower.needed(namespace),
            leading=lambda: election.leading,
            # Whatever a daemon without parts has done meanwhile is read anew.
            term=lambda: election.term + (self._appointment.wholes if self._appointment is not None else 0),
            whole=lambda: self._appointment is not None and self._appointment.beside_a_whole,
            lease_seconds=self.settings.leader_election.lease_seconds,
            each=self._hands.each,
        )
        return NamespaceOwnership(self._parts, reach)

    def _new_election(self, cluster: ports.Cluster, given: ClusterParts | None) -> Election | None:
        if not self.settings.leader_election.enabled:
            return None
        name = self.settings.leader_election.name if given is None else given.lease(given.own)
        return Election(cluster, self._clock, self._terms(name), dice=self._dice)

    def _terms(self, name: str, *, with_parts: bool = False) -> Terms:
        given = self.settings.leader_election
        return Terms(
            namespace=given.namespace,
            name=name,
            identity=f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}",
            lease_seconds=int(given.lease_seconds),
            renew_seconds=given.renew_seconds,
            retry_seconds=given.retry_seconds,
            parts=with_parts,
        )

    def _assembled(self, cluster: ports.Cluster, slurm: ports.Slurm) -> assembly.Assembly:
        owned = self._ownership
        served = ALL_NAMESPACES
        if owned is not None:
            served = ServedNamespaces(serves=owned.serves, schedules=owned.schedules, met=owned.met)
        inputs = assembly.CoreInputs(
            cluster=fenced.FencedCluster(cluster, self._may_write),
            slurm=fenced.FencedSlurm(slurm, self._may_write),
            clock=self._clock,
            dice=self._dice,
            known=self._feeds.groups(self._on_owner, self._on_kinds),
            counters=counters.MetricsCounters(self.metrics, self._clock),
            around=hook_observer.surroundings(self.settings, self._clock, self._dice, self.metrics, self._post),
            views=self._watched,
            count=self.metrics.status_write,
            each=self._hands.each,
            read_each=self._readers.each,
            served=served,
        )
        made = assembly.build(self.settings, inputs)
        if owned is not None:
            self._follower = PartFollower(made.core, owned, self._clock)
        on_pod = self._follower.on_pod if self._follower is not None else made.core.on_pod
        join = functools.partial(self._feeds.join, made.core, self.settings.scheduler_names, self._pods, on_pod)
        if not self.settings.nodes.enabled:
            join()
        else:
            # No pass is made before both informers exist.
            heard: _Later[Sequence[Node]] = _Later(tuple)
            published: _Later[Sequence[ResourceSlice] | None] = _Later(lambda: None)
            nodes = NodePorts(
                cluster=fenced.FencedCluster(cluster, self._may_change_nodes),
                slurm=fenced.FencedSlurm(slurm, self._may_change_nodes),
                clock=self._clock,
                nodes=heard,
                note=made.reporter.note,
                count=self.metrics.node_action,
                changed=made.core.on_slurm_nodes,
                slices=published,
            )
            options = configuration.nodes(self.settings)
            self._nodes = NodeController(options, nodes)
            if options.device_gres:
                published.of = self._feeds.slices(self._nodes.slices_changed)
            heard.of = join(self._nodes.woken)
        self._feeds.show(self.metrics.informer)
        return made

    def _pod_source(self, callers: ports.Callers | None) -> PodSource:
        inputs = submission_api.SubmissionInputs(
            callers=callers,
            clock=self._clock,
            metrics=self.metrics,
            rules=lambda: self.core.context.config.rules,
            closing=self.supervisor.stop.is_set,
        )
        return submission_api.source(self.settings, self._feeds.pods(self.settings.scheduler_names), inputs)

    def _watched(self, needs: frozenset[Need]) -> Mapping[Need, View]:
        """Watch what hooks need; the views are kept for later configurations."""
        self._views = self._feeds.views(needs, self._on_surroundings)
        return self._views

    def _on_surroundings(self, old: Object | None, new: Object | None) -> None:
        self.core.on_surroundings(old, new)

    def _on_owner(self, old: Object | None, new: Object | None) -> None:
        """The core is built after the watch that feeds it. No informer runs before both exist."""
        self.core.on_owner(old, new)

    def _on_labels(self, namespace: str, there: bool) -> None:
        if self._ownership is not None:
            self._ownership.told(namespace, there=there)

    def _on_kinds(self) -> None:
        self.core.on_kinds()

    def _routes(self, extras: Extras) -> Routes:
        def refresh() -> None:
            counters.refresh(self.metrics, self.core, self.election, self._clock)
            counters.refresh_token(self.metrics, extras.token_life())
            queue_view.refresh(self.metrics, self._chain())
            if self._parts is not None and self._ownership is not None:
                counters.refresh_parts(self.metrics, self._parts.own, self._ownership)

        inputs = admin_api.AdminInputs(
            callers=extras.callers,
            clock=self._clock,
            metrics=self.metrics,
            chain=self._chain,
            reload=lambda: self._reloader,
            away=self._away,
        )
        view = live_view.ViewInputs(
            callers=extras.callers,
            clock=self._clock,
            metrics=self.metrics,
            core=lambda: self.core,
            chain=self._chain,
            explain=extras.explain,
            away=self._away,
            closing=self.supervisor.stop.is_set,
        )
        return {
            **probes.routes(self.health, self.metrics, refresh),
            **submission_api.routes(self.settings, self._pods),
            **queue_view.routes(self._chain, self._away),
            **admin_api.routes(self.settings, inputs),
            **live_view.routes(self.settings, view),
            **({} if self._reviewer is None else self._reviewer.routes()),
        }

    def _chain(self) -> Chain | None:
        return self.core.context.config.chain if self._loops.acting else None

    def _away(self) -> str:
        """Why this replica has no answer about the scheduler, and which one has; empty while it leads."""
        if self.supervisor.stop.is_set():
            return "this replica is stopping"
        if self._chain() is not None:
            return ""
        leader = self.election.host if self.election is not None else ""
        other = f": ask {texts.shown(leader)}" if leader else ""
        return f"this replica is not the leader{other}"

    def _is_synced(self) -> bool:
        """All that is decided by is known; the labels of namespaces are that only with parts."""
        return self._feeds.synced and (self._parts is None or not self._labels.problem())

    def _supervise(self) -> None:
        self._loops.when_synced(self._is_synced)
        add = self.supervisor.add
        add("scheduler", self._loops.schedule)
        for number in range(self.settings.scheduling.workers):
            add(f"worker-{number}", self._pool.run, carries=True)
        add("mirror", self._loops.mirror)
        add("preempt", self._loops.preempt)
        if self._nodes is not None:
            add("nodes", functools.partial(self._loops.nodes, self._nodes, self._is_appointed))
        if self._follower is not None:
            add("parts", functools.partial(self._loops.parts, self._follower))
        add("status", self.reporter.run, carries=True)
        add("watchdog", self._watch_others)
        add("web", self.server.run, carries=True)
        if self.probes is not None:
            add("probes", self.probes.run, carries=True)
        if self.election is not None:
            add("election", self.election.run, carries=True)
        if self._parts is not None and self._appointment is not None:
            add("appointment", functools.partial(self._appointment.run, stands=self._stands), carries=True)
        if self._reloader is not None:
            add("reload", self._reloader.run)
        for loop in ("scheduler", "mirror", *(["nodes"] if self._nodes is not None else [])):
            self.health.expect(loop, within=HUNG)
        self.health.alive_while("threads", lambda: ", ".join((*self.supervisor.dead(), *self._feeds.dead())))
        self.health.ready_while("caches", self._feeds.problem)
        self.health.ready_while("namespaces", self._labels.problem)
        bound = max(30.0, 4 * self.settings.mirror.slowest_seconds)
        self.health.ready_while("slurm", lambda: self._stale(bound))
        # A replica that takes part in an election calls Kubernetes all the time; a single one may be quiet for long.
        self.health.fresh("kubernetes", within=bound, needed=lambda: self.election is not None)

    def _stale(self, bound: float) -> str:
        """Only the leader asks Slurm for anything. The age of its last good answer counts."""
        if not self._may_write():
            return ""
        last = self.core.context.mirror.last_good
        stale = health.overdue(None if last is None else self._clock.now() - last, bound)
        return stale or ("" if self._loops.acting else "what both servers have is still being read")

    def _watch_others(self, stop: threading.Event) -> None:
        """End the process when a thread dies that the supervisor does not own; also run the preflight checks once."""
        while not self._clock.wait(stop, LOOK if self._feeds.synced else LOOK / 10):
            self._feeds.look_for_kinds()
            self._labels.watch_over()
            if self._check is not None and self._loops.acting:
                preflight.look(self._check, self.metrics)
                self._check = None
            dead = self._feeds.dead()
            if dead:
                raise errors.BridgeError(f"the informers of {', '.join(dead)} have ended")
            dead = self.core.context.config.chain.dead
            if dead:
                raise errors.BridgeError(f"the threads {', '.join(dead)} of hooks have ended")
            if self.core.context.config.chain.abandoned >= MOST_ABANDONED:
                raise errors.BridgeError(f"{MOST_ABANDONED} hooks never returned")

    def _apply(self, settings: Settings) -> None:
        """Apply new settings, after all of them were checked and what the hooks newly need was listed."""
        around = dataclasses.replace(self._around, limits=configuration.attempt_limits(settings))
        config = configuration.changeable(settings, around)
        try:
            more = self._feeds.more_views(config.chain.needs - self._views.keys(), self._on_surroundings)
        except errors.BadConfiguration:
            config.chain.close()
            raise
        self._declare(config.chain.annotations)
        self._views = {**self._views, **more}
        config.chain.see(self._views)
        old = self.core.context.config.chain
        self.core.configure(config)
        if self._reviewer is not None:
            self._reviewer.configure(settings, config)
        self.reporter.configure(configuration.status(settings))
        old.close()

    def _report_reload(self, result: str, text: str) -> None:
        self.metrics.configuration_reloads.labels(result).inc()
        given = self.settings.leader_election
        note = ports.Note(
            kind="Lease",
            api_version="coordination.k8s.io/v1",
            namespace=given.namespace,
            name=given.name,
            uid="",
            reason="Reloaded" if result == "ok" else "ReloadFailed",
            message=text,
            warning=result != "ok",
        )
        self.reporter.note(note)

    def _drain(self) -> None:
        """Finish the actions that were decided, then release the lease."""
        end = self._clock.now() + STOP_SECONDS / 2
        never = threading.Event()
        while self._pool.busy and self._clock.now() < end:
            self._clock.wait(never, LOOK / 10)
        for election in (self.election, self._appointment):
            if election is not None:
                election.release()


def _report(name: str, problem: Exception | None) -> None:
    if problem is None:
        logger.error("thread {} ended without being told to", name)
    else:
        logger.opt(exception=problem).error("thread {} failed", name)
