"""An allocation is looked at again: at a glance where that is enough, and with the same verdict as a close look."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler import allocation_check, scene
from slurm_bridge.families.kube_scheduler import hook as hooks
from slurm_bridge.families.kube_scheduler.allocation_check import PodStanding
from slurm_bridge.families.kube_scheduler.options import KubeSchedulerOptions
from slurm_bridge.hooks.base import Deny
from slurm_bridge.model.node import Node, Taint
from slurm_bridge.model.pod import Pod
from tests.unit.families.kube_scheduler import scenes
from tests.unit.families.kube_scheduler.scenes import HOST, ZONE, near, node, pod, spread, term
from tests.unit.families.kube_scheduler.test_kube_remembered import Life, made, some_pod
from tests.unit.hooks.builders import workload

RULES = hooks.rules(KubeSchedulerOptions())
NAMES = ("a", "b", "c")
AWAY = near("podAntiAffinity", term(ZONE, {"app": "web"}))

amounts = st.sampled_from([None, 0, 1, 3, 8, "1500m", "0.3m", "0.7m"])
specs: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.sampled_from(
        [
            {"node_selector": {ZONE: "1"}},
            {"affinity": AWAY},
            {"affinity": near("podAffinity", term(HOST, {"app": "web"}))},
            {"topology_spread_constraints": (spread(ZONE, {"app": "web"}),)},
        ]
    ),
)
labels = st.sampled_from([{}, {"app": "web"}])


def placed(name: str, on: str, cpu: Any, said: Mapping[str, str], spec: Mapping[str, Any]) -> Pod:
    """A pod of that name; None asks for nothing."""
    return pod(name, on=on, labels=said, requests={} if cpu is None else {"cpu": cpu}, **spec)


def machine(name: str, kind: str) -> Node:
    """A node with something about it."""
    ways: Mapping[str, dict[str, Any]] = {
        "cordoned": {"unschedulable": True},
        "tainted": {"taints": (Taint(key="gpu", value="yes", effect="NoSchedule"),)},
        "pressed": {"conditions": {"DiskPressure": "True"}},
        "small": {"allocatable": {"cpu": "2001m", "pods": 1}},
    }
    return node(name, labels={ZONE: "1" if name == "a" else "2"}, **ways.get(kind, {}))


machines = st.lists(
    st.sampled_from(["plain", "plain", "plain", "cordoned", "tainted", "pressed", "small"]), min_size=3, max_size=3
)
others = st.lists(st.tuples(st.sampled_from(NAMES), amounts, labels, specs), max_size=4)
comers = st.lists(st.tuples(st.sampled_from((*NAMES, "gone")), amounts, labels, specs), min_size=1, max_size=3)


def wrong(snapshot: ClusterSnapshot, pods: Sequence[Pod], nodes: Mapping[str, str]) -> Mapping[str, Any]:
    """What a close look says."""
    seen = scene.scene(snapshot, pods[0], capacity="free")
    return allocation_check.wrong(seen, snapshot.nodes, pods, nodes, RULES)


def stands(snapshot: ClusterSnapshot, pods: Sequence[Pod], nodes: Mapping[str, str]) -> bool:
    """What a glance says, with the rules as they are shipped."""

    def standing(one: Pod) -> PodStanding:
        seen = scene.scene(snapshot, one, capacity="allocatable")
        moving = {name: rule for name, rule in RULES.items() if rule.moving(seen)}
        denied = [mask for name, rule in RULES.items() if name not in moving for mask, _ in rule(seen)]
        return PodStanding(frozenset(name for mask in denied for name in seen.columns.nodes(mask)), moving)

    seen = scene.scene(snapshot, pods[0], capacity="free")
    return allocation_check.stands(lambda: seen, snapshot.nodes, pods, nodes, standing)


@given(machines, others, comers, st.booleans())
def test_a_glance_lets_nobody_pass_whom_a_close_look_stops(
    kinds: list[str], running: list[Any], coming: list[Any], again: bool
) -> None:
    """Whatever nodes are like, whoever runs there and however many come, be it for the second time."""
    there = [placed(f"r{number}", *one) for number, one in enumerate(running)]
    new = [placed(f"n{number}", "", *one[1:]) for number, one in enumerate(coming)]
    follows = scenes.keeper([machine(*pair) for pair in zip(NAMES, kinds, strict=True)], there)
    nodes = {one.uid: where for one, (where, *_) in zip(new, coming, strict=True)}
    if again:
        follows.assume(new[0].uid, nodes[new[0].uid], {}, new[0])
    snapshot = follows.snapshot()
    assert not (stands(snapshot, new, nodes) and wrong(snapshot, new, nodes))


@pytest.mark.parametrize(
    ("running", "coming", "enough"),
    [
        ((), (pod("x", requests={"cpu": 8}),), True),
        ((), (pod("x", requests={"cpu": 9}),), False),
        ((pod("r", on="a", requests={"cpu": 1}),), (pod("x", requests={"cpu": 7}),), True),
        ((pod("r", on="a", requests={"cpu": 1}),), (pod("x", requests={"cpu": 8}),), False),
        ((), (pod("x", requests={"cpu": 4}), pod("y", requests={"cpu": 4})), True),
        ((), (pod("x", requests={"cpu": 5}), pod("y", requests={"cpu": 4})), False),
        ((), (pod("x"),), True),
        ((), (pod("x", affinity=AWAY),), True),
        ((pod("r", on="b", labels={"app": "web"}, affinity=AWAY),), (pod("x", labels={"app": "web"}),), True),
        ((pod("r", on="a", labels={"app": "web"}, affinity=AWAY),), (pod("x", labels={"app": "web"}),), False),
        ((pod("r", on="a", labels={"app": "web"}, affinity=AWAY),), (pod("x"),), True),
        ((), (pod("x", labels={"app": "web"}), pod("y", affinity=AWAY)), False),
        ((), (pod("x"), pod("y", affinity=AWAY)), True),
    ],
)
def test_a_glance_is_enough_where_nothing_is_wrong(
    running: tuple[Pod, ...], coming: tuple[Pod, ...], enough: bool
) -> None:
    """Pods pass when all of them have room, and nobody who is there or comes with them keeps one away."""
    snapshot = scenes.snapshot([machine("a", "plain"), machine("b", "plain")], running)
    assert stands(snapshot, coming, {one.uid: "a" for one in coming}) is enough


def test_a_glance_at_pods_whose_rules_rest_makes_no_columns() -> None:
    """These would be of this moment, and of no use to any other pod."""
    made: list[scene.Scene] = []
    snapshot = scenes.snapshot([machine("a", "plain")], ())

    def seen() -> scene.Scene:
        made.append(scene.scene(snapshot, pod("x"), capacity="free"))
        return made[-1]

    rests = PodStanding(frozenset(), {})
    one = pod("x", requests={"cpu": 1})
    assert allocation_check.stands(seen, snapshot.nodes, [one], {one.uid: "a"}, lambda _: rests)
    assert not made
    moves = PodStanding(frozenset(), RULES)
    assert allocation_check.stands(seen, snapshot.nodes, [one], {one.uid: "a"}, lambda _: moves)
    assert made


def test_who_counts_already_is_looked_at_closely() -> None:
    """What a pod was when it was counted need not be what it is now."""
    one = pod("x", requests={"cpu": 1})
    follows = scenes.keeper([machine("a", "plain")])
    follows.assume(one.uid, "a", {}, one)
    assert not stands(follows.snapshot(), [one], {one.uid: "a"})
    assert not wrong(follows.snapshot(), [one], {one.uid: "a"})


def test_a_node_that_is_gone_is_looked_at_closely() -> None:
    """It is for others to say so."""
    assert not stands(scenes.snapshot([machine("a", "plain")]), [pod("x")], {"uid-x": "b"})


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_the_hook_says_what_a_close_look_says(seed: int) -> None:
    """However nodes, pods and promises change: what it remembers of those before makes no difference."""
    dice = random.Random(seed)
    life, hook, seen = Life(dice), made("allocatable"), list[bool]()
    shapes = [some_pod(dice, f"new{number}") for number in range(6)]
    for _ in range(40):
        snapshot = life.step()
        for one in shapes if snapshot.names else ():
            nodes = {one.uid: dice.choice(sorted(snapshot.names))}
            found, expected = hook.verify(workload(one), nodes, snapshot), wrong(snapshot, [one], nodes)
            assert (found.nodes if isinstance(found, Deny) else frozenset()) == expected.keys()
            seen.append(found is None)
    assert len(set(seen)) == 2
