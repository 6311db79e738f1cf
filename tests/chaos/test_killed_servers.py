"""slurmctld, slurmrestd and the apiserver die and come back while pods go through the daemon."""

import dataclasses
from collections.abc import Sequence

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.chaos.support_size import Size
from tests.e2e import support_daemon, support_foreign, support_observer, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outage:
    """Which server, how it goes away and comes back; a `long` one is left out of the short form."""

    part: str
    down: str
    up: str = "start"
    long: bool = False


OUTAGES = {
    "slurmctld-killed": Outage(part="slurmctld", down="kill"),
    "slurmctld-hangs": Outage(part="slurmctld", down="pause", up="resume", long=True),
    "slurmrestd-stopped": Outage(part="slurmrestd", down="stop"),
    "apiserver-killed": Outage(part="kube-apiserver", down="kill"),
}


@pytest.mark.real
@pytest.mark.disruptive
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", OUTAGES)
def test_a_server_goes_and_comes_back(
    open_world: OpenWorld, foreign: support_foreign.Foreign, size: Size, name: str
) -> None:
    """Every pod is bound in the end, none was deleted while its job lived, and jobs of others are as they were."""
    outage, before = OUTAGES[name], foreign.now()
    if outage.long and size.short:
        pytest.skip("--short leaves out what takes long")
    foreign.await_saved()
    world = open_world(name.split("-", maxsplit=1)[0])
    with support_observer.observing(world) as observer:
        third = size.pods_per_outage // 3
        world.create_pods("before", third, support_world.FOREVER)
        wait.until(lambda: any(map(support_world.is_bound, world.pods())), "first bound pod")
        world.create_pods("while", third, support_world.FOREVER)
        support_servers.part(outage.part, outage.down)
        try:
            lives_on(world.daemon)
        finally:
            support_servers.part(outage.part, outage.up)
        world.create_pods("after", third, support_world.FOREVER)
        pods = world.await_bound(3 * third, seconds=120)
        await_jobs_of(world, pods)
        world.finish(pods)
        world.await_nothing_in_slurm()
        seen = observer.end()
    assert seen.wrong == set()
    assert not seen.gone
    assert foreign.now() == before


def lives_on(daemon: support_daemon.Daemon) -> None:
    """The daemon says that it cannot work, and neither ends nor wants to be restarted."""
    wait.until(lambda: daemon.probe("readyz") != 200 or not daemon.alive, "admission that it is not ready", 60)
    assert daemon.alive, daemon.last_words()
    assert daemon.probe("livez") == 200


def await_jobs_of(world: World, pods: Sequence[Json]) -> None:
    """Until every pod has a job that holds its node: slurmctld forgets what it had not saved when it was killed."""
    wanted = {one["metadata"]["uid"]: one["metadata"]["annotations"][names.ANNOTATION_SLURM_NODE] for one in pods}
    found: dict[str, str] = {}

    def all_hold() -> bool:
        running = [one for one in world.slurm.alive(world.daemon.cluster_id) if "RUNNING" in one.states]
        found.clear()
        found.update({str(one.owner["uid"]): one.nodes for one in running})
        return wanted.items() <= found.items()

    try:
        wait.until(all_hold, "job for every bound pod", 60, every=1.0)
    except AssertionError as error:
        late = [support_world.told(one) for one in pods if one["metadata"]["uid"] not in found]
        words = [f"{error}: {len(late)} without", *late[:5], world.daemon.last_words()]
        raise AssertionError("\n".join(words)) from error
