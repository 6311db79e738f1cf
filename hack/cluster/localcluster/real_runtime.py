"""containerd of a real node: images from files, pods with an address each, devices by CDI."""

import json
import pathlib
import socket
from collections.abc import Mapping

from localcluster import gomodules, packages, real_images, real_network, server
from localcluster.config import Config
from localcluster.real_machine import Machine

SOCKET = "/run/containerd/containerd.sock"
#: In the node's own /run: a reboot empties it, and no cluster sees another's.
CDI = "/run/cdi"
_SECONDS = 3.0


class Containerd(server.Server):
    """It needs the program that makes containers."""

    __slots__ = ()

    def start(self, config: Config) -> None:
        packages.require(packages.RUNC)
        super().start(config)


def containerd(machine: Machine) -> server.Server:
    """The part of one node."""
    return Containerd(
        name=f"{machine.node}-containerd",
        binary="containerd",
        arguments=lambda config: [f"--config={_configuration(config, machine)}"],
        files=lambda config: _files(config, machine),
        probe=lambda config: _complaint(config, machine),
        address=lambda _: f"unix://{SOCKET}",
        through=machine.enter,
    )


def _complaint(config: Config, machine: Machine) -> str:
    """It accepts connections; whether it serves is asked by its kubelet."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_SECONDS)
        try:
            client.connect(f"{machine.root(config)}{SOCKET}")
        except OSError as error:
            return f"{SOCKET}: {error}"
    return ""


def _configuration(config: Config, machine: Machine) -> pathlib.Path:
    return machine.folder(config) / "containerd.toml"


def _cni(config: Config, machine: Machine) -> pathlib.Path:
    return machine.folder(config) / "cni"


def _files(config: Config, machine: Machine) -> Mapping[pathlib.Path, str]:
    return {
        _configuration(config, machine): configuration(config, machine),
        _cni(config, machine) / "pods.conflist": network(config, machine),
    }


def configuration(config: Config, machine: Machine) -> str:
    """What differs from containerd's defaults; a string of JSON is one of TOML."""
    listening = real_network.gateway(config)
    shim = gomodules.binary(config, "containerd-shim-runc-v2")
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]

[grpc]
address = "{SOCKET}"

[plugins.'io.containerd.cri.v1.images']
# Of the image's files each container has a copy: what overlays need is not everywhere.
snapshotter = "native"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{real_images.PAUSE}"

[plugins.'io.containerd.cri.v1.runtime']
enable_cdi = true
cdi_spec_dirs = ["{CDI}"]
disable_apparmor = true
# Without the right to lower it for itself, it starts no container that is to be spared.
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = [{json.dumps(str(config.binaries))}]
conf_dir = {json.dumps(str(_cni(config, machine)))}

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
# Not the first on PATH, which may be of an engine of another version.
runtime_path = {json.dumps(str(shim))}

[plugins.'io.containerd.grpc.v1.cri']
# Commands in pods are streamed past the kubelet, which is in the other network namespace.
stream_server_address = "{listening}"
stream_server_port = "0"
"""


def network(config: Config, machine: Machine) -> str:
    """A cable from each pod to the namespace of all nodes, which routes."""
    subnet = real_network.pods(config, machine.number)
    ranges = {"ranges": [[{"subnet": subnet}]], "routes": [{"dst": "0.0.0.0/0"}]}
    ipam = {"type": "host-local", "dataDir": "/run/cni", **ranges}
    plugin = {"type": "ptp", "ipMasq": False, "ipam": ipam}
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [plugin]}, indent=2) + "\n"
