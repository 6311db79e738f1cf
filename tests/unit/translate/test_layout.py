"""The arithmetic of equal pods on Slurm's nodes, whatever both of them are."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model.job import Gres, GresPer, Memory, MemoryPer
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.translate import layout, shapes
from slurm_bridge.translate.layout import Layout, LayoutTerms
from slurm_bridge.translate.shapes import Form, Needs
from tests.unit.translate.translating import equal_nodes, members, node

FREE = LayoutTerms()


def needs(cpus: int = 1, memory_mib: int = 1000, gpus: int = 0, kind: str = "") -> Needs:
    """What one pod asks for."""
    return Needs(cpus=cpus, memory_mib=memory_mib, gres=(Gres(name="gpu", type=kind, count=gpus),) if gpus else ())


def laid(asked: Needs, count: int, nodes: tuple[SlurmNode, ...], **terms: Any) -> Layout:
    """A layout that there is."""
    found = layout.lay(asked, count, layout.count_nodes(nodes), LayoutTerms(**terms))
    assert found is not None
    return found


def amounts(found: Layout) -> tuple[int, int, Memory, int]:
    """Tasks, and what each of them asks for."""
    return found.tasks, found.cpus_per_task, found.memory, sum(one.count for one in found.gres)


# -- tasks


@pytest.mark.parametrize(
    ("asked", "memory"),
    [
        (needs(2, 1000), Memory(mib=500, per=MemoryPer.CPU)),
        (needs(3, 100), Memory(mib=34, per=MemoryPer.CPU)),
        (needs(4, 1000, 2), Memory(mib=500, per=MemoryPer.GPU)),
        (needs(1, 1000, 3), Memory(mib=334, per=MemoryPer.GPU)),
    ],
)
def test_a_task_has_memory_by_what_it_has_alone(asked: Needs, memory: Memory) -> None:
    """By GPU where it has some, else by cpu; rounded up, and never by node, which would be the same for any number."""
    found = laid(asked, 3, equal_nodes(2, 8))
    assert (found.form, found.tasks, found.memory) == (Form.TASKS, 3, memory)
    assert (found.minimum_nodes, found.maximum_nodes) == (None, None)
    assert found.gres_per is (GresPer.TASK if asked.gres else GresPer.NODE)


def test_t12a_members_share_a_node_when_they_fit() -> None:
    """No number of nodes is sent: with one Slurm would spread."""
    assert laid(needs(1, 1000), 64, equal_nodes(3)).nodes == 1
    assert laid(needs(1, 1000, 1), 8, equal_nodes(2, 4)).nodes == 2


def test_gres_that_is_no_gpu_leaves_memory_to_the_cpus() -> None:
    """Slurm counts memory per GPU only."""
    asked = Needs(cpus=2, memory_mib=1000, gres=(Gres(name="nic", count=1),))
    found = laid(asked, 2, (node("a", (Gres(name="nic", count=2),)),))
    assert (found.memory, found.gres_per) == (Memory(mib=500, per=MemoryPer.CPU), GresPer.TASK)


def test_the_users_numbers_of_nodes_are_kept() -> None:
    """A minimum never above the tasks that there are, which Slurm would refuse."""
    assert laid(needs(), 8, equal_nodes(4), minimum=2).minimum_nodes == 2
    found = laid(needs(), 2, equal_nodes(4), minimum=3, maximum=3)
    assert (found.minimum_nodes, found.maximum_nodes) == (2, 3)


@pytest.mark.parametrize("terms", [{"minimum": 4}, {"maximum": 1}])
def test_numbers_of_nodes_that_cannot_be_kept_have_no_layout(terms: dict[str, int]) -> None:
    """Too few nodes are there, or too few are allowed."""
    assert layout.lay(needs(40), 4, layout.count_nodes(equal_nodes(3)), LayoutTerms(**terms)) is None
    assert layout.lay(needs(40), 2, layout.count_nodes(equal_nodes(3)), FREE) is not None


def test_pods_that_no_node_takes_have_no_layout() -> None:
    """Nor those for whom there are too few nodes."""
    there = layout.count_nodes(equal_nodes(3, 4))
    assert layout.lay(needs(65), 1, there, FREE) is None
    assert layout.lay(needs(1, 1, 5), 1, there, FREE) is None
    assert layout.lay(needs(1, 1, 2), 7, there, FREE) is None
    assert layout.lay(needs(), 1, (), FREE) is None


# -- per node


def test_typed_gpus_are_asked_for_by_node() -> None:
    """By task they leak on external nodes, also where the pod names no type; other devices do not matter."""
    for asked in (needs(2, 1000, 1), needs(2, 1000, 1, "v100")):
        found = laid(asked, 12, equal_nodes(2, 8, "v100"))
        assert (found.form, found.gres_per) == (Form.PER_NODE, GresPer.NODE)
        assert amounts(found) == (2, 12, Memory(mib=6000), 6)
        assert (found.minimum_nodes, found.maximum_nodes) == (2, 2)
    assert laid(needs(), 2, equal_nodes(2, 8, "v100")).form is Form.TASKS


def test_one_typed_node_among_others_is_enough() -> None:
    """Slurm might choose it."""
    mixed = (*equal_nodes(2, 8), node("v", (Gres(name="gpu", type="v100", count=8),)))
    assert laid(needs(1, 10, 1), 4, mixed).form is Form.PER_NODE


def test_members_that_cannot_be_shared_out_evenly_leave_a_place_empty() -> None:
    """Seven on two nodes are asked for as four on each."""
    found = laid(needs(1, 10, 2, "v100"), 7, equal_nodes(4, 8, "v100"))
    assert (found.tasks, found.gres) == (2, (Gres(name="gpu", type="v100", count=8),))


def test_whole_nodes_are_asked_for_by_node() -> None:
    """Memory per cpu would count all cpus of a node that is not shared."""
    found = laid(needs(1, 100_000), 4, equal_nodes(4), whole=True)
    assert (found.form, amounts(found)) == (Form.PER_NODE, (2, 2, Memory(mib=200_000), 0))


def test_one_per_node_takes_as_many_nodes_as_members() -> None:
    """And none where there are fewer."""
    assert amounts(laid(needs(2, 100), 3, equal_nodes(5), one_per_node=True)) == (3, 2, Memory(mib=100), 0)
    assert layout.lay(needs(), 3, layout.count_nodes(equal_nodes(2)), LayoutTerms(one_per_node=True)) is None


def test_memory_per_node_caps_how_many_share_one() -> None:
    """And is what every node gives."""
    found = laid(needs(2, 2048), 8, equal_nodes(5), node_memory_mib=8000)
    assert amounts(found) == (3, 6, Memory(mib=8000), 0)


def test_memory_per_node_that_a_node_has_not_is_none_of_it() -> None:
    """The user asked for that much on every node."""
    there = layout.count_nodes((node("small", memory_mib=4000), *equal_nodes(1)))
    assert layout.lay(needs(64, 1000), 2, there, LayoutTerms(node_memory_mib=8000)) is None


def test_half_a_core_does_not_cost_the_memory_of_a_whole_one() -> None:
    """By cpu one such pod would take two cpus and twice its memory, which no node has."""
    threaded = equal_nodes(2, threads_per_core=2)
    found = laid(needs(1, 200_000), 2, threaded)
    assert (found.form, amounts(found)) == (Form.PER_NODE, (2, 1, Memory(mib=200_000), 0))
    assert laid(needs(1, 1000), 64, threaded).form is Form.TASKS


# -- together


def test_a_sum_is_one_task_on_one_node() -> None:
    """Everything of it."""
    found = layout.together(needs(10, 9000, 5), layout.count_nodes(equal_nodes(1, 8)), FREE)
    assert found is not None
    assert (found.form, amounts(found), found.maximum_nodes) == (Form.SUM, (1, 10, Memory(mib=9000), 5), None)


@pytest.mark.parametrize("terms", [{"one_per_node": True}, {"minimum": 2}, {"node_memory_mib": 8999}])
def test_a_sum_is_none_against_the_users_word(terms: dict[str, Any]) -> None:
    """All on one node is not what was asked for."""
    assert layout.together(needs(10, 9000, 5), layout.count_nodes(equal_nodes(1, 8)), LayoutTerms(**terms)) is None


# -- for any pods on any nodes

KINDS = ("", "", "v100", "a100")


@st.composite
def some_needs(draw: st.DrawFn) -> Needs:
    """Small enough that several fit."""
    cpus, memory, gpus = draw(st.integers(1, 16)), draw(st.integers(1, 60_000)), draw(st.integers(0, 4))
    return needs(cpus, memory, gpus, draw(st.sampled_from(KINDS)))


@st.composite
def some_nodes(draw: st.DrawFn) -> tuple[SlurmNode, ...]:
    """Few kinds, some of them several times."""
    found = []
    for number in range(draw(st.integers(1, 8))):
        threads = draw(st.sampled_from((1, 2)))
        gpus = draw(st.sampled_from((4, 8, 0)))
        gres = (Gres(name="gpu", type=draw(st.sampled_from(KINDS)), count=gpus),) if gpus else ()
        cpus, memory = draw(st.sampled_from((64, 31, 8))), draw(st.sampled_from((256_000, 100_000, 16_000)))
        found.append(node(f"n{number}", gres, cpus=cpus, memory_mib=memory, threads_per_core=threads))
    return tuple(found)


SOME_TERMS = st.builds(
    LayoutTerms,
    minimum=st.none() | st.integers(1, 4),
    maximum=st.none() | st.integers(4, 6),
    one_per_node=st.booleans(),
    node_memory_mib=st.none() | st.integers(90_000, 200_000),
    whole=st.booleans(),
)


def granted(found: Layout, tasks: int) -> tuple[int, int, dict[str, int]]:
    """What so many tasks on one node are given, at the least: cpus, memory, GRES by name."""
    cpus = found.cpus_per_task * tasks
    times = tasks if found.gres_per is GresPer.TASK else 1
    gres = {shapes_key: count * times for shapes_key, count in _gres(found.gres).items()}
    per = {MemoryPer.NODE: 1, MemoryPer.CPU: cpus, MemoryPer.GPU: gres.get("gpu", 0)}
    return cpus, found.memory.mib * per[found.memory.per], gres


def _gres(listed: tuple[Gres, ...]) -> dict[str, int]:
    return {one.name: one.count for one in listed}


def places(found: Layout, asked: Needs, tasks: int) -> int:
    """For how many pods that is enough."""
    cpus, memory, gres = granted(found, tasks)
    rooms = [cpus // asked.cpus, memory // asked.memory_mib]
    return min(*rooms, *(gres[name] // count for name, count in _gres(asked.gres).items()))


@given(some_needs(), st.integers(1, 12), some_nodes(), SOME_TERMS)
def test_t01_what_is_asked_for_has_a_place_for_every_pod(
    asked: Needs, count: int, nodes: tuple[SlurmNode, ...], terms: LayoutTerms
) -> None:
    """However Slurm splits the tasks, and no node is asked for more than the largest have."""
    found = layout.lay(asked, count, layout.count_nodes(nodes), terms)
    if found is None:
        return  # the next case says when
    if found.form is Form.TASKS:
        assert found.tasks == count
        assert all(places(found, asked, tasks) >= tasks for tasks in range(1, count + 1))
    else:
        each = places(found, asked, 1)
        assert (found.tasks, found.minimum_nodes, found.maximum_nodes) == (found.nodes,) * 3
        assert each * found.nodes >= count
        fitting = [one for one in nodes if layout.room(asked, one, terms) >= -(-count // found.nodes)]
        assert len(fitting) >= found.nodes
    assert found.nodes <= len(nodes)
    assert min(terms.minimum or 1, count) <= found.nodes <= (terms.maximum or len(nodes))


@given(some_needs(), st.integers(1, 12), some_nodes(), SOME_TERMS)
def test_there_is_no_layout_only_where_there_is_no_room(
    asked: Needs, count: int, nodes: tuple[SlurmNode, ...], terms: LayoutTerms
) -> None:
    """Where as many nodes as there are pods have room for one each, that would do."""
    rooms = [layout.room(asked, one, terms) for one in nodes]
    roomy = sum(room > 0 for room in rooms)
    found = layout.lay(asked, count, layout.count_nodes(nodes), terms)
    assert found is not None or roomy < count or (terms.maximum or count) < count
    assert found is None or sum(rooms) >= count


@given(st.lists(st.tuples(some_needs(), st.integers(1, 5)), min_size=1, max_size=5))
def test_sums_are_exact_and_bounds_are_enough(several: list[tuple[Needs, int]]) -> None:
    """Types are kept; what names none counts for one of those that there are."""
    whole = shapes.total([shape(one, count) for one, count in several])
    most = shapes.bound([one for one, _ in several])
    assert whole.cpus == sum(one.cpus * count for one, count in several)
    assert whole.memory_mib == sum(one.memory_mib * count for one, count in several)
    asked = [(gres, count) for one, count in several for gres in one.gres]
    assert sum(gres.count for gres in whole.gres) == sum(gres.count * count for gres, count in asked)
    assert len({(gres.name, bool(gres.type)) for gres in whole.gres}) <= 1
    assert all(one.cpus <= most.cpus and one.memory_mib <= most.memory_mib for one, _ in several)
    for gres, _ in asked:
        assert gres.count <= sum(other.count for other in most.gres if gres.type in ("", other.type))


def shape(asked: Needs, count: int) -> shapes.Shape:
    """So many nameless pods."""
    return shapes.Shape(pods=members(count), cpus=asked.cpus, memory_mib=asked.memory_mib, gres=asked.gres)


def test_equal_nodes_are_looked_at_once() -> None:
    """However many there are."""
    there = layout.count_nodes(tuple(itertools.chain(equal_nodes(1000), equal_nodes(10, 8))))
    assert [number for _, number in there] == [1000, 10]
