"""The kubelet of a real node: it registers the node with exactly the CPUs and memory that Slurm was told."""

import contextlib
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from localcluster import (
    api,
    applied,
    certs,
    hosts,
    kubeconfig,
    manifests,
    nodes,
    probe,
    process,
    real_dns,
    real_network,
    real_runtime,
    server,
)
from localcluster.config import Config
from localcluster.part import PartError
from localcluster.real_machine import Machine

MANIFESTS = tuple(real_network.SCRIPTS / name for name in ("rbac.yaml", "deviceclass.yaml"))
_HEALTH_PORT = 10248
#: The file of the kubelet that deletes ResourceSlices; its log lines name it.
_DEVICES = "dra_plugin_manager"
#: A full disk of the machine, or little memory on it, is no reason to evict pods here.
_NO_EVICTION = ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree")


class Objects:
    """Kubelets may do what the role made for them says; and there is a class for the devices of their nodes."""

    name = "real-objects"

    def state(self, config: Config) -> str | None:
        client = api.Client(config)
        present = all(client.find(document.path) for document in _documents())
        return f"{len(_documents())} applied" if present and applied.is_current(config, self.name, _text()) else None

    def start(self, config: Config) -> None:
        client = api.Client(config)
        for document in _documents():
            client.apply(document)
        applied.remember(config, self.name, _text())

    def stop(self, config: Config) -> None:
        """They live in etcd and go with it."""
        applied.forget(config, self.name)


def _documents() -> list[manifests.Document]:
    return [document for file in MANIFESTS for document in manifests.from_file(file)]


def _text() -> str:
    return "".join(file.read_text() for file in MANIFESTS)


def kubelet(machine: Machine) -> server.Server:
    """The part of one node."""
    return server.Server(
        name=f"{machine.node}-kubelet",
        binary="kubelet",
        arguments=lambda config: _arguments(config, machine),
        files=lambda config: _files(config, machine),
        probe=lambda config: _complaint(config, machine),
        address=lambda config: f"https://{real_network.address(config, machine.number)}:10250",
        through=machine.enter_beside_network,
    )


def _complaint(config: Config, machine: Machine) -> str:
    """It answers, and says that the node is ready: then its runtime and its network work as well.

    A kubelet that starts deletes what drivers published for its node, at some time after it answers; until then what
    is published says nothing.
    """
    url = f"http://{real_network.address(config, machine.number)}:{_HEALTH_PORT}/healthz"
    if said := probe.http_ok(url):
        return said
    try:
        node = api.Client(config).find(f"/api/v1/nodes/{machine.node}")
    except PartError as error:
        return str(error)
    if not node or not nodes.is_ready(node):
        return f"node {machine.node} is not ready"
    return "" if _has_cleaned(config, machine) else "it has not deleted the devices of the time before its start"


def _has_cleaned(config: Config, machine: Machine) -> bool:
    """Its log has this line of the process that runs now, from the only file of which it tells so much."""
    places = kubelet(machine).places(config)
    record = process.running(places.pid)
    with contextlib.suppress(FileNotFoundError), places.log.open(errors="replace") as lines:
        return record is not None and any(
            f" {record.pid} {_DEVICES}.go" in line and '"Deleted ResourceSlices"' in line for line in lines
        )
    return False


def _arguments(config: Config, machine: Machine) -> list[str]:
    labels = {nodes.REAL: "true", "topology.kubernetes.io/zone": f"zone-{hosts.HYBRID}"}
    return [
        f"--config={_configuration(config, machine)}",
        f"--kubeconfig={_kubeconfig(config, machine)}",
        "--root-dir=/var/lib/kubelet",
        "--cert-dir=/var/lib/kubelet/pki",
        f"--hostname-override={machine.node}",
        f"--node-ip={real_network.address(config, machine.number)}",
        f"--node-labels={','.join(f'{name}={value}' for name, value in labels.items())}",
        f"--vmodule={_DEVICES}=3",
    ]


def _files(config: Config, machine: Machine) -> Mapping[pathlib.Path, str]:
    identity = next(one for one in certs.identities(config) if one.name == certs.kubelet(machine.node))
    return {
        _configuration(config, machine): json.dumps(configuration(config, machine), indent=2) + "\n",
        _kubeconfig(config, machine): kubeconfig.of_certificate(config, identity),
    }


def _configuration(config: Config, machine: Machine) -> pathlib.Path:
    return machine.folder(config) / "kubelet.json"


def _kubeconfig(config: Config, machine: Machine) -> pathlib.Path:
    return machine.folder(config) / "kubeconfig.json"


def configuration(config: Config, machine: Machine) -> dict[str, Any]:
    """Nothing of it touches the machine outside the node: no packet filter, no kernel parameters."""
    address = real_network.address(config, machine.number)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "healthzBindAddress": address,
        "healthzPort": _HEALTH_PORT,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": certs.path(config, "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{real_runtime.SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{machine.group(config)}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "systemReserved": {"memory": f"{_surplus_kib(config, machine)}Ki"},
        "evictionHard": dict.fromkeys(_NO_EVICTION, "0%"),
        "localStorageCapacityIsolation": False,
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "clusterDNS": [real_network.dns(config)],
        "clusterDomain": real_dns.DOMAIN,
        "resolvConf": "",  # pods that want the resolver of their node have none: it is the machine's
        "podLogsDir": "/var/log/pods",
        "maxPods": 25,
        "oomScoreAdj": 0,
        "nodeStatusUpdateFrequency": "5s",
        # A pod whose devices could not be prepared is tried again after that; tests wait for it.
        "syncFrequency": "10s",
        "registerNode": True,
        "rotateCertificates": False,
    }


def _surplus_kib(config: Config, machine: Machine) -> int:
    """What the machine has above the node's size: reserved, so that the rest is what Slurm was told."""
    line = pathlib.Path("/proc/meminfo").read_text().splitlines()[0]
    wanted = hosts.real_nodes(config)[machine.number - 1].memory_mib * 1024
    return max(0, int(line.split()[1]) - wanted)
