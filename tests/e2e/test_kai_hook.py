"""The hook "kai" on real servers: groups stay in racks that they ask for, and leave those that they only prefer."""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import (
    support_daemon,
    support_families,
    support_farm,
    support_groups,
    support_kai,
    support_kinds,
    support_servers,
    support_world,
)
from tests.e2e.support_families import taken
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

BLOCK, RACK = "tests.local/block", "tests.local/rack"
LEVELS = [BLOCK, RACK]
REQUIRED, PREFERRED = (f"kai.scheduler/topology-{word}-placement" for word in ("required", "preferred"))
SUBGROUP = "kai.scheduler/subgroup-name"
CPUS, RACKS, RACK_SIZE = 8, 3, 2
#: Rack 1 and 2 are one block, rack 3 is the other.
BLOCKS = ("b1", "b1", "b2")
#: Longer than the pause between two backfill cycles, in which alone heterogeneous jobs start: a shorter one may end
#: each time before Slurm has tried.
WINDOW = 7.0
#: Three attempts of two windows each, and Slurm's own rhythm.
SECONDS = 90.0

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Three racks of two machines in two blocks, as labels and as annotations."""
    with support_farm.built(kube, slurm, *[0] * (RACKS * RACK_SIZE), cpus=CPUS) as made:
        for number, node in enumerate(made.nodes):
            rack = number // RACK_SIZE
            place = {BLOCK: BLOCKS[rack], RACK: f"r{rack + 1}"}
            spec = f"other:x,halls:{':'.join(place.values())}"
            marks = {"labels": place, "annotations": {names.ANNOTATION_NODE_TOPOLOGY: spec}}
            kube.merge(f"/api/v1/nodes/{node}", {"metadata": marks})
        yield made


def rack(farm: Farm, number: int) -> tuple[str, ...]:
    """The machines of a rack, from 1 on."""
    return farm.nodes[(number - 1) * RACK_SIZE : number * RACK_SIZE]


def kai(**topology: object) -> list[Json]:
    """With one topology of this source."""
    return [{"name": "kai", "options": {"topologies": [{"name": "halls", "levels": LEVELS, **topology}]}}]


def conf(farm: Farm) -> str:
    """What topology.conf would say of these machines."""
    leaves = [f"SwitchName=r{number} Nodes={','.join(rack(farm, number))}" for number in range(1, RACKS + 1)]
    return "\n".join([*leaves, "SwitchName=b1 Switches=r[1-2]", "SwitchName=b2 Switches=r3"])


def tree(farm: Farm) -> list[Json]:
    """What topology.yaml would say of them."""
    leaves = [{"switch": f"r{number}", "nodes": ",".join(rack(farm, number))} for number in range(1, RACKS + 1)]
    above = [{"switch": "b1", "children": "r[1-2]"}, {"switch": "b2", "children": "r3"}]
    return [{"topology": "halls", "tree": {"switches": [*above, *leaves]}}]


@pytest.fixture(scope="module")
def definition(kube: support_servers.Kubernetes) -> Iterator[None]:
    """PodGroups of KAI are served."""
    with support_kai.defined(kube):
        yield


@pytest.fixture(scope="module")
def world(definition: None, open_world: OpenWorld, farm: Farm) -> World:
    """A daemon with the hook, which gives each set little time."""
    assert definition is None
    return open_world("kai", hooks=kai(), attempts={"window_seconds": WINDOW}, defaults={"partition": farm.partition})


@contextlib.contextmanager
def gang(world: World, name: str, pods: int, cpu: str, **marks: str) -> Iterator[str]:
    """A Job whose pods start together, until the end of this."""
    objects = Objects(world)
    template = support_kinds.template(world, containers=support_kinds.containers(cpu=cpu))
    annotations = {names.ANNOTATION_GANG: "true", **_keyed(marks)}
    objects.create("Job", name, support_kinds.job_spec(template, pods), annotations)
    try:
        yield name
    finally:
        objects.delete("Job", name)
        world.await_nothing_in_slurm(30)


def _keyed(marks: Mapping[str, str]) -> dict[str, str]:
    return {{"required": REQUIRED, "preferred": PREFERRED}.get(key, key): value for key, value in marks.items()}


@contextlib.contextmanager
def uneven(world: World, name: str, **marks: str) -> Iterator[str]:
    """Two pods of 6 cpus, of which one asks for storage too: what a rack has for them is then only known in sums."""
    objects = Objects(world)
    labels = {names.GROUP: name}
    made = []
    for number in range(2):
        containers = support_kinds.containers(cpu="6")
        if number:
            containers[0]["resources"]["requests"]["ephemeral-storage"] = "1Gi"
        annotations = {**support_world.FOREVER, names.GROUP_SIZE: "2", **_keyed(marks)}
        one = support_world.pod(
            f"{name}-{number}", world.daemon.scheduler, annotations=annotations, containers=containers
        )
        one["metadata"]["labels"] = labels
        made.append(one)
    assert objects
    world.create(*made)
    try:
        yield name
    finally:
        for one in made:
            world.delete(one["metadata"]["name"])
        world.await_nothing_in_slurm(30)


def nodes_of(members: Sequence[Json]) -> set[str]:
    """Where they are."""
    return {str(one["spec"]["nodeName"]) for one in members}


@pytest.mark.real
def test_a_gang_with_a_required_rack_lands_in_one_rack(world: World, farm: Farm) -> None:
    """Although the first free nodes are of two racks."""
    first, _ = rack(farm, 1)
    with taken(world.slurm, farm, first, cpus=5), gang(world, "one", 4, "4", required=RACK) as name:
        members = support_groups.placed(world, name, 4, SECONDS)
        assert nodes_of(members) in ({*rack(farm, 2)}, {*rack(farm, 3)})
        support_groups.together(world, members)


@pytest.mark.real
def test_a_fragmented_rack_is_tried_and_left(world: World, farm: Farm) -> None:
    """In sums it has room, and is the fullest; Slurm finds none on its nodes. The same job goes on to the next."""
    _, second = rack(farm, 1)
    with taken(world.slurm, farm, second, *rack(farm, 3), cpus=3), uneven(world, "torn", required=RACK) as name:
        member = support_groups.awaited(world, name, 2, bool, "")[0]
        wait.until(lambda: support_groups.living(world), "job of the group", 30)
        (job,) = support_groups.living(world)
        members = support_groups.placed(world, name, 2, SECONDS)
        assert nodes_of(members) == {*rack(farm, 2)}
        assert {support_world.job_id(one) for one in members} == {job.job_id}
        assert member["metadata"]["name"].startswith(name)


@pytest.mark.real
def test_a_preferred_rack_is_left_after_its_window(world: World, farm: Farm) -> None:
    """No rack alone can take it; the block of the first one can."""
    _, second = rack(farm, 1)
    third, fourth = rack(farm, 2)
    with (
        taken(world.slurm, farm, second, cpus=3),
        taken(world.slurm, farm, fourth, *rack(farm, 3), cpus=CPUS),
        uneven(world, "wide", preferred=RACK) as name,
    ):
        members = support_groups.placed(world, name, 2, SECONDS)
        assert nodes_of(members) == {rack(farm, 1)[0], third}


@pytest.mark.real
def test_full_racks_are_waited_for_in_slurm(world: World, farm: Farm) -> None:
    """The condition has the workload's own words and Slurm's, and no name of a set; the first free rack takes it."""
    with (
        taken(world.slurm, farm, *farm.nodes, cpus=5) as jobs,
        gang(world, "later", 2, "8", required=RACK) as name,
    ):
        said = (
            f"unschedulable on cluster: Job {world.namespace}/{name} has required one {RACK} for its 2 pods; Slurm job"
        )
        members = support_groups.awaited(
            world, name, 2, lambda one: support_families.message(one).startswith(said), "waiting", SECONDS
        )
        assert "halls" not in support_families.message(members[0])
        assert "Resources" in support_families.message(members[0])
        world.slurm.cancel(*(jobs[node] for node in rack(farm, 2)))
        assert nodes_of(support_groups.placed(world, name, 2, SECONDS)) == {*rack(farm, 2)}


@contextlib.contextmanager
def led(world: World, **marks: str) -> Iterator[str]:
    """A small leader, and two workers that take a machine each and want to be in one rack."""
    objects = Objects(world)
    wanted = {**support_world.FOREVER, REQUIRED: RACK}
    worker = support_kinds.served(world, marks=wanted, containers=support_kinds.containers(cpu=str(CPUS)))
    leader = support_kinds.served(world, containers=support_kinds.containers(cpu="2"))
    objects.create("LeaderWorkerSet", "led", support_kinds.leader_worker_spec(worker, 3, leader=leader), _keyed(marks))
    try:
        yield "led"
    finally:
        objects.delete("LeaderWorkerSet", "led")
        world.await_nothing_in_slurm(30)


def parted(members: Sequence[Json]) -> tuple[set[str], set[str]]:
    """The node of the leader, and those of the workers."""
    leaders = [one for one in members if one["metadata"]["labels"][names.LABEL_LWS_WORKER] == "0"]
    return nodes_of(leaders), nodes_of([one for one in members if one not in leaders])


@pytest.mark.real
def test_a_subgroup_stays_in_its_rack(world: World, farm: Farm) -> None:
    """Leader and workers are components of one job: the workers fill a rack, the leader is elsewhere in the block."""
    first, _ = rack(farm, 1)
    with taken(world.slurm, farm, first, rack(farm, 3)[0], cpus=3), led(world, required=BLOCK) as name:
        leader, workers = parted(support_groups.placed(world, name, 3, 2 * SECONDS))
        assert workers == {*rack(farm, 2)}
        assert leader <= {*rack(farm, 1)}


@pytest.mark.real
@pytest.mark.timeout(240)
def test_several_components_go_on_to_the_next_rack(world: World, farm: Farm) -> None:
    """Slurm takes no update of such a job, so a new one is asked for; in the end they are where room has come."""
    with taken(world.slurm, farm, *farm.nodes, cpus=5) as jobs, led(world) as name:
        wait.until(lambda: support_groups.living(world), "job of the group", 30)
        (first,) = support_groups.living(world)
        wait.until(
            lambda: [one.job_id for one in support_groups.living(world)] not in ([], [first.job_id]), "next job", 60
        )
        world.slurm.cancel(*(jobs[node] for node in rack(farm, 3)))
        leader, workers = parted(support_groups.placed(world, name, 3, 2 * SECONDS))
        assert workers == {*rack(farm, 3)}
        assert leader <= {*rack(farm, 1), *rack(farm, 2)}


@contextlib.contextmanager
def split(world: World, name: str, cpu: str, **parts: int) -> Iterator[str]:
    """So many equal pods in each subgroup, which wants to be in one rack."""
    made = []
    for part, size in parts.items():
        for number in range(size):
            annotations = {**support_world.FOREVER, names.GROUP_SIZE: str(sum(parts.values())), REQUIRED: RACK}
            one = support_world.pod(
                f"{name}-{part}-{number}",
                world.daemon.scheduler,
                annotations=annotations,
                containers=support_kinds.containers(cpu=cpu),
            )
            one["metadata"]["labels"] = {names.GROUP: name, SUBGROUP: part}
            made.append(one)
    world.create(*made)
    try:
        yield name
    finally:
        for one in made:
            world.delete(one["metadata"]["name"])
        world.await_nothing_in_slurm(30)


def nodes_by_part(members: Sequence[Json], label: str = SUBGROUP) -> dict[str, set[str]]:
    """The nodes of each subgroup."""
    found: dict[str, set[str]] = {}
    for one in members:
        found.setdefault(one["metadata"]["labels"][label], set()).add(str(one["spec"]["nodeName"]))
    return found


@pytest.mark.real
def test_equal_subgroups_each_have_a_rack_of_their_own(world: World, farm: Farm) -> None:
    """No rack has room for two of them; each is a component of one job, with the nodes of its rack."""
    with taken(world.slurm, farm, rack(farm, 2)[1], cpus=3), split(world, "equal", str(CPUS), a=2, b=2) as name:
        members = support_groups.placed(world, name, 4, 2 * SECONDS)
        nodes = nodes_by_part(members)
        assert sorted(map(sorted, nodes.values())) == [sorted(rack(farm, 1)), sorted(rack(farm, 3))]
        support_groups.together(world, members)


@pytest.mark.real
def test_segments_of_a_job_each_are_in_one_rack(world: World, farm: Farm) -> None:
    """By the indexes of the Job's pods; in the order of the nodes the first segment would be in two racks."""
    marks = {"kai.scheduler/segment-size": "2", "kai.scheduler/segment-topology-required-placement": RACK}
    first, _ = rack(farm, 1)
    with taken(world.slurm, farm, first, cpus=3), gang(world, "segments", 4, str(CPUS), **marks) as name:
        members = support_groups.placed(world, name, 4, 2 * SECONDS)
        nodes: dict[int, set[str]] = {}
        for one in members:
            index = int(one["metadata"]["annotations"][names.ANNOTATION_COMPLETION_INDEX])
            nodes.setdefault(index // 2, set()).add(one["spec"]["nodeName"])
        assert sorted(map(sorted, nodes.values())) == [sorted(rack(farm, 2)), sorted(rack(farm, 3))]


@contextlib.contextmanager
def nested(world: World, name: str) -> Iterator[str]:
    """A PodGroup of KAI: two subgroups in a rack each, both within one block, and a frontend anywhere."""
    path = support_kai.PODGROUPS.format(world.namespace)
    levels = {"workers": BLOCK, "a": RACK, "b": RACK}
    subgroups = [
        {
            "name": part,
            **({"parent": "workers"} if part in "ab" else {}),
            **({"minMember": size} if size else {}),
            **({"topologyConstraint": {"requiredTopologyLevel": levels[part]}} if part in levels else {}),
        }
        for part, size in {"front": 1, "workers": 0, "a": 2, "b": 2}.items()
    ]
    head = {"apiVersion": f"{support_kai.GROUP}/{support_kai.VERSION}", "kind": "PodGroup"}
    world.kube.create(path, {**head, "metadata": {"name": name}, "spec": {"subGroups": subgroups}})
    made = []
    for pod, cpu in {"front-0": "4", **dict.fromkeys(("a-0", "a-1", "b-0", "b-1"), "6")}.items():
        marks = {**support_world.FOREVER, names.ANNOTATION_KAI_GROUP: name}
        containers = support_kinds.containers(cpu=cpu)
        one = support_world.pod(f"{name}-{pod}", world.daemon.scheduler, annotations=marks, containers=containers)
        one["metadata"]["labels"] = {SUBGROUP: pod.partition("-")[0]}
        made.append(one)
    world.create(*made)
    try:
        yield name
    finally:
        for one in made:
            world.delete(one["metadata"]["name"])
        world.kube.delete(f"{path}/{name}")
        world.await_nothing_in_slurm(30)


@pytest.mark.real
def test_subgroups_within_another_are_in_racks_of_one_block(world: World, farm: Farm) -> None:
    """One of them alone would take rack 3, of the smallest block; but only the other block has room for both."""
    with nested(world, "nested") as name:
        members = support_groups.placed(world, name, 5, 2 * SECONDS)
        nodes = nodes_by_part(members)
        assert sorted(map(sorted, (nodes["a"], nodes["b"]))) == [sorted(rack(farm, 1)), sorted(rack(farm, 2))]
        assert nodes["front"] <= {*rack(farm, 3)}
        support_groups.together(world, members)


def leaves(farm: Farm, slurm: support_servers.Slurm) -> str:
    """Slurm has each machine below the switch of its rack, and tells so; a copy has the switches above."""
    for number in range(1, RACKS + 1):
        slurm.command("scontrol", "update", f"NodeName={','.join(rack(farm, number))}", f"Topology=racks:rack{number}")
    return "\n".join(
        [
            *(f"SwitchName=rack{one}" for one in (1, 2, 3)),
            "SwitchName=b1 Switches=rack[1-2]",
            "SwitchName=b2 Switches=rack3",
        ]
    )


#: The last question of each reading of Slurm's nodes: what was free before counts until it is answered.
_READS = re.compile(
    r'^slurm_bridge_slurm_request_duration_seconds_count\{.*operation="heterogeneous".*\} (\S+)$', re.MULTILINE
)


def reads(world: World) -> int:
    """How often the daemon has read Slurm's nodes."""
    _, page = support_daemon.look(int(world.daemon.settings["web"]["port"]), "/metrics")
    return int(sum(float(number) for number in _READS.findall(page)))


def await_fresh(world: World) -> None:
    """Until the daemon knows what is free now; it reads that twice a minute."""
    before = reads(world)
    wait.until(lambda: reads(world) > before, "a reading of Slurm's nodes", 45, every=0.5)


@pytest.mark.real
@pytest.mark.timeout(300)
def test_all_sources_give_the_same_placement(world: World, farm: Farm) -> None:
    """Labels, annotations, Slurm's word for its nodes, and copies of topology.conf and topology.yaml: the same sets."""
    sources: dict[str, Json] = {
        "labels": {},
        "annotation": {"source": "annotation"},
        "conf": {"source": "copy", "conf": conf(farm)},
        "yaml": {"source": "copy", "tree": tree(farm)},
        "slurm": {"source": "slurm", "slurm_name": "racks", "conf": leaves(farm, world.slurm)},
    }
    tried, placed = {}, {}
    with taken(world.slurm, farm, rack(farm, 1)[0], rack(farm, 2)[0], cpus=5):
        for source, options in sources.items():
            if options:
                support_families.change(world, kai(**options))
            await_fresh(world)
            with gang(world, f"by-{source}", 2, "4", required=BLOCK, preferred=RACK) as name:
                members = support_groups.placed(world, name, 2, SECONDS)
                found = support_families.machine(world, members[0]["metadata"]["name"])
                placed[source] = frozenset(nodes_of(members))
                tried[source] = [one["nodes"] for one in found["attempts"]]
    support_families.change(world, kai())
    assert len(set(placed.values())) == 1, placed
    assert tried["labels"][0] == sorted(rack(farm, 3))
    assert all(one == tried["labels"] for one in tried.values()), tried
