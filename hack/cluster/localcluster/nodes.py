"""The Kubernetes nodes: one per Slurm node, with the labels, taints and capacity a real fleet would show."""

import concurrent.futures
import datetime as dt
import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

from localcluster import api, hosts, wait
from localcluster.config import Config

#: Where a node says what Slurm calls it, when the names differ.
SLURM_NAME = "slinky.slurm.net/slurm-nodename"
#: Where we remember what a node was made from, so that a change of NODES, CPUS or GPUS is seen.
DIGEST = "local-cluster/digest"
#: The label of nodes that have a kubelet: their object is its own, and KWOK must not pretend to run their pods.
REAL = "local-cluster/real"
#: Nodes of this partition are for workloads that tolerate it; the others take anything.
TAINTED = "mapped"
_PATH = "/api/v1/nodes"
_READY_SECONDS = 120.0
_CALLERS = 8


def manifest(host: hosts.Host) -> dict[str, Any]:
    """What a kubelet on this machine would register, without what changes from moment to moment."""
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": host.kube_name, "labels": _labels(host)},
        "spec": {"taints": _taints(host)},
        "status": {"capacity": _capacity(host), "allocatable": _capacity(host), "nodeInfo": _node_info(host)},
    }
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]
    body["metadata"]["annotations"] = {DIGEST: digest}
    return body


def _labels(host: hosts.Host) -> dict[str, str]:
    labels = {
        "kubernetes.io/hostname": host.kube_name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "local",
        "topology.kubernetes.io/zone": f"zone-{host.rack}",
        "topology.local/rack": host.rack,
        "topology.local/block": host.block,
    }
    if host.kube_name != host.slurm_name:
        labels[SLURM_NAME] = host.slurm_name
    if host.gpus:
        labels["nvidia.com/gpu.present"] = "true"
    if host.gpu_type:
        labels["nvidia.com/gpu.product"] = host.gpu_type
    return labels


def _taints(host: hosts.Host) -> list[dict[str, str]]:
    if TAINTED not in host.partitions:
        return []
    return [{"key": "local-cluster/partition", "value": TAINTED, "effect": "NoSchedule"}]


def _capacity(host: hosts.Host) -> dict[str, str]:
    capacity = {
        "cpu": str(host.cpus),
        "memory": f"{host.memory_mib}Mi",
        "ephemeral-storage": "1Ti",
        "pods": "250",
    }
    return capacity | ({"nvidia.com/gpu": str(host.gpus)} if host.gpus else {})


def _node_info(host: hosts.Host) -> dict[str, str]:
    return {
        "architecture": "amd64",
        "operatingSystem": "linux",
        "kubeletVersion": "v1.36.3",
        "kubeProxyVersion": "",
        "containerRuntimeVersion": "kwok://0.7.0",
        "kernelVersion": "6.12.0",
        "osImage": "pretended",
        "machineID": host.kube_name,
        "systemUUID": host.kube_name,
        "bootID": host.kube_name,
    }


def _registration(host: hosts.Host) -> dict[str, Any]:
    """The manifest with the status of a kubelet that just came up: KWOK then has nothing left to do."""
    body = manifest(host)
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    body["status"]["conditions"] = [{**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}]
    body["status"]["addresses"] = [
        {"type": "InternalIP", "address": "127.0.0.1"},
        {"type": "Hostname", "address": host.kube_name},
    ]
    return body


class Nodes:
    """All nodes as one part: missing ones are created, changed ones made anew, superfluous ones deleted."""

    name = "nodes"

    def state(self, config: Config) -> str | None:
        found = _pretended(config, api.Client(config).get(_PATH)["items"])
        if _digests(found) != _wanted(config):
            return None
        complaint = _unready(found)
        return None if complaint else f"{len(found)} ready"

    def start(self, config: Config) -> None:
        client = api.Client(config)
        found, wanted = _digests(_pretended(config, client.get(_PATH)["items"])), _wanted(config)
        stale = [name for name, digest in found.items() if wanted.get(name) != digest]
        missing = [host for host in hosts.slurm_nodes(config) if found.get(host.kube_name) != wanted[host.kube_name]]
        _each(stale, lambda name: client.delete(f"{_PATH}/{name}"))
        _each(missing, lambda host: client.create(_PATH, _registration(host)))
        wait.until(lambda: _unready(_pretended(config, client.get(_PATH)["items"])), _READY_SECONDS, every=0.5)

    def stop(self, config: Config) -> None:
        """They live in etcd and go with it."""


def _wanted(config: Config) -> dict[str, str]:
    bodies = (manifest(host) for host in hosts.slurm_nodes(config))
    return {body["metadata"]["name"]: body["metadata"]["annotations"][DIGEST] for body in bodies}


def _pretended(config: Config, found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """All nodes but those of kubelets that are to be there; what a kubelet that is no more left is superfluous."""
    real = {host.kube_name for host in hosts.real_nodes(config)}
    return [node for node in found if not (is_real(node) and node["metadata"]["name"] in real)]


def is_real(node: dict[str, Any]) -> bool:
    """Whether a kubelet made this node, and not this module."""
    return REAL in node["metadata"].get("labels", {})


def _digests(found: Iterable[dict[str, Any]]) -> dict[str, str]:
    return {node["metadata"]["name"]: node["metadata"].get("annotations", {}).get(DIGEST, "") for node in found}


def _unready(found: Iterable[dict[str, Any]]) -> str:
    """Ready, and without the taint of new nodes: a scheduler that respects taints places nothing before."""
    names = [node["metadata"]["name"] for node in found if not is_ready(node)]
    return f"{len(names)} nodes are not ready, such as {names[0]}" if names else ""


def is_ready(node: dict[str, Any]) -> bool:
    """Ready and without the taint of new nodes."""
    conditions = {entry["type"]: entry["status"] for entry in node["status"].get("conditions", [])}
    keys = {taint["key"] for taint in node["spec"].get("taints", [])}
    return conditions.get("Ready") == "True" and "node.kubernetes.io/not-ready" not in keys


def _each(items: list[Any], call: Callable[[Any], Any]) -> None:
    """Several at once: the API server is far from busy with one caller."""
    with concurrent.futures.ThreadPoolExecutor(_CALLERS) as pool:
        for done in concurrent.futures.as_completed([pool.submit(call, item) for item in items]):
            done.result()
