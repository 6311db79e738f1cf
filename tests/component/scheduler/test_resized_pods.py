"""A pod whose requests change while it runs: Slurm changes no job that runs, so its owner and operators are told."""

from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import NAMESPACE

REASON = "ResizeNotCounted"


def resize(bridge: Bridge, name: str, *, cpu: str = "1", memory: str = "500Mi") -> None:
    """A user patches `pods/resize`: what the API server lets through stands in the spec."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    changes = {"spec": {"containers": [container]}}
    bridge.kube.merge(kinds.PODS, (NAMESPACE, name), changes, subresource="resize")


def told(bridge: Bridge, name: str = "a") -> list[str]:
    """What its events say of it."""
    return [message for reason, message in bridge.events(name) if reason == REASON]


def again(bridge: Bridge, **settings: Any) -> Bridge:
    """The next process in the same world."""
    return Bridge(bridge.folder, world=bridge.world, **settings)


@pytest.mark.security("neighbours")
def test_a_resize_of_a_running_pod_is_told_and_counted(bridge: Bridge) -> None:
    """When a running pod is resized in place an event says what it asks for now and what Slurm still counts."""
    job = bridge.bound("a")
    resize(bridge, "a", cpu="3")
    bridge.run(5)
    (message,) = told(bridge)
    assert message.startswith(f"Pod {NAMESPACE}/a asks for 3 cpus and 500 MiB since it was resized")
    assert f"Slurm job {job.job_id} stands for 1 cpus and 500 MiB" in message
    assert bridge.told.resizes == 1
    assert bridge.core.resizes.standing == 1
    assert not bridge.of(job).over
    assert bridge.node_of("a")
    assert bridge.slurm_calls.count(method="POST", target=f"/job/{job.job_id}") == 0


@pytest.mark.security("neighbours")
def test_nobody_is_bound_beside_a_pod_that_has_grown_beyond_what_the_node_has(bridge: Bridge) -> None:
    """A pod that was resized up counts with its new requests: no other pod is bound into that space."""
    bridge.bound("a")
    node = bridge.node_of("a")
    resize(bridge, "a", cpu="4")
    bridge.run(2)
    bridge.pod("b", spec={"nodeSelector": {"kubernetes.io/hostname": node}})
    bridge.until(lambda: bridge.condition("b")[0] == "NodeFull")
    bridge.run(20)
    assert bridge.node_of("b") == ""
    resize(bridge, "a")
    bridge.until(lambda: bridge.node_of("b"), 600)


def test_less_is_told_in_other_words(bridge: Bridge) -> None:
    """Nobody else gets what it has given back."""
    bridge.bound("a", cpu="2")
    resize(bridge, "a")
    bridge.run(5)
    (message,) = told(bridge)
    assert "Slurm keeps the difference allocated until the pod ends" in message


def test_each_change_is_told_once(bridge: Bridge) -> None:
    """Whatever else changes on the pod, and however long it lasts."""
    bridge.bound("a")
    resize(bridge, "a", cpu="3")
    bridge.run(30)
    bridge.annotate("a", comment="something else")
    bridge.run(30)
    assert len(told(bridge)) == 1
    resize(bridge, "a", cpu="3", memory="1Gi")
    bridge.run(5)
    assert len(told(bridge)) == 2
    assert bridge.told.resizes == 2


def test_a_resize_back_ends_it(bridge: Bridge) -> None:
    """Then Slurm counts what the pod asks for; the next change is news again, though it is the same."""
    bridge.bound("a")
    resize(bridge, "a", cpu="3")
    bridge.run(5)
    resize(bridge, "a")
    bridge.run(5)
    assert bridge.core.resizes.standing == 0
    assert len(told(bridge)) == 1
    resize(bridge, "a", cpu="3")
    bridge.run(5)
    assert len(told(bridge)) == 2


def test_a_restart_knows_of_it_and_says_it_once(bridge: Bridge) -> None:
    """What was counted stands on the pod since its binding."""
    bridge.bound("a")
    bridge.bound("b")
    resize(bridge, "a", cpu="3")
    bridge = again(bridge)
    bridge.run(60)
    assert len(told(bridge)) == 1
    assert bridge.core.resizes.standing == 1
    assert told(bridge, "b") == []


def test_what_changed_while_nobody_led_is_said_by_whoever_leads(bridge: Bridge) -> None:
    """A replica that does not lead writes nothing."""
    bridge.bound("a")
    bridge.leads = False
    resize(bridge, "a", cpu="3")
    bridge.hear()
    assert told(bridge) == []
    bridge.leads = True
    bridge.recover()
    bridge.run(5)
    assert len(told(bridge)) == 1


@pytest.mark.parametrize("said", [None, "", "cpu=-1m,memory=1", "cpu=1m", "x" * 5000, "cpu=1m,memory=" + "9" * 30])
def test_what_cannot_be_read_counts_for_nothing(bridge: Bridge, said: str | None) -> None:
    """Bound by an earlier version, or written by somebody: a change is noticed when it comes, and only then."""
    bridge.bound("a")
    written = {"metadata": {"annotations": {names.ANNOTATION_COUNTED: said}}}
    bridge.kube.merge(kinds.PODS, (NAMESPACE, "a"), written)
    bridge = again(bridge)
    bridge.run(5)
    assert told(bridge) == []
    resize(bridge, "a", cpu="3")
    bridge.run(5)
    assert len(told(bridge)) == 1
    resize(bridge, "a")
    bridge.run(5)
    assert bridge.core.resizes.standing == 0


def test_whoever_ends_or_goes_is_no_longer_counted(bridge: Bridge) -> None:
    """And a pod that waits may ask for what it likes: its job follows."""
    for name in ("a", "b"):
        bridge.bound(name)
        resize(bridge, name, cpu="2")
    bridge.run(2)
    assert bridge.core.resizes.standing == 2
    bridge.status("a", phase="Succeeded")
    bridge.delete("b", grace=0)
    bridge.run(5)
    assert bridge.core.resizes.standing == 0
    bridge.waiting("c")
    resize(bridge, "c", cpu="2")
    bridge.run(5)
    assert told(bridge, "c") == []


def test_pods_of_others_are_no_concern_of_ours(bridge: Bridge) -> None:
    """Only what a job of ours stands for."""
    bridge.slurm.control.pause()
    bridge.pod("a")
    bridge.run(1)
    bridge.steal("a", "n1")
    resize(bridge, "a", cpu="3")
    bridge.run(5)
    assert told(bridge) == []
