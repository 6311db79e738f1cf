"""The network of the real nodes: one namespace for the pods of all of them, and a cable from the machine into it.

198.18.0.0/15 is set aside for test beds, so that no route of the machine is hidden. A cluster has 256 addresses of it:

    .1              the namespace's end of the cable
    .2, .3, …       the nodes, on the machine's end: their kubelets listen there
    .30             the name server of the pods, on the machine's end, too
    .32, .64, …     from there on, 32 addresses each for the pods of the nodes

The namespace lives as long as a process in it, and the cable with its addresses and routes as long as the namespace.
"""

import ipaddress
import pathlib
import signal
import subprocess

from localcluster import cgroups, hosts, packages, process, slurm_files, wait
from localcluster.config import PROJECT, Config
from localcluster.part import PartError, Row

SCRIPTS = PROJECT / "hack" / "cluster" / "realnode"
_BLOCKS = ipaddress.ip_network("198.18.0.0/15")
_PER_NODE = 32
_UPLINK = "uplink"
_SECONDS = 10.0


def block(config: Config) -> ipaddress.IPv4Network:
    """The addresses of this cluster: clusters whose ports are at least 128 apart have others."""
    first = int(_BLOCKS.network_address) + (config.port_base // 128 % 512) * 256
    return ipaddress.IPv4Network((first, 24))


def gateway(config: Config) -> str:
    """The namespace's end of the cable."""
    return str(block(config)[1])


def address(config: Config, number: int) -> str:
    """Of a node; they count from 1."""
    return str(block(config)[1 + number])


def dns(config: Config) -> str:
    """Of the name server of the pods."""
    return str(block(config)[_PER_NODE - 2])


def pods(config: Config, number: int) -> str:
    """The addresses of the pods of a node."""
    return f"{block(config)[_PER_NODE * number]}/27"


def link(config: Config) -> str:
    """The machine's end of the cable; names of links are short."""
    return f"sb-{slurm_files.prefix(config).rpartition('-')[2]}"


def places(config: Config) -> process.Places:
    """Of the process that holds the namespace."""
    return process.Places(
        pid=config.pids / f"{Network.name}.json",
        log=config.logs / f"{Network.name}.log",
        home=config.directory / "home",
    )


def group(config: Config) -> str:
    """The control group that the process is in."""
    return f"{slurm_files.prefix(config)}/network"


class Network:
    """The part that all real nodes need."""

    name = "real-network"

    def state(self, config: Config) -> str | None:
        record = process.running(places(config).pid)
        if record is None or record.fingerprint != _fingerprint(config) or _lacking(config):
            return None
        return str(block(config))

    def start(self, config: Config) -> None:
        if self.state(config) is not None:
            return
        packages.require(packages.IP)
        self.stop(config)
        _require_free(config)
        cgroups.make(group(config))
        files = map(str, cgroups.procs(group(config)))
        command = ("/usr/bin/unshare", "--net", str(SCRIPTS / "network"), *files)
        process.spawn(command, places(config), _fingerprint(config))
        process.await_answer(places(config), lambda: _routing(config), _SECONDS)
        for words in _cable(config):
            _ip(*words)

    def stop(self, config: Config) -> None:
        """With whatever is left of any node: without the network none is of use."""
        cgroups.end(slurm_files.prefix(config))
        process.stop(places(config).pid)
        wait.until(lambda: f"{link(config)} is still there" if is_linked(config) else "", _SECONDS)

    def signal(self, config: Config, number: signal.Signals) -> None:
        if not process.send(places(config).pid, number):
            raise PartError("it does not run")

    def row(self, config: Config) -> Row:
        record = process.running(places(config).pid)
        return Row(pid=record.pid if record else None, address=gateway(config))


def namespace(config: Config) -> str:
    """The file that names it, for nsenter."""
    record = process.running(places(config).pid)
    return f"/proc/{record.pid if record else 0}/ns/net"


def _fingerprint(config: Config) -> str:
    return f"{_own(config)} {(SCRIPTS / 'network').read_text()}"


def _own(config: Config) -> list[str]:
    """The addresses of the machine's end: of all nodes there may be, so that none is rebooted when another comes."""
    return [dns(config), *(address(config, number) for number in range(1, hosts.MOST_REAL_NODES + 1))]


def _routing(config: Config) -> str:
    """A new namespace does not forward; the script's last step but one makes it."""
    record = process.running(places(config).pid)
    command = ("nsenter", f"--net={namespace(config)}", "cat", "/proc/sys/net/ipv4/ip_forward")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if record and done.stdout.strip() == "1" else f"it does not route yet: {done.stderr.strip()}"


def _cable(config: Config) -> list[tuple[str, ...]]:
    name, inside = link(config), f"--net={namespace(config)}"
    pid = pathlib.PurePath(namespace(config)).parts[2]
    return [
        ("ip", "link", "add", name, "type", "veth", "peer", "name", _UPLINK, "netns", pid),
        *(("ip", "address", "add", f"{one}/27", "dev", name) for one in _own(config)),
        ("ip", "link", "set", name, "up"),
        ("nsenter", inside, "ip", "address", "add", f"{gateway(config)}/27", "dev", _UPLINK),
        ("nsenter", inside, "ip", "link", "set", _UPLINK, "up"),
        ("ip", "route", "add", str(block(config)), "via", gateway(config)),
    ]


def _lacking(config: Config) -> bool:
    shown = subprocess.run(("ip", "route", "show", "dev", link(config)), capture_output=True, text=True, check=False)
    return f"{block(config)} via {gateway(config)}" not in shown.stdout


def _require_free(config: Config) -> None:
    shown = subprocess.run(("ip", "-oneline", "address"), capture_output=True, text=True, check=True).stdout
    if f" {address(config, 1)}/" in shown:
        raise PartError(f"{address(config, 1)} is another cluster's: choose a PORT_BASE at least 128 away from its own")


def is_linked(config: Config) -> bool:
    """Whether the cable is there."""
    return pathlib.Path(f"/sys/class/net/{link(config)}").exists()


def _ip(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PartError(f"{' '.join(words)}: {done.stderr.strip()}")
