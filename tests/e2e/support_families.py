"""Families of hooks on the real cluster: machines with labels, jobs in the way, rights, and what `explain` says."""

import contextlib
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from localcluster.config import PROJECT
from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_daemon, support_foreign, support_servers, support_world
from tests.e2e.support_farm import Farm
from tests.e2e.support_servers import Json, SlurmJob
from tests.e2e.support_world import World

_RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
_PLURALS = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"}
_PROGRAM = pathlib.Path(sys.executable).with_name("slurm-bridge")
#: 0 submitted, 3 waits, 4 refused.
_EXPLAINED = frozenset({0, 3, 4})
_UPDATES = re.compile(
    r'^slurm_bridge_slurm_request_duration_seconds_count\{.*operation="update".*\} (\S+)$', re.MULTILINE
)


@contextlib.contextmanager
def granted(kube: support_servers.Kubernetes, *components: str) -> Iterator[None]:
    """The rights of these components of `deploy/`, under names of their own: suites must not take each other's away."""
    suffix = support_daemon.fresh_name("e2e")
    with contextlib.ExitStack() as stack:
        for component in components:
            for one in yaml.safe_load_all((PROJECT / "deploy" / component / "rbac.yaml").read_text()):
                path = f"{_RIGHTS}/{_PLURALS[one['kind']]}"
                name = one["metadata"]["name"] = f"{one['metadata']['name']}-{suffix}"
                if "roleRef" in one:
                    one["roleRef"]["name"] += f"-{suffix}"
                kube.create(path, one)
                stack.callback(kube.delete, f"{path}/{name}")
        yield


def label(kube: support_servers.Kubernetes, node: str, marks: Mapping[str, str | None]) -> None:
    """What `kubectl label --overwrite` does to a node; None takes it away."""
    kube.merge(f"/api/v1/nodes/{node}", {"metadata": {"labels": dict(marks)}})


@contextlib.contextmanager
def taken(slurm: support_servers.Slurm, farm: Farm, *nodes: str, cpus: int) -> Iterator[dict[str, int]]:
    """Jobs of no pod that have so many CPUs of these nodes, taken in this order: node -> job."""
    jobs = {}
    try:
        for node in nodes:
            wanted = {"name": "native", "partition": farm.partition, "required_nodes": [node], "cpus_per_task": cpus}
            jobs[node] = slurm.submit({**support_foreign.EXTERNAL, **wanted})
        wait.until(lambda: set(jobs.values()) <= _running(slurm), "native jobs")
        yield jobs
    finally:
        slurm.cancel(*jobs.values())


def _running(slurm: support_servers.Slurm) -> set[int]:
    return {one.job_id for one in slurm.jobs() if "RUNNING" in one.states}


def pod(world: World, farm: Farm, name: str, labels: Mapping[str, str] | None = None, /, **spec: Any) -> Json:
    """A pod for these machines, which runs until it is deleted."""
    marks = {names.JOB_PREFIX + "partition": farm.partition, **support_world.FOREVER}
    manifest = support_world.pod(name, world.daemon.scheduler, annotations=marks, **spec)
    manifest["metadata"]["labels"] = dict(labels or {})
    return manifest


def uids(made: Sequence[Json]) -> list[str]:
    """As their jobs name them."""
    return [one["metadata"]["uid"] for one in made]


@contextlib.contextmanager
def pods(world: World, *manifests: Json) -> Iterator[list[Json]]:
    """As long as they are needed; afterwards nothing of them is left in Slurm."""
    made = world.create(*manifests)
    mine = set(uids(made))
    try:
        yield made
    finally:
        for one in made:
            world.delete(one["metadata"]["name"])
        wait.until(lambda: not mine & _owners(world), "end of the jobs of these pods", every=0.5)


def _owners(world: World) -> set[str]:
    return {str(one.owner["uid"]) for one in world.slurm.alive(world.daemon.cluster_id)}


def message(one: Json) -> str:
    """Why it is not scheduled."""
    return str(support_servers.condition(one, "PodScheduled").get("message", ""))


def offered(job: SlurmJob, farm: Farm) -> set[str]:
    """The nodes of the farm that a waiting job does not exclude; none: it takes any of them."""
    excluded = set(support_servers.expanded(job.text.get("excluded_nodes") or ""))
    assert not job.text.get("required_nodes"), "nodes are excluded, and never required"
    return set(farm.nodes) - excluded if excluded.intersection(farm.nodes) else set()


def updates(world: World) -> int:
    """How many updates this life of the daemon has sent to Slurm."""
    _, page = support_daemon.look(int(world.daemon.settings["web"]["port"]), "/metrics")
    return int(sum(float(number) for number in _UPDATES.findall(page)))


def explained(world: World, name: str, *options: str) -> str:
    """What `slurm-bridge explain` says of one pod."""
    command = [str(_PROGRAM), "explain", f"{world.namespace}/{name}", "--config", str(world.daemon.configuration)]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=60, check=False, env=world.daemon.environment
    )
    assert done.returncode in _EXPLAINED, done.stdout + done.stderr
    return done.stdout


def machine(world: World, name: str) -> Json:
    """The same for machines, with what only operators are shown."""
    (found,) = json.loads(explained(world, name, "--json", "--verbose"))
    return dict(found)


def reloads(world: World) -> int:
    """How many configurations this life of the daemon has taken over."""
    _, page = support_daemon.look(int(world.daemon.settings["web"]["port"]), "/metrics")
    found = re.search(r'^slurm_bridge_configuration_reloads_total\{result="ok"\} (\S+)$', page, re.MULTILINE)
    return int(float(found[1])) if found else 0


def change(world: World, hooks: Sequence[Json]) -> None:
    """Another chain, without a restart, which has been taken over when this returns."""
    before = reloads(world)
    world.daemon.configure({**world.daemon.settings, "hooks": list(hooks)})
    wait.until(lambda: reloads(world) > before, "reload")
