"""The life of real nodes: added to a running cluster, used, killed part by part, taken away, and nothing is left."""

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from second_cluster import Cluster

from tests import wait

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(2000),
    pytest.mark.skipif(os.geteuid() != 0, reason="real nodes need root"),
]

REPAIR_SECONDS = 60.0
#: What the cluster runs without real nodes; adding and removing these restarts servers that are told of them.
SIZE = {"NODES": "8"}


def pod(name: str, node: str, script: str) -> dict[str, Any]:
    """Running a script of busybox; bound already, if a node is named."""
    container = {
        "name": "c",
        "image": "localhost/busybox:1",
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
        "resources": {"limits": {"memory": "32Mi"}},
    }
    spec = {**({"nodeName": node} if node else {}), "restartPolicy": "Never", "containers": [container]}
    grace = {"terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**spec, **grace}}


def create(cluster: Cluster, manifest: dict[str, Any]) -> None:
    """In the namespace of everybody."""
    cluster.do("kubectl", "create", "--filename=-", text=json.dumps(manifest))


def status(cluster: Cluster, name: str) -> dict[str, Any]:
    """Of the pod."""
    (found,) = [one for one in cluster.objects("pods") if one["metadata"]["name"] == name]
    told: dict[str, Any] = found["status"]
    return told


def ended(cluster: Cluster, name: str) -> dict[str, Any]:
    """How the pod's container ended."""
    wait.until(lambda: status(cluster, name)["phase"] in {"Succeeded", "Failed"}, f"end of {name}")
    told: dict[str, Any] = status(cluster, name)["containerStatuses"][0]["state"]["terminated"]
    return told


def running(cluster: Cluster, name: str, node: str) -> str:
    """A pod that sleeps for ever; the id of its container."""
    create(cluster, pod(name, node, "echo started; sleep infinity"))
    wait.until(lambda: status(cluster, name)["phase"] == "Running", f"start of {name}")
    return container(cluster, name)


def container(cluster: Cluster, name: str) -> str:
    """The id of its container."""
    told: str = status(cluster, name)["containerStatuses"][0]["containerID"]
    return told


def states(cluster: Cluster) -> dict[str, str]:
    """What Slurm says of the nodes of the partition."""
    return dict(line.split() for line in cluster.slurm("sinfo", "--noheader", "--Node", "-p", "hybrid", "-o", "%N %T"))


def test_they_are_added_to_a_running_cluster(cluster: Cluster, tell: Callable[[str, float], None]) -> None:
    """Both sides get them under the same names, and agree on CPUs and memory."""
    cluster.up(**SIZE)
    tell("real nodes", cluster.up(REAL_NODES="2"))
    assert states(cluster) == {"real1": "idle", "real2": "idle"}
    shown = cluster.slurm("sinfo", "--noheader", "--partition=hybrid", "--format=%c %m")
    offers = [one["status"]["allocatable"] for one in cluster.objects("nodes", "--selector=local-cluster/real")]
    assert (shown, [(one["cpu"], one["memory"]) for one in offers]) == (["4 4096"], [("4", "4Gi")] * 2)


def test_processes_run_and_end(cluster: Cluster) -> None:
    """Exit codes, logs and the end of a process that takes too much are those of the process; KWOK pretends nothing."""
    create(cluster, pod("code", "real1", "echo said; exit 3"))
    create(cluster, pod("greedy", "real2", "tail /dev/zero"))
    assert ended(cluster, "code")["exitCode"] == 3
    assert ended(cluster, "greedy")["reason"] == "OOMKilled"
    assert cluster.do("kubectl", "logs", "code") == "said\n"


def test_pods_of_two_nodes_reach_each_other(cluster: Cluster) -> None:
    """By the addresses in their status."""
    create(cluster, pod("server", "real1", "echo served | nc -l -p 9000"))
    wait.until(lambda: status(cluster, "server")["phase"] == "Running", "server")
    create(cluster, pod("client", "real2", f"nc {status(cluster, 'server')['podIP']} 9000"))
    assert ended(cluster, "client")["exitCode"] == 0
    assert cluster.do("kubectl", "logs", "client") == "served\n"


def test_members_of_a_headless_service_have_names(cluster: Cluster) -> None:
    """HOSTNAME.SERVICE is the pod's address, as MPI and torch expect it."""
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": "peer"}}
    create(cluster, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "peers"}, "spec": spec})
    server = pod("named", "real1", "echo found | nc -l -p 9000")
    server["metadata"]["labels"] = {"app": "peer"}
    server["spec"] |= {"hostname": "first", "subdomain": "peers"}
    create(cluster, server)
    create(cluster, pod("asks", "real2", "until nc first.peers 9000; do sleep 0.2; done"))
    assert ended(cluster, "asks")["exitCode"] == 0
    assert "found\n" in cluster.do("kubectl", "logs", "asks")


def test_native_jobs_run_beside_pods(cluster: Cluster) -> None:
    """A job of Slurm gets its GPUs by their index, and its output is where it asked for."""
    words = ("--partition=hybrid", "--nodelist=real1", "--gres=gpu:2", "--output=/cluster/log/%j.out", "--wait")
    cluster.slurm("sbatch", *words, "--chdir=/tmp", "--wrap=echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES")
    (file,) = (cluster.directory / "logs" / "slurm").glob("*.out")
    assert file.read_text() == "real1 0,1\n"


def give(cluster: Cluster, name: str, *devices: str, script: str = "env | grep _DEVICE_ | sort") -> None:
    """A pod with a claim that has these devices of the first node: allocated and reserved first, then bound."""
    exactly = {"deviceClassName": driver(devices[0]), "allocationMode": "ExactCount", "count": len(devices)}
    spec = {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
    create(cluster, {**head, "spec": spec})
    shown = pod(name, "", script)
    shown["spec"] |= {"schedulerName": "by-hand", "resourceClaims": [{"name": "gpus", "resourceClaimName": name}]}
    shown["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpus"}]
    create(cluster, shown)
    patch = json.dumps({"status": allocated(name, uid(cluster, name), devices)})
    cluster.do("kubectl", "patch", "resourceclaim", name, "--subresource=status", "--type=merge", f"--patch={patch}")
    bind(cluster, name)


def driver(device: str) -> str:
    """Slices are of the driver of the GPUs."""
    kind = device.partition("-")[0]
    return f"{'gpu' if kind == 'mig' else kind}.local-cluster"


def allocated(name: str, holder: str, devices: Sequence[str]) -> dict[str, Any]:
    """The status of a claim whose devices are chosen, for one pod."""
    given = [{"request": "gpus", "driver": driver(one), "pool": "real1", "device": one} for one in devices]
    fields = [{"key": "metadata.name", "operator": "In", "values": ["real1"]}]
    allocation = {"devices": {"results": given}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    return {"allocation": allocation, "reservedFor": [{"resource": "pods", "name": name, "uid": holder}]}


def uid(cluster: Cluster, name: str) -> str:
    """Of the pod."""
    return cluster.do("kubectl", "get", "pod", name, "--output=jsonpath={.metadata.uid}")


def bind(cluster: Cluster, name: str) -> None:
    """What a scheduler does last."""
    target = {"apiVersion": "v1", "kind": "Node", "name": "real1"}
    body = json.dumps({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target})
    path = f"/api/v1/namespaces/default/pods/{name}/binding"
    cluster.do("kubectl", "create", f"--raw={path}", "--filename=-", text=body)


def test_devices_are_published_with_the_indices_of_slurm(cluster: Cluster) -> None:
    """Four GPUs and three slices on each node; an index is that of the device file in gres.conf."""
    slices = [one["spec"] for one in cluster.objects("resourceslices")]
    gpus = [one for one in slices if one["driver"] == "gpu.local-cluster"]
    assert {one["nodeName"]: [device["name"] for device in one["devices"]] for one in gpus} == {
        node: ["gpu-0", "gpu-1", "gpu-2", "gpu-3", "mig-4", "mig-5", "mig-6"] for node in ("real1", "real2")
    }
    attributes = [device["attributes"] for device in gpus[0]["devices"]]
    assert [(one["index"]["int"], one["numa"]["int"]) for one in attributes[:4]] == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert [(one["index"]["int"], one["profile"]["string"]) for one in attributes[4:]] == [
        (4, "1g.10gb"),
        (5, "1g.10gb"),
        (6, "2g.20gb"),
    ]


def test_cpus_are_published(cluster: Cluster) -> None:
    """Each by its id, with its place."""
    slices = [one["spec"] for one in cluster.objects("resourceslices")]
    cpus = {one["nodeName"]: one["devices"] for one in slices if one["driver"] == "cpu.local-cluster"}
    assert {node: [one["name"] for one in there] for node, there in cpus.items()} == {
        node: ["cpu-0", "cpu-1", "cpu-2", "cpu-3"] for node in ("real1", "real2")
    }
    places = [one["attributes"] for one in cpus["real1"]]
    names = ("cpuID", "coreID", "socketID", "numaNodeID")
    assert [tuple(one[name]["int"] for name in names) for one in places] == [
        (0, 0, 0, 0),
        (1, 1, 0, 0),
        (2, 2, 0, 1),
        (3, 3, 0, 1),
    ]


def test_groups_of_cpus_are_published(cluster: Cluster) -> None:
    """By their NUMA nodes, with the CPUs that they have; claims share them."""
    slices = [one["spec"] for one in cluster.objects("resourceslices")]
    groups = {one["nodeName"]: one["devices"] for one in slices if one["driver"] == "group.local-cluster"}
    assert set(groups) == {"real1", "real2"}
    assert [(one["name"], one["allowMultipleAllocations"], one["capacity"]) for one in groups["real1"]] == [
        (name, True, {"group.local-cluster/cpu": {"value": "2"}}) for name in ("numa-0", "numa-1")
    ]
    assert [one["attributes"]["cpuIDs"]["string"] for one in groups["real1"]] == ["0-1", "2-3"]


def test_parts_of_cards_are_published(cluster: Cluster) -> None:
    """All that could be made of each, with the counters that they share in a slice of their own."""
    cards = [one["spec"] for one in cluster.objects("resourceslices") if one["spec"]["driver"] == "card.local-cluster"]
    on = [one for one in cards if one["nodeName"] == "real1"]
    (shared,) = [one["sharedCounters"] for one in on if "sharedCounters" in one]
    (parts,) = [one["devices"] for one in on if "devices" in one]
    assert [one["name"] for one in shared] == ["card-0", "card-1"]
    assert [one["name"] for one in parts if one["attributes"]["card"]["int"] == 1] == [
        *(f"card-1-1g-{place}" for place in range(4)),
        *(f"card-1-2g-{place}" for place in range(2)),
        "card-1-4g-0",
    ]
    assert {node: len([one for one in cards if one["nodeName"] == node]) for node in ("real1", "real2")} == {
        "real1": 2,
        "real2": 2,
    }


def test_a_container_has_the_devices_of_its_claim(cluster: Cluster) -> None:
    """Whoever writes the allocation into the claim has chosen them; and they are free again afterwards."""
    for name in ("first", "second"):
        give(cluster, name, "gpu-1", "gpu-3")
        assert ended(cluster, name)["exitCode"] == 0
        assert cluster.do("kubectl", "logs", name) == "GPU_DEVICE_1=GPU-real1-1\nGPU_DEVICE_3=GPU-real1-3\n"
        cluster.do("kubectl", "delete", "pod", name)


def test_a_container_says_which_slices_and_cpus_it_has(cluster: Cluster) -> None:
    """By variables of their own."""
    give(cluster, "slices", "mig-4", "mig-6")
    give(cluster, "cpus", "cpu-0", "cpu-2")
    assert (ended(cluster, "slices")["exitCode"], ended(cluster, "cpus")["exitCode"]) == (0, 0)
    assert cluster.do("kubectl", "logs", "slices") == "MIG_DEVICE_4=MIG-real1-4\nMIG_DEVICE_6=MIG-real1-6\n"
    assert cluster.do("kubectl", "logs", "cpus") == "CPU_DEVICE_0=CPU-real1-0\nCPU_DEVICE_2=CPU-real1-2\n"


def test_no_device_is_given_twice(cluster: Cluster) -> None:
    """The driver refuses what another claim holds, so that the second pod does not start."""
    give(cluster, "holds", "gpu-0", script="sleep infinity")
    wait.until(lambda: status(cluster, "holds")["phase"] == "Running", "holder")
    give(cluster, "wants", "gpu-0")
    said = ("get", "events", "--field-selector=involvedObject.name=wants", "--output=custom-columns=:message")
    wait.until(lambda: "gpu-0 is prepared for claim" in cluster.do("kubectl", *said), "refusal")
    cluster.do("kubectl", "delete", "pod", "holds")
    assert ended(cluster, "wants")["exitCode"] == 0


def test_no_two_parts_overlap(cluster: Cluster) -> None:
    """The driver makes those that do not, and refuses a part whose slots another claim has."""
    give(cluster, "quarter", "card-0-1g-1", script="env | grep _DEVICE_; sleep infinity")
    give(cluster, "beside", "card-0-2g-1", "card-1-4g-0")
    assert ended(cluster, "beside")["exitCode"] == 0
    assert cluster.do("kubectl", "logs", "beside") == "CARD_DEVICE_0=CARD-real1-0\nCARD_DEVICE_1=CARD-real1-1\n"
    wait.until(lambda: status(cluster, "quarter")["phase"] == "Running", "holder")
    give(cluster, "half", "card-0-2g-0")
    said = ("get", "events", "--field-selector=involvedObject.name=half", "--output=custom-columns=:message")
    wait.until(lambda: "card-0-slot-1 is prepared for claim" in cluster.do("kubectl", *said), "refusal")
    cluster.do("kubectl", "delete", "pod", "quarter")
    assert ended(cluster, "half")["exitCode"] == 0


@pytest.mark.parametrize("part", ["kubelet", "containerd", "dra"])
def test_pods_outlive_their_servers(cluster: Cluster, part: str) -> None:
    """After a kill -9 it is started again, and the process in the pod is the same."""
    before = running(cluster, part, "real1")
    cluster.do("part", f"real1-{part}", "kill")
    assert cluster.run("status").returncode == 1
    assert cluster.up() < REPAIR_SECONDS
    assert (status(cluster, part)["phase"], container(cluster, part)) == ("Running", before)


def test_a_power_cut_ends_every_process_of_a_node(cluster: Cluster) -> None:
    """The pod of that node fails, the pod of the other one runs on."""
    running(cluster, "cut", "real1")
    before = running(cluster, "spared", "real2")
    cluster.do("part", "real1-machine", "kill")
    assert cluster.run("status").returncode == 1
    assert cluster.up() < REPAIR_SECONDS
    assert ended(cluster, "cut")["exitCode"] != 0
    assert (status(cluster, "spared")["phase"], container(cluster, "spared")) == ("Running", before)


@pytest.mark.parametrize("part", ["slurmd-real1", "real-network"])
def test_up_repairs(cluster: Cluster, part: str) -> None:
    """What was killed runs again, and both sides are ready."""
    cluster.do("part", part, "kill")
    assert cluster.run("status").returncode == 1
    assert cluster.up() < REPAIR_SECONDS
    assert states(cluster) == {"real1": "idle", "real2": "idle"}


def test_one_is_taken_away(cluster: Cluster) -> None:
    """Neither side knows it any more; the other one runs on."""
    before, pids = running(cluster, "stays", "real1"), cluster.pids()
    cluster.up(REAL_NODES="1")
    assert cluster.pids()["real1-machine"] == pids["real1-machine"]
    assert states(cluster) == {"real1": "idle"}
    wait.until(lambda: len(cluster.objects("nodes")) == 9, "end of the second node")
    assert (status(cluster, "stays")["phase"], container(cluster, "stays")) == ("Running", before)


def test_down_leaves_nothing_of_them(cluster: Cluster) -> None:
    """No process, mount, control group or network link, also when the record of a node is lost."""
    while_up = cluster.traces()
    assert while_up.kernel
    (cluster.directory / "pids" / "real1-machine.json").unlink()
    cluster.do("down")
    assert cluster.traces() == cluster.before
