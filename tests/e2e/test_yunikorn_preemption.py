"""Queues preempt on real servers: what is borrowed is evicted, once, for the queue that it is guaranteed to."""

import contextlib
import pathlib
from collections.abc import Iterator, Mapping

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import (
    support_daemon,
    support_families,
    support_farm,
    support_gate,
    support_groups,
    support_kinds,
    support_observer,
    support_queues,
    support_servers,
    support_world,
)
from tests.e2e.support_families import pods
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_gate import Gate
from tests.e2e.support_kinds import Objects
from tests.e2e.support_queues import hook, most, pod, queue, says, shown, used
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

#: One machine, of which another Slurm user's job has a part.
CPUS, THEIR_CPUS = 8, 2
SECONDS = 45.0
#: What is refused for so long is given up, and others are looked for 15 s later.
EVICT_SECONDS = 3.0
#: So often pods are made that have to be equally old.
TRIES = 10
#: Long enough for a watcher to see which pods are being deleted.
LEAVES = {"kwok.local/terminating": "2s"}
#: A pod that waits for so long has others evicted for it.
SOON = {"preemption.delay": "2s"}
SLOW = {"quota.preemption.delay": "2s"}
WORDS = "room is made in queue root.{}: {} of queues beyond their guarantees will be evicted"


def least(cpus: int) -> Json:
    """So much is guaranteed."""
    return {"guaranteed": {"vcore": str(cpus)}}


def shared(name: str, cpus: int, guaranteed: int, *more: Json) -> Json:
    """Two queues share so much, and of it so much is the first one's."""
    mine = queue(f"{name}-a", resources=least(guaranteed), properties=SOON)
    return queue(name, mine, queue(f"{name}-b"), *more, resources=most(vcore=str(cpus)))


def capped(cpus: int) -> Json:
    """A queue whose maximum is to be lowered."""
    return queue("capped", resources=most(vcore=str(cpus)), properties=SLOW)


def configured(cap: int = 4) -> list[Json]:
    """All users may submit to all queues."""
    trees = (
        shared("team", 6, 2, queue("team-c", resources=least(1))),
        shared("gangs", 4, 2),
        shared("kept", 2, 1),
        shared("pair", 2, 2),
    )
    made = hook(*trees, queue("rival"), capped(cap), evict_seconds=EVICT_SECONDS)
    (partition,) = made[0]["options"]["configuration"]["partitions"]
    partition["preemption"] = {"quotapreemptionenabled": True}
    partition["queues"][0]["submitacl"] = "*"
    return made


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """A machine of our own: only these pods take what becomes free on it."""
    with support_farm.built(kube, slurm, 0, cpus=CPUS) as made:
        yield made


@pytest.fixture(scope="module")
def gate(cluster: Mapping[str, str], work: pathlib.Path) -> Iterator[Gate]:
    """Counts what the daemon orders."""
    with support_gate.opened(cluster, work, "queues-preempt") as made:
        yield made


@pytest.fixture(scope="module")
def world(farm: Farm, gate: Gate, open_world: OpenWorld, kube: support_servers.Kubernetes) -> Iterator[World]:
    """A daemon with the queues."""
    with support_families.granted(kube, "yunikorn"):
        yield open_world("borrowed", hooks=configured(), defaults={"partition": farm.partition}, **gate.settings)


@pytest.fixture(autouse=True)
def counted(gate: Gate) -> None:
    """Each case counts for itself."""
    gate.orders.clear()


@pytest.fixture(scope="module")
def cheap(kube: support_servers.Kubernetes) -> Iterator[str]:
    """A class of priority below all others."""
    path, name = "/apis/scheduling.k8s.io/v1/priorityclasses", support_daemon.fresh_name("cheap")
    kube.create(path, {"metadata": {"name": name}, "value": -10})
    try:
        yield name
    finally:
        kube.delete(f"{path}/{name}")


@contextlib.contextmanager
def one_by_one(world: World, *manifests: Json) -> Iterator[list[Json]]:
    """Pods that run, each in another second than the one before: so that it is clear which is the newest."""
    with contextlib.ExitStack() as stack:
        made = []
        for one in manifests:
            made += stack.enter_context(pods(world, one))
            world.await_pod(one["metadata"]["name"], "a node", support_world.is_bound, SECONDS)
            wait.next_second()
        yield made


@contextlib.contextmanager
def at_once(world: World, *manifests: Json) -> Iterator[list[Json]]:
    """Pods that run, made in one second and nothing else in it: a busy API server may need several tries for that."""
    with contextlib.ExitStack() as stack:
        for _ in range(TRIES):
            wait.next_second()
            made = stack.enter_context(pods(world, *manifests))
            if len({one["metadata"]["creationTimestamp"] for one in made}) == 1:
                break
            stack.close()
            for one in manifests:
                world.await_gone(one["metadata"]["name"])
        else:
            pytest.fail(f"the API server has not made {len(manifests)} pods in one second in {TRIES} tries")
        for one in made:
            world.await_pod(one["metadata"]["name"], "a node", support_world.is_bound, SECONDS)
        wait.next_second()
        yield made


def borrower(world: World, name: str, path: str = "root.team.team-b", **spec: str) -> Json:
    """A pod of one cpu that takes its time to leave."""
    made = pod(world, name, path, **LEAVES)
    made["spec"].update(spec)
    return made


def leaving(world: World) -> set[str]:
    """The pods that are being deleted."""
    return {one["metadata"]["name"] for one in world.pods() if "deletionTimestamp" in one["metadata"]}


def staying(world: World) -> set[str]:
    """The pods that are there to stay."""
    return {one["metadata"]["name"] for one in world.pods()} - leaving(world)


def said_to(world: World, one: Json, reason: str) -> list[str]:
    """The messages of events with this reason."""
    return [str(said["message"]) for said in world.events(one["metadata"]["uid"]) if said["reason"] == reason]


def notes(world: World) -> dict[str, set[str]]:
    """The pods that still say that others are evicted for them, or they for others."""
    keys = {names.ANNOTATION_ROOM, names.ANNOTATION_MAKES_ROOM}
    found = {one["metadata"]["name"]: keys & one["metadata"].get("annotations", {}).keys() for one in world.pods()}
    return {name: there for name, there in found.items() if there}


@pytest.mark.real
def test_a_guarantee_takes_back_what_is_borrowed_and_nothing_else(
    world: World, farm: Farm, gate: Gate, cheap: str
) -> None:
    """First the newest, of equally new ones the cheapest; none within its guarantee, no pod of another scheduler."""
    (node,) = farm.nodes
    old, older, cheaper, dearer, newest = (borrower(world, name) for name in ("old", "older", "cheap", "dear", "new"))
    cheaper["spec"]["priorityClassName"] = cheap
    with (
        support_families.taken(world.slurm, farm, node, cpus=THEIR_CPUS) as theirs,
        foreign(world, node),
        one_by_one(world, older, old),
        at_once(world, cheaper, dearer) as (least_of_all, _),
        one_by_one(world, newest, borrower(world, "due", "root.team.team-c")) as (new, _),
        pods(world, pod(world, "rival", "root.rival"), nowhere(world)) as (rival, lost),
        support_observer.observing(world) as observer,
    ):
        world.await_placeholder(rival["metadata"]["uid"])
        world.await_pod("lost", "reason", support_world.waits_for("Unschedulable"), SECONDS)
        with pods(world, pod(world, "mine", "root.team.team-a", cpu="2")) as (mine,):
            bound = world.await_pod("mine", "a node", support_world.is_bound, SECONDS)
            assert bound["spec"]["nodeName"] == node
            assert sorted(gate.done("evict")) == ["cheap", "new"]
            assert staying(world) == {"older", "old", "dear", "due", "mine", "rival", "lost", "foreign"}
            assert not any(map(support_world.is_bound, map(world.kube.get, paths(world, "rival", "lost"))))
            assert not said_to(world, lost, "PreemptionStarted")
            assert said_to(world, mine, "PreemptionStarted") == [WORDS.format("team.team-a", "2 workloads")]
            assert said_to(world, new, "Preempted") == [f"Preempted by {world.namespace}/mine on node {node}"]
            assert [world.placeholder(one["metadata"]["uid"]) for one in (least_of_all, new)] == [None, None]
            assert len(world.placeholders(mine["metadata"]["uid"])) == 1
            assert {path: used(world, f"root.team.team-{path}") for path in "abc"} == {"a": 2, "b": 3, "c": 1}
            (job_id,) = theirs.values()
            assert world.slurm.shown(job_id)["JobState"] == "RUNNING"
            wait.until(lambda: not notes(world), "end of what was noted")
            observer.expect(mine)
        world.await_pod("rival", "a node", support_world.is_bound, SECONDS)
    assert observer.seen.wrong == set()
    assert sorted(gate.done("evict")) == ["cheap", "new"]


def nowhere(world: World) -> Json:
    """A pod that is entitled to what it asks for, and that no node would take."""
    made = pod(world, "lost", "root.team.team-a", cpu="2")
    made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "nowhere"}
    return made


def paths(world: World, *names_: str) -> list[str]:
    """Where these pods are."""
    return [f"{world.path}/{name}" for name in names_]


@contextlib.contextmanager
def foreign(world: World, node: str) -> Iterator[None]:
    """A pod that another scheduler has put there, which asks for the queue of the borrowers."""
    made = pod(world, "foreign", "root.team.team-b")
    made["spec"] |= {"schedulerName": "somebody-else", "nodeName": node}
    world.create(made)
    try:
        yield
    finally:
        world.delete("foreign")


@pytest.mark.real
def test_a_gang_goes_as_a_whole(world: World, gate: Gate) -> None:
    """Both of its pods, once each, and its job ends; those that replace them wait behind the one that they went for."""
    with one_by_one(world, *(borrower(world, name, "root.gangs.gangs-b") for name in ("alone-1", "alone-2"))):
        objects = Objects(world)
        marks = {**support_world.FOREVER, **LEAVES, support_queues.QUEUE: "root.gangs.gangs-b"}
        template = support_kinds.template(world, marks)
        objects.create("Job", "gang", support_kinds.job_spec(template, 2), {names.ANNOTATION_GANG: "true"})
        try:
            whole = support_groups.placed(world, "gang", 2, SECONDS)
            job = support_groups.together(world, whole)
            with support_observer.observing(world) as observer:
                with pods(world, pod(world, "mine", "root.gangs.gangs-a", cpu="2")) as (mine,):
                    world.await_pod("mine", "a node", support_world.is_bound, SECONDS)
                    assert sorted(gate.done("evict")) == sorted(support_kinds.names(whole))
                    assert world.slurm.shown(job.job_id)["JobState"] == "CANCELLED"
                    held = support_world.waits_for("QueueWaiting")
                    support_groups.awaited(world, "gang", 2, held, "waiting", SECONDS)
                    assert staying(world) > {"alone-1", "alone-2", "mine"}
                    observer.expect(mine)
                anew = support_groups.placed(world, "gang", 2, SECONDS)
                assert support_groups.together(world, anew).job_id != job.job_id
            assert observer.seen.wrong == set()
            assert len(gate.done("evict")) == 2
        finally:
            objects.delete("Job", "gang")
            wait.until(lambda: support_groups.living_of(world, "Job", "gang") == [], "end of the gang", SECONDS)


@pytest.mark.real
def test_what_a_budget_keeps_is_spared_and_another_one_goes(world: World, gate: Gate) -> None:
    """The newest is asked again for as long as is configured, and then left alone; nothing is left on it."""
    old, new = borrower(world, "old", "root.kept.kept-b"), borrower(world, "new", "root.kept.kept-b")
    new["metadata"]["labels"] = {"app": "kept"}
    with (
        one_by_one(world, old, new),
        budget(world),
        support_observer.observing(world) as observer,
        pods(world, pod(world, "mine", "root.kept.kept-a")) as (mine,),
    ):
        wait.until(lambda: gate.refused("evict"), "refusal", SECONDS)
        assert staying(world) == {"old", "new", "mine"}
        world.await_pod("new", "freedom", lambda _: "new" not in notes(world), SECONDS)
        assert gate.done("evict") == []
        words = "queue root.kept uses 2 of 2 vcore, and this asks for 1; others in root.kept have to end first"
        world.await_pod("mine", words, says("QueueWaiting", f"in queue root.kept.kept-a: {words}"), SECONDS)
        world.await_pod("mine", "a node", support_world.is_bound, SECONDS)
        assert (gate.done("evict"), staying(world)) == (["old"], {"new", "mine"})
        observer.expect(mine)
    assert observer.seen.wrong == set()


@contextlib.contextmanager
def budget(world: World) -> Iterator[None]:
    """None of the pods that are labelled may go."""
    path = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets"
    kept = {"selector": {"matchLabels": {"app": "kept"}}, "minAvailable": 1}
    world.kube.create(path, {"metadata": {"name": "keeps"}, "spec": kept})
    try:
        wait.until(lambda: world.kube.get(f"{path}/keeps").get("status", {}).get("currentHealthy") == 1, "budget")
        yield
    finally:
        world.kube.delete(f"{path}/keeps")


@pytest.mark.real
def test_no_pod_goes_in_vain_beside_one_that_a_budget_keeps(world: World, gate: Gate) -> None:
    """Without the one that is refused there is no room; so the other one is not told, and both stay."""
    old, new = borrower(world, "old", "root.pair.pair-b"), borrower(world, "new", "root.pair.pair-b")
    new["metadata"]["labels"] = {"app": "kept"}
    with one_by_one(world, old, new), budget(world), pods(world, pod(world, "mine", "root.pair.pair-a", cpu="2")):
        wait.until(lambda: gate.refused("evict"), "refusal", SECONDS)
        wait.until(lambda: not notes(world), "end of what was noted", SECONDS)
        assert (gate.done("evict"), staying(world)) == ([], {"old", "new", "mine"})


@pytest.mark.real
def test_a_lowered_maximum_takes_back_what_is_beyond_it(world: World, gate: Gate) -> None:
    """A while after the reload; as much as is too much, and no more."""
    four = [borrower(world, f"q{number}", "root.capped") for number in range(4)]
    with one_by_one(world, *four), support_observer.observing(world) as observer:
        assert used(world, "root.capped") == 4
        for cap in (3, 1):
            support_families.change(world, configured(cap))
            wait.until(lambda cap=cap: used(world, "root.capped") == cap, f"use of {cap}", SECONDS, every=0.5)
            assert len(gate.done("evict")) == len(set(gate.done("evict"))) == 4 - cap
            assert len(staying(world)) == cap
            assert shown(world)["root.capped"]["max"]["vcore"] == 1000 * cap
        gone = gate.done("evict")[0]
        said = {str(one["message"]) for one in world.kube.items(events(world)) if one["involvedObject"]["name"] == gone}
        assert f"Preempted by queue root.capped (over its maximum) on node {node_of(said)}" in said
        wait.until(lambda: not notes(world), "end of what was noted")
    assert observer.seen.wrong == set()


def events(world: World) -> str:
    """Where what was said is."""
    return f"/api/v1/namespaces/{world.namespace}/events"


def node_of(said: set[str]) -> str:
    """The node that a victim's event names."""
    return next(one.rpartition(" ")[2] for one in said if one.startswith("Preempted by "))


@pytest.mark.real
def test_what_is_evicted_leaves_one_node_with_room_for_the_asker(
    kube: support_servers.Kubernetes, slurm: support_servers.Slurm, open_world: OpenWorld
) -> None:
    """Two pods of one node, and not the newest four, which are on two nodes; a native job keeps a third node."""
    with (
        support_farm.built(kube, slurm, 0, 0, 0, cpus=4) as farm,
        support_families.granted(kube, "yunikorn"),
        support_families.taken(slurm, farm, farm.nodes[2], cpus=1),
    ):
        queues = hook(shared("packed", 11, 4), evict_seconds=EVICT_SECONDS)
        queues[0]["options"]["configuration"]["partitions"][0]["queues"][0]["submitacl"] = "*"
        world = open_world("packed", hooks=queues, defaults={"partition": farm.partition})
        first, second, third = farm.nodes
        sizes = {"f1": (first, 2), "old1": (second, 2), "old2": (second, 2), "f3": (third, 1)}
        sizes |= {"s1": (first, 1), "s2": (first, 1), "s3": (third, 1), "s4": (third, 1)}
        manifests = [borrower(world, name, "root.packed.packed-b") for name in sizes]
        for one, (node, cpus) in zip(manifests, sizes.values(), strict=True):
            one["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
            one["spec"]["containers"] = support_world.asks(cpu=str(cpus), memory="64Mi")
        asker = pod(world, "mine", "root.packed.packed-a", cpu="4")
        with (
            one_by_one(world, *manifests),
            support_observer.observing(world) as observer,
            pods(world, asker) as (mine,),
        ):
            bound = world.await_pod("mine", "a node", support_world.is_bound, SECONDS)
            assert bound["spec"]["nodeName"] == second
            assert staying(world) == sizes.keys() - {"old1", "old2"} | {"mine"}
            assert said_to(world, mine, "PreemptionStarted") == [WORDS.format("packed.packed-a", "2 workloads")]
            observer.expect(mine)
        assert observer.seen.wrong == set()
