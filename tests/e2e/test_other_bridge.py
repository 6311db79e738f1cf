"""Another bridge works on the same Slurm and the same Kubernetes: nothing of either side is harmed."""

import json
from collections.abc import Iterator

import pytest

from slurm_bridge.model import names
from tests import wait
from tests.e2e import support_farm, support_foreign, support_other_bridge, support_servers, support_world
from tests.e2e.support_farm import Farm
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_world import World

#: The sweep cancels jobs of every cluster, as the real one does.
pytestmark = [pytest.mark.real, pytest.mark.disruptive, pytest.mark.timeout(300)]

OURS = 6
THEIRS = 3
#: Longer than `ends.settle_seconds`, after which pods are ended whose job is gone.
TURNS = 9


@pytest.fixture(scope="module")
def farm(kube: support_servers.Kubernetes, slurm: support_servers.Slurm) -> Iterator[Farm]:
    """Machines of this module alone."""
    with support_farm.built(kube, slurm, *[0] * THEIRS) as made:
        yield made


@pytest.fixture(scope="module")
def world(farm: Farm, open_world: OpenWorld) -> World:
    """A daemon that looks for strays often."""
    assert farm.nodes
    return open_world("beside", mirror={"sweep_seconds": 5})


def former(world: World) -> int:
    """A job with a record as earlier versions wrote it: what the sweep takes for a job of its own without pods."""
    owner = {"cluster": "somebody-else", "kind": "Pod", "namespace": "default", "name": "theirs", "uid": "u-1"}
    record = json.dumps({"mark": "slurm-bridge/1", "owner": owner})
    return world.slurm.submit({**support_foreign.EXTERNAL, "name": "former", "admin_comment": record})


@pytest.mark.security("neighbours")
def test_two_bridges_on_one_slurm_and_one_kubernetes_harm_nothing_of_each_other(world: World, farm: Farm) -> None:
    """Beside another bridge and its sweep, pods and jobs of both continue to run, also after a restart of ours."""
    waits = {names.JOB_PREFIX + "partition": "closed", **support_world.FOREVER}
    with support_other_bridge.theirs(world, farm, THEIRS) as theirs:
        before = theirs.now()
        with support_other_bridge.Sweep(world.slurm, world.kube) as sweep:
            bait = former(world)
            wait.until(lambda: bait in sweep.cancelled, "a sweep that works")
            ours = world.create_pods("ours", OURS, support_world.FOREVER)
            (waiter,) = world.create(support_world.pod("waits", world.daemon.scheduler, annotations=waits))
            pending = world.await_placeholder(waiter["metadata"]["uid"]).job_id
            uids = [one["metadata"]["uid"] for one in ours]
            for one in ours:
                world.await_pod(one["metadata"]["name"], "a node", support_world.is_bound)
            jobs = world.await_placeholders(uids)
            sweep.await_turns(TURNS)
            world.daemon.kill()
            world.daemon.start()
            world.daemon.await_ready()
            sweep.await_turns(TURNS)
            assert jobs.items() <= world.await_placeholders(uids).items()
            assert world.await_placeholder(waiter["metadata"]["uid"]).job_id == pending
            assert theirs.now() == before
            for name in theirs.jobs:
                pod = world.pod(name)
                assert pod is not None
                assert "SlurmJobNotOurs" in world.reasons(pod["metadata"]["uid"])
            world.finish(ours)
            world.delete("waits")
            for one in ours:
                world.await_pod(one["metadata"]["name"], "success", support_world.has_succeeded)
            world.await_nothing_in_slurm()
            sweep.await_turns(1)
            assert theirs.now() == before
            assert sweep.cancelled == {bait}
