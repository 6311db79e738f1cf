"""Daemons with parts and threads in one pocket world: each serves its namespaces, which move while pods run."""

import contextlib
import itertools
import pathlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from slurm_bridge import app, cli
from slurm_bridge.demo import pocket
from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from tests import wait
from tests.component.daemon.running import Running, configuration, running

EVERY = ["a", "b"]
LEASE = {
    "enabled": True,
    "namespace": "default",
    "lease_seconds": 3,
    "renew_seconds": 2,
    "retry_seconds": 0.2,
}


@pytest.fixture
def world() -> Iterator[pocket.PocketWorld]:
    """Both servers, with four nodes and a namespace for each part."""
    with pocket.world(nodes=4) as made:
        for part in EVERY:
            labels = {names.LABEL_PART: part}
            made.kube.create(kinds.NAMESPACES, {"metadata": {"name": f"team-{part}", "labels": labels}})
        yield made


def of(own: str, **values: Any) -> dict[str, Any]:
    """The settings of this part's daemon."""
    return {"leader_election": LEASE, "parts": {"names": EVERY, "own": own}, **values}


def create(world: pocket.PocketWorld, namespace: str, name: str) -> None:
    """A user creates a pod there."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "100Mi"}}}
    spec = {"schedulerName": names.SCHEDULER_NAME, "containers": [container]}
    metadata = {"name": name, "namespace": namespace, "annotations": {"kwok.local/outcome": "run"}}
    world.kube.create(kinds.PODS, {"metadata": metadata, "spec": spec})


def is_bound(world: pocket.PocketWorld, namespace: str, name: str) -> bool:
    """Whether it has a node."""
    found = world.kube.get(kinds.PODS, namespace, name)
    return bool(found and found["spec"].get("nodeName"))


def until_bound(world: pocket.PocketWorld, namespace: str, name: str) -> None:
    """Wait for its node."""
    wait.until(lambda: is_bound(world, namespace, name), f"node of {namespace}/{name}", 30, every=0.05)


def move(world: pocket.PocketWorld, namespace: str, part: str) -> None:
    """An administrator gives a namespace to another part."""
    world.kube.merge(kinds.NAMESPACES, ("", namespace), {"metadata": {"labels": {names.LABEL_PART: part}}})


def holder(world: pocket.PocketWorld, namespace: str) -> str:
    """The part that the record names."""
    found = world.kube.get(kinds.LEASES, "default", f"slurm-bridge.namespace.{namespace}")
    return str(found["spec"].get("holderIdentity", "")) if found else ""


def counted(one: Running) -> int:
    """The pods that a daemon counts on nodes, of all parts."""
    return sum(len(node.pods) for node in one.daemon.core.context.keeper.snapshot().nodes.values())


def living(world: pocket.PocketWorld) -> int:
    """Jobs that are not over."""
    return sum(not job.over for job in world.slurmctld.world.jobs.values())


@contextlib.contextmanager
def both(world: pocket.PocketWorld, folder: pathlib.Path) -> Iterator[tuple[Running, Running]]:
    """A daemon for each part."""
    with running(world, folder / "a.json", **of("a")) as first, running(world, folder / "b.json", **of("b")) as second:
        first.until_ready()
        second.until_ready()
        yield first, second


def test_each_part_has_its_namespaces_and_gives_them_away(world: pocket.PocketWorld, tmp_path: pathlib.Path) -> None:
    """Pods that run keep their jobs when their namespace moves, and the new daemon ends their jobs with them."""
    with both(world, tmp_path) as (first, second):
        create(world, "team-a", "one")
        create(world, "team-b", "two")
        until_bound(world, "team-a", "one")
        until_bound(world, "team-b", "two")
        assert (holder(world, "team-a"), holder(world, "team-b")) == ("a", "b")
        assert [one.metadata.name for one in pods_of(first)] == ["one"]
        assert [one.metadata.name for one in pods_of(second)] == ["two"]
        wait.until(lambda: counted(second) == 2, "count of all pods with nodes", 30, every=0.05)

        move(world, "team-a", "b")
        wait.until(lambda: holder(world, "team-a") == "b", "hand over", 30, every=0.05)
        create(world, "team-a", "three")
        until_bound(world, "team-a", "three")
        assert {one.metadata.name for one in pods_of(second)} == {"one", "two", "three"}
        assert pods_of(first) == []
        assert first.daemon.core.context.table.all() == ()
        assert living(world) == 3
        assert 'slurm_bridge_part_info{part="b"} 1.0' in second.get("/metrics")[1]
        assert 'slurm_bridge_part_namespaces{state="served"} 2.0' in second.get("/metrics")[1]
        world.kube.delete(kinds.PODS, ("team-a", "one"), grace=0)
        wait.until(lambda: living(world) == 2, "end of its job", 30, every=0.05)


def pods_of(daemon: Running) -> list[Any]:
    """What it works for."""
    index = daemon.daemon.core.pod_index
    return [pod for uid in index.uids() if (pod := index.get(uid)) is not None]


def test_a_part_without_a_daemon_waits_and_the_other_goes_on(world: pocket.PocketWorld, tmp_path: pathlib.Path) -> None:
    """Nothing of it is ended or bound by the other; its next daemon knows its jobs."""
    with running(world, tmp_path / "b.json", **of("b")) as other:
        with running(world, tmp_path / "a.json", **of("a")) as first:
            first.until_ready()
            create(world, "team-a", "one")
            until_bound(world, "team-a", "one")
        other.until_ready()
        create(world, "team-a", "late")
        create(world, "team-b", "two")
        until_bound(world, "team-b", "two")
        other.daemon.core.context.mirror.sweep()
        assert not is_bound(world, "team-a", "late")
        assert living(world) == 2
        with running(world, tmp_path / "a.json", **of("a")) as again:
            again.until_ready()
            until_bound(world, "team-a", "late")
            assert living(world) == 3
            jobs = again.daemon.core.context.table.alive()
            assert {one.owner.name for one in jobs} == {"one", "late"}


def test_a_namespace_is_not_handed_over_while_a_call_for_it_is_under_way(
    world: pocket.PocketWorld, tmp_path: pathlib.Path
) -> None:
    """The call may still make a job: the other daemon would make a second one."""
    with both(world, tmp_path) as (first, second):
        create(world, "team-a", "one")
        until_bound(world, "team-a", "one")
        world.slurm_calls.plan(faults.Hang(acted=True), method="POST", target="job/submit")
        create(world, "team-a", "slow")
        wait.until(lambda: living(world) == 2, "its job", 20, every=0.05)
        move(world, "team-a", "b")
        create(world, "team-b", "two")
        until_bound(world, "team-b", "two")
        wait.until(lambda: 'state="leaving"} 1.0' in first.get("/metrics")[1], "a hand over", 20, every=0.05)
        assert holder(world, "team-a") == "a"
        assert 'state="awaited"} 1.0' in second.get("/metrics")[1]
        world.slurm_calls.release()
        wait.until(lambda: holder(world, "team-a") == "b", "hand over", 30, every=0.05)
        until_bound(world, "team-a", "slow")
        assert living(world) == 3


def test_no_pod_of_a_namespace_gets_a_job_before_the_jobs_that_it_has_are_known(
    world: pocket.PocketWorld, tmp_path: pathlib.Path
) -> None:
    """Slurm does not answer to the daemon that takes it up: what it has already waits for that."""
    with both(world, tmp_path) as (first, second):
        create(world, "team-a", "one")
        until_bound(world, "team-a", "one")
        create(world, "team-b", "two")
        until_bound(world, "team-b", "two")
        world.slurm_calls.plan(faults.Answer(502, b"", "text/html"), times=10_000)
        move(world, "team-a", "b")
        wait.until(lambda: holder(world, "team-a") == "b", "hand over", 30, every=0.05)
        create(world, "team-a", "late")
        wait.until(lambda: 'state="claimed"} 1.0' in second.get("/metrics")[1], "a claim", 20, every=0.05)
        assert first.daemon.core.pod_index.roots() == ()
        assert {one.metadata.name for one in pods_of(second)} == {"two"}
        world.slurm_calls.clear()
        until_bound(world, "team-a", "late")
        assert living(world) == 3


def test_hooks_that_count_for_the_whole_cluster_are_refused_with_parts(
    world: pocket.PocketWorld, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each daemon would grant the whole of a quota."""
    partitions = [{"name": "default", "queues": [{"name": "root", "submitacl": "*"}]}]
    hooks = [{"name": "yunikorn", "options": {"configuration": {"partitions": partitions}}}]
    settled = configuration(world, tmp_path / "a.json", **of("a", hooks=hooks))
    flags = [word for one in settled.overrides for word in ("--set", one)]
    assert cli.main(["check-config", "--config", str(tmp_path / "a.json"), *flags]) != 0
    said = capsys.readouterr()
    assert "yunikorn: counts what all workloads use" in said.err + said.out


def test_one_daemon_of_all_parts_looks_after_nodes(world: pocket.PocketWorld, tmp_path: pathlib.Path) -> None:
    """The one that holds the lease of all parts; the other may not change a node."""
    with both(world, tmp_path) as (first, second):

        def appointed() -> list[bool]:
            return [one.daemon._may_change_nodes() for one in (first, second)]

        wait.until(lambda: sorted(appointed()) == [False, True], "an appointment", 20, every=0.05)
        lease = world.kube.get(kinds.LEASES, "default", "slurm-bridge")
        assert lease is not None
        assert lease["metadata"]["annotations"] == {names.ANNOTATION_PARTS: "true"}


def test_a_replica_that_stands_by_does_not_look_after_nodes(world: pocket.PocketWorld, tmp_path: pathlib.Path) -> None:
    """Though it was there first: it would do nothing, and no other daemon could."""
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600, "renewTime": "2026-11-29T00:00:00.000000Z"}
    world.kube.create(kinds.LEASES, {"metadata": {"name": "slurm-bridge.part.b", "namespace": "default"}, "spec": spec})
    with running(world, tmp_path / "b.json", **of("b")) as standby:
        wait.until(lambda: standby.daemon.election.holder == "another", "a look at the lease", 20, every=0.05)
        with running(world, tmp_path / "a.json", **of("a")) as first:
            first.until_ready()
            wait.until(first.daemon._may_change_nodes, "an appointment", 20, every=0.05)
            assert not standby.daemon._is_appointed()


def test_a_daemon_that_cannot_begin_does_not_look_after_nodes(
    world: pocket.PocketWorld, tmp_path: pathlib.Path
) -> None:
    """It leads its part and has marked the lease of all parts, but Slurm does not answer to it."""
    with running(world, tmp_path / "b.json", over=("slurm.url=http://127.0.0.1:9",), **of("b")) as stuck:
        wait.until(lambda: is_marked(world) and stuck.daemon._leads(), "its mark", 20, every=0.05)
        with running(world, tmp_path / "a.json", **of("a")) as first:
            first.until_ready()
            wait.until(first.daemon._may_change_nodes, "an appointment", 20, every=0.05)
            assert stuck.daemon._leads()
            assert not stuck.daemon._is_appointed()


def is_marked(world: pocket.PocketWorld) -> bool:
    """Daemons with parts have used the lease of a daemon without parts."""
    lease = world.kube.get(kinds.LEASES, "default", "slurm-bridge")
    return lease is not None and names.ANNOTATION_PARTS in lease["metadata"].get("annotations", {})


def test_namespaces_that_come_one_by_one_cost_a_slow_slurm_few_lists_of_jobs(
    world: pocket.PocketWorld, tmp_path: pathlib.Path
) -> None:
    """After each list the next one waits for four times as long as it took."""
    never, lists = threading.Event(), list[tuple[float, float]]()

    def take_long() -> None:
        began = time.monotonic()
        never.wait(0.4)
        lists.append((began, time.monotonic()))

    with running(world, tmp_path / "a.json", **of("a")) as daemon:
        daemon.until_ready()
        # As long as no job of ours lives, the daemon lists for itself.
        create(world, "team-a", "one")
        until_bound(world, "team-a", "one")
        world.slurm_calls.plan(faults.Meanwhile(take_long), target=r"/jobs/(\?|$)", times=10_000)
        for number in range(4):
            labels = {names.LABEL_PART: "a"}
            world.kube.create(kinds.NAMESPACES, {"metadata": {"name": f"late-{number}", "labels": labels}})
            create(world, f"late-{number}", "one")
            until_bound(world, f"late-{number}", "one")
        assert len(lists) == 4
        pauses = [later[0] - earlier[1] for earlier, later in itertools.pairwise(lists)]
        assert min(pauses) >= 4 * 0.4


def test_explain_says_which_part_a_pod_belongs_to(world: pocket.PocketWorld, tmp_path: pathlib.Path) -> None:
    """And that this configuration's daemon leaves it alone."""
    create(world, "team-b", "two")
    settings = configuration(world, tmp_path / "a.json", **of("a")).load()
    with app.explainer(settings, offline=False) as explaining:
        (note,) = (one for one in explaining.pod("team-b", "two").notes if "part" in one)
    assert note == (
        "namespace team-b belongs to part b (by label scheduler.slinky.slurm.net/part); "
        "this configuration is of part a, whose daemon leaves its pods alone"
    )
