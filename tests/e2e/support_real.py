"""Nodes that run processes: pods with scripts, what the scripts said, and native jobs of Slurm beside them."""

import dataclasses
import re
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from localcluster import hosts, real_images
from localcluster.config import PROJECT
from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_servers, support_world
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

PARTITION = hosts.HYBRID
KUBECTL = PROJECT / "hack" / "cluster" / "kubectl"

#: A process starts within a second, and its end is seen as quickly; machines under test have other work.
SECONDS = 45.0


def require(cluster: Mapping[str, str], nodes: int = 2) -> None:
    """Skip where KWOK pretends every pod."""
    if int(cluster.get("REAL_NODES") or "0") < nodes:
        pytest.skip("the local cluster has no real nodes: make cluster-up REAL_NODES=2")


def script(text: str, *, cpu: str = "1", memory: str = "64Mi", **more: Any) -> list[Json]:
    """The container of a pod: a shell that runs this."""
    amounts = {"cpu": cpu, "memory": memory}
    return [
        {
            "name": "c",
            "image": real_images.BUSYBOX,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", text],
            "resources": {"requests": amounts, "limits": amounts},
            **more,
        }
    ]


def pod(world: World, name: str, text: str, *, node: str = "", cpu: str = "1", **spec: Any) -> Json:
    """Of the world's daemon, on a node of its choice, if one is named."""
    selector = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    usual = {"containers": script(text, cpu=cpu), "terminationGracePeriodSeconds": 1, **selector}
    return support_world.pod(name, world.daemon.scheduler, **{**usual, **spec})


def job(world: World, name: str, pods: int, text: str, **spec: Any) -> Json:
    """A Job of such pods."""
    wanted = {"containers": script(text), "terminationGracePeriodSeconds": 1}
    manifest = support_world.job(name, world.daemon.scheduler, pods, **wanted)
    manifest["spec"].update(spec)
    return world.create_job(manifest)


def running(world: World, name: str, text: str = "sleep infinity", **words: Any) -> Json:
    """A pod whose process runs."""
    world.create(pod(world, name, text, **words))
    return world.await_pod(name, "a process", runs, SECONDS)


def runs(one: Json) -> bool:
    """Its process was started, and has not ended."""
    return one["status"].get("phase") == "Running"


def ended(world: World, name: str, seconds: float = SECONDS) -> Json:
    """How the process of a pod ended, once it did."""
    return how(world.await_pod(name, "an end", support_world.is_over, seconds))


def how(one: Json) -> Json:
    """What the kubelet says of the end of its only container."""
    told: Json = one["status"]["containerStatuses"][0]["state"]["terminated"]
    return told


def container(one: Json) -> tuple[str, int]:
    """Which it is, and how often it was started anew."""
    told = one["status"]["containerStatuses"][0]
    return told["containerID"], told["restartCount"]


def log(world: World, name: str) -> str:
    """What the process wrote."""
    return support_servers.said(KUBECTL, "--namespace", world.namespace, "logs", name)


def await_free(world: World, uid: str, seconds: float = SECONDS) -> None:
    """Until no job stands for this pod."""
    wait.until(lambda: world.placeholder(uid) is None, f"end of the job of {uid}", seconds, every=0.3)


# -- what users of Slurm do


def submit(world: World, command: str, *options: str) -> int:
    """A batch job on the real nodes."""
    words = (f"--partition={PARTITION}", "--chdir=/tmp", "--output=/dev/null", "--mem=64", *options)
    said = world.slurm.command("sbatch", "--parsable", *words, f"--wrap={command}")
    return int(said.strip())


def state(world: World, job_id: int) -> str:
    """In one word."""
    return world.slurm.shown(job_id)["JobState"]


def await_state(world: World, job_id: int, *wanted: str, seconds: float = SECONDS) -> None:
    """Until the job is in one of these."""
    wait.until(lambda: state(world, job_id) in wanted, f"{'/'.join(wanted)} of job {job_id}", seconds, every=0.3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Held:
    """What a job has on one node."""

    cpus: frozenset[int]
    gpus: frozenset[int]  # slices are numbered on
    cards: frozenset[int]


def held(world: World, job_id: int) -> dict[str, Held]:
    """Node -> the cpus, GPUs and cards that Slurm gave."""
    return held_in(world.slurm.command("scontrol", "--oneliner", "show", "job", "--details", str(job_id)))


def held_by_all(world: World) -> dict[int, dict[str, Held]]:
    """The same of every job that runs; of one that has ended, Slurm no longer tells it."""
    lines = world.slurm.command("scontrol", "--oneliner", "show", "job", "--details").splitlines()
    return {
        int(found[1]): held_in(one) for one in lines if (found := re.match(r"JobId=(\d+) .* JobState=RUNNING ", one))
    }


def held_in(text: str) -> dict[str, Held]:
    """Of one job, in the words of scontrol."""
    found = {}
    for node, cpus, rest in re.findall(r"Nodes=(\S+) CPU_IDs=(\S+)( [^\n]*?)(?= Nodes=| MinCPUsNode|$)", text):
        for name in support_servers.expanded(node):
            found[name] = Held(cpus=numbers(cpus), gpus=_indices("gpu", rest), cards=_indices("card", rest))
    return found


def _indices(gres: str, words: str) -> frozenset[int]:
    """Of one GRES, in `GRES=gpu:a:2(IDX:0-1),gpu:b:1(IDX:2),card:1(IDX:0)`."""
    found = re.findall(rf"\b{gres}(?::[^,:()]+)?:\d+\(IDX:([\d,-]+)\)", words)
    return frozenset().union(*map(numbers, found))


def numbers(text: str) -> frozenset[int]:
    """0,2-3 is three of them."""
    spans = [span.partition("-") for span in text.split(",")]
    return frozenset(number for first, _, last in spans for number in range(int(first), int(last or first) + 1))


def allocated(world: World, node: str) -> int:
    """The cpus of a node that some job has."""
    shown = world.slurm.command("scontrol", "--oneliner", "show", "node", node)
    return int(re.findall(r"CPUAlloc=(\d+)", shown)[0])


# -- what a site suffers


def heal(name: str) -> None:
    """Start a part, unless it runs."""
    support_servers.part(name, "start")


def hang_up(address: str, port: int) -> None:
    """Connect to a process of a pod, from the machine, and leave again."""
    with socket.create_connection((address, port), timeout=SECONDS):
        return


# -- what a gang is told


def environment() -> list[Json]:
    """Variables that the daemon's annotations become."""
    variables = {"RANK": "slurm-procid", "MASTER_ADDR": "slurm-master"}
    path = "metadata.annotations['scheduler.slinky.slurm.net/{}']"
    return [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path.format(key)}}} for name, key in variables.items()
    ]


def headless(world: World, name: str) -> None:
    """The names of the pods of one Job."""
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": name}}
    path = f"/api/v1/namespaces/{world.namespace}/services"
    world.kube.create(path, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})


def marks(**keys: str) -> dict[str, str]:
    """Annotations."""
    return {names.JOB_PREFIX + key.replace("_", "-"): value for key, value in keys.items()}


def said_by(world: World, pods: Sequence[Json]) -> dict[str, str]:
    """Pod -> what it wrote."""
    return {one["metadata"]["name"]: log(world, one["metadata"]["name"]) for one in pods}
