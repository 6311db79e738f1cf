"""The live view: connects its pages to the core, to the queues of the chain, and to the explanations of pods."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import slurm_bridge
from slurm_bridge import errors, ports
from slurm_bridge.daemon import admin_api, queue_view
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.model import names
from slurm_bridge.overlays.metered import MeteredCallers
from slurm_bridge.scheduler.core import Core
from slurm_bridge.settings.model import Settings
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.view import details, node_rows
from slurm_bridge.view.feed import Feed
from slurm_bridge.view.live_model import LiveModel
from slurm_bridge.view.pages import Explain, LivePages, StreamLimits, ViewBackend
from slurm_bridge.view.workload_rows import ViewRecords
from slurm_bridge.web.routes import Routes

_MINUTE: Final = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ViewInputs:
    """What the daemon provides. `chain` returns None unless this replica leads, and `away` why not.

    `explain` is None without a file.
    """

    callers: ports.Callers | None
    clock: ports.Clock
    metrics: Metrics
    core: Callable[[], Core]
    chain: Callable[[], Chain | None]
    explain: Explain | None
    away: Callable[[], str]
    closing: Callable[[], bool]


def routes(settings: Settings, inputs: ViewInputs) -> Routes:
    """The routes of the live view; empty unless it is enabled."""
    given = settings.web.live_view
    if not given.enabled:
        return {}
    callers = None
    if settings.web.viewers_send_tokens:
        if inputs.callers is None:
            raise errors.BadConfiguration("web.live_view: the API server cannot be reached on behalf of callers")
        callers = MeteredCallers(inputs.callers, inputs.clock, inputs.metrics.request_to_kubernetes)
    pictures = _Pictures(inputs)
    feed = Feed(
        lambda heard: LiveModel(inputs.core().context, pictures, most=given.most_workloads, heard=heard),
        inputs.clock,
        most=given.viewers,
        period=given.period_seconds,
    )
    metrics = inputs.metrics
    metrics.live_viewers.set_function(lambda: feed.viewers)
    backend = ViewBackend(
        feed=feed,
        details=_Details(inputs.core, pictures, feed),
        clock=inputs.clock,
        callers=callers,
        about=lambda: {
            "cluster": settings.cluster_id,
            "version": slurm_bridge.__version__,
            "window": settings.scheduling.unstarted_window,
            "explains": inputs.explain is not None,
        },
        leads=inputs.away,
        closing=inputs.closing,
        busy=admin_api.RequestPace(given.requests_per_second, inputs.clock),
        slow=admin_api.RequestPace(given.explanations_per_minute / _MINUTE, inputs.clock),
        explain=inputs.explain,
        count=lambda what, status: metrics.live_view_requests.labels(what, str(status.value)).inc(),
        sent=metrics.live_view_bytes.inc,
        ended=lambda why: metrics.live_view_ended.labels(why).inc(),
        limits=StreamLimits(seconds=given.stream_seconds, most_bytes=given.stream_mebibytes << 20),
    )
    return LivePages(backend).routes()


class _Pictures:
    """Implements live_model.Pictures."""

    def __init__(self, inputs: ViewInputs) -> None:
        self._inputs = inputs

    def queues(self) -> Mapping[str, Any] | None:
        chain = self._inputs.chain()
        return queue_view.pictured(chain) if chain is not None else None

    def devices(self) -> Collection[str]:
        """The resources that are GPUs in Slurm, by the configuration as it is now."""
        named = self._inputs.core().context.config.rules.gres_names
        return frozenset(name for name, gres in named.items() if gres.partition(":")[0] == node_rows.GPU)


class _Details:
    """Implements pages.DetailSource on the records of the core."""

    def __init__(self, core: Callable[[], Core], pictures: _Pictures, feed: Feed) -> None:
        self._core, self._pictures, self._feed = core, pictures, feed

    def workload(self, kind: str, namespace: str, name: str, uid: str) -> Mapping[str, Any] | None:
        context = self._core().context
        records = ViewRecords(
            pod_index=context.pod_index,
            table=context.table,
            snapshot=context.keeper.snapshot(),
            told=self._feed.told,
            devices=self._pictures.devices(),
        )
        return details.workload(records, names.workload_key(kind, namespace, name, uid))

    def node(self, name: str, may_see: Callable[[str], bool]) -> Mapping[str, Any] | None:
        context = self._core().context
        facts = context.keeper.snapshot().nodes.get(name)
        if facts is None:
            return None
        return {"name": name, **node_rows.holders(facts, self._root, self._pictures.devices(), may_see)}

    def _root(self, uid: str) -> tuple[str, str, str] | None:
        """Kind, name and uid of the workload of a pod."""
        index = self._core().context.pod_index
        key = index.root_of(uid)
        members = index.workload(key) if key is not None else None
        return (members.root.kind, members.root.name, members.root.uid) if members is not None else None
