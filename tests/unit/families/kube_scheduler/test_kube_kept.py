"""Raw scores that are carried along are those that would be worked out anew."""

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.families.kube_scheduler import scene
from slurm_bridge.families.kube_scheduler.kept import Rate, ScoreCache
from slurm_bridge.families.kube_scheduler.priorities import table
from slurm_bridge.families.kube_scheduler.priorities.rule import ColumnMap
from slurm_bridge.families.kube_scheduler.scene import Lookup, Scene
from slurm_bridge.model.node import Taint
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import resources
from tests.examples import examples
from tests.unit.hooks.builders import node, pod

NODES = 40
LOOKUP = Lookup(service_selectors=lambda _namespace: ({"app": "a"},))
PREFERS = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 3, "preference": {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}}
        ]
    }
}
OURS = pod("ours", requests={"cpu": "2", "memory": "1Gi"}, metadata={"labels": {"app": "a"}}, affinity=PREFERS)

#: All that say of themselves that they look at each node by itself.
BY_ROW = {
    name: rated.of
    for name in table.PRIORITIES
    if name not in ("NodeLabel", "ServiceAntiAffinity")
    and isinstance(rated := table.configured(name).map, ColumnMap)
    and rated.by_row
}


def change(keeper: ClusterCache, dice: random.Random, number: int) -> None:
    """Something happens to some node: a pod comes or goes, the node itself changes, comes or goes."""
    name = f"n{dice.randrange(NODES + 4)}"
    match dice.randrange(4):
        case 0:
            keeper.on_node(None, node(name, labels={"rack": dice.choice(("r1", "r2"))}))
        case 1:
            keeper.on_node(None, node(name, taints=[Taint(key="k", effect="PreferNoSchedule")]))
        case 2 if number % 3 == 0:
            keeper.on_node(node(name), None)
        case _:
            came = pod(f"p{number}", requests={"cpu": str(dice.randrange(1, 5))}, metadata={"labels": {"app": "a"}})
            keeper.assume(came.uid, name, resources.requests_of(came), came)
            keeper.forget(f"uid-p{number - 6}")


def cluster(size: int = NODES) -> ClusterCache:
    """Plain nodes."""
    keeper = ClusterCache(resources.requests_of)
    for number in range(size):
        keeper.on_node(None, node(f"n{number}", labels={"rack": "r1"}))
    return keeper


def seen(keeper: ClusterCache, of: Pod = OURS) -> Scene:
    """The cluster now."""
    return scene.scene(keeper.snapshot(), of, lookup=LOOKUP)


@pytest.mark.thorough
@pytest.mark.parametrize("name", BY_ROW)
@given(seed=st.integers(0, 1000))
@settings(max_examples=examples(10))
def test_scores_that_are_carried_along_are_right(name: str, seed: int) -> None:
    """Whatever changed meanwhile, and however much."""
    dice, keeper, kept = random.Random(seed), cluster(), ScoreCache(4)
    for number in range(20):
        now = seen(keeper)
        anew, carried = BY_ROW[name](now), kept.at(b"shape", now).raw(name, BY_ROW[name])
        there = now.columns.present
        assert (anew is None) == (carried is None)
        if anew is not None and carried is not None:
            assert carried[there].tolist() == anew[there].tolist()
        for _ in range(dice.choice((0, 1, 1, 2, 9))):
            change(keeper, dice, number)


#: Those that follow the cluster by themselves.
FOLLOWING = {
    "SelectorSpread": {},
    "ServiceAntiAffinity": {"label": "rack"},
    "ImageLocality": {},
    "InterPodAffinity": {},
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", FOLLOWING)
@given(seed=st.integers(0, 1000))
@settings(max_examples=examples(10))
def test_what_follows_the_cluster_is_right(name: str, seed: int) -> None:
    """Also of snapshots that are not the newest any more."""
    dice, keeper, lasting = random.Random(seed), cluster(400), rated(name)
    taken: list[Scene] = []
    for number in range(15):
        taken = [*taken[-4:], seen(keeper)]
        for now in (taken[-1], dice.choice(taken)):
            there = now.columns.present
            anew, followed = rated(name)(now), lasting(now)
            assert anew is not None
            assert followed is not None
            assert followed[there].tolist() == anew[there].tolist()
        for _ in range(dice.choice((0, 1, 1, 2, 9))):
            change(keeper, dice, number)


def rated(name: str) -> Rate:
    """The map of a priority that was just made."""
    made = table.configured(name, args=FOLLOWING[name]).map
    assert isinstance(made, ColumnMap)
    return made.of


def test_only_nodes_that_changed_are_rated_anew() -> None:
    """The others were the same in the snapshot before."""
    asked: list[int] = []

    def rate(of: Scene) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        asked.append(len(of.columns))
        return np.ones(len(of.columns), np.int64)

    keeper, kept = cluster(), ScoreCache(4)
    for number in range(3):
        kept.at(b"shape", seen(keeper)).raw("p", rate)
        came = pod(f"p{number}", requests={"cpu": "1"})
        keeper.assume(came.uid, "n1", resources.requests_of(came), came)
    kept.at(b"other", seen(keeper)).raw("p", rate)
    assert asked == [NODES, 1, 1, NODES]


def test_shapes_of_another_cluster_are_rated_anew() -> None:
    """Nobody knows in what its nodes differ."""
    kept, one, other = ScoreCache(4), seen(cluster()), seen(cluster(3))
    kept.at(b"shape", one).raw("LeastRequested", BY_ROW["LeastRequested"])
    found = kept.at(b"shape", dataclasses.replace(other)).raw("LeastRequested", BY_ROW["LeastRequested"])
    assert found is not None
    assert len(found) == len(other.columns)
