"""The drivers of a real node's devices for claims (go/dra): what Slurm was told of, with the same indices.

A container that was given one has a variable GPU_DEVICE_<index>, MIG_DEVICE_<index>, CPU_DEVICE_<id> or
CARD_DEVICE_<index>. A device that a claim holds is prepared for no other. The same CPUs are published one by one, and
as groups by their NUMA nodes. Of cards all parts are published that could be made.
"""

import pathlib
from collections.abc import Mapping

from localcluster import api, certs, hosts, kubeconfig, real_runtime, server
from localcluster.config import Config
from localcluster.part import PartError
from localcluster.real_machine import Machine

DRIVER, CPU_DRIVER, GROUP_DRIVER = "gpu.local-cluster", "cpu.local-cluster", "group.local-cluster"
CARD_DRIVER = "card.local-cluster"
#: What counts the CPUs of a group, and how many groups there are.
CAPACITY, GROUPS = f"{GROUP_DRIVER}/cpu", 2
#: Slices of GPUs have a DeviceClass of their own.
SLICES = "mig.local-cluster"
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def driver(machine: Machine) -> server.Server:
    """The part of one node, after its kubelet, with which it registers."""
    return server.Server(
        name=f"{machine.node}-dra",
        binary="dra",
        arguments=lambda config: _arguments(config, machine),
        files=_files,
        probe=lambda config: _complaint(config, machine),
        address=lambda _: DRIVER,
        through=machine.enter_beside_network,
    )


def _arguments(config: Config, machine: Machine) -> list[str]:
    host = _host(config, machine)
    return [
        f"--kubeconfig={_kubeconfig(config)}",
        f"--node={machine.node}",
        f"--gpus={host.gpus}",
        f"--slices={','.join(host.slices)}",
        f"--cpus={host.cpus}",
        f"--cards={host.cards}",
        f"--cdi={real_runtime.CDI}",
    ]


def _files(config: Config) -> Mapping[pathlib.Path, str]:
    identity = next(one for one in certs.identities(config) if one.name == certs.DRA)
    return {_kubeconfig(config): kubeconfig.of_certificate(config, identity)}


def _kubeconfig(config: Config) -> pathlib.Path:
    return certs.folder(config) / "kubeconfig-dra"


def _host(config: Config, machine: Machine) -> hosts.Host:
    return hosts.real_nodes(config)[machine.number - 1]


def _complaint(config: Config, machine: Machine) -> str:
    """Its devices are published; its kubelet finds it by itself, and tries again as long as it does not."""
    try:
        found = api.Client(config).get(_SLICES)["items"]
    except PartError as error:
        return str(error)
    ours = [one["spec"] for one in found if one["spec"].get("nodeName") == machine.node]
    drivers = (DRIVER, CPU_DRIVER, GROUP_DRIVER, CARD_DRIVER)
    published = sum(len(one.get("devices", ())) for one in ours if one["driver"] in drivers)
    host = _host(config, machine)
    wanted = host.gpus + len(host.slices) + host.cpus + min(GROUPS, host.cpus) + hosts.PARTS * host.cards
    return "" if published == wanted else f"{published} of {wanted} devices are published"
