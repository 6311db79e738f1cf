"""The page of the live view in a real Chromium, before a daemon with two thousand workloads on both real servers."""

import contextlib
import time
from collections.abc import Iterator

import pytest
from clusterbench import processes

from localcluster.config import PROJECT
from tests import wait
from tests.browser import driver, tour
from tests.browser.driver import Browser
from tests.e2e import support_families, support_servers, support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_world import World

TEAMS = ("astro", "bio", "chem", "climate", "vision")
WORKLOADS = 2000
PICTURES = PROJECT / "build" / "browser-real"
#: Each namespace has a queue of its own.
QUEUES = {
    "name": "default",
    "placementrules": [{"name": "tag", "value": "namespace", "create": True}],
    "queues": [{"name": "root", "submitacl": "*"}],
}
#: How long the daemon is watched with and without viewers, and what a viewer may cost in a minute.
WATCHED_SECONDS, VIEWERS, MOST_SECONDS = 60.0, 3, 0.2


@pytest.fixture(scope="module")
def world(open_world: OpenWorld, kube: support_servers.Kubernetes) -> Iterator[World]:
    """A namespace for each team; more pods than the nodes have room for."""
    with support_families.granted(kube, "yunikorn"), contextlib.ExitStack() as stack:
        hooks = [{"name": "yunikorn", "options": {"configuration": {"partitions": [QUEUES]}, "ahead": WORKLOADS}}]
        made = open_world("page", hooks=hooks, web={"live_view": {"enabled": True}})
        for team in TEAMS:
            stack.enter_context(support_world.namespace(kube, f"{made.namespace}-{team}"))
        support_servers.each(range(WORKLOADS), lambda number: _create(made, number))
        yield made


def _create(world: World, number: int) -> None:
    team, scheduler = TEAMS[number % len(TEAMS)], world.daemon.scheduler
    containers = support_world.asks(cpu="8", memory="64Mi")
    one = support_world.pod(f"train-{number:04}", scheduler, annotations=support_world.FOREVER, containers=containers)
    world.kube.create(f"/api/v1/namespaces/{world.namespace}-{team}/pods", one)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all cases."""
    with driver.opened() as made:
        made.size(driver.WIDTH, driver.HEIGHT)
        yield made


@pytest.fixture(scope="module")
def home(world: World) -> str:
    """The address of the page, once the daemon knows all workloads and most of them wait in Slurm."""
    address = f"http://127.0.0.1:{world.daemon.settings['web']['port']}/ui"
    wait.until(lambda: _pending(world) >= WORKLOADS // 2, "workloads in Slurm", 120, every=1.0)
    return address


def _pending(world: World) -> int:
    return sum(one.alive for one in world.slurm.jobs_of(world.daemon.cluster_id))


@pytest.mark.real
@pytest.mark.timeout(400)
def test_the_first_paint_comes_within_a_second_on_a_real_cluster(browser: Browser, home: str) -> None:
    """All workloads are counted."""
    painted = tour.first_paint(browser, home)
    _note(f"first paint after {painted:.0f} ms")
    assert painted < 1000, painted
    browser.until("all workloads", f"{tour.COUNT} >= {WORKLOADS}")


@pytest.mark.real
@pytest.mark.timeout(200)
def test_clicks_lead_from_a_queue_to_a_node_on_a_real_cluster(browser: Browser, home: str, world: World) -> None:
    """With Slurm's own reasons."""
    tour.look(browser, home)
    tour.from_a_queue_to_a_node(browser, f"{world.namespace}-climate", PICTURES)


@pytest.mark.real
@pytest.mark.timeout(300)
def test_a_viewer_costs_the_daemon_little_on_a_real_cluster(home: str, world: World) -> None:
    """Processor time of a minute with viewers of the stream, less that of the minutes before and after it."""
    before = _spent(world)
    with contextlib.ExitStack() as stack:
        for _ in range(VIEWERS):
            stack.enter_context(driver.opened()).go(home)
        watched = _spent(world)
    # Words on two thousand pods are written for minutes: what the daemon does beside has become less meanwhile.
    alone = (before + _spent(world)) / 2
    _note(f"{watched:.2f} s of processor time in a minute with {VIEWERS} viewers, {alone:.2f} s without")
    assert (watched - alone) / VIEWERS < MOST_SECONDS


def _note(figure: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with (PICTURES / "figures.txt").open("a") as notes:
        notes.write(f"{figure}\n")


def _spent(world: World) -> float:
    """Seconds of the processor that the daemon takes meanwhile."""
    before = processes.cpu(world.daemon.pid)
    time.sleep(WATCHED_SECONDS)
    return processes.cpu(world.daemon.pid) - before
