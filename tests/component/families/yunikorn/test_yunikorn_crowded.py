"""A guarantee holds in a full cluster, too: whoever borrows makes room there, in Slurm's queue first, then on nodes."""

import dataclasses
import pathlib
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.families.yunikorn import node_scores, setup
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.members import Stage
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.restorer import RestoredWorkload
from slurm_bridge.hooks.calls import Hook
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.services import ChainServices, HookServices
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.translate import resources
from tests.component.families.yunikorn.yunikorn_scenes import Listed, Queues, document, made, queue, until
from tests.component.scheduler.whole_core import Bridge
from tests.unit.families.yunikorn.test_yunikorn_evicting import demand
from tests.unit.hooks import builders as scene

SOON = {"preemption.delay": "5s"}
GUARANTEED = queue("a", resources={"guaranteed": {"vcore": "4"}}, properties=SOON)


class Crowd:
    """A cluster of four cpus, which queue b has; two more of its workloads wait in Slurm, and nobody else may."""

    def __init__(self, *more: RestoredWorkload, vcore: int = 4_000, going: Collection[str] = ()) -> None:
        self.clock = VirtualClock()
        options = {"configuration": document(GUARANTEED, queue("b")), "ahead": 2}
        services = HookServices(clock=self.clock, threads=False)
        self.manager = Manager(setup.make(YunikornOptions.model_validate(options)), services)
        # Those that wait are the oldest: what runs has been let past them.
        created = {"b1": 3.0, "b2": 4.0, "b3": 5.0, "b4": 6.0, "b5": 1.0, "b6": 2.0}
        there = [
            RestoredWorkload(
                demand=demand(uid, "root.b", created=at),
                started=uid not in ("b5", "b6"),
                makes_room_for="mine" if uid in going else "",
            )
            for uid, at in created.items()
        ]
        self.manager.begin([*there, *more])
        if vcore:
            self.manager.measure({"vcore": vcore})

    def later(self, seconds: float) -> None:
        """Time passes."""
        self.clock.advance(seconds)
        self.manager.engine.turn()

    @property
    def victims(self) -> dict[str, str]:
        """Who is to go, for whom."""
        return {uid: one.asker for uid, one in self.manager.evictions.recalls().items()}

    def stage(self, uid: str) -> Stage:
        """How far it has come."""
        return self.manager.members[uid].stage


def test_who_waits_in_slurm_goes_before_whoever_runs() -> None:
    """However old it is; and as many of those that run as it takes besides."""
    crowd = Crowd()
    crowd.manager.enter(demand("mine", "root.a", cpus=2))
    assert crowd.stage("mine") is Stage.ASKED
    crowd.later(6)
    assert crowd.victims == dict.fromkeys(("b5", "b6", "b3", "b4"), "mine")
    for uid in ("b5", "b6", "b3"):
        crowd.manager.gone(uid)
        assert crowd.stage("mine") is Stage.ASKED
    crowd.manager.gone("b4")
    assert crowd.stage("mine") is Stage.GIVEN


def test_what_has_started_meanwhile_is_no_longer_first() -> None:
    """It has nodes by now."""
    crowd = Crowd()
    crowd.manager.started("b5")
    crowd.manager.enter(demand("mine", "root.a", cpus=1))
    crowd.later(6)
    assert set(crowd.victims) == {"b6", "b4", "b3"}


def test_a_place_ahead_does_not_keep_it_from_its_room() -> None:
    """Both are taken: they are of those that have to go."""
    crowd = Crowd()
    assert crowd.manager.ahead.count(0.0) == 2
    crowd.manager.enter(demand("mine", "root.a", cpus=1))
    crowd.later(6)
    assert len(crowd.victims) == 3


def test_a_large_cluster_has_room() -> None:
    """Nobody goes."""
    crowd = Crowd(vcore=40_000)
    crowd.manager.started("b5")
    crowd.manager.enter(demand("mine", "root.a", cpus=1))
    assert crowd.stage("mine") is Stage.GIVEN
    crowd.later(60)
    assert crowd.victims == {}


def test_a_new_core_keeps_what_was_promised_before_it_knows_the_cluster() -> None:
    """Who was to go is to go, and nobody is let in before that."""
    going = ("b5", "b6", "b4")
    asked = RestoredWorkload(demand=demand("mine", "root.a"), waits=True, room_made_by={uid: uid for uid in going})
    crowd = Crowd(asked, vcore=0, going=going)
    assert crowd.victims == dict.fromkeys(going, "mine")
    crowd.manager.gone("b5")
    assert crowd.stage("mine") is Stage.ASKED
    crowd.manager.measure({"vcore": 4_000})
    crowd.manager.gone("b6")
    assert crowd.stage("mine") is Stage.ASKED
    crowd.manager.gone("b4")
    assert crowd.stage("mine") is Stage.GIVEN


# -- in the daemon -----------------------------------------------------------------------------------------------------


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus."""
    return Bridge(tmp_path)


RAN = [f"b{number}" for number in range(1, 16)]
LATE = ["b16", "b17"]
FULL = "in queue root.a: the cluster is full (17 of 15 vcore are given out): root.a is guaranteed more than it has"


def crowded(bridge: Bridge) -> Queues:
    """Queue b has all cpus but the one of a foreign pod, and two more of its workloads wait in Slurm."""
    for job_id in bridge.slurm.control.jobs():
        bridge.slurm.control.end(job_id)
    queues = Queues(bridge, GUARANTEED, queue("b"), evict_seconds=20)
    for name in (*RAN, *LATE):
        queues.pod(name, "root.b")
        until(bridge, lambda name=name: bridge.node_of(name) or name in LATE)
    until(bridge, lambda: set(LATE) <= set(queues.submitted()))
    return queues


def evictions(bridge: Bridge) -> int:
    """How many were asked for."""
    return bridge.kube_calls.count(method="POST", target="/eviction")


@pytest.mark.thorough
def test_a_full_cluster_gives_a_queue_what_it_is_guaranteed(bridge: Bridge) -> None:
    """No queue has a maximum: the newest that runs is evicted, and those that wait are taken back, and wait behind."""
    queues = crowded(bridge)
    queues.pod("mine", "root.a")
    bridge.run(3)
    assert queues.said("mine") == (
        "QueueWaiting",
        FULL,
    )
    until(bridge, lambda: bridge.node_of("mine"))
    assert [name for name in (*RAN, *LATE) if bridge.leaving(name)] == ["b15"]
    assert evictions(bridge) == 1
    until(bridge, lambda: set(LATE) <= set(queues.submitted()))


def test_nobody_is_evicted_for_who_borrows_himself(bridge: Bridge) -> None:
    """It is let in, and waits in Slurm."""
    queues = crowded(bridge)
    queues.pod("mine", "root.b")
    until(bridge, lambda: "mine" in queues.submitted())
    end = bridge.clock.now() + 20
    until(bridge, lambda: bridge.clock.now() >= end)
    assert evictions(bridge) == 0


# -- how large the cluster is ------------------------------------------------------------------------------------------


def sizes(nodes: Any, states: Mapping[str, str] | None = None, *kinds: str, kept: Collection[str] = ()) -> Any:
    """Of such a cluster, whose nodes have sixteen cpus each, and are idle in Slurm where nothing else is said."""
    made = cluster_cache.ClusterCache(resources.requests_of)
    for one in nodes:
        made.on_node(None, one)
    said = dict.fromkeys((one.metadata.name for one in nodes), "IDLE EXTERNAL") if states is None else states
    made.set_slurm([scene.slurm_node(name, states=state) for name, state in said.items()], ())
    return node_scores.size(made.snapshot().columns, kinds or ("vcore",), frozenset(kept))


def test_what_nobody_can_be_put_on_is_no_part_of_the_cluster() -> None:
    """By the word of either side."""
    nodes = [
        scene.node("a"),
        scene.node("cordoned", unschedulable=True),
        scene.node("broken", ready=False),
        scene.node("leaving", deleting=True),
        scene.node("drained"),
        scene.node("unknown"),
    ]
    states = dict.fromkeys(("a", "cordoned", "broken", "leaving"), "IDLE") | {"drained": "IDLE DRAIN EXTERNAL"}
    assert sizes(nodes, states) == {"vcore": 16_000}


@pytest.mark.parametrize("states", ["IDLE", "MIXED", "ALLOCATED", "MIXED PLANNED", "IDLE COMPLETING CLOUD"])
def test_a_node_that_is_full_is_part_of_it(states: str) -> None:
    """It takes jobs again when one of its own ends."""
    assert sizes([scene.node("a")], {"a": states}) == {"vcore": 16_000}


@pytest.mark.parametrize(
    ("states", "usable"), [("MIXED RESERVED", True), ("IDLE RESERVED DRAIN", False), ("DOWN RESERVED", False)]
)
def test_what_is_kept_for_one_of_ours_is_part_of_it(states: str, usable: bool) -> None:
    """Who that is counts among those that were let in; what others have reserved is nobody's here."""
    nodes, said = [scene.node("a"), scene.node("b")], {"a": states, "b": "IDLE"}
    assert sizes(nodes, said, kept={"a"}) == {"vcore": 32_000 if usable else 16_000}
    assert sizes(nodes, said) == {"vcore": 16_000}


def test_kinds_that_no_usable_node_has_have_no_size() -> None:
    """Nobody goes for what is not there."""
    nodes = [scene.node("a", allocatable={"nvidia.com/gpu": "4"}), scene.node("b", ready=False)]
    assert sizes(nodes, None, "nvidia.com/gpu", "pods", "gres/fpga") == {"nvidia.com/gpu": 4, "pods": 110}
    assert sizes(nodes[1:]) == {}


def test_kinds_are_those_that_queues_are_given() -> None:
    """Beside cpu and memory, which shares are parts of."""
    template = {"resources": {"guaranteed": {"example.com/fpga": "1"}}}
    given = document(
        queue("a", resources={"max": {"nvidia.com/gpu": "4"}}),
        queue("p", childtemplate=template, parent=True),
    )
    made = setup.make(YunikornOptions.model_validate({"configuration": given}))
    assert node_scores.kinds(made.partition) == {"vcore", "memory", "nvidia.com/gpu", "example.com/fpga"}


def test_the_cluster_is_measured_once_in_a_while() -> None:
    """Each change of its size has all who wait looked at again."""
    first = scene.cluster([scene.node("a")])
    second = dataclasses.replace(first, use_version=first.use_version + 1)
    measure = node_scores.Measure(setup.make(YunikornOptions.model_validate({"configuration": document()})).partition)
    assert measure.is_due(first.use_version, 0.0)
    measure.news(first, 0.0)
    assert not measure.is_due(second.use_version, node_scores.EVERY / 2)
    assert measure.is_due(second.use_version, node_scores.EVERY)
    measure.news(second, node_scores.EVERY)
    assert not measure.is_due(second.use_version, 10 * node_scores.EVERY)


def test_a_node_that_is_drained_in_slurm_is_no_longer_part_of_the_cluster() -> None:
    """Though nothing has changed that a rule about placement looks at."""
    known, clock = cluster_cache.ClusterCache(resources.requests_of), VirtualClock()
    for name in ("a", "b"):
        known.on_node(None, scene.node(name))
    behind = HookServices(clock=clock, threads=False)
    hook = made({"configuration": document(GUARANTEED, queue("b"))}, behind)
    plain = Hook(name="yunikorn", hook=hook, needs=hook.needs)
    chain, nobody = Chain([plain], ChainServices(clock=clock)), dict.fromkeys(hook.needs, Listed([]))
    chain.see(nobody)
    chain.restore((), fresh=True)
    found = []
    for state in ("IDLE", "IDLE DRAIN"):
        known.set_slurm(
            [scene.slurm_node("a"), scene.slurm_node("b", states=state)], [scene.partition("debug", "a", "b")]
        )
        clock.advance(node_scores.EVERY)
        chain.plan(scene.workload(), scene.translated(), known.snapshot(), now=clock.wall())
        manager = behind.carried.value
        assert isinstance(manager, Manager)
        found.append(manager.engine.committed(lambda partition: (partition.size or {}).get("vcore")))
    assert found == [32_000, 16_000]
