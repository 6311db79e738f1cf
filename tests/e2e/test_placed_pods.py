"""Pods with rules about their neighbours on real servers: each is placed by itself, and Slurm gives these nodes."""

import collections
from collections.abc import Iterator, Mapping

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_families, support_farm, support_groups, support_servers, support_world
from tests.e2e.support_families import pod, pods
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

PART, HOST = "tests.local/side", "kubernetes.io/hostname"
NODES, CPUS = 4, 4
#: Slurm starts a job within a second or two.
SECONDS = 25.0


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Four equal machines, two on each side."""
    with support_farm.built(kube, slurm, *[0] * NODES, cpus=CPUS) as made:
        for number, node in enumerate(made.nodes):
            support_families.label(kube, node, {PART: "left" if number < NODES // 2 else "right"})
        yield made


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld, kube: support_servers.Kubernetes) -> Iterator[World]:
    """A daemon with kube-scheduler's filters alone."""
    assert farm.nodes
    with support_families.granted(kube, "kube-scheduler"):
        yield open_world("placed", hooks=[{"name": "kube-scheduler", "options": {"priorities": []}}])


def selecting(app: str) -> Json:
    """Pods with this label."""
    return {"labelSelector": {"matchLabels": {"app": app}}}


def evenly(app: str, key: str = HOST) -> Json:
    """No node has two more of them than another."""
    rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    here = {"nodeSelector": {"kubernetes.io/os": "linux"}}
    return {"topologySpreadConstraints": [{**rule, **selecting(app)}], **here}


def required(kind: str, app: str, key: str) -> Json:
    """Required affinity, or anti-affinity, to pods with this label."""
    terms = [{"topologyKey": key, **selecting(app)}]
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def only_farm(farm: Farm) -> Json:
    """Nodes of other tests are in no domain of these pods."""
    terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": list(farm.nodes)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def member(world: World, farm: Farm, group: str, number: int, size: int, cpu: str = "1", **spec: Json) -> Json:
    """One of the pods that together are a group."""
    labels = {"app": group, names.SCHEDULER_PREFIX + "group": group, names.SCHEDULER_PREFIX + "group-size": str(size)}
    affinity = {**only_farm(farm), **spec.pop("affinity", {})}
    asked = support_world.asks(cpu=cpu, memory="64Mi")
    return pod(world, farm, f"{group}-{number}", labels, **{"containers": asked, "affinity": affinity, **spec})


def by_node(found: list[Json]) -> Mapping[str, int]:
    """How many of these pods are on each node."""
    return collections.Counter(one["spec"]["nodeName"] for one in found)


@pytest.mark.real
def test_single_pods_with_a_hard_spread_are_bound_at_once(world: World, farm: Farm) -> None:
    """Eight on four idle nodes: two on each, and no job is given back for it."""
    rule = {**evenly("even"), "affinity": only_farm(farm)}
    manifests = [pod(world, farm, f"even-{number}", {"app": "even"}, **rule) for number in range(2 * NODES)]
    with pods(world, *manifests) as made:
        bound = world.await_bound(len(made), SECONDS)
        assert by_node(bound) == dict.fromkeys(farm.nodes, 2)
        assert all(len(world.placeholders(one["metadata"]["uid"])) == 1 for one in bound)


@pytest.mark.real
def test_a_gang_with_a_spread_constraint_starts_on_idle_nodes(world: World, farm: Farm) -> None:
    """Two of its pods come on each node, in one job."""
    size = 2 * NODES
    manifests = [member(world, farm, "spread", number, size, **evenly("spread")) for number in range(size)]
    with pods(world, *manifests):
        bound = world.await_bound(size, SECONDS)
        assert by_node(bound) == dict.fromkeys(farm.nodes, 2)
        support_groups.together(world, bound)


@pytest.mark.real
def test_a_gang_with_pod_affinity_starts_on_one_side(world: World, farm: Farm) -> None:
    """Two nodes are needed, and both are on the same side."""
    rule = required("podAffinity", "near", PART)
    manifests = [member(world, farm, "near", number, 2, str(CPUS), **rule) for number in range(2)]
    with pods(world, *manifests):
        bound = world.await_bound(2, SECONDS)
        used = set(by_node(bound))
        assert len(used) == 2
        assert used in (set(farm.nodes[: NODES // 2]), set(farm.nodes[NODES // 2 :]))


@pytest.mark.real
def test_a_gang_takes_the_side_that_native_jobs_leave(world: World, farm: Farm) -> None:
    """On a busy cluster the nodes with room are asked for."""
    rule = required("podAffinity", "busy", PART)
    manifests = [member(world, farm, "busy", number, 2, str(CPUS), **rule) for number in range(2)]
    with (
        support_families.taken(world.slurm, farm, farm.nodes[0], farm.nodes[2], cpus=CPUS) as jobs,
        pods(world, *manifests),
    ):
        world.await_pod("busy-0", "a job in Slurm", support_world.waits_for("SlurmJobPending"))
        world.slurm.cancel(jobs[farm.nodes[2]])
        bound = world.await_bound(2, 90.0)
        assert set(by_node(bound)) == set(farm.nodes[NODES // 2 :])


@pytest.mark.real
def test_pods_with_one_port_of_the_host_start_on_different_nodes(world: World, farm: Farm) -> None:
    """A gang of four, one on each node."""
    (container,) = support_world.asks(cpu="1", memory="64Mi")
    serving = {"containers": [{**container, "ports": [{"containerPort": 80, "hostPort": 8099}]}]}
    with pods(world, *(member(world, farm, "ports", number, NODES, **serving) for number in range(NODES))):
        assert by_node(world.await_bound(NODES, SECONDS)) == dict.fromkeys(farm.nodes, 1)


@pytest.mark.real
def test_a_gang_that_fits_nowhere_names_the_pod(world: World, farm: Farm) -> None:
    """Three that keep each other out of their side, and two sides; Slurm does not hear of it."""
    rule = required("podAntiAffinity", "apart", PART)
    with pods(world, *(member(world, farm, "apart", number, 3, **rule) for number in range(3))) as made:
        said = world.await_pod("apart-0", "its reason", support_world.waits_for("Unschedulable"))
        message = support_families.message(said)
        assert "no node for pod" in message
        assert "(3 of 3)" in message
        assert "pod anti-affinity" in message
        assert all(world.placeholders(one["metadata"]["uid"]) == [] for one in made)


@pytest.mark.real
def test_a_cordon_that_ends_keeps_no_pod_away(world: World, farm: Farm) -> None:
    """A node that was cordoned while a pod waited for it is used as soon as it is not."""
    cordoned = f"/api/v1/nodes/{farm.nodes[0]}"
    only = {"nodeSelector": {HOST: farm.nodes[0]}}
    with (
        support_families.taken(world.slurm, farm, farm.nodes[0], cpus=CPUS) as jobs,
        pods(world, pod(world, farm, "patient", **only)) as (made,),
    ):
        world.await_placeholder(made["metadata"]["uid"])
        try:
            world.kube.merge(cordoned, {"spec": {"unschedulable": True}})
            world.slurm.cancel(*jobs.values())
            wait.until(lambda: "NodeDenied" in world.reasons(made["metadata"]["uid"]), "a node that is given back")
        finally:
            world.kube.merge(cordoned, {"spec": {"unschedulable": None}})
        bound = world.await_pod("patient", "its node", support_world.is_bound, 60.0)
        assert bound["spec"]["nodeName"] == farm.nodes[0]
