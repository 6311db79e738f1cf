"""Every example runs as it is, with the configuration that deploy/ ships and the real controllers."""

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping

import pytest
import yaml

from localcluster.config import PROJECT
from slurm_bridge.demo import work
from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_daemon, support_groups, support_kai, support_servers, support_slots, support_world
from tests.e2e.support_kinds import Objects
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

#: Those of frameworks are in test_frameworks.py: they need a cluster with these operators.
MANIFESTS = sorted(path for path in (PROJECT / "examples").glob("*/*.yaml") if path.parent.name not in work.APART)
EXAMPLES = {path.parent.name: path for path in MANIFESTS}
MANIFESTS_ALONE = [path.parent for path in EXAMPLES.values() if not (path.parent / "pyproject.toml").exists()]
NAMESPACE = "slurm-bridge"

#: A CronJob starts something every full minute.
SECONDS = 90.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Expected:
    """How many pods each job of an example has, what Slurm shows of each, and on how many nodes they are."""

    pods: tuple[int, ...] = (1,)
    shown: Mapping[str, str] = dataclasses.field(default_factory=dict)
    nodes: int = 1


#: What the placeholders of each example have to show for it, beside running to their end.
EXPECTED = {
    "coscheduling-podgroup": Expected(pods=(4,), shown={"NumTasks": "4", "TimeLimit": "00:05:00"}),
    "cronjob": Expected(shown={"TimeLimit": "00:05:00"}),
    "deployment": Expected(pods=(1, 1), shown={"Partition": "debug"}),
    "exclusive": Expected(shown={"OverSubscribe": "NO"}),
    "generic-group": Expected(pods=(3,), shown={"NumTasks": "3"}),
    "gres": Expected(shown={"TresPerNode": "gres/gpu:2", "Partition": "gpu"}),
    "job-gang": Expected(pods=(4,), shown={"NumTasks": "4"}),
    "job-sleep-single": Expected(
        shown={"JobName": "job-sleep-single", "Account": "schedmd", "Partition": "debug"},
    ),
    "jobset": Expected(pods=(5,), shown={"NumTasks": "5", "Partition": "debug"}),
    "jobset-in-order": Expected(pods=(1, 4)),
    "leaderworkerset": Expected(pods=(3, 3), shown={"NumTasks": "3"}),
    "leaderworkerset-heterogeneous": Expected(pods=(3,), shown={"TresPerNode": "gres/gpu:4", "Partition": "gpu"}),
    "max-nodes": Expected(shown={"NumNodes": "1"}),
    "mem-per-node": Expected(shown={"MinMemoryNode": "8G"}),
    "one-per-node": Expected(pods=(3,), shown={"NumNodes": "3"}, nodes=3),
    "partition": Expected(shown={"Partition": "batch"}),
    "podgroup": Expected(pods=(4,), shown={"NumTasks": "4", "TimeLimit": "00:05:00"}),
    "policy": Expected(shown={"Priority": "500", "Account": "research"}),
    "single-pod": Expected(shown={"JobName": "single-pod", "TimeLimit": "00:05:00"}),
    "slurm-environment": Expected(pods=(3, 4)),
    "statefulset": Expected(pods=(1, 1)),
    "kai-podgroup": Expected(pods=(4,), nodes=2),
    "timelimit": Expected(shown={"TimeLimit": "00:05:00"}),
    "topology-preferred": Expected(pods=(4,), shown={"NumTasks": "4"}),
    "topology-required": Expected(pods=(4,), shown={"NumTasks": "4"}),
}

#: What the examples about topologies name, in every cluster.
ZONES = {"name": "zones", "levels": ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"]}

Applied = tuple[World, dict[str, list[Json]]]


def shipped() -> Json:
    """What deploy/config.yaml says, but for where things are; and the hook that examples name."""
    found: Json = yaml.safe_load(
        yaml.safe_load((PROJECT / "deploy" / "config.yaml").read_text())["data"]["config.yaml"]
    )
    hooks = [*found.pop("hooks", ()), {"name": "kai", "options": {"topologies": [ZONES]}}]
    groups = {group: found[group] for group in ("defaults", "gres", "ends", "workloads") if group in found}
    return {**groups, "hooks": hooks}


def documents(example: str) -> list[Json]:
    """What its manifest creates."""
    return list(yaml.safe_load_all(EXAMPLES[example].read_text()))


@pytest.fixture(scope="module")
def world(
    cluster: Mapping[str, str], kube: support_servers.Kubernetes, slurm: support_servers.Slurm, work: pathlib.Path
) -> Iterator[World]:
    """A daemon for the scheduler name and the namespace of the manifests, because they are applied as they are."""
    name = support_daemon.fresh_name("examples")
    chosen = support_daemon.settings(cluster, name, scheduler_names=["slurm-bridge-scheduler"], **shipped())
    started = support_daemon.Daemon(work, chosen)
    with support_kai.defined(kube), support_world.ending(started, kube, slurm):
        started.start()
        started.await_ready()
        yield World(kube=kube, slurm=slurm, daemon=started, namespace=NAMESPACE)


@pytest.fixture(scope="module")
def applied(world: World) -> Iterator[World]:
    """Applies all of them at once."""
    world.kube.apply(*EXAMPLES.values())
    yield world
    for path in EXAMPLES.values():
        support_servers.said(
            *(PROJECT / "hack/cluster/kubectl", "delete", "--wait=false", "--ignore-not-found", "--filename", path)
        )


@pytest.fixture(scope="module")
def remembered() -> dict[int, Mapping[str, str]]:
    """What Slurm showed of every job; it forgets ended ones after half a minute."""
    return {}


def own_pods(world: World, example: str) -> list[Json]:
    """Everything that its objects made, ended or not: names begin with that of the object."""
    names = {one["metadata"]["name"] for one in documents(example)}
    others = {one["metadata"]["name"] for other in EXAMPLES if other != example for one in documents(other)}
    found = []
    for one in world.pods():
        name = one["metadata"]["name"]
        nearest = max((known for known in names | others if f"{name}-".startswith(f"{known}-")), key=len, default="")
        if nearest in names:
            found.append(one)
    return found


def is_as_it_should_end(one: Json) -> bool:
    """Pods of Jobs succeed, all others run on."""
    kinds = {owner["kind"] for owner in one["metadata"].get("ownerReferences", ())}
    wanted = "Succeeded" if "Job" in kinds else "Running"
    return bool(one["status"].get("phase") == wanted)


@pytest.mark.real
@pytest.mark.timeout(120)
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_reaches_its_end(applied: World, remembered: dict[int, Mapping[str, str]], example: str) -> None:
    """Its pods run where Slurm says, under as many jobs as it is about, and Slurm shows what it is about."""
    expected = EXPECTED.get(example, Expected())
    seen: list[list[Json]] = [[]]

    def there() -> bool:
        remembered.update(applied.slurm.all_shown())
        seen[0] = own_pods(applied, example)
        ended = [one for one in seen[0] if is_as_it_should_end(one)]
        return len(ended) >= sum(expected.pods) and len(ended) == len(seen[0])

    try:
        wait.until(there, f"end of {example}", SECONDS, every=0.5)
    except AssertionError as error:
        lines = [str(error), *map(support_world.told, seen[0]), applied.daemon.last_words()]
        raise AssertionError("\n".join(lines)) from error
    jobs = support_slots.bound_by(seen[0])
    if example != "cronjob":  # it may have run more than once
        assert sorted(map(len, jobs.values())) == sorted(expected.pods)
    for job_id, pods in jobs.items():
        shown = remembered[job_id]
        assert {word: shown.get(word) for word in expected.shown} == expected.shown
        assert len(support_groups.on_nodes(pods)) == expected.nodes


@pytest.mark.real
@pytest.mark.parametrize("kind", ["Job", "JobSet"])
def test_what_the_examples_run_is_complete(applied: World, kind: str) -> None:
    """In the words of their controllers."""
    objects = Objects(applied)
    for name in (one["metadata"]["name"] for example in EXAMPLES for one in documents(example) if one["kind"] == kind):
        wait.until(lambda name=name: is_complete(objects.get(kind, name)), f"end of {kind} {name}", 30)


def is_complete(one: Json) -> bool:
    """Job and JobSet name the same thing differently."""
    return any(support_servers.condition(one, word).get("status") == "True" for word in ("Complete", "Completed"))


@pytest.mark.real
def test_the_node_selector_of_an_example_holds(applied: World) -> None:
    """The node has the labels that were asked for."""
    (pod,) = own_pods(applied, "node-selector")
    node = applied.kube.get(f"/api/v1/nodes/{pod['spec']['nodeName']}")
    assert pod["spec"]["nodeSelector"].items() <= node["metadata"]["labels"].items()


@pytest.mark.real
def test_the_ranks_of_an_example_are_those_of_its_controllers(applied: World) -> None:
    """One for each pod; the master is a name that a headless service resolves where there is one."""
    told: dict[str, list[Mapping[str, str]]] = {}
    for one in own_pods(applied, "slurm-environment"):
        told.setdefault(one["metadata"]["labels"]["job-name"], []).append(one["metadata"]["annotations"])
    for marks in told.values():
        assert [one[names.ANNOTATION_RANK] for one in marks] == [
            one[names.ANNOTATION_COMPLETION_INDEX] for one in marks
        ]
    masters = {name: {one[names.ANNOTATION_MASTER] for one in marks} for name, marks in told.items()}
    assert masters["slurm-environment-torch-worker-0"] == {"slurm-environment-torch-worker-0-0.slurm-environment-torch"}
    assert len(masters["slurm-environment"]) == 1


@pytest.mark.real
def test_the_required_zone_of_an_example_holds(applied: World) -> None:
    """All of its pods are in one."""
    nodes = [
        applied.kube.get(f"/api/v1/nodes/{one['spec']['nodeName']}") for one in own_pods(applied, "topology-required")
    ]
    assert len({one["metadata"]["labels"]["topology.kubernetes.io/zone"] for one in nodes}) == 1


@pytest.mark.real
def test_the_pod_groups_of_the_examples_are_scheduled(applied: World) -> None:
    """Each API has its own word for it."""
    objects = Objects(applied)
    wait.until(
        lambda: support_servers.condition(objects.get("PodGroup", "podgroup"), "PodGroupScheduled"), "condition", 20
    )
    wait.until(
        lambda: objects.get("CoschedulingPodGroup", "coscheduling-podgroup").get("status", {}).get("phase"), "phase", 20
    )


def test_every_example_is_expected() -> None:
    """A new folder cannot be forgotten here; those that are not named have one pod and show nothing of their own."""
    assert EXPECTED.keys() <= EXAMPLES.keys()
    assert EXAMPLES.keys() - EXPECTED.keys() == {"custom-hook", "node-selector"}


@pytest.mark.parametrize("example", MANIFESTS_ALONE, ids=lambda path: path.name)
def test_an_example_is_a_manifest_and_two_lines(example: pathlib.Path) -> None:
    """A title, an empty line, and two lines that say what it shows."""
    title, empty, *lines = (example / "README.md").read_text().splitlines()
    assert (title, empty) == (f"# {example.name}", "")
    assert len(lines) == 2
