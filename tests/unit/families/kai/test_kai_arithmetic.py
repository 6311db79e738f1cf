"""Levels, amounts, orders and scores, each for itself."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.families.kai import domain_order, fit, nodesets, topology
from slurm_bridge.families.kai.domain_order import Branch
from slurm_bridge.families.kai.fit import DomainRoom, DomainScope, TaskDemand
from slurm_bridge.families.kai.stock import StockNode, StockNodes
from slurm_bridge.families.kai.topology import Domain, InvalidConstraint, Topology, TopologyConstraint
from slurm_bridge.families.kai.tree import Tree
from tests.conformance.kai_arithmetic import scores
from tests.conformance.kai_arithmetic.scores import Has

RACKS = Topology(name="racks", levels=("zone", "rack"))

_DOMAINS = st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"))
_TASKS = st.lists(st.dictionaries(st.sampled_from(["cpu_milli", "gpu", "nic"]), st.integers(0, 5)), min_size=1)


class TestTopology:
    @pytest.mark.parametrize("levels", [(), ("rack", "rack"), ("root", "rack")])
    def test_levels_are_told_apart(self, levels: tuple[str, ...]) -> None:
        """There is one, none comes twice, and none takes the name of what is above all."""
        with pytest.raises(ValueError, match="topology broken: levels"):
            Topology(name="broken", levels=levels)

    def test_a_node_needs_all_labels(self) -> None:
        """With one missing it is nowhere; a value may be empty."""
        assert RACKS.domain({"zone": "a", "rack": "", "more": "x"}) == ("a", "")
        assert RACKS.domain({"rack": "1"}) is None

    def test_preferred_above_required_is_no_level(self) -> None:
        """The message is about the preferred one."""
        constraint = TopologyConstraint(topology="racks", required="rack", preferred="zone")
        with pytest.raises(InvalidConstraint, match="sub-group leaders specified 'zone' as the preferred"):
            topology.relevant_levels(RACKS, constraint, "leaders")

    def test_equal_levels_are_one(self) -> None:
        """Preferred and required at once is required."""
        constraint = TopologyConstraint(topology="racks", required="rack", preferred="rack")
        assert topology.relevant_levels(RACKS, constraint, "default") == ("rack",)

    @given(st.lists(_DOMAINS), st.sampled_from([None, "zone", "rack"]))
    def test_the_lowest_common_domain_is_around_all(self, domains: list[Domain], finest: str | None) -> None:
        """And a lower one is not, or is below the finest level."""
        found = topology.lowest_common_domain(RACKS, domains, TopologyConstraint(required=finest))
        assert all(domain[: len(found)] == found for domain in domains)
        deepest = RACKS.depth(finest) if finest else 2
        assert len(found) == deepest or len({domain[: len(found) + 1] for domain in domains}) != 1

    def test_the_root_has_a_name(self) -> None:
        """And all others are written with dots."""
        assert [topology.spelled(domain) for domain in ((), ("a",), ("a", "b"))] == ["root", "a", "a.b"]


class TestFitting:
    @given(_TASKS)
    def test_equal_tasks_are_counted(self, tasks: list[dict[str, int]]) -> None:
        """Any task, repeated, is counted in pods; the sum is that of all, the largest is that of one."""
        demand = TaskDemand.of([tasks[0]] * 3)
        assert demand.by_pods
        assert demand.requested == {kind: 3 * amount for kind, amount in demand.largest.items()}

    @given(_TASKS, st.lists(st.dictionaries(st.sampled_from(["cpu_milli", "gpu", "nic"]), st.integers(-3, 30))))
    def test_what_is_counted_fits(self, tasks: list[dict[str, int]], nodes: list[dict[str, int]]) -> None:
        """So many copies of the largest task fit on a node, and not one more."""
        demand = TaskDemand.of(tasks)

        def free(kind: str) -> np.ndarray:
            return np.array([node.get(kind, 0) for node in nodes], np.int64)

        for node, copies in zip(
            nodes, fit.copies(demand.largest.items(), demand.count, free, None, len(nodes)).tolist(), strict=True
        ):
            room = {kind: max(0, node.get(kind, 0)) for kind in demand.largest}
            assert all(amount * copies <= room[kind] for kind, amount in demand.largest.items())
            assert any(amount * (copies + 1) > room[kind] for kind, amount in demand.largest.items()) or not room

    def test_tasks_that_ask_for_nothing_need_their_slots(self) -> None:
        """A node takes all of them, but no more than it has slots for pods; fewer than none are none."""
        copies = fit.copies((), 4, dict[str, fit.Whole]().__getitem__, np.array([9, 3, -1]), 3)
        assert copies.tolist() == [4, 3, 0]

    def test_exactly_full_fits(self) -> None:
        """A ratio of one is room enough; of a type with nothing free it is a thousand."""
        room = DomainRoom(number=3, free={"gpu": np.array([4, 3, 0])})
        demand = TaskDemand(count=2, requested={"gpu": 4}, by_pods=False)
        assert room.ratios(demand.requested).tolist() == [1.0, 4 / 3, 1000.0]
        assert room.fits(demand).tolist() == [True, False, False]

    def test_large_amounts_stay_exact(self) -> None:
        """Bytes of a whole cluster are more than a float can tell apart when they are added up."""
        free = np.array([2**60 + 1])
        assert fit.copies([("memory", 1)], 1, lambda _: free, None, 1).tolist() == [2**60 + 1]

    @given(
        st.lists(
            st.fixed_dictionaries({"cpu_milli": st.integers(1, 5), "gpu": st.integers(1, 3)}), min_size=1, max_size=5
        ),
        st.lists(
            st.fixed_dictionaries({"cpu_milli": st.integers(0, 9), "gpu": st.integers(0, 6)}), min_size=1, max_size=3
        ),
    )
    def test_tasks_that_can_be_placed_always_fit(
        self, tasks: list[dict[str, int]], nodes: list[dict[str, int]]
    ) -> None:
        """However different they are; a task that no node takes fits nowhere."""
        stock = StockNodes.of(
            StockNode(name=f"n{place}", labels={"zone": "z", "rack": "r"}, idle=idle)
            for place, idle in enumerate(nodes)
        )
        tree = Tree.of(RACKS, stock)
        cut = tree.cut(stock.members.every, 2)
        demand = TaskDemand.of(tasks, apart=True)
        fits = bool(nodesets.room_in(tree, cut, demand).fits(demand)[0])
        assert fits or not _placeable(tasks, nodes)
        if any(all(task[kind] > node[kind] for node in nodes) for task in tasks for kind in task):
            assert not fits

    @given(st.lists(st.integers(1, 8), min_size=1, max_size=5), st.lists(st.integers(0, 20), min_size=1, max_size=3))
    def test_tasks_that_slurm_cannot_keep_apart_count_as_the_largest(self, tasks: list[int], nodes: list[int]) -> None:
        """Or all of them are on one node."""
        stock = StockNodes.of(
            StockNode(name=f"n{place}", labels={"zone": "z", "rack": "r"}, idle={"cpu_milli": free})
            for place, free in enumerate(nodes)
        )
        tree = Tree.of(RACKS, stock)
        demand = TaskDemand.of([{"cpu_milli": cpus} for cpus in tasks])
        fits = bool(nodesets.room_in(tree, tree.cut(stock.members.every, 2), demand).fits(demand)[0])
        largest = sum(free // max(tasks) for free in nodes) >= len(tasks)
        assert fits is (largest or max(nodes) >= sum(tasks))

    def test_running_pods_bind_only_where_a_level_is_required(self) -> None:
        """With a preference alone the rest may go elsewhere."""
        where = [(("a", "1"), ("n1",)), (("b", "1"), ("n2",))]
        preferred, required = TopologyConstraint(preferred="rack"), TopologyConstraint(required="zone")
        assert fit.binding(RACKS, preferred, where, ["n1"]) is None
        assert fit.binding(RACKS, required, where, []) is None
        assert fit.binding(RACKS, required, where, ["n1"]) == {("a",)}
        assert fit.binding(RACKS, required, where, ["nowhere"]) == frozenset()

    def test_bound_domains_are_the_only_ones(self) -> None:
        """Also in the messages."""
        scope = DomainScope(topology=RACKS, levels=("zone",), held=frozenset({("b",)}))
        room = DomainRoom(number=2, free={}, pods=np.array([5, 1]))
        demand = TaskDemand(count=2, requested={})
        assert fit.candidates(scope, [("a",), ("b",)], [True, True]) == (("b",),)
        assert fit.shortages(scope, [("a",), ("b",)], room, demand) == (
            "node-group b can allocate only 1 of 2 required pods",
        )


def grown(shape: tuple[int, ...], domain: Domain = (), level: int = 0) -> Branch:
    """A tree with so many children at each depth, numbered as they are met."""
    children = tuple(grown(shape[1:], (*domain, str(number)), level + 1) for number in range(shape[0])) if shape else ()
    return Branch(number=len(domain), domain=domain, level=str(level), children=children)


class TestOrdering:
    @given(st.lists(st.integers(0, 3), max_size=3).map(tuple), st.randoms())
    def test_sorting_keeps_all_domains(self, shape: tuple[int, ...], dice: random.Random) -> None:
        """Each below the one that it was below, and levels below their parents'."""
        tree = grown(shape)
        found = domain_order.sort_tree(tree, lambda _: dice.random(), "1")
        order = [one.domain for one in domain_order.reverse_level_order(found)]
        assert sorted(order) == sorted(one.domain for one in domain_order.reverse_level_order(tree))
        assert [len(domain) for domain in order] == sorted((len(domain) for domain in order), reverse=True)

    @given(st.integers(1, 40))
    def test_scores_rise_with_room(self, count: int) -> None:
        """In whole steps; the last domain has all ten."""
        scores = [*domain_order.domain_scores(renumbered(count), "1").values()]
        assert scores == sorted(scores)
        assert scores[-1] == 100_000
        assert all(score % domain_order.STEP == 0 for score in scores)

    def test_a_level_that_is_not_there_has_no_scores(self) -> None:
        """Nor has a tree that is not there."""
        assert domain_order.domain_scores(grown((2,)), "7") == {}
        assert domain_order.domain_scores(None, "1") == {}

    def test_only_domains_with_something_are_kept(self) -> None:
        """With all that is above them; the root stays without any."""
        tree = grown((2, 1))
        assert domain_order.kept(tree, lambda _: False).children == ()
        assert [one.domain for one in domain_order.kept(tree, lambda one: one.domain[0] == "1").children] == [("1",)]


def renumbered(count: int) -> Branch:
    """A root with so many domains below."""
    children = (Branch(number=number, domain=(str(number),), level="1") for number in range(count))
    return Branch(number=-1, domain=(), level="0", children=tuple(children))


class TestScoring:
    @given(st.dictionaries(st.text(), st.builds(Has, total=st.integers(0, 64), free=st.integers(0, 64))))
    def test_one_origin_never_reaches_the_next(self, nodes: dict[str, Has]) -> None:
        """Packing gives 0 to 9, and a resource type 10."""
        assert all(0 <= score <= scores.PACKING for score in scores.pack(nodes).values())
        assert scores.resource_type(task_uses_gpu=False, node_has_gpu=False) > scores.PACKING

    def test_origins_have_steps(self) -> None:
        """Each is above the sum of all before it."""
        steps = [scores.PACKING, scores.RESOURCE_TYPE, scores.AVAILABILITY, scores.GPU_SHARING, scores.TOPOLOGY]
        assert all(step > sum(steps[:place]) for place, step in enumerate(steps) if place)
        assert scores.NOMINATED > scores.PREDICATES


def _placeable(tasks: list[dict[str, int]], nodes: list[dict[str, int]]) -> bool:
    """By trying all ways."""
    if not tasks:
        return True
    first, *others = tasks
    for place, node in enumerate(nodes):
        if all(node[kind] >= amount for kind, amount in first.items()):
            left = [*nodes]
            left[place] = {kind: node[kind] - first[kind] for kind in node}
            if _placeable(others, left):
                return True
    return False
