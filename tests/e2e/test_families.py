"""Families of hooks alone, together, and beside a site's own: changed under load, and beside one that fails."""

import pathlib
from collections.abc import Iterator, Sequence

import pytest

from tests.e2e import (
    support_daemon,
    support_families,
    support_farm,
    support_foreign,
    support_observer,
    support_servers,
    support_world,
)
from tests.e2e.support_families import pod
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

NODES, CPUS, BATCH = 4, 64, 20
#: What the site's hook does with a pod of this label.
MOOD = "mood"

#: A package of a site: what it does is written on the pods.
MOODY = f'''
"""A hook that fails as it is told to."""
import pathlib
import threading

from slurm_bridge.hooks.base import Denied


class Moody:
    def __init__(self, options):
        self.release = pathlib.Path(options["release"])

    def filter(self, session, ask, nodes):
        mood = ask.workload.pods[0].metadata.labels.get("{MOOD}", "good")
        if mood == "raise":
            raise RuntimeError("as I was told")
        if mood == "nonsense":
            return 42
        pause = threading.Event()
        while mood == "hang" and not self.release.exists():
            pause.wait(0.05)
        return Denied(nodes={{}})
'''

VELA: Json = {"name": "vela", "options": {"nodes_bp": 10_000, "candidates": 2}}
KUBE: Json = {"name": "kube-scheduler", "options": {"first_tier": 2, "widen_after_seconds": 2}}
PREEMPTION: Json = {"name": "preemption", "options": {"after_seconds": 600}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The package, as pip leaves it."""
    folder = tmp_path_factory.mktemp("site")
    info = folder / "moody-1.0.dist-info"
    info.mkdir()
    (folder / "moody.py").write_text(MOODY)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: moody\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[slurm_bridge.hooks]\nmoody = moody:Moody\n")
    return folder


@pytest.fixture(scope="module")
def release(site: pathlib.Path) -> pathlib.Path:
    """Once there is such a file, the hook hangs no more."""
    return site / "released"


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Room for all."""
    with support_farm.built(kube, slurm, *[0] * NODES, cpus=CPUS) as made:
        yield made


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld, kube: support_servers.Kubernetes, site: pathlib.Path) -> Iterator[World]:
    """A daemon that begins without any family, and may be told of all."""
    assert farm.nodes
    with support_families.granted(kube, "kube-scheduler", "preemption"):
        yield open_world("families", variables={"PYTHONPATH": str(site)})


def moody(release: pathlib.Path, on_error: str = "hold") -> Json:
    """The site's hook."""
    return {"name": "moody", "on_error": on_error, "budget_ms": 300, "options": {"release": str(release)}}


@pytest.mark.real
def test_families_change_under_load_and_nothing_is_lost(
    world: World, farm: Farm, foreign: support_foreign.Foreign, release: pathlib.Path
) -> None:
    """Each alone, all together with a site's own, and none again: every pod is bound by the only job it ever had."""
    everything = [VELA, KUBE, PREEMPTION, moody(release)]
    crowded: list[list[Json]] = [[KUBE], [VELA], [PREEMPTION], everything]
    free: list[list[Json]] = [[], everything, [VELA, KUBE]]
    before = foreign.now()
    with support_observer.observing(world) as observer:
        # The first pods wait in Slurm, and what they ask for changes there with each chain.
        with support_families.taken(world.slurm, farm, *farm.nodes, cpus=CPUS):
            for hooks in crowded:
                load(world, farm, hooks)
            world.await_placeholders(one["metadata"]["uid"] for one in world.pods())
            explained_by_all(world)
        for hooks in free:
            load(world, farm, hooks)
        bound = world.await_bound(len(crowded + free) * BATCH, 90.0)
    assert observer.end().wrong == set()
    jobs = world.slurm.jobs_of(world.daemon.cluster_id)
    assert {one.job_id for one in jobs} == {support_world.job_id(one) for one in bound}
    assert len(jobs) == len(bound)
    assert world.daemon.alive
    assert foreign.now() == before


def explained_by_all(world: World) -> None:
    """Of a pod that waits in Slurm: which nodes it is offered one after the other, and how they were rated."""
    said = support_families.machine(world, world.pods()[0]["metadata"]["name"])
    assert (said["verdict"], len(said["jobs"])) == ("submit", 1)
    assert {"vela", "kube-scheduler", "moody"} <= {one["hook"] for one in said["hooks"]}
    assert [one["name"] for one in said["attempts"]][-1] == "any"
    table = said["scores"]["kube-scheduler"]
    assert {one["priority"] for one in table["priorities"]} >= {"NodeAffinity", "InterPodAffinity"}
    assert set(table["combined"]) == set(table["priorities"][0]["scores"])


def load(world: World, farm: Farm, hooks: Sequence[Json]) -> None:
    """Pods come, and the chain changes under them."""
    world.create(*(pod(world, farm, support_daemon.fresh_name("load")) for _ in range(BATCH)))
    support_families.change(world, hooks)


def moods(world: World, farm: Farm, prefix: str, release: pathlib.Path) -> dict[str, Json]:
    """A pod for each way to fail. The one that hangs comes last: until it is back, the hook counts as failed."""
    made: dict[str, Json] = {}
    for several in (("good", "raise", "nonsense"), ("hang",)):
        if several == ("hang",):
            release.unlink()
        made |= dict(zip(several, world.create(*(moodily(world, farm, prefix, mood) for mood in several)), strict=True))
        for mood in several:
            said = support_world.is_bound if mood == "good" else told
            world.await_pod(f"{prefix}-{mood}", "a node, or a word", said)
    return made


def moodily(world: World, farm: Farm, prefix: str, mood: str) -> Json:
    """What the site's hook does with it is in its name."""
    return pod(world, farm, f"{prefix}-{mood}", {MOOD: mood})


def told(one: Json) -> bool:
    """It goes on, or says why not."""
    return support_world.is_bound(one) or bool(support_world.waits_for("HookFailed")(one))


@pytest.mark.real
@pytest.mark.parametrize("on_error", ["skip", "reject", "hold"])
def test_a_hook_that_fails_is_contained(world: World, farm: Farm, release: pathlib.Path, on_error: str) -> None:
    """It raises, answers nonsense or hangs: a pod goes on without it, or waits and says whose fault that is."""
    release.touch()
    support_families.change(world, [VELA, KUBE, PREEMPTION, moody(release, on_error)])
    made = moods(world, farm, on_error, release)
    del made["good"]
    now = {mood: world.await_pod(one["metadata"]["name"], "it", told) for mood, one in made.items()}
    assert {mood: support_world.is_bound(one) for mood, one in now.items()} == dict.fromkeys(made, on_error == "skip")
    if on_error != "skip":
        assert all("hook moody failed in phase filter" in support_families.message(one) for one in now.values())
        assert [world.placeholders(one["metadata"]["uid"]) for one in made.values()] == [[], [], []]
    # A pod that was held may be looked at again, and goes on then.
    release.touch()
    assert world.daemon.alive


@pytest.mark.real
@pytest.mark.parametrize("on_error", ["reject", "hold"])
def test_what_a_failing_hook_held_goes_on_without_it(
    world: World, farm: Farm, release: pathlib.Path, on_error: str
) -> None:
    """A pod has no job while the hook fails; a configuration without the hook is enough for its only job and a node."""
    support_families.change(world, [VELA, KUBE, PREEMPTION, moody(release, on_error)])
    held = world.create(*(moodily(world, farm, f"held-{on_error}", mood) for mood in ("raise", "nonsense")))
    for one in held:
        world.await_pod(one["metadata"]["name"], "the hook's failure", support_world.waits_for("HookFailed"))
        assert world.placeholders(one["metadata"]["uid"]) == []
    support_families.change(world, [VELA, KUBE, PREEMPTION])
    bound = world.await_pods("nodes for all", support_world.is_bound)
    failed = {one["metadata"]["uid"] for one in bound if MOOD in one["metadata"]["labels"]}
    assert failed.issuperset(support_families.uids(held))
    assert {uid: len(world.placeholders(uid)) for uid in failed} == dict.fromkeys(failed, 1)
