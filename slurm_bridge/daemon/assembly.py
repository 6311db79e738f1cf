"""Builds the core and connects it to its ports: the same for the daemon with threads and a simulation without."""

import dataclasses
import random
from collections.abc import Callable, Mapping

from slurm_bridge import ports
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.daemon import configuration
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.mirror.jobs import Mirror
from slurm_bridge.mirror.served import ALL_NAMESPACES, ServedNamespaces
from slurm_bridge.mirror.table import Table
from slurm_bridge.model import names
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Obstacle
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.runtime import hands
from slurm_bridge.scheduler.avoid import Avoided, Holds
from slurm_bridge.scheduler.context import Counters, Gather, SchedulerContext
from slurm_bridge.scheduler.core import Core
from slurm_bridge.scheduler.eviction import situation
from slurm_bridge.scheduler.order import Order
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.queue import WorkQueue
from slurm_bridge.scheduler.state import WorkloadStore
from slurm_bridge.scheduler.workload_pods import PLACED, AnyPod, PickedPods, PodState, WorkloadPods
from slurm_bridge.settings.model import Settings
from slurm_bridge.status.reporter import Sight, StatusReporter
from slurm_bridge.status.write_backoff import Count
from slurm_bridge.translate import resources
from slurm_bridge.workloads import base, kind_table
from slurm_bridge.workloads.base import Moved
from slurm_bridge.workloads.given import Given
from slurm_bridge.workloads.known import Known
from slurm_bridge.workloads.owners import Owners


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CoreInputs:
    """Everything that the core needs and does not build itself."""

    cluster: ports.Cluster
    slurm: ports.Slurm
    clock: ports.Clock
    dice: random.Random
    known: Known
    counters: Counters
    around: ChainServices
    #: Starts watching what the hooks of the chain declare that they need.
    views: Callable[[frozenset[Need]], Mapping[Need, View]] = lambda _needs: {}
    count: Count = lambda _what, _outcome: None
    each: hands.Each = hands.in_turn
    #: Likewise for readings from Slurm, which do not wait for writes to Kubernetes.
    read_each: hands.Each = hands.in_turn
    #: Of several daemons: which namespaces this one has.
    served: ServedNamespaces = ALL_NAMESPACES


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The core, the reporter that writes on pods, and the surroundings of every chain of hooks that the core gets."""

    core: Core
    reporter: StatusReporter
    around: ChainServices


def build(settings: Settings, inputs: CoreInputs) -> Assembly:
    """Build the core. Raises BadConfiguration if the settings contradict each other."""
    more = configuration.owner_kinds(settings)
    owners = Owners(inputs.cluster, inputs.clock, known=inputs.known, more=more)
    given = Given(owners=owners, options=configuration.workloads(settings))

    def claim(pod: Pod) -> Root:
        return base.claim(pod, given.owners.known, given.options)

    def job_changed(key: WorkloadKey) -> None:
        core.on_job(key)

    pod_index = PodIndex(claim, handles=base.handles, now=inputs.clock.now)
    gather = _gatherer(given)
    order = Order(pod_index, lambda: context.config.chain, gather)
    states = WorkloadStore()
    queue = WorkQueue(states, inputs.clock, order.key, order.served, namespace=names.namespace_of)
    table = Table(job_changed)
    keeper = ClusterCache(resources.requests_of)
    around = dataclasses.replace(
        inputs.around,
        wake=queue.activate,
        seen=keeper.snapshot,
        situation=lambda key: situation.of_queued(context, pod_index, key),
    )
    config = configuration.changeable(settings, around)
    config.chain.see(inputs.views(config.chain.needs))
    reporter = _reporter(settings, inputs, pod_index)
    mirror = Mirror(
        inputs.slurm,
        inputs.clock,
        table,
        cluster_id=settings.cluster_id,
        rhythm=configuration.rhythm(settings),
        served=inputs.served,
    )
    mirror.each = inputs.read_each
    context = SchedulerContext(
        cluster=inputs.cluster,
        slurm=inputs.slurm,
        clock=inputs.clock,
        table=table,
        mirror=mirror,
        keeper=keeper,
        pod_index=pod_index,
        status=reporter,
        counters=inputs.counters,
        gather=gather,
        config=config,
        limits=configuration.limits(settings),
        states=states,
        avoided=Avoided(states, seconds=settings.scheduling.avoid_seconds),
        held=Holds(states),
        serves=inputs.served.schedules,
        each=inputs.each,
    )
    core = Core(context, pod_index, queue)
    return Assembly(core=core, reporter=reporter, around=around)


def _reporter(settings: Settings, inputs: CoreInputs, pod_index: PodIndex) -> StatusReporter:
    return StatusReporter(
        inputs.cluster,
        inputs.clock,
        dice=inputs.dice,
        limits=configuration.status(settings),
        sight=Sight(
            current=lambda pod: pod_index.get(pod.uid), known=inputs.known, announcements=kind_table.ANNOUNCEMENTS
        ),
        count=inputs.count,
    )


def _gatherer(given: Given) -> Gather:
    def gather(crew: WorkloadPods, /, *stands: PodState, one: bool = False) -> Workload | Obstacle | Moved | None:
        started = any(stand in PLACED for stand in stands)
        members = AnyPod(crew, *stands) if one else PickedPods(crew, *stands)
        return base.gather(crew.root, members, given, started=started)

    return gather
