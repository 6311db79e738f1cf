"""slurmctld, slurmrestd and the apiserver die and come back while pods go through the daemon."""

import dataclasses

import pytest

from tests import waiting
from tests.chaos.support_size import Size
from tests.e2e import support_daemon, support_foreign, support_observer, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_observer import Seen
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
        waiting.until(lambda: any(map(support_world.is_bound, world.pods())), "first bound pod")
        world.create_pods("while", third, support_world.FOREVER)
        support_servers.part(outage.part, outage.down)
        try:
            lives_on(world.daemon)
        finally:
            support_servers.part(outage.part, outage.up)
        world.create_pods("after", third, support_world.FOREVER)
        await_all_that_slurm_knows(world, observer.seen, 3 * third)
        world.finish([one for one in world.pods() if support_world.is_bound(one)])
        world.await_nothing_in_slurm()
        seen = observer.end()
    assert seen.wrong == set()
    assert foreign.now() == before


def lives_on(daemon: support_daemon.Daemon) -> None:
    """The daemon says that it cannot work, and neither ends nor wants to be restarted."""
    waiting.until(lambda: daemon.probe("readyz") != 200 or not daemon.alive, "admission that it is not ready", 60)
    assert daemon.alive, daemon.last_words()
    assert daemon.probe("livez") == 200


def await_all_that_slurm_knows(world: World, seen: Seen, count: int) -> None:
    """Every pod has a node, but for those whose running job slurmctld itself forgot when it was killed."""
    known = {str(one.owner["uid"]) for one in world.slurm.alive(world.daemon.cluster_id)}

    def settled() -> bool:
        pods = world.pods()
        forgotten = [uid for uid in seen.gone if uid not in known]
        return len(pods) + len(forgotten) >= count and all(map(support_world.is_bound, pods))

    waiting.until(
        settled, f"nodes for {count} pods; {len(seen.gone)} gone\n{world.daemon.last_words(10)}", 120, every=1.0
    )
