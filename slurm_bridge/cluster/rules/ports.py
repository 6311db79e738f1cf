"""Ports that pods claim on their host."""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from slurm_bridge.model.pod import Pod

#: A port on this address is taken on every one.
EVERYWHERE = "0.0.0.0"  # noqa: S104 - Kubernetes' word for all addresses; nothing listens here


class HostPort(NamedTuple):
    """One port of one protocol on one address of the host."""

    protocol: str
    address: str
    port: int


def of(pod: Pod) -> frozenset[HostPort]:
    """What a pod claims for as long as it runs: init containers that end before the others start do not count."""
    staying = (one for one in pod.spec.init_containers if one.restart_policy == "Always")
    return frozenset(
        HostPort(port.protocol or "TCP", port.host_ip or EVERYWHERE, port.host_port)
        for container in (*pod.spec.containers, *staying)
        for port in container.ports
        if port.host_port > 0
    )


def clash(some: Iterable[HostPort], others: Iterable[HostPort]) -> bool:
    """Whether both cannot be on one host."""
    for one, other in itertools.product(some, others):
        meeting = one.address == other.address or EVERYWHERE in (one.address, other.address)
        if meeting and (one.protocol, one.port) == (other.protocol, other.port):
            return True
    return False
