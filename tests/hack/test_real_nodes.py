"""Real nodes of the local cluster: both sides are told the same, and a cluster without them knows nothing of them."""

import io
import ipaddress
import json
import os
import pathlib
import subprocess
import tarfile
from typing import Any

import pytest

from localcluster import (
    certs,
    cgroups,
    hosts,
    kubernetes,
    leftovers,
    nodes,
    parts,
    real_images,
    real_kubelet,
    real_network,
    real_runtime,
    slurm_conf,
    slurm_files,
)
from localcluster.config import Config
from localcluster.part import PartError
from localcluster.real_machine import Machine


def config(**changes: Any) -> Config:
    """Two real nodes, unless said otherwise, in a folder that does not exist."""
    return Config(**{"directory": pathlib.Path("/nowhere"), "real_nodes": 2, **changes})


def lines(text: str, start: str) -> list[str]:
    """The lines of a kind."""
    return [line for line in text.splitlines() if line.startswith(start)]


def test_without_them_nothing_is_there() -> None:
    """No part, no line, no flag: a cluster is as it was before there were any."""
    without = config(real_nodes=0)
    assert parts.of(without) == parts.PARTS
    text = "".join(slurm_conf.files(without).values())
    assert not [word for word in ("real", "hybrid", "SlurmdParameters") if word in text]
    assert "--manage-all-nodes=true" in kubernetes.KWOK.arguments(without)
    assert not [word for word in kubernetes.APISERVER.arguments(without) if "kubelet" in word]
    assert certs.identities(without) == ()


def test_too_many_are_refused() -> None:
    """Each has ports and addresses of its own, and there are not more of these."""
    assert len(hosts.real_nodes(config(real_nodes=hosts.MOST_REAL_NODES))) == hosts.MOST_REAL_NODES
    with pytest.raises(PartError, match="REAL_NODES=8: from 0 to 7"):
        hosts.real_nodes(config(real_nodes=8))


def test_slurm_waits_for_their_slurmd() -> None:
    """They are no external nodes, have a port each, GPUs that are files, and a partition of their own."""
    files = slurm_conf.files(config(port_base=20000))
    real = lines(files["slurm.conf"], "NodeName=real")
    assert [line.split()[:3] for line in real] == [
        ["NodeName=real1", "NodeAddr=127.0.0.1", "Port=20025"],
        ["NodeName=real2", "NodeAddr=127.0.0.1", "Port=20026"],
    ]
    devices = "Gres=gpu:pretended:4,gpu:1g.10gb:2,gpu:2g.20gb:1,card:2"
    assert all(line.endswith(f"{devices} Feature=real State=UNKNOWN") for line in real)
    assert "PartitionName=hybrid Nodes=real[1-2]" in files["slurm.conf"]
    assert lines(files["gres.conf"], "NodeName=real") == [
        f"NodeName={node} Name={words}"
        for node in ("real1", "real2")
        for words in (
            "gpu Type=pretended File=/dev/null,/dev/zero,/dev/full,/dev/random",
            "gpu Type=1g.10gb File=/dev/urandom,/dev/tty",
            "gpu Type=2g.20gb File=/dev/ptmx",
            "card File=/dev/null,/dev/zero",
        )
    ]
    assert "switch: hybrid\n      nodes: real[1-2]" in files["topology.yaml"]


def test_the_kubelet_offers_what_slurm_was_told() -> None:
    """What the machine has above that is reserved, and nothing is evicted for the machine's sake."""
    written = real_kubelet.configuration(config(), Machine(number=1))
    reserved = int(written["systemReserved"]["memory"].removesuffix("Ki"))
    total = int(pathlib.Path("/proc/meminfo").read_text().split()[1])
    assert total - reserved == 4096 * 1024
    assert set(written["evictionHard"].values()) == {"0%"}


def test_the_kubelet_lets_the_machine_alone() -> None:
    """No rule of a packet filter, and no stranger is let in."""
    written = real_kubelet.configuration(config(), Machine(number=1))
    assert written["makeIPTablesUtilChains"] is False
    assert written["authentication"]["anonymous"] == {"enabled": False}
    assert written["authorization"] == {"mode": "Webhook"}


def test_kwok_leaves_them_alone() -> None:
    """It pretends for every node but those that a kubelet marked as its own."""
    (selector,) = [word for word in kubernetes.KWOK.arguments(config()) if word.startswith("--manage")]
    assert selector == f"--manage-nodes-with-label-selector=!{nodes.REAL}"
    labels = [word for word in real_kubelet.kubelet(Machine(number=1)).arguments(config()) if "--node-labels" in word]
    assert f"{nodes.REAL}=true" in labels[0]


def test_clusters_have_addresses_of_their_own() -> None:
    """Ports that are 128 apart are enough; the pods of two nodes never share an address."""
    one, two = (real_network.block(config(port_base=base)) for base in (26440, 26440 + 128))
    assert not one.overlaps(two)
    pods = [real_network.pods(config(), number) for number in range(1, hosts.MOST_REAL_NODES + 1)]
    assert len(set(pods)) == hosts.MOST_REAL_NODES
    last = ipaddress.ip_address(real_network.address(config(), hosts.MOST_REAL_NODES))
    assert not [subnet for subnet in pods if last in ipaddress.ip_network(subnet)]
    assert ipaddress.ip_address(real_network.dns(config())) > last


def test_pods_are_wired_by_the_plugins_that_were_built() -> None:
    """containerd looks for plugins and its shim where the cluster's binaries are, and nowhere else."""
    text = real_runtime.configuration(config(cache=pathlib.Path("/the cache")), Machine(number=1))
    assert 'bin_dirs = ["/the cache/bin"]' in text
    assert 'runtime_path = "/the cache/bin/containerd-shim-runc-v2"' in text
    plugin = json.loads(real_runtime.network(config(), Machine(number=2)))["plugins"][0]
    assert plugin["ipam"]["ranges"] == [[{"subnet": real_network.pods(config(), 2)}]]


def test_a_node_starts_after_what_it_talks_to() -> None:
    """Both servers are in the stage before; the parts of one node follow each other."""
    names = [[[part.name for part in chain] for chain in stage] for stage in parts.stages(config())]
    assert names[1] == [["real-images", "real-objects", "real-network", "real-dns"]]
    assert names[2] == [
        [f"{node}-machine", f"{node}-containerd", f"{node}-images", f"{node}-kubelet", f"{node}-dra", f"slurmd-{node}"]
        for node in ("real1", "real2")
    ]


def test_images_share_their_layer() -> None:
    """Both are the same files, with another command; every applet is a link to the one program."""
    with tarfile.open(fileobj=io.BytesIO(real_images.packed(b"program", ["sh", "sleep"]))) as archive:
        listed = json.loads(read(archive, "manifest.json"))
        layer = read(archive, "layer.tar")
        described = [json.loads(read(archive, entry["Config"])) for entry in listed]
    assert [entry["RepoTags"] for entry in listed] == [[real_images.BUSYBOX], [real_images.PAUSE]]
    assert [one["config"]["Cmd"] for one in described] == [["sh"], ["sleep", "infinity"]]
    assert described[0]["rootfs"] == described[1]["rootfs"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as files:
        assert read(files, "bin/busybox") == b"program"
        assert files.getmember("bin/sleep").linkname == "busybox"


def read(archive: tarfile.TarFile, name: str) -> bytes:
    """The content of one file."""
    stream = archive.extractfile(name)
    assert stream is not None
    return stream.read()


@pytest.fixture
def group(tmp_path: pathlib.Path) -> str:
    """A control group of a cluster that nobody else has; only root may make one."""
    if os.geteuid() != 0 or not os.access("/sys/fs/cgroup", os.W_OK):
        pytest.skip("control groups cannot be made here")
    return f"{slurm_files.prefix(Config(directory=tmp_path))}/node"


def test_what_runs_in_a_group_ends_with_it(tmp_path: pathlib.Path, group: str) -> None:
    """A process that no record knows is found, named as left over, and killed with its children."""
    top = group.partition("/")[0]
    cgroups.make(f"{group}/system")
    try:
        files = [str(file) for file in cgroups.procs(f"{group}/system")]
        script = 'for file; do echo $$ > "$file"; done; echo in; sleep 60 & exec sleep 60'
        with subprocess.Popen(["sh", "-c", script, "sh", *files], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"in\n"
            assert [line for line in leftovers.found(Config(directory=tmp_path)) if top in line]
            cgroups.end(group)
            assert process.wait(10) != 0
    finally:
        cgroups.end(top)
    assert leftovers.found(Config(directory=tmp_path)) == []
