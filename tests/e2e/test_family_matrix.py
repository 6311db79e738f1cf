"""Every family alone, a pair and all four on real servers: what fits starts, and what fits nowhere says why.

One daemon is told of one chain after the other. With each chain, all workloads come while native jobs have all
machines; when these have ended, whatever fits starts. Then the same come once more, to idle machines.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_families, support_farm, support_groups, support_kinds, support_servers, support_world
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

RACK, DISK = "tests.local/matrix-rack", "tests.local/matrix-disk"
CPUS, NODES = 4, 4
#: What fits has started after so many seconds, what does not has said why.
SECONDS = 60.0

pytestmark = pytest.mark.timeout(240)

QUEUES: Json = {
    "partitions": [
        {
            "name": "default",
            "placementrules": [{"name": "provided"}, {"name": "fixed", "value": "root.all"}],
            "queues": [
                {"name": "root", "submitacl": "*", "queues": [{"name": "all", "resources": {"max": {"vcore": "12"}}}]}
            ],
        }
    ]
}
#: In the order in which a configuration has them.
FAMILIES: Mapping[str, Json] = {
    "yunikorn": {"name": "yunikorn", "options": {"order": False, "reservations": 0, "configuration": QUEUES}},
    "kai": {"name": "kai", "options": {"topologies": [{"name": "farm", "levels": [RACK]}]}},
    "vela": {"name": "vela", "options": {"nodes_bp": 1000}},
    "kube-scheduler": {"name": "kube-scheduler", "options": {"tiers": 1, "widen_after_seconds": 3}},
}
#: Of the pairs the one whose hooks both choose sets of nodes: the simulation has all of them, with many seeds.
CHAINS = [(name,) for name in FAMILIES] + [("kai", "kube-scheduler"), tuple(FAMILIES)]
SHAPES = ("single", "gang", "het")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Played:
    """The pods by what they are: `waiting` while the machines were taken, `bound`, and what `nowhere` said."""

    waiting: Mapping[str, Sequence[Json]]
    bound: Mapping[str, Sequence[Json]]
    nowhere: Mapping[str, Sequence[Json]]


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Two racks of two machines, of which one in each has the disk."""
    with support_farm.built(kube, slurm, *[0] * NODES, cpus=CPUS) as made:
        for number, node in enumerate(made.nodes):
            disk = {DISK: "ssd"} if number % 2 else {}
            support_families.label(kube, node, {RACK: f"{made.partition}-{number // 2}", **disk})
        yield made


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld, kube: support_servers.Kubernetes) -> Iterator[World]:
    """A daemon that may see what all families need."""
    assert farm.nodes
    with support_families.granted(kube, "kube-scheduler", "yunikorn"):
        yield open_world("matrix", attempts={"window_seconds": 5})


@pytest.fixture(scope="module", params=CHAINS, ids="+".join)
def played(request: pytest.FixtureRequest, world: World, farm: Farm) -> Played:
    """What came of all workloads with this chain."""
    chain: tuple[str, ...] = request.param
    support_families.change(world, [FAMILIES[name] for name in chain])
    with contextlib.ExitStack() as there:
        # The native jobs come first: a pod that is quicker would keep its node from them for ever.
        with support_families.taken(world.slurm, farm, *farm.nodes, cpus=CPUS):
            full = there.enter_context(workloads(world, farm, chain, "full"))
            nowhere = there.enter_context(workloads(world, farm, chain, "no", {DISK: "none"}))
            waiting = awaited(world, full, explained)
        bound = {f"full {shape}": pods for shape, pods in awaited(world, full, support_world.is_bound).items()}
        said = awaited(world, nowhere, explained)
    with workloads(world, farm, chain, "idle") as idle:
        bound |= {f"idle {shape}": pods for shape, pods in awaited(world, idle, support_world.is_bound).items()}
    return Played(waiting=waiting, bound=bound, nowhere=said)


@contextlib.contextmanager
def workloads(
    world: World, farm: Farm, chain: Sequence[str], prefix: str, selector: Mapping[str, str] | None = None
) -> Iterator[Mapping[str, int]]:
    """One of each shape, by prefix of its pods the number of these; nothing is left of them in Slurm afterwards."""
    objects, name = Objects(world), support_groups.fresh(prefix)
    partition = {names.JOB_PREFIX + "partition": farm.partition}
    together = {"kai.scheduler/topology-required-placement": RACK} if "kai" in chain else {}
    spec: Json = {"nodeSelector": dict(selector)} if selector else {}
    single = support_families.pod(world, farm, f"{name}-single", **spec)
    gang = support_kinds.template(world, **spec, **apart(name, chain))
    gang["metadata"]["labels"] = {"app": name}
    world.create(single, *(member(world, farm, name, number, {**together}, spec) for number in range(3)))
    words = {names.ANNOTATION_GANG: "true", **partition, **together}
    objects.create("Job", f"{name}-gang", support_kinds.job_spec(gang, 2), words)
    try:
        yield {f"{name}-{shape}": count for shape, count in zip(SHAPES, (1, 2, 3), strict=True)}
    finally:
        objects.delete("Job", f"{name}-gang")
        for one in support_kinds.members(world, name):
            world.delete(one["metadata"]["name"])
        wait.until(lambda: not jobs_of(world, name), "end of the jobs of these pods", every=0.5)


def jobs_of(world: World, prefix: str) -> list[int]:
    """Those that live and are of such workloads."""
    return [one.job_id for one in support_groups.living(world) if str(one.owner["name"]).startswith(prefix)]


def apart(name: str, chain: Sequence[str]) -> Json:
    """A rule about neighbours, where the chain has a hook for it: the pods of a gang lie evenly."""
    if "kube-scheduler" not in chain:
        return {}
    even = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**even, "labelSelector": {"matchLabels": {"app": name}}}]}


def member(world: World, farm: Farm, name: str, number: int, words: Mapping[str, str], spec: Json) -> Json:
    """The leader of a group by name, or one of its workers, which are smaller."""
    labels = {names.GROUP: f"{name}-het", names.GROUP_SIZE: "3"}
    containers = support_kinds.containers("1" if number else "2")
    made = support_families.pod(world, farm, f"{name}-het-{number}", labels, containers=containers, **spec)
    made["metadata"]["annotations"] |= dict(words)
    return made


def explained(one: Json) -> bool:
    """It waits, and its message is that of Slurm's job, or of what keeps it from having one."""
    return not support_world.is_bound(one) and bool(said(one)) and "Sampling" not in reason(one)


def reason(one: Json) -> str:
    return str(support_servers.condition(one, "PodScheduled").get("reason", ""))


def said(one: Json) -> str:
    return support_families.message(one)


def awaited(world: World, wanted: Mapping[str, int], holds: object) -> dict[str, list[Json]]:
    """By shape the pods, once this holds for each of them."""
    assert callable(holds)
    return {
        prefix.rpartition("-")[2]: support_groups.awaited(world, prefix, count, holds, "such", SECONDS)
        for prefix, count in wanted.items()
    }


@pytest.mark.real
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("load", ["idle", "full"])
def test_what_fits_starts(played: Played, farm: Farm, shape: str, load: str) -> None:
    """On idle machines, and on machines that were taken: then it has said why it waited."""
    bound = played.bound[f"{load} {shape}"]
    assert {one["spec"]["nodeName"] for one in bound} <= set(farm.nodes)
    assert len({support_world.job_id(one) for one in bound}) == 1
    if load == "full":
        assert all("Slurm job" in said(one) or "queue" in said(one) for one in played.waiting[shape])


@pytest.mark.real
@pytest.mark.parametrize("shape", SHAPES)
def test_what_fits_nowhere_says_why(played: Played, shape: str) -> None:
    """It names what no node has, or what Slurm has no room for."""
    for one in played.nowhere[shape]:
        assert not support_world.is_bound(one)
        assert any(word in said(one) for word in ("selector", "no node", "unschedulable on cluster")), said(one)
