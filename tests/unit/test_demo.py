"""The walk by the two ports alone gives up loudly instead of going on without an answer."""

import threading

import pytest

from slurm_bridge import app, demo, errors
from slurm_bridge.model import job, kinds, meta
from slurm_bridge.model.pod import Pod
from slurm_bridge.sim import faults


def pod(name: str = "a") -> meta.Manifest:
    """A pod that never ends by itself."""
    spec = {"schedulerName": "s", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def walk(world: app.PocketWorld, **changes: float) -> demo.Walk:
    """A walk through this world."""
    return demo.Walk(cluster=world.cluster, slurm=world.slurm, clock=world.clock, stop=threading.Event(), **changes)  # type: ignore[arg-type]


def created(world: app.PocketWorld) -> Pod:
    """One pod of this world."""
    return world.cluster.create(kinds.PODS, "default", pod())


def test_a_lost_answer_ends_the_walk_and_not_in_a_second_job() -> None:
    """Unknown is not tried again."""
    with app.pocket_world(nodes=1) as world:
        world.slurm_calls.plan(faults.Drop(), method="POST", target=r"/job/submit")
        with pytest.raises(errors.TryLater, match=r"default/a.*Unknown"):
            list(walk(world).run([created(world)]))
        assert len(world.slurm.jobs()) == 1


def test_a_pod_that_does_not_end_is_given_up_after_the_deadline() -> None:
    """The message says what was waited for."""
    with app.pocket_world(nodes=1) as world, pytest.raises(errors.TryLater, match="the pods to end"):
        list(walk(world, deadline=0.5).run([created(world)]))


def test_a_deleted_pod_frees_its_placeholder() -> None:
    """Gone is an end like any other."""
    with app.pocket_world(nodes=1) as world:
        one = created(world)
        bound = [step for step in walk(world).place([one]) if step.what == "bound"]
        world.cluster.delete(kinds.PODS, one, grace_seconds=0)
        assert [step.what for step in walk(world).finish(bound)] == ["gone"]
        assert world.slurm.states()[bound[0].job_id].phase is job.Phase.ENDED


def test_a_stop_ends_the_waiting() -> None:
    """Nothing sleeps through Ctrl-C."""
    with app.pocket_world(nodes=1) as world:
        one = walk(world)
        one.stop.set()
        with pytest.raises(errors.TryLater, match="gave up"):
            list(one.run([created(world)]))
