"""In which form Slurm is asked for a gang, for every relation between its pods and the nodes there are."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model.job import Gres, GresPer, JobRequest, Memory, MemoryPer
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.model.verdict import Wait
from slurm_bridge.translate import limits, shapes, translator
from slurm_bridge.translate.shapes import Form
from tests.unit.translate.translating import (
    asking,
    equal_nodes,
    facts,
    gang,
    keys,
    members,
    node,
    partition,
)

#: A leader with two GPUs and workers with one, as inference services have them.
GROUP = (*members(1, asking(4, "8Gi", 2)), *members(3, asking(2, "4Gi", 1), first=1))


def settled(found: translator.Translated, there: limits.SlurmFacts, *within: frozenset[str]) -> translator.Translated:
    """What is sent."""
    answer = limits.settle(found, there, within or None)
    assert isinstance(answer, translator.Translated), answer
    return answer


def waits(found: translator.Translated, there: limits.SlurmFacts, *within: frozenset[str]) -> str:
    """Why nothing is sent."""
    answer = limits.settle(found, there, within or None)
    assert isinstance(answer, Wait), answer
    assert answer.reason == "Unschedulable"
    return answer.message


def names(*numbers: int) -> frozenset[str]:
    """`n1`, `n2` ..."""
    return frozenset(f"n{number}" for number in numbers)


def amounts(request: JobRequest) -> tuple[Any, ...]:
    """Tasks, and what each of them asks for."""
    return request.tasks, request.cpus_per_task, request.memory, request.gres


# -- equal pods


def test_equal_pods_are_tasks() -> None:
    """With memory per cpu, and every change explained."""
    found = settled(gang(members(4, asking(2))), facts())
    assert found.form is Form.TASKS
    assert amounts(found.request) == (4, 2, Memory(mib=512, per=MemoryPer.CPU), ())
    (memory,) = [one for one in found.values if one.field == "memory"]
    assert memory.value == "512 MiB per cpu"
    assert memory.source == "requests of Pod team/web-0 and 3 like it; for each task"


def test_a_gang_of_one_is_a_task_too() -> None:
    """The last member of a gang that wants a node."""
    found = settled(gang(members(1, asking(2)), keys(min_nodes="1")), facts())
    assert (found.form, found.request.tasks, found.request.minimum_nodes) == (Form.TASKS, 1, 1)


def test_eight_single_gpu_pods_are_packed_on_two_nodes_of_four() -> None:
    """Untyped by task, typed by node."""
    eight = gang(members(8, asking(1, "1Gi", 1)))
    untyped = settled(eight, facts(nodes=equal_nodes(2, 4))).request
    assert (untyped.tasks, untyped.gres_per, untyped.maximum_nodes) == (8, GresPer.TASK, None)
    typed = settled(eight, facts(nodes=equal_nodes(2, 4, "v100"))).request
    assert (typed.tasks, typed.gres_per, typed.maximum_nodes) == (2, GresPer.NODE, 2)
    assert typed.gres == (Gres(name="gpu", count=4),)


@pytest.mark.parametrize("exclusive", [(keys(exclusive="true"), False), (keys(), True)])
def test_whole_nodes_by_request_or_by_partition(exclusive: tuple[dict[str, str], bool]) -> None:
    """Either way memory per cpu would be that of all cpus."""
    said, whole = exclusive
    there = facts(partition("debug", exclusive=whole))
    assert settled(gang(members(4, asking(2)), said, partition="debug"), there).form is Form.PER_NODE


def test_the_form_depends_on_the_eligible_nodes_only() -> None:
    """Typed GPUs elsewhere, and nodes outside the partition, do not matter."""
    mixed = (*equal_nodes(1, 8), node("v", (Gres(name="gpu", type="v100", count=8),)))
    found = gang(members(4, asking(1, "1Gi", 1)))
    assert settled(found, facts(nodes=mixed)).form is Form.PER_NODE
    assert settled(found, facts(nodes=mixed), names(1)).form is Form.TASKS
    outside = facts(partition("debug", nodes=("n1",)), partition("v", nodes=("v",)), nodes=mixed)
    assert settled(dataclasses.replace(found, request=_in(found, "debug")), outside).form is Form.TASKS


def _in(found: translator.Translated, where: str) -> JobRequest:
    return dataclasses.replace(found.request, partition=where)


def test_a_gang_that_will_never_have_room_waits_with_what_there_is() -> None:
    """Slurm would take it, and leave it waiting without a word."""
    found = gang(members(9, asking(1, "1Gi", 1)), partition="debug")
    there = facts(nodes=equal_nodes(2, 4))
    assert waits(found, there) == "Slurm partition debug has room for 8 of 9 pods of (1 cpus, 1024 MiB, gpu:1)"
    eight = gang(members(8, asking(1, "1Gi", 1)), keys(max_nodes="1", min_nodes="1"))
    assert waits(eight, there) == "Slurm has room for 4 of 8 pods of (1 cpus, 1024 MiB, gpu:1), on at most 1 nodes"
    apart = gang(members(3), keys(one_per_node="true", min_nodes="3"))
    assert waits(apart, there).endswith("2 of 3 pods of (1 cpus, 512 MiB), on at least 3 nodes, one pod on each node")


# -- different pods


def test_different_pods_run_together_on_one_node_where_it_has_the_room() -> None:
    """One task with all that they need; Slurm counts it exactly."""
    found = settled(gang(GROUP), facts(nodes=equal_nodes(2, 8), heterogeneous=True))
    assert found.form is Form.SUM
    assert amounts(found.request) == (1, 10, Memory(mib=20480), (Gres(name="gpu", count=5),))
    assert (found.request.maximum_nodes, found.request.components, found.told) == (None, (), "")


def test_different_pods_that_no_node_takes_together_are_components() -> None:
    """One for each shape, in their order; both have what is said of all."""
    said = keys(timelimit="9", account="physics", licenses="matlab:1")
    found = settled(gang(GROUP, said), facts(nodes=equal_nodes(2, 4), heterogeneous=True))
    assert found.form is Form.HET
    (workers,) = found.request.components
    assert amounts(found.request) == (1, 4, Memory(mib=4096, per=MemoryPer.GPU), (Gres(name="gpu", count=2),))
    assert amounts(workers) == (3, 2, Memory(mib=4096, per=MemoryPer.GPU), (Gres(name="gpu", count=1),))
    same = ("name", "owner", "account", "time_limit_minutes", "partition", "comment")
    assert all(getattr(workers, field) == getattr(found.request, field) for field in same)
    (parts,) = [one for one in found.values if one.field == "components"]
    assert parts.value == "1 x (4 cpus, 8192 MiB, gpu:2); 3 x (2 cpus, 4096 MiB, gpu:1)"


def test_licenses_are_taken_once() -> None:
    """Slurm would count those of every component."""
    request = settled(
        gang(GROUP, keys(licenses="matlab:1")), facts(nodes=equal_nodes(2, 4), heterogeneous=True)
    ).request
    assert [one.licenses for one in (request, *request.components)] == ["matlab:1", None]


def test_components_on_typed_nodes_are_asked_for_by_node() -> None:
    """Each component has the form that is exact for it."""
    request = settled(gang(GROUP), facts(nodes=equal_nodes(2, 4, "v100"), heterogeneous=True)).request
    assert [(one.tasks, one.minimum_nodes, one.maximum_nodes) for one in (request, *request.components)] == [
        (1, 1, 1),
        (1, 1, 1),
    ]
    assert request.components[0].gres == (Gres(name="gpu", count=3),)


@pytest.mark.parametrize(
    ("there", "said", "why"),
    [
        (facts(nodes=equal_nodes(2, 4)), {}, "are not available (no heterogeneous jobs)"),
        (
            facts(nodes=equal_nodes(3, 4), heterogeneous=True),
            keys(min_nodes="2"),
            "cannot keep the requested number of nodes",
        ),
    ],
)
def test_without_components_every_pod_is_asked_for_as_the_largest(
    there: limits.SlurmFacts, said: dict[str, str], why: str
) -> None:
    """And its owner is told, with the reason."""
    found = settled(gang(GROUP, said), there)
    assert found.form is Form.BOUND
    assert amounts(found.request) == (
        4,
        4,
        Memory(mib=4096, per=MemoryPer.GPU),
        (Gres(name="gpu", count=2),),
    )
    assert f"components for them {why}: each is requested as (4 cpus, 8192 MiB, gpu:2)" in found.told


def test_components_need_nodes_of_their_own() -> None:
    """Three shapes and two nodes: the bound may do where components would wait for ever."""
    small = (*members(1, asking(32)), *members(1, asking(31), first=1), *members(1, asking(30), first=2))
    assert settled(gang(small), facts(nodes=equal_nodes(3), heterogeneous=True)).form is Form.HET
    found = settled(gang(small), facts(nodes=equal_nodes(2), heterogeneous=True))
    assert found.form is Form.BOUND
    assert "need more nodes than there are, because components share no node" in found.told


@pytest.mark.parametrize("said", [keys(one_per_node="true"), keys(min_nodes="2"), keys(mem_per_node="10Gi")])
def test_the_users_word_keeps_different_pods_from_one_node(said: dict[str, str]) -> None:
    """Though it had the room for all of them."""
    there = facts(nodes=equal_nodes(5, 8), heterogeneous=True)
    assert settled(gang(GROUP), there).form is Form.SUM
    assert settled(gang(GROUP, said), there).form is not Form.SUM


def test_one_per_node_holds_in_every_component() -> None:
    """Which share no node anyway."""
    request = settled(
        gang(GROUP, keys(one_per_node="true")), facts(nodes=equal_nodes(4, 8), heterogeneous=True)
    ).request
    assert [(one.minimum_nodes, one.maximum_nodes) for one in (request, *request.components)] == [(1, 1), (3, 3)]


def test_gres_of_every_shape_is_spelled_as_slurm_does() -> None:
    """And refused if Slurm has none of it."""
    typed = {"nvidia.com/gpu": "GPU:V100"}
    found = settled(gang(GROUP, gres_names=typed), facts(nodes=equal_nodes(1, 8, "v100")))
    assert [shape.gres[0].type for shape in found.shapes] == ["v100", "v100"]
    assert found.request.gres == (Gres(name="gpu", type="v100", count=5),)
    refused = limits.settle(gang(GROUP, gres_names={"nvidia.com/gpu": "gpu:h100"}), facts(nodes=equal_nodes(1, 8)))
    assert "has gres gpu:h100; there is gpu" in getattr(refused, "message", "")


# -- pods in different places


def test_equal_pods_of_different_places_share_those_that_will_do_for_all() -> None:
    """One more toleration does not change the nodes."""
    found = gang(two_places())
    there = facts(nodes=equal_nodes(3), heterogeneous=True)
    assert settled(found, there, names(1, 2), names(2, 3)).form is Form.TASKS


def test_equal_pods_without_a_place_for_all_are_components() -> None:
    """Each on its own nodes; where Slurm cannot, they wait and are told."""
    found = gang(two_places())
    there = facts(nodes=equal_nodes(3), heterogeneous=True)
    request = settled(found, there, names(1), names(2, 3)).request
    assert [one.tasks for one in (request, *request.components)] == [2, 2]
    message = waits(found, facts(nodes=equal_nodes(3)), names(1), names(2, 3))
    assert message.startswith("no node of Slurm is suitable for all 4 pods, and components for them are not")


def test_one_set_of_nodes_is_that_of_all_shapes() -> None:
    """Where their nodes were not filtered one by one."""
    found = gang(two_places())
    assert settled(found, facts(nodes=equal_nodes(3)), names(1)).form is Form.TASKS
    assert "no node" in waits(found, facts(nodes=equal_nodes(3)), names(9))


def two_places() -> tuple[Pod, ...]:
    """Four equal pods, two of which are for nodes with an SSD."""
    return (*members(2, asking()), *members(2, asking(), first=2, node_selector={"disk": "ssd"}))


# -- for any gang on any nodes


@st.composite
def some_pods(draw: st.DrawFn) -> tuple[Pod, ...]:
    """A few of a few shapes."""
    found: list[Pod] = []
    for _ in range(draw(st.integers(1, 3))):
        container = asking(draw(st.integers(1, 40)), f"{draw(st.integers(1, 100))}Gi", draw(st.integers(0, 4)))
        found += members(draw(st.integers(1, 4)), container, first=len(found))
    return tuple(found)


SOME_NODES = st.one_of(
    st.builds(equal_nodes, st.integers(1, 5), st.sampled_from((0, 4, 8)), st.sampled_from(("", "v100"))),
    st.builds(lambda count: (*equal_nodes(count, 4), node("big", cpus=128, memory_mib=1_000_000)), st.integers(1, 4)),
)
SAID = st.sampled_from([{}, keys(min_nodes="1", max_nodes="2"), keys(one_per_node="true"), keys(mem_per_node="200Gi")])


@given(pods=some_pods(), nodes=SOME_NODES, said=SAID, heterogeneous=st.booleans())
def test_t01_no_form_asks_for_less_than_any_member_needs(
    pods: tuple[Pod, ...], nodes: tuple[SlurmNode, ...], said: dict[str, str], *, heterogeneous: bool
) -> None:
    """Every pod has its place in what is asked for, and a sum is exactly the sum."""
    wanted = gang(pods, said)
    found = limits.settle(wanted, facts(nodes=nodes, heterogeneous=heterogeneous))
    if not isinstance(found, translator.Translated):
        return
    parts = (found.request, *found.request.components)
    if found.form is Form.SUM:
        whole = shapes.total(found.shapes)
        assert (found.request.tasks, found.request.cpus_per_task) == (1, whole.cpus)
        assert found.request.memory.mib == (wanted.node_memory_mib or whole.memory_mib)
    elif found.form is Form.HET:
        assert len(parts) == len(found.shapes)
        for part, shape in zip(parts, found.shapes, strict=True):
            holds(part, len(shape.pods), shape.needs)
    else:
        holds(found.request, len(pods), shapes.bound(shapes.kinds(found.shapes)))
    assert bool(found.told) is (found.form is Form.BOUND)
    assert bool(found.request.components) is (found.form is Form.HET)


def holds(part: JobRequest, count: int, needs: shapes.Needs) -> None:
    """So many pods have a place in it."""
    fixed = part.memory.per is MemoryPer.NODE
    each = -(-count // part.tasks) if fixed else 1
    per = {MemoryPer.NODE: 1, MemoryPer.CPU: part.cpus_per_task, MemoryPer.GPU: sum(one.count for one in part.gres)}
    assert fixed or part.tasks == count
    assert (part.gres_per is GresPer.NODE) is (fixed or not part.gres)
    assert part.cpus_per_task >= needs.cpus * each
    assert part.memory.mib * per[part.memory.per] >= needs.memory_mib * each
    assert sum(one.count for one in part.gres) >= sum(one.count for one in needs.gres) * each


# -- parts


def parted(*sizes: int, **said: str) -> translator.Translated:
    """Equal pods in parts that have to have nodes of their own."""
    pods, numbers = members(sum(sizes), asking(2)), iter(range(sum(sizes)))
    parts = {f"uid-{next(numbers)}": f"p{place}" for place, size in enumerate(sizes) for _ in range(size)}
    return gang(pods, keys(**said), parts_of=lambda _workload: parts)


def test_equal_pods_in_parts_are_components() -> None:
    """One for each part, although one node would do for all."""
    found = settled(parted(2, 3), facts(nodes=equal_nodes(3, 4), heterogeneous=True))
    assert found.form is Form.HET
    assert [one.tasks for one in (found.request, *found.request.components)] == [2, 3]
    (told,) = [one for one in found.values if one.field == "components"]
    assert told.source.endswith("parts have nodes of their own")


@pytest.mark.parametrize(
    ("said", "there", "why"),
    [
        ({}, facts(nodes=equal_nodes(3, 4)), "are not available (no heterogeneous jobs)"),
        ({}, facts(nodes=equal_nodes(1, 4), heterogeneous=True), "need more nodes than there are"),
        ({"max_nodes": "3"}, facts(nodes=equal_nodes(3, 4), heterogeneous=True), "cannot keep the requested number"),
    ],
)
def test_parts_that_cannot_be_components_are_one_job(said: dict[str, str], there: limits.SlurmFacts, why: str) -> None:
    """As if there were none, with the reason."""
    found = settled(parted(2, 3, **said), there)
    assert (found.form, found.request.tasks) == (Form.TASKS, 5)
    assert found.told.startswith(f"its 2 parts are placed together: components for them {why}")


def test_more_parts_than_slurm_allows_components_are_one_job() -> None:
    """The number is told."""
    found = settled(parted(*[1] * 129), facts(nodes=equal_nodes(200, 4), heterogeneous=True))
    assert found.form is Form.TASKS
    assert found.told.endswith("are too many: 129, Slurm allows 128 in one job")
