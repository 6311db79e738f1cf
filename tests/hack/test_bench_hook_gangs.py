"""Gangs of the benchmark of the hooks: what they ask for, where they land, and what ends for them."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import pytest
from hooksbench import gangs
from hooksbench.__main__ import GANGS_DRAWING
from hooksbench.gangs import CONTESTANTS, Full, Racks
from hooksbench.passes import Passes
from hooksbench.world import RACK

from slurm_bridge.model.pod import Pod


class Watched(Racks):
    """Remembers on which nodes each gang could have been placed, and on which it was."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.offered: list[Collection[str] | None] = []
        self.placements: list[Mapping[str, str]] = []

    def seat(self, pods: Sequence[Pod], among: Collection[str] | None, excluded: Sequence[str]) -> Mapping[str, str]:
        self.offered.append(among)
        return super().seat(pods, among, excluded)

    def settle(self, pods: Sequence[Pod], placement: Mapping[str, str]) -> None:
        super().settle(pods, placement)
        self.placements.append(placement)


def played(contestant: str, shapes: str, size: int = 200, count: int = 8) -> Watched:
    """A cluster on which so many gangs were placed."""
    world = Watched(size)
    passes = Passes(CONTESTANTS[contestant], world)
    passes.play(gangs.SHAPES[shapes](0, count))
    passes.close()
    return world


def racks(nodes: Iterable[str]) -> set[int]:
    """Those in which these are."""
    return {int(node.removeprefix("node-")) // RACK for node in nodes}


def test_gangs_are_of_one_shape_or_of_no_two_alike() -> None:
    """By what their pods ask for; both have gangs of every size."""
    same, mixed = (make(0, 40) for make in gangs.SHAPES.values())
    assert len({repr(one.pod.spec) for one in same}) == 1
    assert len({repr(one.pod.spec) for one in mixed}) == 40
    assert {len(one.workload.pods) for one in same} == {len(one.workload.pods) for one in mixed} == {8, 16, 32, 64}


@pytest.mark.parametrize("shapes", gangs.SHAPES)
def test_every_gang_lands_in_one_rack(shapes: str) -> None:
    """It is offered one, and no other node; without the hook it is not."""
    world = played("kai", shapes)
    assert [len(racks(one or ())) for one in world.offered] == [1] * 8
    assert [len(racks(one.values())) for one in world.placements] == [1] * 8
    assert 1 not in [len(racks(one or ())) for one in played("framework alone", shapes).offered]


def test_old_gangs_end_when_there_are_too_many_pods() -> None:
    """The last one stays, however large it is."""
    world = played("kai", "gangs of equal", size=100, count=4)
    *others, last = world.placements
    assert all(world.keeper.holds(uid, node) for uid, node in last.items())
    assert not any(world.keeper.holds(uid, node) for one in others for uid, node in one.items())


def test_our_pods_that_are_in_the_way_end_first() -> None:
    """Slurm would wait for just that."""
    world, (first, second) = Watched(100), (one.workload.pods for one in gangs.equal(0, 2))
    nodes = {"node-00000"}
    world.settle(first, world.seat(first, nodes, ()))
    world.settle(second[:8], world.seat(second[:8], nodes, ()))
    assert not any(world.keeper.holds(pod.uid, "node-00000") for pod in first)
    assert all(world.keeper.holds(pod.uid, "node-00000") for pod in second[:8])


def test_nodes_that_cannot_hold_a_gang_are_an_error() -> None:
    """A benchmark of gangs that cannot start would look fast."""
    (largest,) = gangs.equal(3, 1)
    with pytest.raises(Full, match=r"1 nodes from node-00000 on have room for \d+ of 64 pods"):
        Racks(10).seat(largest.workload.pods, {"node-00000"}, ())


def test_the_drawing_of_gangs_is_there() -> None:
    """The page shows it."""
    assert GANGS_DRAWING.read_text(encoding="utf-8").count("<polyline") == 4
