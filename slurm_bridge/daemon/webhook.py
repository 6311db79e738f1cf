"""The life of a process that serves the admission webhook and nothing else: it has no credentials for Slurm.

start   the HTTPS server listens; namespaces are listed, if managed ones are selected by label
serve   every replica answers reviews; a new configuration counts from the next review on
stop    no new connection is accepted, and open reviews are answered
"""

import random
import threading
from collections.abc import Callable

from loguru import logger

import slurm_bridge
from slurm_bridge import errors, ports
from slurm_bridge.daemon import admission_api, configuration, submission_api
from slurm_bridge.daemon.namespace_labels import NamespaceLabels
from slurm_bridge.daemon.reload import Reload, SettingsReader, Use
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.overlays.metered import MeteredCluster
from slurm_bridge.runtime.threads import Supervisor
from slurm_bridge.scheduler.context import Config
from slurm_bridge.settings.model import Settings
from slurm_bridge.telemetry.admission import AdmissionMetrics
from slurm_bridge.telemetry.health import Health
from slurm_bridge.web import probes

#: The threads have this long to end.
STOP_SECONDS = 20.0
#: The time between two checks whether the watch lives.
LOOK = 0.5


class WebhookService:
    """Everything connected; `run` is its whole life.

    `cluster` opens the API server where it is needed, and `reads` opens it for what reviews wait for.
    """

    def __init__(
        self,
        settings: Settings,
        cluster: Callable[[], ports.Cluster],
        clock: ports.Clock,
        source: SettingsReader | None = None,
        reads: Callable[[], ports.Cluster] | None = None,
    ) -> None:
        if settings.web.tls is None:
            raise errors.BadConfiguration("web.tls: the API server calls webhooks over HTTPS only")
        self._clock = clock
        self.metrics, self.health = AdmissionMetrics(version=slurm_bridge.__version__), Health(clock.now)
        self.supervisor = Supervisor(_report)

        def metered(opened: Callable[[], ports.Cluster]) -> Callable[[], ports.Cluster]:
            return lambda: MeteredCluster(opened(), clock, self.metrics.request_to_kubernetes)

        dice = random.Random()  # noqa: S311 - jitter is no secret
        self._labels = NamespaceLabels(metered(cluster), clock, dice, metered(reads or cluster))
        self._config = self._configured(settings)
        self._reviewer = admission_api.AdmissionReviewer(settings, self._config, self._labels, self.metrics, clock)
        pages = {**probes.routes(self.health, self.metrics), **self._reviewer.routes()}
        self.server = submission_api.opened(settings, pages)
        self.probes = submission_api.probed(settings, probes.alone(self.health))
        self.reloader: Reload | None = None
        if source is not None:
            self.reloader = Reload(settings, source, Use(apply=self._apply, told=self._told), clock)
        self._supervise()

    def run(self) -> int:
        """Run until stopped; returns the exit status."""
        logger.info("slurm-bridge webhook {} serves on port {}", slurm_bridge.__version__, self.server.port)
        try:
            return self.supervisor.live(lambda: None, seconds=STOP_SECONDS)
        finally:
            self._labels.stop()
            self._config.chain.close()

    def _supervise(self) -> None:
        add = self.supervisor.add
        add("web", self.server.run, carries=True)
        if self.probes is not None:
            add("probes", self.probes.run, carries=True)
        add("watchdog", self._watch)
        if self.reloader is not None:
            add("reload", self.reloader.run)
        self.health.alive_while("threads", lambda: ", ".join(self.supervisor.dead()))
        self.health.ready_while("caches", self._labels.problem)
        self.health.ready_while("serves", lambda: "about to stop" if self.supervisor.stop.is_set() else "")

    def _configured(self, settings: Settings) -> Config:
        """The hooks are asked what they honour, and nothing else."""
        around = ChainServices(clock=self._clock, threads=False)
        return configuration.changeable(settings, around)

    def _apply(self, settings: Settings) -> None:
        config, old = self._configured(settings), self._config
        self._reviewer.configure(settings, config)
        self._config = config
        old.chain.close()

    def _told(self, result: str, _text: str) -> None:
        self.metrics.configuration_reloads.labels(result).inc()

    def _watch(self, stop: threading.Event) -> None:
        while not self._clock.wait(stop, LOOK):
            self._labels.watch_over()


def _report(name: str, problem: Exception | None) -> None:
    if problem is None:
        logger.error("thread {} ended without being told to", name)
    else:
        logger.opt(exception=problem).error("thread {} failed", name)
