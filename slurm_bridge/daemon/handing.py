"""Pods that are handed in: the submission API between the door, the translator and the API server.

The daemon has no right to create pods and may not act for others: the API server is asked with the caller's own token,
over connections that carry nothing of ours.
"""

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from slurm_bridge import errors, ports
from slurm_bridge.daemon import configuration
from slurm_bridge.informers.source import PodSource
from slurm_bridge.kube import manifests
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.model.workload import Gang, Workload
from slurm_bridge.overlays.metered import MeteredCallers
from slurm_bridge.settings.model import Settings
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.translate import translator
from slurm_bridge.translate.rules import Rules
from slurm_bridge.web import door, places, tls
from slurm_bridge.web.routes import Routes, bounded
from slurm_bridge.web.submission import Desk, PodSubmissionApi
from slurm_bridge.workloads import base, voices
from slurm_bridge.workloads.given import Given
from slurm_bridge.workloads.known import NOTHING, Options
from slurm_bridge.workloads.owners import Owners

T = TypeVar("T", bound=Object)

#: Whoever groups a pod says how many there are; that is not known here, so no number is refused.
_ANY_NUMBER: Final = 1_000_000

#: So many connections of one client address; others find the rest.
OF_ONE_CLIENT: Final = 24
#: The time that a probe has to ask, and again to take the answer.
PROBE_SECONDS: Final = 2.0

#: A door that takes nothing in has no use for bodies.
_SMALL: Final = 16 << 10


def opened(settings: Settings, pages: Routes) -> door.Door:
    """The door as the settings have it."""
    given = settings.web
    most = [one.most_bytes for one in (given.submission, given.administration) if one.enabled]
    bounds = door.Bounds(most_body=max(most, default=_SMALL), of_one_client=OF_ONE_CLIENT)
    return door.Door(given.host, given.port, pages, bounds=bounds, files=_files(settings))


def probed(settings: Settings, pages: Routes) -> door.Door | None:
    """The door for probes alone, where the settings have one."""
    given = settings.web
    if given.probes_port is None:
        return None
    bounds = door.Bounds(seconds=PROBE_SECONDS, most_body=0, of_one_client=OF_ONE_CLIENT)
    return door.Door(given.host, given.probes_port, pages, bounds=bounds, files=_files(settings))


def _files(settings: Settings) -> tls.Files | None:
    given = settings.web.tls
    return tls.Files(cert=given.cert, key=given.key) if given else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What the daemon has for it. `rules`: as they are now; `closing`: the daemon is about to end."""

    callers: ports.Callers | None
    clock: ports.Clock
    metrics: Metrics
    rules: Callable[[], Rules]
    closing: Callable[[], bool]


def source(settings: Settings, watched: PodSource, means: Means) -> PodSource:
    """The watch; where pods may be handed in, as seen through the API that takes them."""
    if not settings.web.submission.enabled:
        return watched
    if means.callers is None:
        raise errors.BadConfiguration("web.submission: there is no way to the API server for callers")
    callers = MeteredCallers(means.callers, means.clock, means.metrics.request_to_kubernetes)
    api = PodSubmissionApi(watched, _desk(settings, callers, means))
    means.metrics.submissions_pending.set_function(lambda: api.pending)
    return api


def routes(settings: Settings, pods: PodSource) -> Routes:
    """What a source adds to the door."""
    most = settings.web.submission.most_bytes
    return bounded(pods.routes(), most) if isinstance(pods, PodSubmissionApi) else {}


def _desk(settings: Settings, callers: ports.Callers, means: Means) -> Desk:
    given, count = settings.web.submission, means.metrics.submissions
    return Desk(
        callers=callers,
        read=manifests.handed_in,
        judge=Judge(means.clock, configuration.workloads(settings), means.rules),
        closing=means.closing,
        count=lambda status: count.labels(str(status.value)).inc(),
        clock=means.clock,
        dice=random.SystemRandom(),
        scheduler_names=settings.scheduler_names,
        limits=places.Limits(most=given.pending, unseen=given.unseen_seconds),
    )


class Judge:
    """What the translator finds wrong with a pod, as it will say on the pod itself; by the manifest alone.

    Objects that the pod names are not looked at: what they say is not for everybody who may create a pod beside them.
    """

    def __init__(self, clock: ports.Clock, options: Options, rules: Callable[[], Rules]) -> None:
        self._rules = rules
        self._given = Given(owners=Owners(_Nobody(), clock, known=NOTHING), options=options)

    def __call__(self, pod: Pod) -> str:
        workload = self._workload(pod)
        if not isinstance(workload, Workload):
            return workload.message if isinstance(workload, Wait) else ""
        found = translator.translate(workload, self._rules())
        return found.message if isinstance(found, Reject) else ""

    def _workload(self, pod: Pod) -> object:
        if base.handles(pod):
            return Workload(
                root=voices.itself(pod),
                pods=(pod,),
                sources=(voices.own(pod),),
                job_name=pod.metadata.name,
                gang=Gang(minimum=_ANY_NUMBER),
            )
        root = base.claim(pod, NOTHING, self._given.options)
        return base.gather(root, _Alone(pod), self._given, started=True)


class _Alone:
    """The Members that are one pod."""

    def __init__(self, pod: Pod) -> None:
        self._pod = pod

    def __len__(self) -> int:
        return 1

    def any(self) -> Pod:
        return self._pod

    def all(self) -> Sequence[Pod]:
        return (self._pod,)


class _Nobody:
    """Is asked about no owner."""

    def served(self, _kind: Kind[T], /) -> str | None:
        return None

    def get(self, _kind: Kind[T], _namespace: str, _name: str, /) -> T | None:
        return None
