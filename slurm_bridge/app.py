"""The composition root: the only module that builds the adapters, from the settings."""

import contextlib
import dataclasses
import functools
import json
import pathlib
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from loguru import logger

import slurm_bridge
from slurm_bridge import errors, ports
from slurm_bridge.admission import policies
from slurm_bridge.agents.cache import AgentCache
from slurm_bridge.agents.json_client import JsonClient
from slurm_bridge.agents.service import AgentService
from slurm_bridge.checks import collector, findings, table
from slurm_bridge.checks.facts import Expectations
from slurm_bridge.daemon import admission_api
from slurm_bridge.daemon import agent as daemon_agent
from slurm_bridge.daemon import configuration as daemon_configuration
from slurm_bridge.daemon import parts as daemon_parts
from slurm_bridge.daemon.process import Daemon, Extras
from slurm_bridge.daemon.reload import SettingsReader
from slurm_bridge.daemon.webhook import WebhookService
from slurm_bridge.explain.cluster_view import CachedKnown, CurrentSnapshot, Servers
from slurm_bridge.explain.context import ExplainContext
from slurm_bridge.explain.explainer import Explainer
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.kube import callers as kube_callers
from slurm_bridge.kube import client as kube_client
from slurm_bridge.kube import config as kube_config
from slurm_bridge.model.job import JobRequest
from slurm_bridge.overlays import metered
from slurm_bridge.runtime import progress
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.runtime.hands import Hands
from slurm_bridge.runtime.http.messages import HttpLimits
from slurm_bridge.runtime.oddities import Oddities
from slurm_bridge.runtime.progress import Progress
from slurm_bridge.settings import loader, shown, sources
from slurm_bridge.settings.model import Settings
from slurm_bridge.slurm import calls, fields
from slurm_bridge.slurm import client as slurm_client
from slurm_bridge.slurm import settings as slurm_settings
from slurm_bridge.takeover import handover
from slurm_bridge.takeover.handover import HandoverOrder
from slurm_bridge.takeover.steps import OurNames
from slurm_bridge.telemetry.agents import AgentMetrics
from slurm_bridge.view import explanations
from slurm_bridge.workloads import base as workloads
from slurm_bridge.workloads.known import DirectObjects


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The sources of the settings: one file, overridden by the environment, overridden by the command line."""

    path: pathlib.Path
    environ: Mapping[str, str]
    overrides: Sequence[str] = ()

    def load(self) -> Settings:
        """Read all sources again."""
        return loader.load(self.path, self.environ, self.overrides)

    def load_with_hooks(self) -> Settings:
        """Likewise, where the chain is built: mistakes in the options of hooks are told with all others."""
        return loader.load(self.path, self.environ, self.overrides, with_hooks=True)

    def fingerprint(self) -> str:
        """Changes whenever the content of the file changes."""
        return sources.fingerprint(self.path)


@contextlib.contextmanager
def daemon(configuration: Configuration) -> Iterator[Daemon]:
    """The daemon, connected to the servers in the settings."""
    settings, clock = configuration.load_with_hooks(), SystemClock()
    web = settings.web
    tokens_arrive = web.submission.enabled or web.administration.enabled or web.viewers_send_tokens
    with contextlib.ExitStack() as stack:
        reading = kube_client.Reading(oddities=Oddities(clock.now))
        cluster, slurm = stack.enter_context(both(settings, clock, reading))
        _refuse_outdated(slurm)
        source = SettingsReader(fingerprint=configuration.fingerprint, load=configuration.load_with_hooks)
        callers = kube_callers.KubeCallers(_access(settings), clock=clock) if tokens_arrive else None
        if callers is not None:
            stack.callback(callers.close)
        extras = Extras(
            check=lambda: _check(settings, cluster, slurm, clock),
            callers=callers,
            explain=functools.partial(_explained, configuration),
            oddities=reading.oddities,
            token_life=slurm.token_life,
            declare=reading.kept.declare,
        )
        yield Daemon(settings, cluster, slurm, clock, source, extras)


def _explained(configuration: Configuration, namespace: str, pod: str, whole: bool) -> Mapping[str, Any]:
    """A pod, by the configuration as it is now."""
    with explainer(configuration.load_with_hooks(), offline=False) as explaining:
        return explanations.shown(explaining.pod(namespace, pod), whole=whole)


def _refuse_outdated(slurm: slurm_client.SlurmClient) -> None:
    """End here where Slurm has no external jobs. Anything else may pass, and the daemon starts without Slurm."""
    try:
        logger.info("slurmrestd serves API version {}", slurm.version)
    except errors.NoExternalJobs:
        raise
    except errors.BridgeError as problem:
        logger.warning("the API version of slurmrestd is not known yet: {}", problem)


#: The API server waits for a review no longer than `timeoutSeconds` in `deploy/webhook`.
_SHORT = HttpLimits(connect=1.0, answer=2.0, whole_answer=2.0)


@contextlib.contextmanager
def webhook(configuration: Configuration) -> Iterator[WebhookService]:
    """The admission webhook alone. It asks the API server only if managed namespaces are selected by label."""
    settings, clock = configuration.load_with_hooks(), SystemClock()
    with contextlib.ExitStack() as stack:
        source = SettingsReader(fingerprint=configuration.fingerprint, load=configuration.load_with_hooks)

        def opened(limits: HttpLimits) -> Callable[[], ports.Cluster]:
            return lambda: cluster_client(stack, _access(settings), clock, limits=limits)

        yield WebhookService(settings, opened(HttpLimits()), clock, source, opened(_SHORT))


@contextlib.contextmanager
def agent(configuration: Configuration) -> Iterator[AgentService]:
    """An agent for the nodes in the settings. It asks Slurm only if the settings name a partition."""
    settings, clock = configuration.load(), SystemClock()
    dice, metrics = random.Random(), AgentMetrics(version=slurm_bridge.__version__)  # noqa: S311 - no secrets
    place, partition = daemon_agent.place(settings), settings.agent.shard.partition or ""
    with contextlib.ExitStack() as stack:
        cluster = cluster_client(stack, _access(settings), clock)
        slurm = _slurm(stack, adapter_settings(settings), clock) if partition else None
        observed = metered.MeteredCluster(cluster, clock, metrics.request_to_kubernetes)
        cache = AgentCache(observed, clock, dice, machines=slurm, partition=partition)
        sampler = daemon_agent.sampler(settings, cache.snapshot, clock, dice)
        yield AgentService(place, cache, sampler, clock, metrics)


@contextlib.contextmanager
def both(
    settings: Settings, clock: ports.Clock, reading: kube_client.Reading | None = None
) -> Iterator[tuple[ports.Cluster, slurm_client.SlurmClient]]:
    """Both adapters; they are closed at the end of the block."""
    with contextlib.ExitStack() as stack:
        cluster = cluster_client(stack, _access(settings), clock, reading)
        oddities = reading.oddities if reading is not None else None
        yield cluster, _slurm(stack, adapter_settings(settings), clock, oddities)


def _access(settings: Settings) -> kube_config.Access:
    kubeconfig = settings.kubernetes.kubeconfig
    return kube_config.from_kubeconfig(kubeconfig) if kubeconfig else kube_config.in_cluster()


def adapter_settings(settings: Settings) -> slurm_settings.SlurmSettings:
    """The options of the Slurm adapter. It caches no nodes: callers that ask for nodes need current ones."""
    given = settings.slurm
    return slurm_settings.SlurmSettings(
        url=given.url,
        token_file=given.token_file,
        user_name=given.user_name,
        api_versions=given.api_versions,
        ca_file=given.ca,
        cert_file=given.cert,
        key_file=given.key,
        connect_timeout=given.connect_timeout_seconds,
        read_timeout=given.read_timeout_seconds,
        recovery_timeout=given.recovery_timeout_seconds,
        max_answer_bytes=given.max_answer_mib << 20,
        cache_ttl=0.0,
        read_tries=given.read_tries,
        read_first_pause=given.read_first_pause_seconds,
        read_longest_pause=given.read_longest_pause_seconds,
        connections=max(given.connections, settings.scheduling.workers + 2),
    )


@contextlib.contextmanager
def explainer(
    settings: Settings, *, offline: bool, clock: ports.Clock | None = None, cluster: ports.Cluster | None = None
) -> Iterator[Explainer]:
    """Explains what the daemon would do with these settings at the clock's time; offline it asks no server.

    Offline with a `cluster`, pods and their owners are read there, and nothing else.

    Background work of hooks runs within the pass here, so that its results are complete.
    """
    clock, current = clock or SystemClock(), CurrentSnapshot()
    reading = kube_client.Reading(oddities=Oddities(clock.now))
    limits = daemon_configuration.attempt_limits(settings)
    around = ChainServices(clock=clock, limits=limits, seen=current, threads=False)
    with contextlib.ExitStack() as stack:
        servers = None if offline else Servers(*stack.enter_context(both(settings, SystemClock(), reading)))
        if servers is not None:
            json_client = JsonClient(SystemClock())
            stack.callback(json_client.close)
            around = dataclasses.replace(around, settle=daemon_configuration.settle(settings), post=json_client)
        made = daemon_configuration.changeable(settings, around)
        means = ExplainContext(
            rules=made.rules,
            chain=made.chain,
            around=around,
            current=current,
            ids=daemon_configuration.limits(settings).ids,
            write=_submission,
            clock=clock,
            parts=daemon_parts.of(settings),
        )
        stack.callback(means.chain.close)
        reading.kept.declare(means.chain.annotations)
        kinds, options = daemon_configuration.owner_kinds(settings), daemon_configuration.workloads(settings)
        yield Explainer(means, servers, kinds, options, cluster)


@contextlib.contextmanager
def cluster_of_user(access: kube_config.Access) -> Iterator[ports.Cluster]:
    """Kubernetes with the rights of a user."""
    with contextlib.ExitStack() as stack:
        yield cluster_client(stack, access, SystemClock())


def admission_policies(settings: Settings, name: str = "slurm-bridge") -> str:
    """The policies that say the same as the webhook with these settings, as manifests. No server is asked.

    Their names begin with `name`.
    """
    limits = daemon_configuration.attempt_limits(settings)
    around = ChainServices(clock=SystemClock(), limits=limits, seen=CurrentSnapshot(), threads=False)
    chain = daemon_configuration.changeable(settings, around).chain
    with contextlib.closing(chain):
        rules = dataclasses.replace(admission_api.policy_rules(settings, chain.honoured), name=name)
        return shown.manifests(policies.objects(rules))


def try_out(settings: Settings) -> None:
    """Build all that follows from the settings, without a server. Raises BadConfiguration where `run` would."""
    with explainer(settings, offline=True):
        pass


def _submission(request: JobRequest) -> Mapping[str, object]:
    """The JSON of a submission, of one job or of several components."""
    sent: Mapping[str, object] = json.loads(
        calls.submit([fields.submit(one) for one in (request, *request.components)]).body or b"{}"
    )
    return sent


def check(settings: Settings, told: Progress = progress.silent) -> tuple[findings.Finding, ...]:
    """Check whether both servers meet the requirements."""
    clock = SystemClock()
    with both(settings, clock) as (cluster, slurm):
        return _check(settings, cluster, slurm, clock, told)


def _check(
    settings: Settings,
    cluster: ports.Cluster,
    slurm: slurm_client.SlurmClient,
    clock: ports.Clock,
    told: Progress = progress.silent,
) -> tuple[findings.Finding, ...]:
    given, ids, election = settings.defaults, settings.slurm.job_ids, settings.leader_election
    # The settings that have to match the servers.
    wanted = Expectations(
        cluster_id=settings.cluster_id,
        address=settings.slurm.url,
        partitions=tuple(given.partition.split(",")) if given.partition else (),
        account=given.account,
        qos=given.qos,
        user=given.user,
        group=given.group,
        mcs_label=given.mcs_label,
        job_ids=(ids.first, ids.last) if ids is not None else None,
        gres=settings.gres,
        unstarted_window=settings.scheduling.unstarted_window,
        heterogeneous=settings.workloads.heterogeneous == "auto",
        submissions=settings.web.submission.enabled,
        administration=settings.web.administration.enabled,
        live_view=settings.web.viewers_send_tokens,
        node_controller=settings.nodes.enabled,
        lease=(election.namespace, election.name) if election.enabled else (),
        parts=settings.parts.own is not None,
        device_gres=settings.nodes.device_gres if settings.nodes.enabled else {},
        hybrid_devices=settings.hybrid_devices,
        claimed_gres=daemon_configuration.claimed_gres(settings),
    )
    dice = random.SystemRandom()
    facts = collector.gather(
        slurm, cluster, clock=clock, dice=dice, wanted=wanted, conf=slurm.conf, token=slurm.token_life, told=told
    )
    return table.findings(facts, wanted)


#: How many jobs are handed over at the same time.
_AT_ONCE = 8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverOptions:
    """The flags of `slurm-bridge takeover`."""

    back: bool = False
    apply: bool = False
    every: bool = False
    force: bool = False


def takeover(
    settings: Settings, options: TakeoverOptions, tell: Callable[[str], None], told: Progress = progress.silent
) -> int:
    """Hand jobs and pods over from another bridge, or back to it; the exit status."""
    clock = SystemClock()
    with both(settings, clock) as (cluster, slurm):
        known, grouped = CachedKnown(DirectObjects(cluster)), daemon_configuration.workloads(settings)
        ours = OurNames(
            cluster_id=settings.cluster_id,
            scheduler_names=settings.scheduler_names,
            claim=lambda pod: workloads.claim(pod, known, grouped),
        )
        lease = (settings.leader_election.namespace, settings.leader_election.name)
        pool = Hands(_AT_ONCE)
        order = HandoverOrder(names=ours, lease=lease, each=pool.each, told=told, **dataclasses.asdict(options))
        try:
            return handover.run(order, cluster, slurm, clock, tell)
        finally:
            pool.close()


def cluster_client(
    stack: contextlib.ExitStack,
    access: kube_config.Access,
    clock: ports.Clock,
    reading: kube_client.Reading | None = None,
    limits: HttpLimits | None = None,
) -> ports.Cluster:
    """The Kubernetes adapter; the stack closes it."""
    dice = random.Random()  # noqa: S311 - jitter is no secret
    client = kube_client.KubeClient(access, clock=clock, dice=dice, limits=limits, reading=reading)
    stack.callback(client.close)
    return client


def _slurm(
    stack: contextlib.ExitStack,
    chosen: slurm_settings.SlurmSettings,
    clock: ports.Clock,
    oddities: Oddities | None = None,
) -> slurm_client.SlurmClient:
    made = slurm_client.SlurmClient(chosen, clock=clock, stop=threading.Event(), oddities=oddities)
    return stack.enter_context(made)
