"""Two workloads that ask for room at once do not count on the same free room."""

import pathlib

from slurm_bridge.model import names
from tests.component.families.yunikorn.test_yunikorn_rooms import SOON, Packed
from tests.component.families.yunikorn.yunikorn_scenes import queue
from tests.component.scheduler.queue_evictions import evictions

#: On n1 and n3 there is room for one or two more.
THERE = (
    *(("f1", "2", "n1"), ("x1", "2", "n2"), ("x2", "2", "n2"), ("y1", "2", "n3"), ("y2", "1", "n3")),
    *(("z1", "2", "n4"), ("z2", "2", "n4")),
)


def test_each_of_two_gangs_has_room_of_its_own(tmp_path: pathlib.Path) -> None:
    """Both start once their victims have gone."""
    packed = Packed(tmp_path, queue("a", resources={"guaranteed": {"vcore": "8"}}, properties=SOON), queue("b"))
    packed.fill(*THERE)
    for gang in ("a", "b"):
        for number in range(2):
            packed.pod(f"{gang}{number}", "a", "2", labels={names.GROUP: gang, names.GROUP_SIZE: "2"})
    for _ in range(4):
        packed.go(10)
    nodes = {name: packed.bridge.node_of(name) for name in ("a0", "a1", "b0", "b1")}
    assert all(nodes.values()), (nodes, evictions(packed.bridge))
