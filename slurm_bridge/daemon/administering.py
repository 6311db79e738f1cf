"""The admin service of the queues: joined to the door, the hook that keeps them, and the daemon's own reload."""

import dataclasses
import http
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from slurm_bridge import errors, ports
from slurm_bridge.daemon import reload
from slurm_bridge.families.yunikorn import admin, files
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.overlays.metered import MeteredCallers
from slurm_bridge.settings.model import Settings
from slurm_bridge.status.token_bucket import TokenBucket
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.web import administration
from slurm_bridge.web.routes import Routes, bounded

#: So many may ask at once after nobody has for a while.
_BURST: Final = 10.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What the daemon has for it. `chain`: None where it does not lead; `reload`: None where nothing is read again."""

    callers: ports.Callers | None
    clock: ports.Clock
    metrics: Metrics
    chain: Callable[[], Chain | None]
    reload: Callable[[], reload.Reload | None]
    closing: Callable[[], bool]


def routes(settings: Settings, means: Means) -> Routes:
    """What it adds to the door; nothing where it is off."""
    given = settings.web.administration
    if not given.enabled:
        return {}
    if means.callers is None:
        raise errors.BadConfiguration("web.administration: there is no way to the API server for callers")
    desk = administration.Desk(
        callers=MeteredCallers(means.callers, means.clock, means.metrics.request_to_kubernetes),
        leads=lambda: _leads(means),
        queues=lambda: _queues(means),
        refusal=lambda: _refusal(again) if (again := means.reload()) else None,
        reload=lambda: _reloaded(means),
        count=lambda what, status: _count(means.metrics, what, status),
        busy=Pace(given.requests_per_second, means.clock),
    )
    return bounded(administration.QueueAdministration(desk).routes(), given.most_bytes)


def stored(chain: Chain) -> Iterator[reload.Stored]:
    """The files that hooks of this chain keep a part of their configuration in."""
    for desk in _desks(chain):
        found = desk.stored
        if found is not None:
            file, read, now = found
            yield reload.Stored(file=file, read=read, now=now)


class Pace:
    """So often may anybody ask; whoever is told 0 seconds has done so."""

    def __init__(self, per_second: float, clock: ports.Clock) -> None:
        self._clock = clock
        self._bucket = TokenBucket(per_second=per_second, burst=_BURST, now=clock.now())

    def __call__(self) -> float:
        seconds = self._bucket.ready_in(self._clock.now())
        if not seconds:
            self._bucket.take()
        return seconds


class _Queues:
    """Implements administration.Queues with the desk of a hook."""

    def __init__(self, desk: admin.Desk) -> None:
        self._desk = desk

    def may(self, name: str, groups: Sequence[str]) -> bool:
        return self._desk.may(name, groups)

    def in_force(self) -> Mapping[str, Any]:
        found = self._desk.in_force
        return {
            "version": found.version,
            "since": found.since,
            "file": found.file or None,
            "mode": found.mode,
            "partition": found.partition,
            "configuration": found.text,
        }

    def problems(self, body: bytes) -> Sequence[str]:
        try:
            return self._desk.problems(body)
        except files.Unreadable as problem:
            raise administration.NotReadable(str(problem)) from problem


def _desks(chain: Chain) -> Iterator[admin.Desk]:
    for hook in chain.hooks:
        desk = getattr(hook.hook, "desk", None)
        if isinstance(desk, admin.Desk):
            yield desk


def _leads(means: Means) -> str:
    if means.closing():
        return "this replica is about to end"
    return "" if means.chain() is not None else "this replica does not lead, or not yet"


def _queues(means: Means) -> administration.Queues | None:
    chain = means.chain()
    desk = next(_desks(chain), None) if chain is not None else None
    return _Queues(desk) if desk is not None else None


def _reloaded(means: Means) -> administration.Refusal | None:
    again = means.reload()
    if again is None:
        words = "the configuration of this process is in no file that it could read again"
        return administration.Refusal(at=means.clock.wall(), problems=(words,))
    again.now()
    return _refusal(again)


def _refusal(again: reload.Reload) -> administration.Refusal | None:
    found = again.refusal
    return administration.Refusal(at=found.at, problems=found.problem.splitlines()) if found is not None else None


def _count(metrics: Metrics, what: str, status: http.HTTPStatus) -> None:
    metrics.queue_requests.labels(what, str(status.value)).inc()
