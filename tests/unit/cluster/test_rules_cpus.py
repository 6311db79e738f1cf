"""Which CPUs are the cores that Slurm gives, on machines of different numbering."""

from collections.abc import Iterable

import pytest

from slurm_bridge.cluster.rules import cpus
from slurm_bridge.cluster.rules.devices import NodeDevice
from slurm_bridge.model.devices import Device, DeviceAttribute, DeviceId
from slurm_bridge.model.job import Cores, Gres
from slurm_bridge.translate.device_claims import DeviceRow

DRIVER = "dra.cpu"
ROW = DeviceRow(device_class=DRIVER, driver=DRIVER, gres=Gres(name="cpu", count=1), index="cpuID")


def cpu(number: int, driver: str = DRIVER, **attributes: int) -> NodeDevice:
    """A CPU, at its place; the names of half of the attributes have a domain."""
    written = {"cpuID": number, "coreID": number, "socketID": 0, "numaNodeID": 0, **attributes}
    domain = f"{DRIVER}/" if number % 2 else ""
    found = {f"{domain}{key}": DeviceAttribute(integer=value) for key, value in written.items()}
    return NodeDevice(id=DeviceId(driver, "n1", f"cpu-{number}"), device=Device(name=f"cpu-{number}", attributes=found))


def machine(
    sockets: int, cores: int, threads: int, *, adjacent: bool = False, round_robin: bool = False
) -> list[NodeDevice]:
    """Siblings have neighbouring numbers, or those of the second half; sockets take turns, or come one by one."""
    found = []
    for number in range(sockets * cores * threads):
        core = number // threads if adjacent else number % (sockets * cores)
        socket = core % sockets if round_robin else core // cores
        place = core // sockets if round_robin else core % cores
        found.append(cpu(number, coreID=place, socketID=socket, numaNodeID=socket))
    return found


def in_turns(number: int, **attributes: int) -> NodeDevice:
    """Of two sockets with two NUMA nodes each, which take turns: 0, 4 and 1, 5 on the first socket."""
    node = number % 4
    return cpu(number, coreID=number // 2, socketID=node // 2, numaNodeID=node, **attributes)


PLACES = ("coreID", "socketID", "numaNodeID")


def without(one: NodeDevice, attribute: str) -> NodeDevice:
    """The driver does not publish it."""
    kept = {name: value for name, value in one.device.attributes.items() if not name.endswith(attribute)}
    return NodeDevice(id=one.id, device=Device(name=one.device.name, attributes=kept))


def given(there: Iterable[NodeDevice], bits: int, sockets: int, cores: int) -> list[int] | str:
    """Of cores of such a node."""
    found = cpus.given(Cores(bits=bits, sockets=sockets, per_socket=cores), ROW, there)
    return found if isinstance(found, str) else sorted(found)


@pytest.mark.parametrize(
    ("there", "sockets", "bits", "expected"),
    [
        (machine(1, 4, 1), 1, 0b1010, [1, 3]),
        (machine(1, 4, 2), 1, 0b0110, [1, 2, 5, 6]),
        (machine(1, 4, 2, adjacent=True), 1, 0b0110, [2, 3, 4, 5]),
        (machine(2, 2, 1), 2, 0b0110, [1, 2]),
        (machine(2, 2, 1, round_robin=True), 2, 0b0011, [0, 2]),
        (machine(2, 2, 2, round_robin=True), 2, 0b1000, [3, 7]),
        ([cpu(number) for number in (3, 0, 2, 1)], 1, 0b1001, [0, 3]),
        ([cpu(number, numaNodeID=number % 2) for number in range(4)], 1, 0b0011, [0, 2]),
        ([cpu(number, numaNodeID=number % 2) for number in range(4)], 2, 0b0011, [0, 2]),
        ([cpu(number, cacheL3ID=number % 2) for number in range(4)], 1, 0b0011, [0, 2]),
        (machine(1, 4, 1), 1, 0, []),
    ],
)
def test_cores_are_numbered_socket_by_socket(
    there: list[NodeDevice], sockets: int, bits: int, expected: list[int]
) -> None:
    """Then by NUMA node and cache, in the order of their lowest CPU, whatever the numbers of the CPUs."""
    assert given(there, bits, sockets, 4 // sockets) == expected
    assert given(reversed(there), bits, sockets, 4 // sockets) == expected


def test_numa_nodes_may_take_turns_within_sockets() -> None:
    """hwloc has them one by one: cores 0 to 7 are 0, 4, 1, 5 and 2, 6, 3, 7."""
    there = [in_turns(number) for number in range(8)]
    orders = [given(there, 1 << core, sockets, 8 // sockets) for core in range(8) for sockets in (2, 4)]
    assert orders == [[cpu] for cpu in (0, 4, 1, 5, 2, 6, 3, 7) for _ in range(2)]


def test_the_numa_node_has_two_names() -> None:
    """That of Kubernetes counts."""
    there = []
    for number in range(4):
        one = cpu(number)
        one.device.attributes["resource.kubernetes.io/numaNode"] = DeviceAttribute(integer=number % 2)
        there.append(one)
    assert given(there, 0b0011, 1, 4) == [0, 2]


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (machine(1, 4, 1)[1:], "3 cores on 1 sockets"),
        (machine(1, 8, 1), "8 cores on 1 sockets"),
        (machine(2, 2, 1), "4 cores on 2 sockets"),
        ([cpu(number, "other") for number in range(4)], "0 cores"),
        *(([without(cpu(number), missing) for number in range(4)], "0 cores") for missing in PLACES),
        ([], "0 cores"),
    ],
)
def test_a_driver_that_says_something_else_than_slurm_is_not_believed(there: list[NodeDevice], words: str) -> None:
    """Reserved CPUs, sockets that Slurm does not have, places that are not told: any number could be wrong."""
    found = given(there, 0b1, 1, 4)
    assert isinstance(found, str)
    assert words in found


def test_what_slurm_does_not_tell_is_told() -> None:
    """Earlier versions of its API count cores only."""
    assert "v0.0.44" in str(cpus.given(None, ROW, machine(1, 4, 1)))


@pytest.mark.security("input")
def test_absurd_numbers_are_harmless() -> None:
    """Of a driver, which may publish anything."""
    there = [cpu(number, coreID=10**15 * number, socketID=-5) for number in range(4)]
    assert given(there, 1 << 4096 | 0b1, 1, 4) == [0]
    assert isinstance(given(there, 0b1, 1 << 40, 1 << 40), str)
    assert isinstance(given(there, -1, -1, -4), str)
