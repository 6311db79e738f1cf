"""Preemption for and of groups, for generic resources and whole nodes, with extenders, and within its limits."""

import pathlib
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.hooks.services import NotAnswered, Target
from slurm_bridge.model import names
from slurm_bridge.scheduler.eviction.cases import PreemptionStage
from slurm_bridge.sim import faults
from tests.component.scheduler.preemptive_bridge import (
    AFTER,
    EXTENDER,
    ends_of,
    full,
    go,
    important,
    preemptive,
    promised,
    until,
)
from tests.component.scheduler.whole_core import Bridge
from tests.simulation import fleet
from tests.simulation.world import NAMESPACE, World


def test_a_group_goes_as_a_whole(bridge: Bridge) -> None:
    """Where one of its members is in the way all are evicted, and its job is ended."""
    preemptive(bridge)
    labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    for name in ("g-0", "g-1"):
        important(bridge, name, 5, labels=labels)
    bridge.until(lambda: bridge.node_of("g-0") and bridge.node_of("g-1"))
    important(bridge, "mid", 10)
    bridge.until(lambda: bridge.node_of("mid"))
    important(bridge, "high")
    until(bridge, lambda: bridge.node_of("high"))
    assert ends_of(bridge, ["g-0", "g-1", "mid"]) == [True, True, False]
    (job,) = bridge.jobs(f"Group:{NAMESPACE}/g")
    assert job.over


def test_a_pod_that_replaces_a_member_meanwhile_leaves_too(bridge: Bridge) -> None:
    """It took the place of one that left, on what the group's job still held for the other, which a budget kept."""
    preemptive(bridge)
    labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    keep = {names.ANNOTATION_MEMBER_LOST: "keep"}
    for name in ("g-0", "g-1"):
        important(bridge, name, 5, labels=labels, annotations=keep)
    bridge.until(lambda: bridge.node_of("g-0") and bridge.node_of("g-1"))
    important(bridge, "mid", 10)
    bridge.until(lambda: bridge.node_of("mid"))
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", nth=2, times=40)
    important(bridge, "high")
    until(bridge, lambda: not bridge.exists("g-0"))
    important(bridge, "g-2", 5, labels=labels, annotations=keep)
    until(bridge, lambda: bridge.node_of("g-2"), 15)
    until(bridge, lambda: bridge.node_of("high"))
    assert ends_of(bridge, ["g-1", "g-2", "mid"]) == [True, True, False]
    assert all(job.over for job in bridge.jobs(f"Group:{NAMESPACE}/g"))
    assert any(reason == "Preempted" for reason, _ in bridge.events("g-2"))


def test_a_single_pod_is_rather_taken_than_a_group(bridge: Bridge) -> None:
    """Of equal priorities the fewest go, those on other nodes included."""
    preemptive(bridge)
    labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    for name in ("g-0", "g-1"):
        important(bridge, name, 5, labels=labels)
    bridge.until(lambda: bridge.node_of("g-0") and bridge.node_of("g-1"))
    important(bridge, "alone", 5)
    bridge.until(lambda: bridge.node_of("alone"))
    important(bridge, "high")
    until(bridge, lambda: bridge.node_of("high"))
    assert ends_of(bridge, ["g-0", "g-1", "alone"]) == [False, False, True]


def test_a_group_gets_all_its_nodes(bridge: Bridge) -> None:
    """As many leave as it needs, and no more."""
    preemptive(bridge)
    low = full(bridge, 10, 5, 5)
    labels = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    for name in ("g-0", "g-1"):
        important(bridge, name, labels=labels)
    until(bridge, lambda: bridge.node_of("g-0") and bridge.node_of("g-1"))
    assert ends_of(bridge, low) == [False, True, True]


def gpus(count: int) -> dict[str, Any]:
    """The spec of a pod that asks for so many, and for one cpu."""
    amounts = {"cpu": "1", "memory": "500Mi", "nvidia.com/gpu": str(count)}
    return {"containers": [{"name": "main", "image": "none", "resources": {"requests": amounts, "limits": amounts}}]}


@pytest.fixture
def garage(tmp_path: pathlib.Path) -> Bridge:
    """Four GPUs on one of two machines, of which a pod of little importance has three."""
    bridge = Bridge(tmp_path, world=World(1, tmp_path / "token", fleet=fleet.hall(3)))
    preemptive(bridge)
    important(bridge, "low", 5, spec=gpus(3))
    bridge.until(lambda: bridge.node_of("low") == "n01")
    return bridge


def test_generic_resources_are_made_room_for(garage: Bridge) -> None:
    """Cpus there are enough."""
    garage.world.cordon("n03", on=True)
    garage.run(3)
    important(garage, "high", spec=gpus(2))
    until(garage, lambda: garage.node_of("high") == "n01")
    assert garage.leaving("low")


def test_what_jobs_of_others_hold_cannot_be_cleared(garage: Bridge) -> None:
    """Kubernetes knows nothing of them: it would think that four GPUs come free."""
    garage.world.submit("native", tres_per_node="gres/gpu:1", required_nodes="n01")
    garage.world.cordon("n03", on=True)
    garage.run(40)
    important(garage, "high", spec=gpus(4))
    go(garage, 3 * AFTER)
    assert not garage.leaving("low")


ALONE = {names.JOB_PREFIX + "exclusive": "true"}


def test_a_pod_that_wants_a_node_alone_has_all_others_leave(bridge: Bridge) -> None:
    """However little it asks for; where jobs of others are it cannot be alone."""
    preemptive(bridge)
    low = full(bridge, 1000, 5, 10)
    important(bridge, "high", cpu="1", annotations=ALONE)
    until(bridge, lambda: bridge.node_of("high"))
    assert ends_of(bridge, low) == [False, True, False]


def test_what_a_job_holds_beyond_what_its_pod_asks_for_comes_free(bridge: Bridge) -> None:
    """A small pod that has a node alone makes room for a large one."""
    preemptive(bridge)
    low = full(bridge, 10, 5, 10, cpu="1", annotations=ALONE)
    important(bridge, "high", cpu="3")
    until(bridge, lambda: bridge.node_of("high"))
    assert ends_of(bridge, low) == [False, True, False]


def test_an_extender_has_a_say_about_the_node(bridge: Bridge) -> None:
    """It is told which pods would leave which node, and leaves the nodes that it likes."""
    asked: list[Any] = []

    def post(target: Target, path: str, body: Mapping[str, Any], *, seconds: float) -> Any:
        asked.append((target.url, path, seconds, sorted(body["NodeNameToMetaVictims"])))
        return {"nodeNameToMetaVictims": {"n4": body["NodeNameToMetaVictims"]["n4"]}}

    preemptive(bridge, post=post, extenders=[EXTENDER])
    full(bridge, 10, 5, 10)
    important(bridge, "high")
    until(bridge, lambda: bridge.node_of("high"))
    assert bridge.node_of("high") == "n4"
    assert asked == [("http://extender", "/preempt", 5.0, ["n2", "n3", "n4"])]


def test_no_pod_leaves_while_an_extender_that_counts_is_silent(bridge: Bridge) -> None:
    """It is asked again later."""

    def post(_target: Target, _path: str, _body: Mapping[str, Any], *, seconds: float) -> Any:
        raise NotAnswered(f"nothing within {seconds} s")

    preemptive(bridge, post=post, extenders=[EXTENDER])
    low = full(bridge, 10, 5, 10)
    important(bridge, "high")
    go(bridge, 3 * AFTER)
    assert ends_of(bridge, low) == [False, False, False]


def test_only_so_many_at_once(bridge: Bridge) -> None:
    """Others wait until one is done; the most important is first."""
    preemptive(bridge, at_once=1)
    full(bridge, 10, 5, 10)
    bridge.kube_calls.plan(faults.Answer(429), method="POST", target="/eviction", times=1000)
    important(bridge, "high", 1000)
    important(bridge, "higher", 2000)
    until(bridge, lambda: promised(bridge, "higher"))
    go(bridge, AFTER)
    assert promised(bridge, "high") == ""
    assert [case.stage for case in bridge.core.evictions.preemptions.values()] == [PreemptionStage.EVICTING]


def test_two_at_once_take_different_nodes(bridge: Bridge) -> None:
    """What is promised to one is no candidate for another, which takes the node whose pod started last."""
    preemptive(bridge)
    low = full(bridge, 10, 5, 10)
    important(bridge, "one")
    important(bridge, "two")
    until(bridge, lambda: bridge.node_of("one") and bridge.node_of("two"))
    assert {bridge.node_of("one"), bridge.node_of("two")} == {"n3", "n4"}
    assert ends_of(bridge, low) == [False, True, True]


def test_a_pod_that_is_not_submitted_for_want_of_room_may_preempt(bridge: Bridge) -> None:
    """Where only what is free counts it has no job yet; it gets one when the node is cleared."""
    preemptive(bridge, capacity="free")
    low = full(bridge, 10, 5, 10)
    bridge.world.cordon("n1", on=True)
    bridge.run(3)
    important(bridge, "high")
    bridge.step()
    assert bridge.condition("high")[0] == "Unschedulable"
    assert not bridge.jobs(bridge.uid("high"))
    until(bridge, lambda: bridge.node_of("high"))
    assert bridge.node_of("high") == "n3"
    assert ends_of(bridge, low) == [False, True, False]


def test_a_pod_that_waits_for_something_else_does_not(bridge: Bridge) -> None:
    """Its claim is not bound: no room would help."""
    preemptive(bridge, capacity="free")
    low = full(bridge, 10, 5, 10)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    important(bridge, "high", spec={"volumes": [volume]})
    go(bridge, 3 * AFTER)
    assert ends_of(bridge, low) == [False, False, False]


def test_a_pod_without_victims_asks_ever_more_rarely(bridge: Bridge) -> None:
    """Looking at all nodes again and again is not free."""
    preemptive(bridge)
    full(bridge, 10, 5, 10)
    important(bridge, "high", cpu="4", spec={"nodeSelector": {"kubernetes.io/hostname": "n3"}})
    go(bridge, AFTER + 2)
    before = bridge.core.context.facts_at
    go(bridge, AFTER - 4)
    assert bridge.core.context.facts_at == before
