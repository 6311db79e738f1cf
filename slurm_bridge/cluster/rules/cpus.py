"""Which CPUs of a node are the cores of Slurm. Pure.

Slurm numbers the cores of a node socket by socket, and each in the order of its lowest CPU. So the number of a core
follows from the CPUs that a driver publishes, if it publishes those of all cores: the attributes `coreID` and
`socketID` say which CPUs are threads of one core, and which cores are on one socket.
"""

from collections.abc import Iterable
from typing import Final

from slurm_bridge.cluster.rules.devices import NodeDevice
from slurm_bridge.model.job import Cores
from slurm_bridge.translate.device_claims import DeviceRow

_CORE: Final = "coreID"
_SOCKET: Final = "socketID"


def given(cores: Cores | None, row: DeviceRow, there: Iterable[NodeDevice]) -> frozenset[int] | str:
    """The CPUs of these cores; or why that cannot be told."""
    if cores is None:
        return "Slurm does not tell which cores it gave (slurmrestd needs data_parser v0.0.44)"
    sockets = _sockets(row, there)
    published = [threads for one in sockets for threads in one]
    if (len(sockets), len(published)) != (cores.sockets, cores.sockets * cores.per_socket):
        return (
            f"driver {row.driver} publishes {len(published)} cores on {len(sockets)} sockets, and Slurm has "
            f"{cores.sockets * cores.per_socket} on {cores.sockets}: only where they are the same is known which "
            "CPUs Slurm gives"
        )
    return frozenset(cpu for number, threads in enumerate(published) if cores.bits >> number & 1 for cpu in threads)


def _sockets(row: DeviceRow, there: Iterable[NodeDevice]) -> list[list[list[int]]]:
    """The CPUs by socket and core, in the order of Slurm; without the attributes all is one socket, a CPU a core."""
    found: dict[int, dict[int, list[int]]] = {}
    for one in there:
        cpu = one.index(row) if one.id.driver == row.driver else None
        if cpu is not None:
            core, socket = one.number(_CORE), one.number(_SOCKET)
            cores = found.setdefault(-1 if socket is None else socket, {})
            cores.setdefault(cpu if core is None else core, []).append(cpu)
    return sorted(sorted(map(sorted, cores.values())) for cores in found.values())
