"""Nodes that run processes: each a kubelet with a containerd, and a slurmd, under one name on both sides.

They are few and come after everything else: a kubelet registers with the API server, a slurmd with slurmctld.
"""

from localcluster import hosts, real_dns, real_dra, real_images, real_kubelet, real_network, real_runtime, real_slurmd
from localcluster.config import Config
from localcluster.part import Part
from localcluster.real_machine import Machine

#: What all of them need.
COMMON: tuple[Part, ...] = (real_images.Images(), real_kubelet.Objects(), real_network.Network(), real_dns.DNS)


def of_node(number: int) -> tuple[Part, ...]:
    """The parts of one node in starting order."""
    machine = Machine(number=number)
    return (
        machine,
        real_runtime.containerd(machine),
        real_images.Imported(machine=machine),
        real_kubelet.kubelet(machine),
        real_dra.driver(machine),
        real_slurmd.slurmd(machine.node, number),
    )


def stages(config: Config) -> tuple[tuple[tuple[Part, ...], ...], ...]:
    """What starts side by side, one after the other; nothing without real nodes."""
    nodes = tuple(of_node(number) for number in range(1, len(hosts.real_nodes(config)) + 1))
    return ((COMMON,), nodes) if nodes else ()
