"""The submission API: connects the web server, the translator and the API server.

The daemon may neither create pods nor act for others. It asks the API server with the caller's own token, over
connections that carry no credentials of the daemon.
"""

import dataclasses
import random
from collections.abc import Callable
from typing import Final

from slurm_bridge import errors, ports
from slurm_bridge.admission import drafts
from slurm_bridge.daemon import configuration
from slurm_bridge.informers.source import PodSource
from slurm_bridge.kube import manifests
from slurm_bridge.model import texts
from slurm_bridge.model.pod import Pod
from slurm_bridge.overlays.metered import MeteredCallers
from slurm_bridge.settings.model import Settings
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.translate import annotations, translator
from slurm_bridge.translate.rules import Rules
from slurm_bridge.web import admission, buffer, server, tls
from slurm_bridge.web.routes import Routes, bounded
from slurm_bridge.web.submission import PodSubmissionApi, SubmissionBackend
from slurm_bridge.workloads.known import Options

#: Connections of all clients, beside those of viewers of the live view.
CONNECTIONS: Final = 32
#: Connections from one client address; the rest is left for other clients.
OF_ONE_CLIENT: Final = 24
#: The time a probe has to send its request, and again to read the answer.
PROBE_SECONDS: Final = 2.0

#: A server without APIs that accept bodies needs no more.
_SMALL: Final = 16 << 10


def opened(settings: Settings, pages: Routes) -> server.HttpServer:
    """The HTTP server by the settings."""
    given = settings.web
    most = [one.most_bytes for one in (given.submission, given.administration) if one.enabled]
    # Behind a proxy or a port-forward all viewers have one address.
    viewers = given.live_view.viewers if given.live_view.enabled else 0
    bounds = server.Bounds(
        most_body=max(most, default=_SMALL),
        connections=CONNECTIONS + viewers,
        of_one_client=OF_ONE_CLIENT + viewers,
    )
    if any(path == admission.VALIDATE for _, path in pages):
        bounds = server.Bounds(
            most_body=max([admission.MOST_BYTES, *most]),
            connections=admission.CONNECTIONS + viewers,
            idle=admission.KEPT_SECONDS,
            large=admission.MOST_LARGE,
        )
    return server.HttpServer(given.host, given.port, pages, bounds=bounds, files=_files(settings))


def probed(settings: Settings, pages: Routes) -> server.HttpServer | None:
    """The HTTP server for probes only; None unless the settings have its port."""
    given = settings.web
    if given.probes_port is None:
        return None
    bounds = server.Bounds(seconds=PROBE_SECONDS, most_body=0, of_one_client=OF_ONE_CLIENT)
    return server.HttpServer(given.host, given.probes_port, pages, bounds=bounds, files=_files(settings))


def _files(settings: Settings) -> tls.Files | None:
    given = settings.web.tls
    return tls.Files(cert=given.cert, key=given.key) if given else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionInputs:
    """What the daemon provides. `rules`: the current rules of translation; `closing`: the daemon is stopping."""

    callers: ports.Callers | None
    clock: ports.Clock
    metrics: Metrics
    rules: Callable[[], Rules]
    closing: Callable[[], bool]


def source(settings: Settings, watched: PodSource, inputs: SubmissionInputs) -> PodSource:
    """The watch of pods; wrapped by the submission API if that is enabled."""
    if not settings.web.submission.enabled:
        return watched
    if inputs.callers is None:
        raise errors.BadConfiguration("web.submission: the API server cannot be reached on behalf of callers")
    callers = MeteredCallers(inputs.callers, inputs.clock, inputs.metrics.request_to_kubernetes)
    given, count = settings.web.submission, inputs.metrics.submissions
    backend = SubmissionBackend(
        callers=callers,
        read=manifests.handed_in,
        judge=Judge(configuration.workloads(settings), inputs.rules),
        closing=inputs.closing,
        count=lambda status: count.labels(str(status.value)).inc(),
        clock=inputs.clock,
        dice=random.SystemRandom(),
        scheduler_names=settings.scheduler_names,
        limits=buffer.BufferLimits(most=given.pending, unseen=given.unseen_seconds),
    )
    api = PodSubmissionApi(watched, backend)
    inputs.metrics.submissions_pending.set_function(lambda: api.pending)
    return api


def routes(settings: Settings, pods: PodSource) -> Routes:
    """The routes of the submission API; empty if the source is a plain watch."""
    most = settings.web.submission.most_bytes
    return bounded(pods.routes(), most) if isinstance(pods, PodSubmissionApi) else {}


class Judge:
    """Says what the translator will reject in a pod, in the words that the pod would get later."""

    def __init__(self, options: Options, rules: Callable[[], Rules]) -> None:
        self._options, self._rules = options, rules

    def __call__(self, pod: Pod) -> str:
        workload = drafts.workload_of(pod, self._options)
        if isinstance(workload, str):
            return workload
        return texts.bounded(annotations.together(translator.problems(workload, self._rules())))
