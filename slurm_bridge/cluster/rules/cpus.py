"""Which CPUs of a node are the cores of Slurm. Pure.

Slurm's slurmd numbers cores as hwloc does: socket by socket, in a socket by NUMA node, then by cache, and each of
these in the order of its lowest CPU. So the number of a core follows from what a driver publishes of the CPUs, if it
publishes all of them, and their places.
"""

from collections.abc import Iterable
from typing import Final

from slurm_bridge.cluster.rules.devices import NodeDevice
from slurm_bridge.model.job import Cores
from slurm_bridge.translate.device_claims import DeviceRow

_SOCKET: Final = "socketID"
#: The name of Kubernetes, and an older one of drivers.
_NUMA: Final = ("resource.kubernetes.io/numaNode", "numaNodeID")
#: Not on every machine.
_CACHE: Final = "cacheL3ID"
_CORE: Final = "coreID"

#: The numbers of socket, NUMA node, cache and core.
_Place = tuple[int, ...]


def given(cores: Cores | None, row: DeviceRow, there: Iterable[NodeDevice]) -> frozenset[int] | str:
    """The CPUs of these cores; or why that cannot be told."""
    if cores is None:
        return "Slurm does not tell which cores it gave (slurmrestd needs data_parser v0.0.44)"
    published = _by_core(row, there)
    # Slurm may be told to take NUMA nodes or caches for sockets; the order of the cores is the same.
    sockets = [len({place[:depth] for place in published}) for depth in (1, 2, 3)]
    if len(published) != cores.sockets * cores.per_socket or cores.sockets not in sockets:
        return (
            f"driver {row.driver} publishes {len(published)} cores on {sockets[0]} sockets (with {row.index}, "
            f"{_CORE}, {_SOCKET} and {_NUMA[1]}), and Slurm has {cores.sockets * cores.per_socket} on {cores.sockets}: "
            "only where they are the same is known which CPUs Slurm gives"
        )
    return frozenset(
        cpu for number, threads in enumerate(published.values()) if cores.bits >> number & 1 for cpu in threads
    )


def _by_core(row: DeviceRow, there: Iterable[NodeDevice]) -> dict[_Place, list[int]]:
    """The CPUs of each core, in the order of Slurm."""
    found: dict[_Place, list[int]] = {}
    lowest: dict[_Place, int] = {}
    for one in there:
        cpu, place = one.index(row), _place(one)
        if one.id.driver == row.driver and cpu is not None and place is not None:
            found.setdefault(place, []).append(cpu)
            for depth in range(1, len(place) + 1):
                lowest[place[:depth]] = min(cpu, lowest.get(place[:depth], cpu))
    order = sorted(found, key=lambda place: [lowest[place[:depth]] for depth in range(1, len(place) + 1)])
    return {place: found[place] for place in order}


def _place(one: NodeDevice) -> _Place | None:
    """None where the driver does not say it."""
    socket, core = one.number(_SOCKET), one.number(_CORE) if one.cpu is None else one.cpu.core
    numa = next((number for number in map(one.number, _NUMA) if number is not None), None)
    if socket is None or numa is None or core is None:
        return None
    cache = one.number(_CACHE)
    return socket, numa, -1 if cache is None else cache, core
