"""How many workloads have pods without nodes, and why: read from their records when metrics are scraped.

where the queue has it     what its pods were told        status
looked at now                                             inflight
urgent, or lined up                                       active
waits                      a user has to act              parked
waits for a time                                          backoff
waits for an event                                        waiting
"""

import collections
import dataclasses
from collections.abc import Mapping
from typing import Final

from slurm_bridge.model import names
from slurm_bridge.scheduler.state import Place, WorkloadState, WorkloadStore

STATUSES: Final = ("active", "backoff", "inflight", "parked", "waiting")

#: The reason of those that were not looked at yet, or line up since their last look.
UNTOLD: Final = "Queued"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PendingWorkloads:
    """Numbers of workloads, by status, and by namespace and the reason on their pods."""

    by_status: Mapping[str, int]
    by_reason: Mapping[tuple[str, str], int]


def count(states: WorkloadStore) -> PendingWorkloads:
    """Each workload that has a pod without a node, once."""
    statuses, reasons = dict.fromkeys(STATUSES, 0), collections.Counter[tuple[str, str]]()
    for key, state in states.all():
        status = _status(state)
        if status:
            statuses[status] += 1
            reasons[names.namespace_of(key), _reason(state)] += 1
    return PendingWorkloads(by_status=statuses, by_reason=reasons)


def _status(state: WorkloadState) -> str:
    """Empty for a workload that has its nodes."""
    entry, current = state.queued, state.current
    if entry is None or (current is not None and current.told is None and current.desired is None):
        return ""
    if entry.place is not Place.WAITING:
        return "active" if entry.place in (Place.URGENT, Place.WANTING) else "inflight"
    if current is not None and current.told is not None and current.told.parked:
        return "parked"
    return "waiting" if entry.until is None else "backoff"


def _reason(state: WorkloadState) -> str:
    if state.notice is not None:
        return state.notice
    told = state.current.told if state.current is not None else None
    return told.reason if told is not None else UNTOLD
