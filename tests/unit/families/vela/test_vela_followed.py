"""What is followed from snapshot to snapshot, sifted at once, or taken in turns is what each question would give."""

import concurrent.futures
import random
from typing import ClassVar

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.columns import Mask, NodeColumns
from slurm_bridge.families.vela import dice, loop
from slurm_bridge.families.vela import scores as scoring
from slurm_bridge.families.vela.idle import Idle
from slurm_bridge.families.vela.joint_filter import Sift
from slurm_bridge.families.vela.plugins import fit
from slurm_bridge.families.vela.plugins.fit import FitOptions, ResourcesFit
from slurm_bridge.families.vela.scene import Rows, SamplingScene
from slurm_bridge.translate import resources
from tests.unit.families.vela.support_vela import farm, limited
from tests.unit.hooks.builders import node, pod

NUMBER = 64
ROOM = {"cpu": "1", "memory": "8Gi", "pods": "110"}


def free(nodes: NodeColumns) -> fit.Amounts:
    """What is left of each node."""
    return lambda name: np.maximum(nodes.allocatable(name) - nodes.used(name), 0)


class Changing:
    """A keeper of nodes on which pods begin."""

    def __init__(self) -> None:
        self.keeper = cluster_cache.ClusterCache(resources.requests_of)
        self._begun = 0
        for place in range(NUMBER):
            self.keeper.on_node(None, node(f"n{place:02}", allocatable=ROOM))

    def begins(self, *places: int) -> None:
        """A pod on each of these nodes."""
        for place in places:
            self._begun += 1
            there = pod(
                f"p{self._begun}",
                requests={"cpu": "300m", "memory": "1.3Gi", "example.com/fpga": "1"},
                node_name=f"n{place:02}",
                phase="Running",
            )
            self.keeper.on_pod(None, there)

    @property
    def columns(self) -> NodeColumns:
        """Now."""
        return self.keeper.snapshot().columns


def score(cluster: Changing) -> list[int]:
    """What a new plugin says of all nodes."""
    scene = SamplingScene(limited(limits={"cpu": "1"}), cluster.columns, 0.0)
    return ResourcesFit(FitOptions()).score(scene, np.arange(NUMBER)).tolist()


class TestHowFull:
    @hypothesis.given(
        st.lists(st.lists(st.integers(0, NUMBER - 1), max_size=3), max_size=5),
        st.sampled_from(["LeastAllocated", "MostAllocated"]),
        st.sampled_from([{}, {"ephemeral-storage": "1Gi"}, {"example.com/fpga": "1"}]),
    )
    def test_an_answer_that_was_followed_is_the_one_that_all_nodes_give(
        self, steps: list[list[int]], mode: fit.Mode, limits: dict[str, str]
    ):
        """However few or many of them changed, and however much more is used of a node than it has."""
        cluster, plugin, rows = Changing(), ResourcesFit(FitOptions(mode=mode)), np.arange(NUMBER)
        for places in [[], *steps]:
            cluster.begins(*places)
            scene = SamplingScene(limited(limits=limits), cluster.columns, 0.0)
            anew = fit.score(scene.limits, scene.nodes.allocatable, free(scene.nodes), mode)
            assert plugin.score(scene, rows).tolist() == anew.tolist()

    def test_all_who_ask_about_a_cluster_share_it(self):
        """Each pipeline of an agent has a plugin of its own, and the decision another one."""
        cluster, other = Changing(), Changing()
        cluster.begins(1)
        other.begins(2)
        found = [score(one) for one in (cluster, other, cluster)]
        assert found[0] == found[2] != found[1]

    def test_pods_of_all_sizes_share_how_full_nodes_are(self):
        """What else they compare makes another answer."""
        plugin = ResourcesFit(FitOptions())
        cluster = Changing()
        cluster.begins(1)
        nodes = cluster.columns
        small, large = (SamplingScene(limited(limits={"cpu": cpu}), nodes, 0.0) for cpu in ("1", "2"))
        rows = np.arange(NUMBER)
        assert plugin.score(small, rows).tolist() == plugin.score(large, rows).tolist()
        cluster.begins(2)
        again = plugin.score(SamplingScene(limited(limits={"cpu": "1"}), cluster.columns, 0.0), rows)
        assert again[1] == again[2] < again[3]


class Odd:
    """A filter that looks at the nodes that it is asked about, and at no others."""

    rejects: ClassVar = "are even"

    def __init__(self) -> None:
        self.asked: list[int] = []

    def fits(self, _scene: SamplingScene, rows: Rows) -> Mask:
        self.asked += rows.tolist()
        return rows % 2 == 1


class Above:
    """A filter that knows it of all nodes at once."""

    rejects: ClassVar = "are too low"

    def __init__(self, least: int) -> None:
        self._least = least
        self.asked = 0

    def fits(self, scene: SamplingScene, rows: Rows) -> Mask:
        return self.every(scene)[rows]

    def every(self, scene: SamplingScene) -> Mask:
        self.asked += 1
        return np.arange(len(scene.nodes)) >= self._least


class TestSift:
    @hypothesis.given(st.lists(st.integers(0, 9), unique=True), st.integers(0, 9))
    def test_what_passes_all_filters_stays_in_its_order(self, rows: list[int], least: int):
        """Whatever the order of the filters."""
        scene = SamplingScene(limited(), farm(10).columns, 0.0)
        expected = [place for place, row in enumerate(rows) if row >= least and row % 2]
        for filters in ((Odd(), Above(least)), (Above(least), Odd())):
            assert Sift(filters).of(scene).places(np.array(rows, np.intp)).tolist() == expected

    def test_who_knows_it_of_all_nodes_is_asked_once_for_a_question(self):
        """And others about what is left for them."""
        odd, above = Odd(), Above(5)
        sieve = Sift([odd, above]).of(SamplingScene(limited(), farm(10).columns, 0.0))
        assert [sieve.places(np.array(rows)).tolist() for rows in ([1, 7], [8, 9])] == [[1], [1]]
        assert (above.asked, odd.asked) == (1, [7, 8, 9])

    def test_without_filters_all_stay(self):
        """In their order."""
        sieve = Sift([]).of(SamplingScene(limited(), farm(3).columns, 0.0))
        assert sieve.places(np.array([2, 0])).tolist() == [0, 1]


class TestIdle:
    def test_the_one_that_was_used_last_comes_first(self):
        """What it remembers is of the latest snapshot."""
        idle = Idle("ab")
        one = idle.take(0)
        assert one is not None
        idle.give(one)
        assert idle.take(0) == one

    def test_whoever_finds_none_is_told_so_in_time(self):
        """And no sooner than there was time for one."""
        idle = Idle("a")
        assert [idle.take(0.001) for _ in range(2)] == ["a", None]

    def test_nobody_shares_and_all_have_their_turn(self):
        """More threads than there is to take."""
        idle, inside = Idle(range(2)), set[int]()

        def use(_: int) -> bool:
            one = idle.take(30)
            assert one is not None
            assert one not in inside
            inside.add(one)
            inside.discard(one)
            idle.give(one)
            return True

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert all(pool.map(use, range(400)))


class TestRounds:
    def test_a_draw_without_repetitions_is_not_searched_for_them(self):
        """What a later round draws again is skipped all the same."""
        draws = iter([np.array([3, 1]), np.array([1, 2])])
        found = loop.collect(lambda _missing: next(draws), lambda drawn: drawn, 4, max_rounds=2, repeats=False)
        assert found.found.tolist() == [3, 1, 2]

    @pytest.mark.parametrize("taken", [0, 900])
    def test_who_is_shuffled_comes_first_as_often_as_anybody(self, taken: int):
        """Of a long list of which all are wanted, or all that are left."""
        throw, firsts = dice.throw(random.Random(5)), [0] * 4
        for _ in range(400):
            order = dice.distinct(1000, 1000, throw).tolist()
            firsts[order[taken] // 250] += 1
        assert min(firsts) > 70


class TestDivision:
    @hypothesis.given(st.lists(st.integers(-(2**50), 2**50)), st.integers(0, 9))
    def test_through_one_number_it_is_what_it_is_through_many_that_are_alike(self, sums: list[int], plugins: int):
        """Toward zero, and 0 through 0."""
        total, alike = np.array(sums, np.int64), scoring.alike(plugins, len(sums))
        many = np.array([plugins] * len(sums), np.int64)
        expected = [int(abs(one) // plugins * ((one > 0) - (one < 0))) if plugins else 0 for one in sums]
        assert scoring.through(total, plugins).tolist() == scoring.divided(total, many).tolist() == expected
        assert scoring.combined(total, alike, []).tolist() == scoring.combined(total, many, []).tolist() == expected

    @hypothesis.given(st.lists(st.integers(-(2**20), 2**20)))
    def test_the_highest_come_first_and_of_equal_ones_the_first(self, scores: list[int]):
        """However large the numbers are."""
        expected = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        assert scoring.picked(np.array(scores, np.int64), len(scores)).tolist() == expected
