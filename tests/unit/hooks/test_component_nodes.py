"""A component of a job has no node that another component cannot do without: Slurm chooses for each by itself."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks import component_nodes
from slurm_bridge.hooks.usable_nodes import FilterResult
from slurm_bridge.translate import resources
from slurm_bridge.translate.shapes import Shape
from tests.effort import Work
from tests.unit.hooks.builders import node, partition, pod, slurm_node, translated

Sized = tuple[int, int]


def machines(sizes: Mapping[str, int]) -> ClusterSnapshot:
    """Nodes of so many CPUs."""
    made = cluster_cache.ClusterCache(resources.requests_of)
    for name, cpus in sizes.items():
        made.on_node(None, node(name, allocatable={"cpu": str(cpus)}))
    known = [slurm_node(name, cpus=cpus) for name, cpus in sizes.items()]
    made.set_slurm(known, (partition("debug", *sizes, default=True),))
    return made.snapshot()


def left(sizes: Mapping[str, int], *kinds: Sized, one_per_node: bool = False) -> list[frozenset[str]]:
    """The nodes of each kind of pods: how many, and the CPUs of each."""
    shapes = tuple(
        Shape(pods=tuple(pod(f"p{kind}-{number}") for number in range(count)), cpus=cpus, memory_mib=1)
        for kind, (count, cpus) in enumerate(kinds)
    )
    every = tuple(FilterResult(nodes=frozenset(sizes), denied=()) for _ in shapes)
    asked = dataclasses.replace(translated(shapes=shapes), one_per_node=one_per_node)
    return [one.nodes for one in component_nodes.divided(machines(sizes), asked, every, lambda nodes: nodes)]


def test_the_only_node_that_is_large_enough_for_the_workers_is_not_the_leaders() -> None:
    """Nor is the leader's small one theirs, once it has no other."""
    assert left({"large": 8, "small": 4}, (1, 3), (3, 2)) == [{"small"}, {"large"}]


def test_where_each_node_can_be_done_without_all_are_for_all() -> None:
    """Slurm may choose."""
    assert left({"a": 8, "b": 8, "c": 4}, (1, 3), (3, 2)) == [{"a", "b", "c"}] * 2


def test_one_pod_on_each_node_takes_more_of_them() -> None:
    """Three workers need three nodes, and there is a fourth."""
    sizes = {"a": 8, "b": 8, "c": 8, "d": 2}
    assert left(sizes, (1, 1), (3, 4)) == [{"a", "b", "c", "d"}, {"a", "b", "c", "d"}]
    assert left(sizes, (1, 1), (3, 4), one_per_node=True) == [{"d"}, {"a", "b", "c"}]


def test_pods_that_fit_nowhere_take_nothing_from_others() -> None:
    """Why they do not is said elsewhere."""
    assert left({"a": 4, "b": 4}, (1, 99), (2, 2)) == [{"a", "b"}] * 2


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=2, max_size=3),
)
def test_no_way_to_start_is_lost(cpus: Sequence[int], kinds: Sequence[Sized]) -> None:
    """If all pods fit when each node is given to one component, each component still has its nodes."""
    sizes = dict(zip("abcd", cpus, strict=False))
    kept = left(sizes, *kinds)
    for owners in itertools.product(range(len(kinds)), repeat=len(sizes)):
        shares = [
            {name for name, owner in zip(sizes, owners, strict=True) if owner == kind} for kind in range(len(kinds))
        ]
        pairs = list(zip(shares, kinds, strict=True))
        if all(sum(sizes[name] // each for name in share) >= count for share, (count, each) in pairs):
            assert all(share <= nodes for share, nodes in zip(shares, kept, strict=True))


@pytest.mark.security("fairness")
def test_many_kinds_on_many_nodes_are_compared_in_few_looks() -> None:
    """What a user writes costs no look at every node for each kind of pods."""
    seen = machines({f"n{number:03}": 64 for number in range(500)})

    def took(kinds: int) -> int:
        shapes = tuple(Shape(pods=(pod(f"p{kind}"),), cpus=1, memory_mib=1) for kind in range(kinds))
        every = tuple(FilterResult(nodes=seen.names, denied=()) for _ in shapes)
        with Work() as work:
            got = component_nodes.divided(seen, translated(shapes=shapes), every, lambda nodes: nodes)
        assert all(one.nodes is seen.names for one in got)
        return work.total

    assert took(100) < 20 * took(10)
