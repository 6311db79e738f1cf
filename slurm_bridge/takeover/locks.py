"""Whether a bridge acts now: then nothing is handed over, because each would change what the other one reads.

A lease counts as held if it changes within its own duration: no two clocks are compared, and the lease of a process
that was killed is free after that time.
"""

import threading
from collections.abc import Iterable, Sequence

from slurm_bridge import ports
from slurm_bridge.model import kinds, parts
from slurm_bridge.model.lease import Lease
from slurm_bridge.model.pod import Pod

#: What the leases of the other bridge's controllers end with; its scheduler's is named after the scheduler.
_CONTROLLERS = ".slinky.slurm.net"
#: The chart writes these labels on its pods, and `controllers.leaderElect` is false by default: then there is no lease.
_CHART, _COMPONENT = "helm.sh/chart", "app.kubernetes.io/component"
_ACTING = frozenset({"scheduler", "controllers"})

_LOOK = 1.0
#: A longer lease is not waited for.
_LONGEST = 60


def acting(cluster: ports.Cluster, clock: ports.Clock, own: tuple[str, str], schedulers: Sequence[str]) -> list[str]:
    """What shows that one of the bridges acts, in words; nothing where none does. `own` is our lease."""
    held = [one for one in cluster.list(kinds.LEASES).items if _concerns(one, own, schedulers) and _holder(one)]
    found = [f"Lease {'/'.join(one.key)} is held by {_holder(one)}" for one in _renewed(cluster, clock, held)]
    return found + [f"pod {'/'.join(pod.key)} of the other bridge runs" for pod in _pods(cluster)]


def _concerns(lease: Lease, own: tuple[str, str], schedulers: Sequence[str]) -> bool:
    of_a_part = lease.metadata.namespace == own[0] and lease.metadata.name.startswith(parts.before_part(own[1]))
    return (
        lease.key == own or of_a_part or lease.metadata.name in schedulers or lease.metadata.name.endswith(_CONTROLLERS)
    )


def _holder(lease: Lease) -> str:
    return (lease.spec.holder_identity or "")[:100]


def _renewed(cluster: ports.Cluster, clock: ports.Clock, leases: Sequence[Lease]) -> list[Lease]:
    """Those that change, or that last too long to wait for their end."""
    left, began, never, found = list(leases), clock.now(), threading.Event(), []
    while left:
        clock.wait(never, _LOOK)
        still = []
        for before in left:
            now, lasts = cluster.lease(*before.key), before.spec.lease_duration_seconds or 0
            if now is None or not _holder(now):
                continue
            if now.metadata.resource_version != before.metadata.resource_version or lasts > _LONGEST:
                found.append(now)
            elif clock.now() - began <= lasts:
                still.append(before)
        left = still
    return found


def _pods(cluster: ports.Cluster) -> Iterable[Pod]:
    """The pods of the other bridge's Deployments that may act."""
    chosen = cluster.list(kinds.PODS, ports.Scope(labels=f"{_CHART},{_COMPONENT} in ({','.join(sorted(_ACTING))})"))
    for pod in chosen.items:
        chart = pod.metadata.labels.get(_CHART, "").startswith("slurm-bridge-")
        if chart and pod.bound and not pod.terminal:
            yield pod
