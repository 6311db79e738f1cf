"""Devices of nodes that pods and native jobs share: a container is given what Slurm allocated, and no other has it.

`make devices` hands them round a hundred times, while the daemon is killed twenty times.
"""

import pathlib
import secrets
from collections.abc import Iterator, Mapping

import pytest

from localcluster import hosts
from tests import wait
from tests.e2e import (
    support_both,
    support_gate,
    support_given,
    support_real,
    support_rounds,
    support_servers,
    support_world,
)
from tests.e2e.support_devices import Claims
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_gate import Gate
from tests.e2e.support_rounds import Rounds

pytestmark = [pytest.mark.real, pytest.mark.timeout(3600)]

#: The rights of the first to lead end soon after it is killed.
LEASE = {"lease_seconds": 3, "renew_seconds": 2, "retry_seconds": 0.5}

#: So many kills come at every order twice.
KILLS = 20


@pytest.fixture(scope="module")
def gate(cluster: Mapping[str, str], work: pathlib.Path) -> Iterator[Gate]:
    """Where the daemon is killed."""
    with support_gate.opened(cluster, work, "devices") as made:
        yield made


@pytest.fixture(scope="module")
def claims(
    cluster: Mapping[str, str], kube: support_servers.Kubernetes, open_world: OpenWorld, gate: Gate
) -> Iterator[Claims]:
    """A daemon with the hook on the real nodes, whose drivers and Slurm number the devices alike."""
    support_real.require(cluster)
    with support_both.claims(kube, open_world, "devices", leader_election=LEASE, **gate.settings) as made:
        yield made


@pytest.fixture(autouse=True)
def forgotten(claims: Claims) -> Iterator[None]:
    """No native job outlives the test that asked for it."""
    yield
    support_given.forget(claims.world)


@pytest.fixture
def rounds(claims: Claims, gate: Gate) -> Rounds:
    """Of random pods and native jobs; the names of the pods have the seed."""
    return Rounds(claims, gate, seed=secrets.randbelow(10**6))


def test_pods_are_given_what_a_native_job_leaves(claims: Claims) -> None:
    """It holds 0 and 2; two pods have 1 and 3, as Slurm says, and the next pod gets what the native job had."""
    world = claims.world
    native = _with_a_gap(claims)
    for name in ("left", "right"):
        world.create(support_given.pod(claims, name, support_rounds.TEMPLATES[1], node="real1"))
    pods = [world.await_pod(name, "a process", support_real.runs, support_real.SECONDS) for name in ("left", "right")]
    told = [support_given.by_pod(world, one["metadata"]["name"]) for one in pods]
    slurms = [support_given.slurms(world, support_world.job_id(one)) for one in pods]
    assert [one.devices for one in told] == list(map(support_given.but_cpus, slurms))
    assert sorted(map(len, (one.devices for one in told))) == [1, 1]
    assert support_given.union(told) == {("real1", "gpu-1"), ("real1", "gpu-3")}
    (late,) = world.create(support_given.pod(claims, "late", support_rounds.TEMPLATES[2], node="real1"))
    world.await_placeholder(late["metadata"]["uid"])
    world.slurm.cancel(native)
    world.await_pod("late", "a process", support_real.runs, support_real.SECONDS)
    assert support_given.by_pod(world, "late").devices == {("real1", "gpu-0"), ("real1", "gpu-2")}
    for name in ("left", "right", "late"):
        world.delete(name)
    support_rounds.await_nothing(claims)


def _with_a_gap(claims: Claims) -> int:
    """A native job that has the first and the third GPU of real1, by its own words and Slurm's."""
    world = claims.world
    on, one, two = "--nodelist=real1", support_given.whole(1), support_given.whole(2)
    first, second = (support_given.submit(world, "infinity", one, on) for _ in range(2))
    support_real.await_state(world, second, "RUNNING")
    world.slurm.cancel(first)
    support_real.await_state(world, first, "CANCELLED")
    native = support_given.submit(world, "infinity", two, on)
    wait.until(lambda: native in support_given.by_native(world), "the native job's words", support_real.SECONDS)
    world.slurm.cancel(second)
    told = support_given.by_native(world)[native].devices
    assert told == support_given.slurms(world, native)
    assert support_given.but_cpus(told) == {("real1", "gpu-0"), ("real1", "gpu-2")}
    return native


def test_pods_are_given_the_cpus_that_a_native_job_leaves(claims: Claims) -> None:
    """It holds 0 and 2; the pod has 1 and 3, as Slurm says."""
    world, on = claims.world, "--nodelist=real1"
    first, second, third = (support_given.submit(world, "infinity", on) for _ in range(3))
    support_real.await_state(world, third, "RUNNING")
    world.slurm.cancel(second)
    support_real.await_state(world, second, "CANCELLED")
    wait.until(lambda: {first, third} <= support_given.by_native(world).keys(), "native jobs", support_real.SECONDS)
    natives = [support_given.by_native(world)[job] for job in (first, third)]
    assert support_given.union(natives) == {("real1", "cpu-0"), ("real1", "cpu-2")}
    world.create(support_given.pod(claims, "left", support_rounds.CPUS[2], node="real1", cpus=2))
    pod = world.await_pod("left", "a process", support_real.runs, support_real.SECONDS)
    told = support_given.by_pod(world, "left").devices
    assert told == support_given.slurms(world, support_world.job_id(pod)) == {("real1", "cpu-1"), ("real1", "cpu-3")}
    world.delete("left")
    support_given.forget(world)
    support_rounds.await_nothing(claims)


def test_a_pod_is_given_the_slice_that_a_native_job_leaves(claims: Claims) -> None:
    """By the profile that its claim selects: of two small ones the native job has the first."""
    world, profile = claims.world, hosts.SLICES[0]
    native = support_given.submit(world, "infinity", f"--gres=gpu:{profile}:1", "--nodelist=real1")
    wait.until(lambda: native in support_given.by_native(world), "the native job's words", support_real.SECONDS)
    world.create(support_given.pod(claims, "slice", support_rounds.SLICES[profile], node="real1"))
    pod = world.await_pod("slice", "a process", support_real.runs, support_real.SECONDS)
    told = support_given.by_pod(world, "slice").devices
    assert told == support_given.but_cpus(support_given.slurms(world, support_world.job_id(pod)))
    assert told == {("real1", "mig-5")}
    assert support_given.but_cpus(support_given.by_native(world)[native].devices) == {("real1", "mig-4")}
    world.delete("slice")
    support_given.forget(world)
    support_rounds.await_nothing(claims)


def test_a_pod_has_a_part_of_the_card_that_a_native_job_leaves(claims: Claims) -> None:
    """Parts are made of whole cards: the next pod, although its part would fit beside the first, waits for a card."""
    world, half = claims.world, support_rounds.PARTS["2g"]
    native = support_given.submit(world, "infinity", "--gres=card:1", "--nodelist=real1")
    wait.until(lambda: native in support_given.by_native(world), "the native job's words", support_real.SECONDS)
    world.create(support_given.pod(claims, "half", half, node="real1"))
    pod = world.await_pod("half", "a process", support_real.runs, support_real.SECONDS)
    told, slurms = support_given.by_pod(world, "half").devices, support_given.slurms(world, support_world.job_id(pod))
    assert told == support_given.but_cpus(slurms) == {("real1", "card-1")}
    assert claims.of(pod) == [("real1", "card-1-2g-0")]
    (late,) = world.create(support_given.pod(claims, "late", support_rounds.PARTS["4g"], node="real1"))
    job = world.await_placeholder(late["metadata"]["uid"])
    assert support_real.state(world, job.job_id) == "PENDING"
    world.slurm.cancel(native)
    pod = world.await_pod("late", "a process", support_real.runs, support_real.SECONDS)
    assert support_given.by_pod(world, "late").devices == {("real1", "card-0")}
    assert claims.of(pod) == [("real1", "card-0-4g-0")]
    for name in ("half", "late"):
        world.delete(name)
    support_rounds.await_nothing(claims)


def test_no_device_is_given_twice(claims: Claims, rounds: Rounds, request: pytest.FixtureRequest) -> None:
    """Random native jobs, pods and gangs ask for more than there is, round after round."""
    for _ in range(request.config.getoption("--device-rounds")):
        rounds.begin()
        rounds.settle(but=2)
    rounds.settle()
    rounds.judge()
    support_rounds.await_nothing(claims)


def test_a_daemon_that_is_killed_gives_no_device_twice(
    claims: Claims, rounds: Rounds, request: pytest.FixtureRequest
) -> None:
    """Before and after each order of its claims' lives; none is leaked, and every pod has run with Slurm's devices."""
    kills = max(1, request.config.getoption("--device-rounds") // 5)
    for _ in range(kills):
        rounds.begin(killing=True)
        rounds.settle(but=2)
    rounds.settle()
    rounds.judge()
    assert 2 * rounds.deaths.total() > kills, f"few of {kills} kills came at their moments: {rounds.deaths}"
    assert rounds.unbound or kills < KILLS, "no kill came between the devices and the node of a pod"
    support_rounds.await_nothing(claims)
