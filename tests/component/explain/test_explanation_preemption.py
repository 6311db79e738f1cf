"""For a pod that waits for nodes the explanation names the pods that would be evicted; for others, that none would."""

import contextlib
import json
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurm_bridge import app
from slurm_bridge.demo import pocket
from slurm_bridge.explain import text
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.model import kinds
from slurm_bridge.settings.model import Settings
from tests import wait
from tests.component.explain import explained

pytestmark = pytest.mark.thorough

CONFIG = "cluster_id: east\ndefaults: {user: slurm-bridge, group: slurm-bridge}\n"

HOOK = 'hooks=[{"name": "preemption", "options": {"after_seconds": 100000}}]'


def large(name: str, node: str, priority: int, **changes: Any) -> dict[str, Any]:
    """A pod that takes a node alone."""
    amounts = {"cpu": "60", "memory": "64Mi"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": amounts}}
    selector = {"kubernetes.io/hostname": node}
    return explained.pod(name, containers=[container], nodeSelector=selector, priority=priority, **changes)


@contextlib.contextmanager
def running(path: pathlib.Path, world: pocket.PocketWorld) -> Iterator[None]:
    """A daemon, for as long as the block lasts."""
    overrides = (*world.overrides, "leader_election.enabled=false", HOOK)
    with app.daemon(app.Configuration(path=path, environ={}, overrides=overrides)) as daemon:
        thread = threading.Thread(target=daemon.run)
        thread.start()
        try:
            yield
        finally:
            daemon.stop()
            thread.join()


@pytest.fixture(scope="module")
def crowded(world: pocket.PocketWorld, tmp_path_factory: pytest.TempPathFactory) -> pocket.PocketWorld:
    """Three nodes, each taken by a pod that another waits for; a daemon has placed the first ones."""
    config = tmp_path_factory.mktemp("preemption") / "config.yaml"
    config.write_text(CONFIG)
    placed = [large("low-1", "ext001", 1), large("equal-2", "ext002", 5), large("low-3", "ext003", 1)]
    second = [
        large("high-1", "ext001", 100),
        large("late-2", "ext002", 5),
        large("meek-3", "ext003", 100, preemptionPolicy="Never"),
    ]
    with running(config, world):
        for manifests in (placed, second):
            keys = [world.cluster.create(kinds.PODS, "default", one).key for one in manifests]
            wait.until(lambda keys=keys: all(_known(world, key) for key in keys), f"all of {keys}")  # type: ignore[misc]
    return world


@pytest.fixture
def about(crowded: pocket.PocketWorld, settings: Callable[..., Settings]) -> Callable[[str], Explanation]:
    """One of these pods explained."""

    def made(name: str) -> Explanation:
        assert crowded.cluster.get(kinds.PODS, "default", name) is not None
        with app.explainer(settings(HOOK), offline=False) as explainer:
            return explainer.pod("default", name)

    return made


def _known(world: pocket.PocketWorld, key: tuple[str, str]) -> bool:
    """It is bound, or says that its job waits in Slurm for nodes."""
    pod = world.cluster.get(kinds.PODS, *key)
    said = [one.message or "" for one in pod.status.conditions if one.status == "False"] if pod is not None else []
    return pod is not None and (pod.bound or any("(Resources" in one or "(Priority" in one for one in said))


def test_a_pod_that_would_have_to_leave_is_named(about: Callable[[str], Explanation]) -> None:
    """A pod of a lower priority holds the node that it asks for."""
    found = about("high-1")
    assert found.preemption is not None
    assert (found.preemption.places, found.preemption.victims) == ({"default/high-1": "ext001"}, ("default/low-1",))
    said = text.render(found, verbose=False)
    assert "default/high-1 would be bound to ext001" in said
    assert "evicted, because of their lower priority: default/low-1" in said
    assert text.document(found, verbose=False)["preemption"]["victims"] == ["default/low-1"]


def test_no_pod_leaves_for_a_pod_of_the_same_priority(about: Callable[[str], Explanation]) -> None:
    """It waits as all do."""
    found = about("late-2")
    assert found.preemption is not None
    assert (found.preemption.places, found.preemption.victims) == ({}, ())
    assert "no pod would be evicted for it" in text.render(found, verbose=False)


def test_a_pod_that_does_not_want_it_has_no_pod_evicted(about: Callable[[str], Explanation]) -> None:
    """preemptionPolicy: Never."""
    found = about("meek-3")
    assert found.preemption is not None
    assert not found.preemption.victims


def test_of_a_pod_that_has_its_node_there_is_nothing_to_say(about: Callable[[str], Explanation]) -> None:
    """It waits for nothing."""
    assert about("low-3").preemption is None


def test_a_promise_that_stands_is_told(settings: Callable[..., Settings], world: pocket.PocketWorld) -> None:
    """The node is on the pod already."""
    pod = world.cluster.create(kinds.PODS, "default", large("promised", "nowhere", 100))
    world.cluster.patch(kinds.PODS, pod, {"status": {"nominatedNodeName": "ext004"}}, "status")
    with app.explainer(settings(HOOK), offline=False) as explainer:
        found = explainer.pod("default", "promised")
    assert "pods are being evicted for it on ext004" in text.render(found, verbose=False)


def test_without_the_hook_it_is_not_spoken_of(settings: Callable[..., Settings], world: pocket.PocketWorld) -> None:
    """It is off unless it is named."""
    world.cluster.create(kinds.PODS, "default", large("plain", "nowhere", 100))
    with app.explainer(settings(), offline=False) as explainer:
        found = explainer.pod("default", "plain")
    assert found.preemption is None
    assert json.loads(json.dumps(text.document(found, verbose=False)))["preemption"] is None
