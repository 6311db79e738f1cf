"""Pocket servers with two thousand workloads of five teams, pods and jobs of others, and a daemon with its page."""

import contextlib
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from slurm_bridge.demo import pocket
from slurm_bridge.model import kinds, names
from slurm_bridge.sim.http import Request
from tests.component.daemon.running import Running, running

TEAMS = ("astro", "bio", "chem", "climate", "vision")
WORKLOADS = 2000
#: A name of a group: groups by name may have any.
HOSTILE = "<img src=x onerror=hacked()>"


def pod(name: str, namespace: str, cpus: int = 8, *, gpus: int = 0, **annotations: str) -> dict[str, Any]:
    """A pod of the bridge that runs for ten minutes."""
    needs: dict[str, Any] = {"requests": {"cpu": str(cpus), "memory": f"{2 * cpus}Gi"}}
    if gpus:
        needs["limits"] = {"nvidia.com/gpu": str(gpus)}
    lasting = {"kwok.local/outcome": "succeed", "kwok.local/seconds": "600"}
    wanted = {names.JOB_PREFIX + key: value for key, value in annotations.items()}
    metadata = {"name": name, "namespace": namespace, "annotations": {**lasting, **wanted}}
    container = {"name": "main", "image": "none", "resources": needs}
    return {"metadata": metadata, "spec": {"schedulerName": names.SCHEDULER_NAME, "containers": [container]}}


def _of_number(number: int) -> dict[str, Any]:
    namespace = TEAMS[number % len(TEAMS)]
    more = {}
    if number % 50 == 3:
        more["partition"] = "closed"
    elif number % 97 == 5:
        more["account"] = "not-mine"
    return pod(f"train-{number:04}", namespace, 2 << number % 3, gpus=int(number % 7 == 0), **more)


def _gang(name: str, namespace: str, size: int) -> Iterator[dict[str, Any]]:
    for member in range(size):
        made = pod(f"{name}-{member}", namespace, 2)
        made["metadata"]["labels"] = {names.GROUP: name, names.GROUP_SIZE: str(size)}
        yield made


def _hostile() -> dict[str, Any]:
    made = pod("odd", "bio", 1)
    made["metadata"]["annotations"] |= {names.GROUP: HOSTILE, names.GROUP_SIZE: "1"}
    return made


def _others(world: pocket.PocketWorld, nodes: Sequence[str]) -> None:
    """A pod of another scheduler on some nodes, and jobs of another user of Slurm."""
    for number, node in enumerate(nodes):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3", "memory": "4Gi"}}}
        spec = {"schedulerName": "default-scheduler", "nodeName": node, "containers": [container]}
        world.kube.create(kinds.PODS, {"metadata": {"name": f"web-{number}", "namespace": "kube-system"}, "spec": spec})
    for number in range(6):
        foreign_job(world, f"foreign-{number}")


def foreign_job(world: pocket.PocketWorld, name: str) -> None:
    """A job of another user of Slurm: not a placeholder of this bridge."""
    job = {
        "name": name,
        "partition": "debug",
        "environment": ["PATH=/bin"],
        "current_working_directory": "/",
        "tasks": 1,
        "cpus_per_task": 6,
        "memory_per_node": {"set": True, "number": 20_000},
        "flags": ["EXTERNAL_JOB"],
    }
    target = "/slurm/v0.0.45/job/submit"
    headers = {"x-slurm-user-token": world.slurmctld.secret, "content-type": "application/json"}
    body = msgspec.json.encode({"job": job})
    answer = world.slurmctld.handler(Request(method="POST", path=target, target=target, headers=headers, body=body))
    errors = msgspec.json.decode(bytes(answer.body))["errors"]  # type: ignore[arg-type]
    assert not errors, errors


def queues() -> str:
    """A queue for each team, with a guarantee and a limit."""
    made = [
        {"name": team, "resources": {"guaranteed": {"vcore": str(40 + 10 * place)}, "max": {"vcore": "300"}}}
        for place, team in enumerate(TEAMS)
    ]
    rules = [{"name": "tag", "value": "namespace", "create": True}]
    root = {"name": "root", "submitacl": "*", "queues": made}
    return json.dumps({"partitions": [{"name": "default", "queues": [root], "placementrules": rules}]})


@contextlib.contextmanager
def crowded(folder: pathlib.Path, *, workloads: int = WORKLOADS) -> Iterator[Running]:
    """Ready, with all workloads known to the daemon."""
    (folder / "queues.yaml").write_text(queues())
    hooks = [
        {"name": "policy"},
        {"name": "eligibility"},
        {"name": "yunikorn", "options": {"file": str(folder / "queues.yaml"), "ahead": 400}},
    ]
    given = {"hooks": hooks, "web": {"live_view": {"enabled": True}}, "scheduling": {"workers": 2}}
    with pocket.world(nodes=20, cpus=32) as world:
        for team in (*TEAMS, "kube-system"):
            if world.kube.get(kinds.NAMESPACES, "", team) is None:
                world.kube.create(kinds.NAMESPACES, {"metadata": {"name": team}})
        _others(world, ("ext004", "ext005", "ext006"))
        for manifest in (*_gang("assemble", "astro", 6), _hostile()):
            world.kube.create(kinds.PODS, manifest)
        for number in range(workloads):
            world.kube.create(kinds.PODS, _of_number(number))
        with running(world, folder / "bridge.json", **given) as daemon:
            daemon.until_ready()
            yield daemon
