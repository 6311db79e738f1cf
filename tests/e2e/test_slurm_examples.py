"""The examples of slurm.conf are read by the real Slurm, and fit what the check of hybrid nodes asks for."""

import os
import pathlib
import re
import subprocess
from collections.abc import Mapping

import pytest
import yaml

from localcluster.config import PROJECT

EXAMPLES = sorted((PROJECT / "hack" / "slurm.conf").glob("*/slurm.conf"))

pytestmark = pytest.mark.timeout(120)


def read_by_slurm(cluster: Mapping[str, str], text: str) -> subprocess.CompletedProcess[str]:
    """What a command of Slurm says that has to read this configuration first."""
    script = "f=$(mktemp); cat > $f; SLURM_CONF=$f scontrol show hostnames one; status=$?; rm $f; exit $status"
    command = (str(PROJECT / "hack" / "cluster" / "slurm-exec"), "bash", "-c", script)
    environment = {**os.environ, "CLUSTER_DIR": cluster["CLUSTER_DIR"]}
    return subprocess.run(command, input=text, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.real
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_slurm_reads_every_example(cluster: Mapping[str, str], file: pathlib.Path) -> None:
    """With all of its keys."""
    done = read_by_slurm(cluster, file.read_text())
    assert (done.returncode, done.stdout.strip()) == (0, "one"), done.stderr


@pytest.mark.real
def test_slurm_refuses_an_unknown_key(cluster: Mapping[str, str]) -> None:
    """So that reading an example says something."""
    done = read_by_slurm(cluster, EXAMPLES[0].read_text() + "OverSubscription=YES\n")
    assert done.returncode != 0
    assert "OverSubscription" in done.stderr


def test_the_kubelet_of_the_example_reserves_what_slurm_leaves_alone() -> None:
    """CPUs and memory, as docs/hybrid.md says."""
    folder = PROJECT / "hack" / "slurm.conf" / "hybrid"
    slurm, kubelet = (folder / "slurm.conf").read_text(), yaml.safe_load((folder / "kubelet.yaml").read_text())
    reserved = (kubelet["systemReserved"], kubelet["kubeReserved"])
    cpus = sum(int(one["cpu"]) for one in reserved)
    memory = sum(int(one["memory"].removesuffix("Gi")) for one in reserved)
    memory += int(kubelet["evictionHard"]["memory.available"].removesuffix("Gi"))
    assert re.findall(r"CoreSpecCount=(\d+) MemSpecLimit=(\d+)", slurm) == [(str(cpus), str(memory * 1024))]
