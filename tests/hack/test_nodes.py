"""The Kubernetes nodes mirror the Slurm nodes."""

import dataclasses

from localcluster import hosts, nodes
from localcluster.config import Config

CONFIG = Config(nodes=40, gpus=4)
BODIES = {host.kube_name: nodes.manifest(host) for host in hosts.slurm_nodes(CONFIG)}


def test_every_machine_is_a_node() -> None:
    """As many nodes as Slurm has, under the names Kubernetes uses."""
    assert len(BODIES) == CONFIG.nodes


def test_differing_names_are_said() -> None:
    """A node whose name Slurm does not know carries the one it does, and is tainted."""
    renamed = [host for host in hosts.slurm_nodes(CONFIG) if host.kube_name != host.slurm_name]
    assert renamed
    for host in renamed:
        body = BODIES[host.kube_name]
        assert body["metadata"]["labels"][nodes.SLURM_NAME] == host.slurm_name
        assert [taint["effect"] for taint in body["spec"]["taints"]] == ["NoSchedule"]


def test_gpus_are_capacity() -> None:
    """A machine offers its GPUs and their type, and one without offers none."""
    for host in hosts.slurm_nodes(CONFIG):
        body = BODIES[host.kube_name]
        assert body["status"]["allocatable"].get("nvidia.com/gpu", "0") == str(host.gpus)
        assert body["metadata"]["labels"].get("nvidia.com/gpu.product", "") == host.gpu_type


def test_digest_follows_the_machine() -> None:
    """A machine that changed is told from one that did not."""
    host = hosts.slurm_nodes(CONFIG)[0]
    bigger = dataclasses.replace(host, cpus=host.cpus + 1)
    digests = [nodes.manifest(one)["metadata"]["annotations"][nodes.DIGEST] for one in (host, host, bigger)]
    assert digests[0] == digests[1] != digests[2]
