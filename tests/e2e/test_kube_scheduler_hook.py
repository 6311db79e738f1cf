"""The hook "kube-scheduler" on real servers: the best nodes come first and never block; what fits nowhere says so."""

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest

from tests import wait
from tests.e2e import support_families, support_farm, support_servers, support_world
from tests.e2e.support_families import pod, pods, uids
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json, SlurmJob
from tests.e2e.support_world import World

BEST, PART, NOWHERE = "tests.local/best", "tests.local/part", "tests.local/nowhere"
ZONE = "topology.kubernetes.io/zone"
NODES, CPUS, BESTS = 6, 8, 2
#: Long enough to see a job in its first tier, and too long for any test.
SOON, LATE = 3.0, 600.0
#: What jobs of others leave of a machine is enough for a small pod, and not for a large one.
LARGE, THEIRS = 5, 4
WAITING, BUSY = 8, 6


def hook(widen_after: float, *, label: int = 50) -> list[Json]:
    """Nodes with the label are better, by so much, and nodes near pods that a pod likes."""
    preferred = {"name": "NodeLabel", "weight": label, "args": {"label": BEST, "presence": True}}
    priorities = [preferred, {"name": "InterPodAffinity", "weight": 5}, {"name": "LeastRequested", "weight": 1}]
    options = {"first_tier": BESTS, "widen_after_seconds": widen_after, "priorities": priorities}
    return [{"name": "kube-scheduler", "options": options}]


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Equal machines, two of which have the label."""
    with support_farm.built(kube, slurm, *[0] * NODES, cpus=CPUS) as made:
        for node in made.nodes[:BESTS]:
            support_families.label(kube, node, {BEST: "yes"})
        yield made


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld, kube: support_servers.Kubernetes) -> Iterator[World]:
    """A daemon with the hook, which sees all that it needs."""
    assert farm.nodes
    with support_families.granted(kube, "kube-scheduler"):
        yield open_world("predicates", hooks=hook(SOON))


def at(farm: Farm, number: int) -> Json:
    """On this machine only."""
    return {"nodeSelector": {"kubernetes.io/hostname": farm.nodes[number]}}


@pytest.mark.real
def test_the_best_nodes_are_taken_while_they_are_free(world: World, farm: Farm) -> None:
    """All are there, with one job each; Slurm chose among them."""
    with pods(world, *(pod(world, farm, f"best-{number}") for number in range(CPUS))) as made:
        bound = world.await_bound(len(made))
        assert {one["spec"]["nodeName"] for one in bound} <= set(farm.nodes[:BESTS])
        assert all(len(world.placeholders(uid)) == 1 for uid in uids(made[:3]))


@pytest.mark.real
def test_best_nodes_that_are_taken_keep_no_pod_waiting(world: World, farm: Farm) -> None:
    """The same job is offered more nodes after a while: no pin, no second submission."""
    best, others = farm.nodes[:BESTS], farm.nodes[BESTS:]
    # Those with room come first: while the best have some, or none has, it is the best.
    with (
        support_families.taken(world.slurm, farm, *others, *best, cpus=CPUS) as jobs,
        pods(world, pod(world, farm, "elsewhere")) as (made,),
    ):
        first = world.await_placeholder(made["metadata"]["uid"])
        assert set() < support_families.offered(first, farm) <= set(best)
        world.slurm.cancel(jobs[others[0]])
        bound = world.await_pod("elsewhere", "a node", support_world.is_bound)
        assert bound["spec"]["nodeName"] == others[0]
        assert support_world.job_id(bound) == first.job_id
        assert len(world.placeholders(made["metadata"]["uid"])) == 1


@contextlib.contextmanager
def configured(world: World, hooks: list[Json]) -> Iterator[None]:
    """Other hooks, for as long as this lasts."""
    before = world.daemon.settings["hooks"]
    support_families.change(world, hooks)
    try:
        yield
    finally:
        support_families.change(world, before)


@pytest.mark.real
def test_scores_that_move_update_no_job(world: World, farm: Farm) -> None:
    """Pods start on the best nodes and lower the scores of these for waiting pods; no job is updated for that."""
    best, containers = set(farm.nodes[:BESTS]), support_world.asks(cpu=str(LARGE), memory="64Mi")
    dislikes = {"weight": 100, "podAffinityTerm": term("busy", "kubernetes.io/hostname")}
    apart = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [dislikes]}}
    wanting = {"containers": containers, "affinity": apart}
    manifests = [pod(world, farm, f"waits-{one}", **wanting) for one in range(WAITING)]
    with (
        configured(world, hook(LATE, label=1)),
        support_families.taken(world.slurm, farm, *farm.nodes, cpus=THEIRS) as jobs,
        pods(world, *manifests) as made,
    ):
        before = world.await_placeholders(uids(made))
        assert offers(world, farm, before.values()) == {frozenset(best)}
        updates = support_families.updates(world)
        busy = [pod(world, farm, f"busy-{one}", {"app": "busy"}, **at(farm, one % BESTS)) for one in range(BUSY)]
        with pods(world, *busy):
            for one in busy:
                world.await_pod(one["metadata"]["name"], "a node", support_world.is_bound)
            scores = support_families.machine(world, "waits-0")["scores"]["kube-scheduler"]["combined"]
            assert max(scores[node] for node in best) < min(scores[node] for node in set(farm.nodes) - best)
            assert offers(world, farm, before.values()) == {frozenset(best)}
            assert support_families.updates(world) == updates
            assert before.items() <= world.await_placeholders(uids(made)).items()
        world.slurm.cancel(*jobs.values())
        wait.until(lambda: len(nodes_of(world)) == BESTS, "pods on the best nodes")
        assert nodes_of(world) == best


def offers(world: World, farm: Farm, jobs: Iterable[int]) -> set[frozenset[str]]:
    """Which nodes these jobs name."""
    wanted = set(jobs)
    mine = [one for one in world.slurm.jobs_of(world.daemon.cluster_id) if one.job_id in wanted]
    return {frozenset(support_families.offered(one, farm)) for one in mine}


def nodes_of(world: World) -> set[str]:
    """Where pods are."""
    return {one["spec"]["nodeName"] for one in world.pods() if support_world.is_bound(one)}


def term(app: str, where: str) -> Json:
    """Pods with this label, in the same place."""
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": where}


def near(kind: str, app: str, where: str) -> Json:
    """Required affinity, or anti-affinity, to pods with this label."""
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term(app, where)]}}}


def port() -> Json:
    """A port of the node, for one pod only."""
    (container,) = support_world.asks(cpu="1", memory="64Mi")
    return {"containers": [{**container, "ports": [{"containerPort": 80, "hostPort": 8080}]}]}


def spread() -> Json:
    """As many in one part as in the other."""
    rule = {"maxSkew": 1, "topologyKey": PART, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": {"matchLabels": {"app": "spread"}}}]}


CLAIM = "far"
VOLUMES = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": CLAIM}}]}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A pod that fits nowhere, what it says of that, and what helps."""

    spec: Json
    words: str
    helped: Callable[[World, Farm], object]
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)


def label(number: int, key: str, value: str) -> Callable[[World, Farm], object]:
    """One of the machines becomes another one."""
    return lambda world, farm: support_families.label(world.kube, farm.nodes[number], {key: value})


def cordon(world: World, farm: Farm, *, on: bool) -> None:
    """The machine that is the other part."""
    world.kube.merge(f"/api/v1/nodes/{farm.nodes[1]}", {"spec": {"unschedulable": on or None}})


CASES = {
    "selector": Case(
        spec={"nodeSelector": {NOWHERE: "yes"}},
        words="node(s) didn't match Pod's node affinity/selector",
        helped=label(-1, NOWHERE, "yes"),
    ),
    "port": Case(
        spec=port(),
        words=f"{NODES - 1} node(s) didn't have free ports for the requested pod ports",
        helped=lambda world, _: world.delete("port-holder-0"),
    ),
    "lonely": Case(
        spec=near("podAffinity", "friend", "kubernetes.io/os"),
        words="node(s) didn't match pod affinity rules",
        helped=lambda world, farm: world.create(pod(world, farm, "friend", {"app": "friend"})),
    ),
    "shy": Case(
        spec=near("podAntiAffinity", "loud", "kubernetes.io/os"),
        words="node(s) didn't match pod anti-affinity rules",
        helped=lambda world, _: world.delete("loud"),
    ),
    "spread": Case(
        spec=spread(),
        words="1 node(s) didn't match pod topology spread constraints",
        helped=functools.partial(cordon, on=False),
        labels={"app": "spread"},
    ),
    "far": Case(
        spec=VOLUMES,
        words="node(s) had no available volume zone",
        helped=label(-2, ZONE, "mars"),
    ),
}


@pytest.fixture(scope="module")
def volume(world: World) -> Iterator[str]:
    """A claim, by its name, that is bound to a volume in a zone in which there is no node."""
    size = {"storage": "1Gi"}
    usual = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    there = {"capacity": size, "hostPath": {"path": "/nowhere"}, **usual}
    claims = f"/api/v1/namespaces/{world.namespace}/persistentvolumeclaims"
    name = world.namespace
    world.kube.create(
        "/api/v1/persistentvolumes", {"metadata": {"name": name, "labels": {ZONE: "mars"}}, "spec": there}
    )
    wanted = {"volumeName": name, "resources": {"requests": size}, **usual}
    try:
        world.kube.create(claims, {"metadata": {"name": CLAIM}, "spec": wanted})
        wait.until(lambda: world.kube.get(f"{claims}/{CLAIM}")["status"].get("phase") == "Bound", "bound claim")
        yield CLAIM
    finally:
        world.kube.delete(f"{claims}/{CLAIM}")
        world.kube.delete(f"/api/v1/persistentvolumes/{name}")


@pytest.fixture(scope="module")
def held(world: World, farm: Farm, volume: str) -> dict[str, Json]:
    """A pod for each case, and those that are in their way; each has said why it waits."""
    assert volume
    for number, part in enumerate(("one", "two")):
        support_families.label(world.kube, farm.nodes[number], {PART: part})
    there = [pod(world, farm, f"port-holder-{number}", **port(), **at(farm, number)) for number in range(NODES)]
    there.append(pod(world, farm, "loud", {"app": "loud"}))
    there.append(pod(world, farm, "first", {"app": "spread"}, **at(farm, 0)))
    names = [one["metadata"]["name"] for one in world.create(*there)]
    for name in names:
        world.await_pod(name, "a node", support_world.is_bound)
    cordon(world, farm, on=True)
    made = world.create(*(pod(world, farm, name, one.labels, **one.spec) for name, one in CASES.items()))
    uid_of = {one["metadata"]["name"]: one["metadata"]["uid"] for one in made}
    return {name: world.await_pod(name, uid, support_world.waits_for("Unschedulable")) for name, uid in uid_of.items()}


@pytest.mark.real
@pytest.mark.parametrize("name", CASES)
def test_a_pod_that_fits_nowhere_says_why(world: World, held: dict[str, Json], name: str) -> None:
    """In kube-scheduler's words, counted by nodes; Slurm does not hear of it."""
    said = support_families.message(held[name])
    assert re.match(r"0/\d+ nodes are available: ", said)
    assert CASES[name].words in said
    assert _heard(world, held[name]) == []


def _heard(world: World, held: Json) -> list[SlurmJob]:
    """Its jobs, but for one that was given back because the daemon heard of the cordon later than of the pod."""
    late = "node(s) were unschedulable"
    return [one for one in world.placeholders(held["metadata"]["uid"]) if one.alive or late not in str(one.owner)]


@pytest.mark.real
def test_explain_names_the_hook_that_holds_a_pod(world: World, held: dict[str, Json]) -> None:
    """The hook, its words, and which nodes these are about, for people and for machines."""
    found = support_families.machine(world, "shy")
    assert (found["verdict"], found["reason"]) == ("wait", "Unschedulable")
    assert CASES["shy"].words in found["message"]
    assert "kube-scheduler" in found["held_by"]
    assert "far" in held
    told = support_families.explained(world, "far")
    words = re.escape(CASES["far"].words)  # how many nodes there are besides ours is up to other tests
    assert re.search(rf"would wait: Unschedulable: 0/\d+ nodes are available: .*{words}", told)
    assert re.search(r"held by hook.*kube-scheduler", told)
    assert re.search(rf"\d+ {words}: ", told)


@pytest.mark.real
def test_a_pod_is_placed_once_a_node_fits(world: World, farm: Farm, held: dict[str, Json]) -> None:
    """Whatever has changed: a label, a node, a pod that came or one that went."""
    for one in CASES.values():
        one.helped(world, farm)
    for name in held:
        bound = world.await_pod(name, "a node", support_world.is_bound)
        assert bound["spec"]["nodeName"] in farm.nodes
        assert len(_heard(world, bound)) == 1
