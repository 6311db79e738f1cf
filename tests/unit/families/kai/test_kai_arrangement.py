"""Parts are given domains so that all have room at once: the best way first, and some way wherever there is one."""

import itertools
from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.families.kai import arrangement
from slurm_bridge.families.kai.arrangement import Arrangements, ComponentTasks, NodesLeft, PlacedPart
from slurm_bridge.families.kai.stock import StockNode, StockNodes

#: A domain: the names of its nodes.
Nodes = frozenset[str]

R1, R2, R3 = (frozenset(text.split()) for text in ("n0 n1", "n2 n3", "n4 n5"))
ROOMS = {f"n{number}": 4 for number in range(6)}


def left(rooms: dict[str, int]) -> NodesLeft:
    """Nodes with so many cpus each."""
    nodes = (StockNode(name=name, labels={}, idle={"cpu": cpus}) for name, cpus in rooms.items())
    return NodesLeft(StockNodes.of(nodes))


def part(count: int, cpus: int, around: int | None = None, alike: object = None) -> PlacedPart:
    """So many equal tasks."""
    return PlacedPart(tasks=(ComponentTasks(amounts={"cpu": cpus}, count=count),), around=around, alike=str(alike))


def ways(parts: Sequence[PlacedPart], *domains: Nodes, rooms: dict[str, int] = ROOMS) -> Iterator[tuple[Nodes, ...]]:
    """Within the part around it, each part may be in any of these domains."""

    def of(_number: int, around: Nodes | None) -> Sequence[Nodes]:
        return [one for one in domains if around is None or one <= around]

    return iter(Arrangements(parts, left(rooms), of, lambda one: one))


def test_parts_share_a_domain_that_has_nodes_for_both() -> None:
    """The first one is the best."""
    assert next(ways([part(1, 4), part(1, 4)], R1, R2)) == (R1, R1)


def test_a_part_takes_whole_nodes() -> None:
    """Components of a job share none, however little they ask for."""
    assert next(ways([part(1, 1), part(1, 1), part(1, 1)], R1, R2)) == (R1, R1, R2)
    assert [*ways([part(1, 1), part(1, 1), part(1, 1)], R1)] == []


def test_a_part_moves_on_for_one_that_has_no_other_place() -> None:
    """Greedily the small one would take the only domain that the large one can have."""
    rooms = {**ROOMS, "n2": 1, "n3": 1}
    assert next(ways([part(2, 1), part(2, 4)], R1, R2, rooms=rooms)) == (R2, R1)


def test_ways_are_ordered_by_how_many_better_domains_they_pass_over() -> None:
    """Each once."""
    found = [*ways([part(1, 4, alike="a"), part(1, 4, alike="b")], R1, R2)]
    assert found[0] == (R1, R1)
    assert set(found) == set(itertools.product((R1, R2), repeat=2))
    assert len(found) == len(set(found))


def test_equal_parts_are_not_exchanged() -> None:
    """Eight of them in eight racks are one way, not forty thousand."""
    racks = [frozenset({f"m{number}"}) for number in range(8)]
    rooms = {f"m{number}": 1 for number in range(8)}
    assert [*ways([part(1, 1)] * 8, *racks, rooms=rooms)] == [tuple(racks)]


def test_a_part_within_another_stays_in_its_domain() -> None:
    """And if there is none that has room for both within it, that one moves."""
    parts = [PlacedPart(tasks=()), part(2, 4, around=0), part(2, 4, around=0)]
    assert next(ways(parts, R1, R2, R1 | R2, R3)) == (R1 | R2, R1, R2)


@given(
    rooms=st.lists(st.integers(0, 3), min_size=4, max_size=6),
    sizes=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=3),
)
def test_there_is_a_way_if_some_choice_of_domains_has_nodes_for_all(
    rooms: list[int], sizes: list[tuple[int, int]]
) -> None:
    """Compared with all choices, each placed one after the other."""
    there = {f"n{number}": cpus for number, cpus in enumerate(rooms)}
    domains = [frozenset(list(there)[at : at + 2]) for at in range(0, len(there), 2)]
    parts = [part(*size, alike=number) for number, size in enumerate(sizes)]

    def works(choice: tuple[Nodes, ...]) -> bool:
        free = left(there)
        return all(free.take(one.tasks, nodes) is not None for one, nodes in zip(parts, choice, strict=True))

    every = {choice for choice in itertools.product(domains, repeat=len(parts)) if works(choice)}
    assert set(ways(parts, *domains, rooms=there)) == every


def test_the_search_ends() -> None:
    """However many parts ask for more than there is, and although there is no end of choices."""
    racks = [frozenset({f"m{number}"}) for number in range(40)]
    rooms = {f"m{number}": 1 + number % 2 for number in range(40)}
    parts = [part(1, 1 + number % 2, alike=number) for number in range(60)]
    assert [*ways(parts, *racks, rooms=rooms)] == []


def test_components_are_offered_no_node_twice() -> None:
    """Each what it takes; of the rest the smallest domain has it, and those in one domain share it evenly."""
    small, large = ComponentTasks(amounts={"cpu": 4}, count=1), ComponentTasks(amounts={"cpu": 4}, count=2)
    rack = frozenset({"n0", "n1", "n2", "n3"})
    found = arrangement.disjoint([(rack, [small]), (rack, [small]), (rack | R3, [large])], left(ROOMS))
    assert found is not None
    assert not any(one & two for one, two in itertools.combinations(found, 2))
    assert frozenset().union(*found) == rack | R3
    assert arrangement.disjoint([(R1, [large]), (R1, [small])], left(ROOMS)) is None
