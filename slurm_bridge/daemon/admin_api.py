"""The admin API of the queues: connects the web server, the hook that keeps the queues, and the daemon's reload."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from slurm_bridge import errors, ports
from slurm_bridge.daemon import reload
from slurm_bridge.families.yunikorn import admin, files
from slurm_bridge.families.yunikorn.hook import Yunikorn
from slurm_bridge.families.yunikorn.partition_admin import PartitionsAdmin
from slurm_bridge.families.yunikorn.partitions import YunikornPartitions
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.overlays.metered import MeteredCallers
from slurm_bridge.settings.model import Settings
from slurm_bridge.status.token_bucket import TokenBucket
from slurm_bridge.telemetry.metrics import Metrics
from slurm_bridge.web import administration
from slurm_bridge.web.routes import Routes, bounded

#: Requests allowed at once after a quiet time.
_BURST: Final = 10.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdminInputs:
    """What the daemon provides. `chain` returns None unless this replica leads, and `away` why not.

    `reload` returns None without a file.
    """

    callers: ports.Callers | None
    clock: ports.Clock
    metrics: Metrics
    chain: Callable[[], Chain | None]
    reload: Callable[[], reload.Reload | None]
    away: Callable[[], str]


def routes(settings: Settings, inputs: AdminInputs) -> Routes:
    """The routes of the admin API; empty unless it is enabled."""
    given = settings.web.administration
    if not given.enabled:
        return {}
    if inputs.callers is None:
        raise errors.BadConfiguration("web.administration: the API server cannot be reached on behalf of callers")
    desk = administration.AdminBackend(
        callers=MeteredCallers(inputs.callers, inputs.clock, inputs.metrics.request_to_kubernetes),
        leads=inputs.away,
        queues=lambda: _queues(inputs),
        refusal=lambda: again.refusal if (again := inputs.reload()) else None,
        reload=lambda: _reloaded(inputs),
        count=lambda what, status: inputs.metrics.queue_requests.labels(what, str(status.value)).inc(),
        busy=RequestPace(given.requests_per_second, inputs.clock),
    )
    return bounded(administration.QueueAdministration(desk).routes(), given.most_bytes)


def stored(chain: Chain) -> Iterator[reload.StoredFile]:
    """The files in which hooks of this chain store a part of their configuration."""
    for desk in _desks(chain):
        found = desk.stored
        if found is not None:
            file, read, now = found
            yield reload.StoredFile(file=file, read=read, now=now)


class RequestPace:
    """Limits the rate of requests. Returns the seconds to wait; 0 takes one request out of the budget."""

    def __init__(self, per_second: float, clock: ports.Clock) -> None:
        self._clock = clock
        self._bucket = TokenBucket(per_second=per_second, burst=_BURST, now=clock.now())

    def __call__(self) -> float:
        seconds = self._bucket.ready_in(self._clock.now())
        if not seconds:
            self._bucket.take()
        return seconds


class _Queues:
    """Implements administration.Queues on the administration desk of a hook."""

    def __init__(self, desk: admin.QueueAdmin | PartitionsAdmin) -> None:
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

    def check(self, body: bytes) -> administration.CheckedConfiguration:
        try:
            found = self._desk.problems(body)
            return administration.CheckedConfiguration(problems=found, warnings=self._desk.warnings(body))
        except files.UnreadableFile as problem:
            raise administration.UnreadableConfiguration(str(problem)) from problem


def _desks(chain: Chain) -> Iterator[admin.QueueAdmin | PartitionsAdmin]:
    for hook in chain.hooks:
        if isinstance(hook.hook, Yunikorn | YunikornPartitions):
            yield hook.hook.desk


def _queues(inputs: AdminInputs) -> administration.Queues | None:
    chain = inputs.chain()
    desk = next(_desks(chain), None) if chain is not None else None
    return _Queues(desk) if desk is not None else None


def _reloaded(inputs: AdminInputs) -> administration.RefusedConfiguration | None:
    again = inputs.reload()
    if again is None:
        words = "this process has no configuration file to reload"
        return administration.RefusedConfiguration(at=inputs.clock.wall(), problems=(words,))
    return again.now()
