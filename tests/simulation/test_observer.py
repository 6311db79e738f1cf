"""The observer can fail: each promise is broken by hand, and a daemon that means well but is careless is caught."""

import dataclasses
import pathlib
from collections.abc import Callable

import pytest

from slurm_bridge.model import kinds
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.names import JobId
from tests.simulation import chaos, reference
from tests.simulation.careless_daemon import Careless
from tests.simulation.manual_daemon import Hand
from tests.simulation.observer import CLUSTER_ID, Broken
from tests.simulation.play import Play
from tests.simulation.world import NAMESPACE, World

SEED = 1


@pytest.fixture
def hand(make_world: Callable[[int], World]) -> Hand:
    """A world with one pod of ours, `a`, that waits."""
    world = make_world(SEED)
    world.slurm.world.config = dataclasses.replace(world.slurm.world.config, configuring_seconds=0.0)
    world.pod("a")
    return Hand(world)


def test_what_is_right_is_silent(hand: Hand) -> None:
    """Submit, bind, cancel by an administrator, delete: there is no complaint, and nothing is left."""
    job_id = hand.bound("a")
    hand.world.pass_time(3.0)
    assert hand.world.observer.complaints() == []
    hand.world.end_job(hand.world.slurm.control.job(job_id))
    hand.delete("a")
    hand.world.pass_time(60.0)
    assert hand.world.observer.complaints() == []


def test_i1_two_jobs_of_one_pod(hand: Hand) -> None:
    """A second living job is seen as soon as it is there."""
    hand.submit("a")
    with pytest.raises(Broken, match="I1"):
        hand.submit("a")


def test_i1_without_a_fence_two_jobs_have_to_become_one(tmp_path: pathlib.Path) -> None:
    """Where nothing but care keeps them apart, two jobs are forgiven for a while and no longer."""
    world = World(SEED, tmp_path / "token", fenced=False)
    world.pod("a")
    hand = Hand(world)
    hand.submit("a")
    hand.submit("a")
    assert [text[:2] for text in world.observer.complaints()] == ["I1", "I6"]
    world.pass_time(290.0)
    with pytest.raises(Broken, match="I1"):
        world.pass_time(30.0)


def test_i2_a_node_that_the_job_does_not_hold(hand: Hand) -> None:
    """A binding beside the allocation is seen."""
    other = {"n1", "n2"} - {hand.node_of(hand.submit("a"))}
    with pytest.raises(Broken, match="I2"):
        hand.bind("a", min(other))


def test_i2_a_job_that_does_not_run(hand: Hand) -> None:
    """A pending job holds nothing."""
    hand.submit("a", hold=True)
    with pytest.raises(Broken, match="I2"):
        hand.bind("a", "n1")


def test_i2_a_job_that_has_ended(hand: Hand) -> None:
    """What a job held a while ago is no longer its pod's."""
    job_id = hand.submit("a")
    node = hand.node_of(job_id)
    hand.world.end_job(hand.world.slurm.control.job(job_id))
    hand.world.pass_time(12.0)
    with pytest.raises(Broken, match="I2"):
        hand.bind("a", node)


def test_i2_a_node_that_is_not_there(hand: Hand) -> None:
    """Kubernetes takes a binding to a node that left; the observer does not."""
    node = hand.node_of(hand.submit("a"))
    hand.world.kube.delete(kinds.NODES, ("", node))
    hand.world.pass_time(50.0)
    with pytest.raises(Broken, match="I2"):
        hand.bind("a", node)


def test_i3_a_job_that_is_too_small(hand: Hand) -> None:
    """A pod may not ask for more than its job holds."""
    hand.world.pod("wide", cpu="2")
    job_id = hand.submit("wide")
    with pytest.raises(Broken, match="I3"):
        hand.bind("wide", hand.node_of(job_id))


def test_i3_a_node_that_is_full(hand: Hand) -> None:
    """Slurm does not see a foreign pod; the daemon has to when it binds."""
    hand.world.pod("wide", cpu="4")
    others = tuple(sorted(hand.world.slurm.world.nodes.keys() - {"n3"}))
    job_id = hand.submit("wide", cpus=4, excluded_nodes=others)
    assert hand.node_of(job_id) == "n3"
    with pytest.raises(Broken, match="I3"):
        hand.bind("wide", "n3")


def test_i4_a_job_without_its_pod(hand: Hand) -> None:
    """A job whose pod is gone is a complaint until it is ended."""
    job_id = hand.submit("a")
    hand.world.delete_pod("a")
    assert [text[:2] for text in hand.world.observer.complaints()] == ["I4"]
    hand.slurm.cancel(job_id)
    assert hand.world.observer.complaints() == []


@pytest.mark.parametrize("name", ["native", "brace", "other"])
def test_i5_a_foreign_job_is_ended(hand: Hand, name: str) -> None:
    """Each of the foreign jobs is watched."""
    job_id = next(job.job_id for job in hand.world.slurm.world.jobs.values() if job.ask.name == name)
    with pytest.raises(Broken, match="I5"):
        hand.slurm.cancel(JobId(job_id))


def test_i5_a_foreign_job_is_changed(hand: Hand) -> None:
    """So is what they ask for."""
    job_id = next(job.job_id for job in hand.world.slurm.world.jobs.values() if job.ask.name == "brace")
    owner = Owner(cluster=CLUSTER_ID, kind="Pod", namespace=NAMESPACE, name="a", uid="u")
    with pytest.raises(Broken, match="I5"):
        hand.slurm.note(JobId(job_id), owner)


def test_i5_a_late_order_counts_too(hand: Hand) -> None:
    """An order that a hung slurmctld obeys when it wakes up is still the daemon's."""
    job_id = next(job.job_id for job in hand.world.slurm.world.jobs.values() if job.ask.name == "brace")
    hand.slurm.ping()
    hand.world.slurm.control.hang()
    hand.slurm.cancel(JobId(job_id))
    with pytest.raises(Broken, match="I5"):
        hand.world.wake_slurm()


def test_i5_a_foreign_pod_is_changed(hand: Hand) -> None:
    """Pods of other schedulers are not touched."""
    with pytest.raises(Broken, match="I5"):
        hand.delete("foreign")


def test_i5_a_node_is_changed(hand: Hand) -> None:
    """Nor are nodes."""
    node = hand.cluster.get(kinds.NODES, "", "n1")
    assert node is not None
    with pytest.raises(Broken, match="I5"):
        hand.cluster.patch(kinds.NODES, node, {"spec": {"unschedulable": True}})


def test_i6_a_pod_without_a_node(hand: Hand) -> None:
    """A pod that waits is a complaint, until it has a node."""
    assert [text[:2] for text in hand.world.observer.complaints()] == ["I6"]
    hand.bound("a")
    assert hand.world.observer.complaints() == []


def test_i6_a_pod_whose_job_is_gone(hand: Hand) -> None:
    """A bound pod without a job sits on resources that Slurm may give to others."""
    job_id = hand.bound("a")
    hand.slurm.cancel(job_id)
    assert [text[:2] for text in hand.world.observer.complaints()] == ["I6"]


def test_i7_a_pod_whose_job_lives(hand: Hand) -> None:
    """A pod is not deleted while its job lives."""
    hand.bound("a")
    with pytest.raises(Broken, match="I7"):
        hand.delete("a")


def test_i7_a_pod_that_waits(hand: Hand) -> None:
    """A pod that has no node yet is not deleted, whatever became of its job."""
    hand.slurm.cancel(hand.submit("a"))
    with pytest.raises(Broken, match="I7"):
        hand.delete("a")


def test_i7_another_incarnation(hand: Hand) -> None:
    """That the earlier pod of this name had a job which ended says nothing of the new one."""
    hand.slurm.cancel(hand.bound("a"))
    hand.world.delete_pod("a", 0)
    hand.world.pass_time(1.0)
    hand.world.pod("a")
    hand.bound("a")
    with pytest.raises(Broken, match="I7"):
        hand.delete("a")


def test_a_careless_daemon_is_caught_in_calm_weather(make_world: Callable[[int], World]) -> None:
    """It believes Slurm about room that a foreign pod has taken."""
    with pytest.raises(Broken, match="I3"):
        reference.play(Play(make_world(SEED), Careless))


def test_a_careless_daemon_is_caught_in_bad_weather(tmp_path: pathlib.Path) -> None:
    """It submits again when an answer is missing, forgets its jobs when it dies, and binds to whatever it once saw."""
    caught = set()
    for seed in range(1, 25):
        try:
            chaos.Chaos(Play(World(seed, tmp_path / "token"), Careless)).run()
        except Broken as broken:
            caught.add(str(broken)[:2])
    assert len(caught) >= 3
    assert "I1" in caught
