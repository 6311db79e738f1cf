"""Machines of a test's own: nodes in both schedulers and a partition of their own, gone afterwards.

The local cluster has no machines with four GPUs, and its others are shared; here a test says what there is.
"""

import contextlib
import dataclasses
import os
from collections.abc import Iterator

from localcluster import hosts, nodes
from localcluster.config import Config
from tests.e2e import support_daemon, support_health, support_servers

#: How the names of all of them begin.
PREFIX = "farm"

#: Where they hang in the tree of switches: jobs of several nodes that stand in no tree never start.
_SWITCH = "racks:rack4"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Farm:
    """A partition and its nodes, by their names in Kubernetes."""

    partition: str
    nodes: tuple[str, ...]
    slurm_nodes: tuple[str, ...]


@contextlib.contextmanager
def built(
    kube: support_servers.Kubernetes,
    slurm: support_servers.Slurm,
    *gpus: int,
    cpus: int = 16,
    memory_mib: int = 64000,
    renamed: bool = False,
    ready: bool = False,
) -> Iterator[Farm]:
    """One machine for each number of GPUs; `renamed` ones have other names in Kubernetes than in Slurm.

    `ready` ones say so themselves, for an API server without a stand-in for kubelets.
    """
    partition = support_daemon.fresh_name(PREFIX).replace("-", "")
    machines = [_host(partition, number, count, cpus, memory_mib) for number, count in enumerate(gpus, start=1)]
    if renamed:
        machines = [dataclasses.replace(one, kube_name=f"{one.slurm_name}-kube") for one in machines]
    farm = Farm(
        partition=partition,
        nodes=tuple(one.kube_name for one in machines),
        slurm_nodes=tuple(one.slurm_name for one in machines),
    )
    try:
        for one in machines:
            _create(kube, slurm, one, ready=ready)
        slurm.command("scontrol", "create", f"PartitionName={partition}", f"Nodes={','.join(farm.slurm_nodes)}")
        support_health.await_usable(Config.resolve(os.environ), kube, farm.nodes)
        yield farm
    finally:
        _remove(kube, slurm, farm)


def _host(partition: str, number: int, gpus: int, cpus: int, memory_mib: int) -> hosts.Host:
    name = f"{partition}n{number}"
    return hosts.Host(
        slurm_name=name,
        kube_name=name,
        cpus=cpus,
        memory_mib=memory_mib,
        gpus=gpus,
        gpu_type="",
        features=(partition,),
        partitions=(partition,),
        rack="rack4",
        block="none",
        threads_per_core=1,
    )


def _create(kube: support_servers.Kubernetes, slurm: support_servers.Slurm, one: hosts.Host, *, ready: bool) -> None:
    gpus = [f"Gres=gpu:{one.gpus}", f"GresConf=Name=gpu,Count={one.gpus}"] if one.gpus else []
    size = [f"CPUs={one.cpus}", f"RealMemory={one.memory_mib}", f"Feature={one.features[0]}", f"Topology={_SWITCH}"]
    address = [f"NodeName={one.slurm_name}", "NodeAddr=127.0.0.1"]
    slurm.command("scontrol", "create", *address, *size, *gpus, "State=EXTERNAL")
    manifest = nodes.manifest(one)
    if ready:
        manifest["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}]
    kube.create("/api/v1/nodes", manifest)


def _remove(kube: support_servers.Kubernetes, slurm: support_servers.Slurm, farm: Farm) -> None:
    """Jobs first: a node that one holds, and a partition that one waits in, stay."""
    left = [one.job_id for one in slurm.jobs() if one.alive and one.text["partition"] == farm.partition]
    slurm.cancel(*left)
    with contextlib.suppress(AssertionError):  # it was not made
        slurm.command("scontrol", "delete", f"PartitionName={farm.partition}")
    for name in farm.slurm_nodes:
        with contextlib.suppress(AssertionError):
            slurm.command("scontrol", "delete", f"NodeName={name}")
    for name in farm.nodes:
        kube.delete(f"/api/v1/nodes/{name}")
