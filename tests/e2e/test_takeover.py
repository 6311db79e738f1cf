"""The command `takeover` on a cluster that another bridge has scheduled: fifty pods run, fifty wait."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_farm, support_foreign, support_servers, support_world
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_world import World

#: The command looks at all jobs and pods of both servers.
pytestmark = [pytest.mark.real, pytest.mark.disruptive, pytest.mark.timeout(300)]

MANY = 50
FINALIZER = "scheduler.slinky.slurm.net/finalizer"
TAINT_KEY = "slinky.slurm.net/managed-node"
PROGRAM = Path(sys.executable).with_name("slurm-bridge")


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Machines with room for all of them."""
    with support_farm.built(kube, slurm, 0, 0, cpus=64) as made:
        yield made


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld) -> World:
    """A daemon that has not started yet."""
    return open_world("takeover", start=False, defaults={"partition": farm.partition})


def theirs(world: World, farm: Farm, prefix: str, **fields: object) -> dict[str, int]:
    """Jobs of the other bridge, with its records, by the pods that they are for."""
    wanted = [f"{prefix}-{number:02}" for number in range(MANY)]

    def submit(name: str) -> int:
        record = json.dumps({"pods": [f"{world.namespace}/{name}"]}, separators=(",", ":"))
        asked = {"name": name, "partition": farm.partition, "admin_comment": record, **fields}
        return world.slurm.submit({**support_foreign.EXTERNAL, **asked})

    return dict(zip(wanted, support_servers.each(wanted, submit), strict=True))


def pods(world: World, jobs: Mapping[str, int], nodes: Mapping[int, str]) -> None:
    """Their pods as the other bridge leaves them; those of jobs without a node wait."""
    tolerated = [{"key": TAINT_KEY, "operator": "Equal", "value": world.daemon.scheduler, "effect": "NoExecute"}]
    manifests = []
    for name, job_id in jobs.items():
        node = {"nodeName": nodes[job_id]} if job_id in nodes else {}
        scheduler = world.daemon.scheduler
        made = support_world.pod(name, scheduler, annotations=support_world.FOREVER, tolerations=tolerated, **node)
        made["metadata"] |= {"labels": {names.LABEL_JOB_ID: str(job_id)}, "finalizers": [FINALIZER]}
        if node:
            made["metadata"]["annotations"][names.ANNOTATION_SLURM_NODE] = nodes[job_id]
        manifests.append(made)
    world.create(*manifests)


def nodes_of(world: World, farm: Farm, jobs: Mapping[str, int]) -> dict[int, str]:
    """Kubernetes' name of the node of each job, once all of them run."""
    wanted, found = set(jobs.values()), dict[int, str]()

    def all_run() -> bool:
        known = [one for one in world.slurm.jobs() if one.job_id in wanted and "RUNNING" in one.states]
        found.update({one.job_id: farm.nodes[farm.slurm_nodes.index(one.nodes)] for one in known})
        return len(found) == len(wanted)

    wait.until(all_run, "running jobs", 60.0, every=0.5)
    return found


def command(world: World, cluster: Mapping[str, str], *flags: str) -> str:
    """What the command prints; it has to succeed."""
    config = ["--config", str(world.daemon.configuration), "--set", f"kubernetes.kubeconfig={cluster['KUBECONFIG']}"]
    made = subprocess.run(
        [PROGRAM, "takeover", *config, *flags],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=world.daemon.environment,
    )
    assert made.returncode in (0, 3), made.stderr
    return made.stdout


def uids(world: World) -> dict[str, str]:
    """The incarnation of each pod."""
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in world.pods()}


def own_records(world: World) -> dict[str, list[int]]:
    """The living jobs of this bridge, by pod."""
    found: dict[str, list[int]] = {}
    for one in world.slurm.alive(world.daemon.cluster_id):
        found.setdefault(str(one.owner["name"]), []).append(one.job_id)
    return found


def other_records(world: World) -> dict[str, int]:
    """The living jobs with a record of the other bridge, by pod."""
    texts = {one.job_id: one.text["admin_comment"] or "" for one in world.slurm.jobs() if one.alive}
    return {
        json.loads(text)["pods"][0].partition("/")[2]: job_id
        for job_id, text in texts.items()
        if text.startswith(f'{{"pods":["{world.namespace}/')
    }


@pytest.mark.security("neighbours")
def test_a_cluster_of_another_bridge_is_taken_over_and_handed_back(
    world: World, farm: Farm, cluster: Mapping[str, str]
) -> None:
    """Running pods keep their jobs, waiting pods get jobs of this bridge, and no pod is lost on either way."""
    running = theirs(world, farm, "runs")
    nodes = nodes_of(world, farm, running)
    waiting = theirs(world, farm, "waits", hold=True)
    for node in farm.nodes:
        taint = {"key": TAINT_KEY, "value": world.daemon.scheduler, "effect": "NoExecute"}
        world.kube.merge(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
    pods(world, {**running, **waiting}, nodes)
    before = uids(world)
    assert len(before) == 2 * MANY
    assert "TO DO" in command(world, cluster, "--dry-run")
    assert len(other_records(world)) == 2 * MANY
    done = command(world, cluster, "--apply")
    assert re.search(rf"write the owner record into a running job +{MANY}$", done, re.MULTILINE), done
    assert other_records(world) == {}
    world.daemon.start()
    world.daemon.await_ready()
    bound = world.await_bound(2 * MANY)
    assert {one["metadata"]["name"]: one["metadata"]["uid"] for one in bound} == before
    jobs = own_records(world)
    assert {name: len(ids) for name, ids in jobs.items()} == dict.fromkeys(before, 1)
    assert {name: ids[0] for name, ids in jobs.items() if name in running} == running
    assert not any(one["metadata"].get("finalizers") for one in bound)
    for node in farm.nodes:
        left = world.kube.get(f"/api/v1/nodes/{node}")["spec"].get("taints") or []
        assert TAINT_KEY not in {one["key"] for one in left}
    assert world.daemon.stop() == 0
    command(world, cluster, "--back", "--apply")
    assert own_records(world) == {}
    assert other_records(world) == {name: ids[0] for name, ids in jobs.items()}
    after = world.pods()
    assert {one["metadata"]["name"]: one["metadata"]["uid"] for one in after} == before
    assert not any(names.ANNOTATION_BOUND_BY in one["metadata"]["annotations"] for one in after)
    world.slurm.cancel(*(ids[0] for ids in jobs.values()))
