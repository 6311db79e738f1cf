"""The examples of slurm.conf: a real slurmctld starts with each of them, and has its nodes and partitions."""

import os
import re
import socket
from collections.abc import Mapping

import pytest
import yaml

from localcluster import engine, image
from localcluster.config import PROJECT, Config
from slurm_bridge.model import quantity

FOLDER = PROJECT / "hack" / "slurm.conf"
MODES = sorted(one.name for one in FOLDER.iterdir() if one.is_dir())
HOSTS = ("controller", *(f"node{number:02}" for number in range(1, 5)), "batch01", "batch02")


def loaded(mode: str) -> str:
    """What slurmctld says of its nodes and its configuration."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    mounts = (f"--volume={FOLDER / mode}:/example:ro", f"--volume={FOLDER / 'load'}:/load:ro")
    names = [f"--add-host={host}:127.0.0.1" for host in HOSTS]
    run = ("run", "--rm", "--network=host", "--hostname=controller", *names, *mounts, "--entrypoint=/load", image.tag())
    return engine.docker(Config.resolve(os.environ), *run, str(port))


@pytest.mark.real
@pytest.mark.parametrize("mode", MODES)
def test_slurmctld_starts_with_it(cluster: Mapping[str, str], mode: str) -> None:  # noqa: ARG001 - the image is there
    """Every node that it names, in every partition, with its GPUs."""
    said = loaded(mode)
    text = (FOLDER / mode / "slurm.conf").read_text()
    for partition in re.findall(r"^PartitionName=(\w+) Nodes=node", text, re.MULTILINE):
        for number in range(1, 5):
            assert re.search(rf"^node{number:02} {partition}\*? \S+ gpu:4$", said, re.MULTILINE), said
    assert ("TaskPlugin              = task/cgroup,task/affinity" in said) is (mode != "external")
    assert "MaxJobId                = 49999999" in said


def test_the_kubelet_leaves_what_slurm_leaves() -> None:
    """CoreSpecCount and MemSpecLimit are the sum of all that the kubelet reserves."""
    kubelet = yaml.safe_load((FOLDER / "hybrid" / "kubelet.yaml").read_text())
    reserved = [kubelet["systemReserved"], kubelet["kubeReserved"]]
    memory = sum(quantity.parse(one["memory"]) for one in reserved)
    memory += quantity.parse(kubelet["evictionHard"]["memory.available"])
    text = (FOLDER / "hybrid" / "slurm.conf").read_text()
    assert f"CoreSpecCount={sum(quantity.parse(one['cpu']) for one in reserved)} " in text
    assert f"MemSpecLimit={memory / quantity.MIB} " in text


def test_every_mode_is_in_the_readme() -> None:
    """With its folder."""
    page = (FOLDER / "README.md").read_text()
    assert [mode for mode in MODES if f"[{mode}]({mode}/)" not in page] == []
