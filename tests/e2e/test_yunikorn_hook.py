"""The hook "yunikorn" on real servers: workloads wait in queues with the reason, and these keep what they promise."""

import contextlib
import functools
from collections.abc import Iterator

import pytest
import yaml

from localcluster.config import PROJECT
from slurm_bridge.model import names
from tests import wait
from tests.e2e import (
    support_families,
    support_farm,
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
from tests.e2e.support_kinds import Objects
from tests.e2e.support_queues import hook, most, page, pod, queue, refused, says, shown, used
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

NODES, CPUS = 4, 16
#: Ends by itself, as soon as it has begun.
SHORT = support_world.SHORT
SECONDS = 60.0
#: So many have started when shares are counted, while both queues have others left; the first is guaranteed twice as
#: much as the second, and has not twice as many.
COUNTED = 500
BACKLOG = {"root.shared.large": 390, "root.shared.small": 250}
SHARE = 2 / 3
FULL = {"root.crash.a": 6, "root.crash.b": 4}
USERS = [
    {"service_accounts": ["ann"], "user": "ann", "groups": ["staff"]},
    {"service_accounts": ["eve"], "user": "eve"},
]

OPEN_TO_ALL = {"submitacl": "*"}
LEAVING = queue("leaving", **OPEN_TO_ALL)
QUEUES = [
    queue("full", resources=most(vcore="2"), **OPEN_TO_ALL),
    queue("gangs", resources=most(vcore="4"), **OPEN_TO_ALL),
    queue("single", maxapplications=1, **OPEN_TO_ALL),
    queue("closed", submitacl=" staff"),
    queue("sorted", **OPEN_TO_ALL),
    queue(
        "limited",
        limits=[{"limit": "one cpu", "users": ["ann"], "maxresources": {"vcore": "1"}}],
        **OPEN_TO_ALL,
    ),
    queue(
        "shared",
        queue("large", resources={"guaranteed": {"vcore": "20"}}),
        queue("small", resources={"guaranteed": {"vcore": "10"}}),
        **OPEN_TO_ALL,
    ),
    queue("crash", *(queue(path[-1], resources=most(vcore=str(cpus))) for path, cpus in FULL.items()), **OPEN_TO_ALL),
]

configured = functools.partial(hook, users=USERS, ahead=12, map={"root.full": {"account": "physics"}})


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Room for more than any queue may have."""
    with support_farm.built(kube, slurm, *[0] * NODES, cpus=CPUS) as made:
        yield made


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld, kube: support_servers.Kubernetes) -> Iterator[World]:
    """A daemon with the queues, and a namespace with two users."""
    with support_families.granted(kube, "yunikorn"):
        made = open_world("queued", hooks=configured(*QUEUES, LEAVING), defaults={"partition": farm.partition})
        for user in ("ann", "eve"):
            kube.create(f"/api/v1/namespaces/{made.namespace}/serviceaccounts", {"metadata": {"name": user}})
        yield made


def bound(world: World, *names_: str) -> list[Json]:
    """These pods, as soon as they have nodes."""
    return [world.await_pod(name, "a node", support_world.is_bound, SECONDS) for name in names_]


@pytest.mark.real
def test_a_queue_over_its_maximum_waits_and_runs_when_freed(world: World) -> None:
    """Its user reads what is used of what; `explain`, the page and the command say the same; Slurm hears nothing."""
    words = "queue root.full uses 2 of 2 vcore, and this asks for 1; others in root.full have to end first"
    with pods(world, pod(world, "first", "root.full", cpu="2")) as (first,):
        (seen,) = bound(world, "first")
        assert world.slurm.shown(support_world.job_id(seen))["Account"] == "physics"
        with pods(world, pod(world, "second", "root.full")) as (second,):
            uid = second["metadata"]["uid"]
            world.await_pod("second", words, says("QueueWaiting", f"in queue root.full: {words}"), SECONDS)
            assert world.placeholders(uid) == []
            told = support_families.machine(world, "second")
            assert (told["verdict"], told["reason"]) == ("wait", "QueueWaiting")
            assert (told["message"], "yunikorn" in str(told["held_by"])) == (f"in queue root.full: {words}", True)
            shows_what_is_true(world, words)
            world.finish([first])
            assert len(world.placeholders(bound(world, "second")[0]["metadata"]["uid"])) == 1


def shows_what_is_true(world: World, words: str) -> None:
    """One pod runs and one waits in the queue `full`; the other queues are empty."""
    tree = shown(world)
    full = tree["root.full"]
    assert (full["used"]["vcore"], full["max"]["vcore"], full["pending"]["vcore"]) == (2000, 2000, 1000)
    assert (full["state"], full["running"], full["waiting"]) == ("active", 1, 1)
    assert {path for path, one in tree.items() if one["running"] or one["waiting"]} == {"root", "root.full"}
    (waits,) = page(world)["waiting"]
    assert (waits["workload"], waits["queue"], waits["why"]) == (f"{world.namespace}/second", "root.full", words)
    said = support_queues.command(world)
    assert said == page(world)


@pytest.mark.real
def test_a_gang_is_let_in_as_a_whole(world: World) -> None:
    """Room for two of its three pods is none; it has one job, once there is room for all."""
    words = "queue root.gangs uses 2 of 4 vcore, and this asks for 3; others in root.gangs have to end first"
    with pods(world, pod(world, "before", "root.gangs", cpu="2")) as (before,):
        bound(world, "before")
        with gang(world, "gang", 3):
            waits = says("QueueWaiting", f"in queue root.gangs: {words}")
            support_groups.awaited(world, "gang", 3, waits, "waiting")
            assert used(world, "root.gangs") == 2
            assert [one.owner["kind"] for one in support_groups.living(world)] == ["Pod"]
            world.finish([before])
            support_groups.together(world, support_groups.placed(world, "gang", 3, SECONDS))
            assert used(world, "root.gangs") == 3


@contextlib.contextmanager
def gang(world: World, name: str, members: int) -> Iterator[None]:
    """A Job whose pods start together, until the end of this."""
    objects, marks = Objects(world), {**support_world.FOREVER, support_queues.QUEUE: "root.gangs"}
    template = support_kinds.template(world, marks)
    objects.create("Job", name, support_kinds.job_spec(template, members), {names.ANNOTATION_GANG: "true"})
    try:
        yield
    finally:
        objects.delete("Job", name)
        wait.until(lambda: support_groups.living_of(world, "Job", name) == [], "end of the gang's job", SECONDS)


@pytest.mark.real
def test_on_four_nodes_binpacking_fills_the_used_node_and_fair_takes_an_empty_one(world: World, farm: Farm) -> None:
    """The pods name no node; by itself Slurm would not tell the two apart."""
    first, _, third, _ = farm.nodes
    there = [pod(world, "some", "root.sorted", cpu="2"), pod(world, "most", "root.sorted", cpu="9")]
    for one, node in zip(there, (first, third), strict=True):
        one["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    asked = [
        pod(world, sort, "root.sorted", **{names.JOB_PREFIX + "node-sort-policy": sort})
        for sort in ("binpacking", "fair")
    ]
    with pods(world, *there):
        bound(world, "some", "most")
        with pods(world, *asked):
            packed, spread = (str(one["spec"]["nodeName"]) for one in bound(world, "binpacking", "fair"))
    assert packed == third
    assert spread in set(farm.nodes) - {first, third}


@pytest.mark.real
@pytest.mark.timeout(180)
def test_all_pods_of_a_deployment_are_one_application(world: World) -> None:
    """They run together where one application may; the next Deployment waits with the reason until that is over."""
    words = "in queue root.single: queue root.single runs 1 of 1 applications; one has to end first"
    with deployment(world, "web", 3) as objects:
        seen = support_groups.placed(world, "web", 3, SECONDS)
        assert len(support_groups.apart(world, seen)) == 3
        with deployment(world, "db", 2):
            waiting = support_groups.awaited(world, "db", 2, says("QueueWaiting", words), "waiting")
            assert [world.placeholders(one["metadata"]["uid"]) for one in waiting] == [[], []]
            found = page(world)["applications"]
            counts = {one["application"]: (one["runs"], one["waits"]) for one in found}
            assert counts == {f"{world.namespace}/web": (3, 0), f"{world.namespace}/db": (0, 2)}
            assert (shown(world)["root.single"]["running"], used(world, "root.single")) == (1, 3)
            objects.delete("Deployment", "web")
            support_groups.placed(world, "db", 2, SECONDS)


@contextlib.contextmanager
def deployment(world: World, name: str, pods_: int) -> Iterator[Objects]:
    """So many pods of a Deployment in the queue for one application, until the end of this."""
    objects = Objects(world)
    template = support_kinds.served(world)
    template["metadata"]["annotations"][support_queues.QUEUE] = "root.single"
    objects.create("Deployment", name, support_kinds.replicas_spec(name, template, pods_))
    try:
        yield objects
    finally:
        objects.delete("Deployment", name)
        wait.until(lambda: support_kinds.members(world, f"{name}-") == [], f"end of the pods of {name}", SECONDS)


@pytest.mark.real
def test_an_access_list_refuses_with_its_words(world: World) -> None:
    """Service accounts say it: ann is staff, and eve is not."""
    asked = [pod(world, f"{user}-knocks", "root.closed", account=user) for user in ("ann", "eve")]
    with pods(world, *asked) as (_, eves):
        world.await_pod("eve-knocks", "refusal", refused("user eve may not submit to root.closed"), SECONDS)
        bound(world, "ann-knocks")
        assert world.placeholders(eves["metadata"]["uid"]) == []
        wait.until(lambda: page(world)["rejected"], "rejected workload on the page")
        assert page(world)["rejected"][0]["application"] == f"{world.namespace}/eve-knocks"


@pytest.mark.real
def test_the_limit_of_a_user_holds_the_user_alone(world: World) -> None:
    """It is waited for with its own words, and others of the queue go on."""
    words = (
        "in queue root.limited: user ann has 1000m of 1000m that queue root.limited allows: "
        "1000m more of vcore are too much"
    )
    with pods(world, pod(world, "ann-1", "root.limited", account="ann")) as (first,):
        bound(world, "ann-1")
        others = [pod(world, f"{user}-2", "root.limited", account=user) for user in ("ann", "eve")]
        with pods(world, *others):
            world.await_pod("ann-2", words, says("QueueWaiting", words), SECONDS)
            bound(world, "eve-2")
            world.finish([first])
            bound(world, "ann-2")


@pytest.mark.real
def test_a_removed_queue_drains(world: World) -> None:
    """What runs there runs on and counts, no new pod gets in; it goes with the last. A new one takes the refused."""
    with pods(world, pod(world, "inside", "root.leaving")) as (inside,):
        bound(world, "inside")
        support_families.change(world, configured(*QUEUES))
        with pods(world, pod(world, "late", "root.leaving")) as (late,):
            world.await_pod("late", "refusal", refused("root.leaving is draining"), SECONDS)
            left = shown(world)["root.leaving"]
            assert (left["state"], left["running"], left["used"]["vcore"]) == ("draining", 1, 1000)
            assert len(world.placeholders(inside["metadata"]["uid"])) == 1
            world.finish([inside])
            wait.until(lambda: "root.leaving" not in shown(world), "end of the queue", SECONDS, every=0.5)
            assert world.placeholders(late["metadata"]["uid"]) == []
            support_families.change(world, configured(*QUEUES, LEAVING))
            bound(world, "late")


@pytest.mark.real
@pytest.mark.timeout(240)
def test_queues_share_by_what_they_are_guaranteed(world: World, farm: Farm) -> None:
    """Within a tenth over 500 workloads, although all of one queue came first."""
    with support_families.taken(world.slurm, farm, *farm.nodes, cpus=CPUS):
        made = [one for path, count in BACKLOG.items() for one in backlog(world, path, count)]
    try:
        served = support_queues.started(world, COUNTED, 3 * SECONDS)
        assert all(served[path] < count for path, count in BACKLOG.items()), f"one has none left: {served}"
        shares = {path: count / served.total() for path, count in served.items()}
        assert shares["root.shared.large"] == pytest.approx(SHARE, rel=0.1)
        assert shares["root.shared.small"] == pytest.approx(1 - SHARE, rel=0.1)
    finally:
        support_servers.each(made, lambda one: world.delete(one["metadata"]["name"]))
        world.await_nothing_in_slurm()


def backlog(world: World, path: str, count: int) -> list[Json]:
    """So many small pods of a queue."""
    name = path.rpartition(".")[2]
    return world.create(*(pod(world, f"{name}-{number:03}", path, **SHORT) for number in range(count)))


@pytest.mark.real
@pytest.mark.timeout(300)
def test_a_killed_daemon_knows_what_its_queues_use(world: World) -> None:
    """Whatever happened to it and meanwhile: no queue has ever more in Slurm than its maximum, and all pods run."""
    made = world.create(
        *(
            pod(world, f"{path[-1]}-{number:02}", path, cpu=str(1 + number % 2))
            for path, cpus in FULL.items()
            for number in range(3 * cpus)
        )
    )
    with support_observer.observing(world) as observer, support_queues.watched(world, made) as watch:
        is_full = functools.partial(full, world, watch)
        wait.until(is_full, "full queues", SECONDS, every=0.5)
        world.daemon.kill()
        made = end_some(world, observer, made)
        again(world)
        wait.until(is_full, "full queues after those that ended", SECONDS, every=0.5)
        world.finish(made)
        for _ in range(2):
            before = ended(world)
            wait.until(lambda before=before: ended(world) > before, "some more ended pods", SECONDS)
            world.daemon.kill()
            again(world)
        for one in made:
            world.await_pod(one["metadata"]["name"], "success", support_world.has_succeeded, 2 * SECONDS)
    assert observer.seen.wrong == set()
    assert watch.highest == FULL
    wait.until(lambda: not any(used(world, path) for path in FULL), "queues that use nothing", SECONDS)


def end_some(world: World, observer: support_observer.Observer, made: list[Json]) -> list[Json]:
    """While no daemon runs, delete one running pod and let every other one of the rest succeed; the pods that exist."""
    gone, *rest = running(world)
    observer.expect(gone)
    world.delete(gone["metadata"]["name"])
    world.finish(rest[::2])
    for one in rest[::2]:
        world.await_pod(one["metadata"]["name"], "success", support_world.has_succeeded, SECONDS)
    wait.until(lambda: world.pod(gone["metadata"]["name"]) is None, "end of a deleted pod", SECONDS)
    return [one for one in made if one["metadata"]["uid"] != gone["metadata"]["uid"]]


def full(world: World, watch: support_queues.Watch) -> bool:
    """Slurm and the page agree that no queue can take any more, and all pods that were let in have nodes."""
    slurm = dict(watch.now()) == FULL == {path: used(world, path) for path in FULL}
    return slurm and len(running(world)) == len(world.slurm.alive(world.daemon.cluster_id))


def running(world: World) -> list[Json]:
    """The pods that have a node and are not over."""
    return [one for one in world.pods() if support_world.is_bound(one) and not support_world.is_over(one)]


def again(world: World) -> None:
    """The daemon's next life."""
    world.daemon.start()
    world.daemon.await_ready()


def ended(world: World) -> int:
    """How many pods are over."""
    return sum(map(support_world.is_over, world.pods()))


def example() -> list[Json]:
    """The hooks of the example, as they are."""
    found: list[Json] = yaml.safe_load((PROJECT / "examples" / "hooks" / "yunikorn.yaml").read_text())["hooks"]
    return found


@pytest.mark.real
def test_the_example_works_as_it_is(open_world: OpenWorld, farm: Farm) -> None:
    """Physicists: their queue takes them, the chemists' does not, so they go to the others; no user fills one alone."""
    theirs = open_world("physics", hooks=example(), defaults={"partition": farm.partition})
    anybody = pod(theirs, "anybody", "")
    del anybody["metadata"]["annotations"][support_queues.QUEUE]
    others = pod(theirs, "others", "root.teams.chemistry")
    large = [pod(theirs, f"large-{number}", "root.teams.physics", cpu=str(CPUS)) for number in range(2)]
    with pods(theirs, anybody, others, *large):
        bound(theirs, "anybody", "others", "large-0", "large-1")
        assert {path: one["used"]["vcore"] // 1000 for path, one in shown(theirs).items() if one["running"]} == {
            "root": 2 * CPUS + 2,
            "root.teams": 2 * CPUS,
            "root.teams.physics": 2 * CPUS,
            "root.others": 2,
        }
        with pods(theirs, pod(theirs, "more", "root.teams.physics", cpu=str(CPUS))):
            said = theirs.await_pod("more", "word", support_world.waits_for("QueueWaiting"), SECONDS)
            assert "(by the limit of *)" in support_families.message(said)


@pytest.mark.real
def test_in_the_example_what_is_borrowed_is_given_back(
    kube: support_servers.Kubernetes, slurm: support_servers.Slurm, open_world: OpenWorld
) -> None:
    """Chemists have 80 of the 100, physicists ask for 32 of their 50: only the chemist's last pod goes."""
    with support_families.granted(kube, "yunikorn"), support_farm.built(kube, slurm, *[0] * 4, cpus=2 * CPUS) as farm:
        physics = open_world("physics", hooks=example(), defaults={"partition": farm.partition})
        # Another team's namespace; its pods name the daemon of the first.
        chemistry = open_world("chemistry", hooks=example(), defaults={"partition": farm.partition})
        with contextlib.ExitStack() as stack:
            for number in range(5):
                wait.next_second()
                one = pod(chemistry, f"borrows-{number}", "root.teams.chemistry", cpu=str(CPUS))
                one["spec"]["schedulerName"] = physics.daemon.scheduler
                stack.enter_context(pods(chemistry, one))
                bound(chemistry, f"borrows-{number}")
            mine = [pod(physics, f"mine-{number}", "root.teams.physics", cpu=str(CPUS)) for number in range(2)]
            stack.enter_context(pods(physics, *mine))
            bound(physics, "mine-0", "mine-1")
            left = {one["metadata"]["name"] for one in chemistry.pods() if not one["metadata"].get("deletionTimestamp")}
            assert left == {f"borrows-{number}" for number in range(4)}
            assert {path: used(physics, f"root.teams.{path}") for path in ("physics", "chemistry")} == {
                "physics": 2 * CPUS,
                "chemistry": 4 * CPUS,
            }
