"""A daemon with queues, as it runs: the core has its own threads, and the HTTP server shows the tree."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from slurm_bridge.demo import pocket
from slurm_bridge.model import kinds
from tests import wait
from tests.component.daemon.running import NAMESPACE, Running, configuration, running
from tests.component.families.yunikorn.yunikorn_scenes import document, queue

PODS = ("one", "two", "three", "four")


@pytest.fixture
def world() -> Iterator[pocket.PocketWorld]:
    """Both servers, with two nodes."""
    with pocket.world(nodes=2) as made:
        yield made


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """Where the configuration is."""
    return tmp_path / "config.json"


def hooks(most: int) -> list[dict[str, Any]]:
    """All workloads go into one queue of so many cpus."""
    only = queue("a", resources={"max": {"vcore": str(most)}})
    given = document(only, rules=[{"name": "fixed", "value": "root.a"}])
    return [{"name": "yunikorn", "options": {"configuration": given}}]


def seen(daemon: Running) -> tuple[int, int]:
    """How many run, and how many wait."""
    status, body = daemon.get("/queues")
    shown = json.loads(body)["queues"] if status == 200 else {}
    return shown.get("running", 0), shown.get("waiting", 0)


def bound(daemon: Running) -> list[str]:
    """Those that have nodes."""
    return [name for name in PODS if daemon.bound(name)]


def test_workloads_wait_in_their_queue_and_follow(world: pocket.PocketWorld, path: pathlib.Path) -> None:
    """When another one goes, and when the file says that there may be more; the same daemon all the time."""
    with running(world, path, hooks=hooks(2)) as daemon:
        daemon.until_ready()
        for name in PODS:
            daemon.pod(name)
        wait.until(lambda: seen(daemon) == (2, 2), "two that run and two that wait", 20)
        wait.until(lambda: len(bound(daemon)) == 2, "two nodes", 20)
        world.kube.delete(kinds.PODS, (NAMESPACE, bound(daemon)[0]), grace=0)
        wait.until(lambda: seen(daemon) == (2, 1), "the next one", 20)
        assert 'slurm_bridge_queue_running{queue="root.a"} 2.0' in daemon.get("/metrics")[1]
        configuration(world, path, hooks=hooks(3))
        wait.until(lambda: seen(daemon) == (3, 0), "all of them", 20)


def test_what_runs_is_counted_by_the_next_process(world: pocket.PocketWorld, path: pathlib.Path) -> None:
    """Which knows nothing but pods and placeholders."""
    with running(world, path, hooks=hooks(1)) as daemon:
        daemon.until_ready()
        daemon.pod("one")
        wait.until(lambda: daemon.bound("one"), "a node", 20)
    with running(world, path, hooks=hooks(1)) as daemon:
        daemon.until_ready()
        daemon.pod("two")
        wait.until(lambda: seen(daemon) == (1, 1), "one that waits behind it", 20)
