"""On how few nodes a gang has room right now, and when that is no reason to ask for so few."""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster import fullness
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.fewest import Fewest, TaskRoom
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.model import names
from slurm_bridge.model.job import Gres
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.translate import resources
from slurm_bridge.translate.shapes import Form, Shape
from slurm_bridge.translate.translator import Translated
from tests.effort import Work
from tests.unit.hooks.builders import node, partition, pod, slurm_node, translated

#: Free cpus of five nodes: two nodes take eight tasks, and so does one.
FRAGMENTS = (4, 4, 4, 8, 16)


def rooms(*tasks: int) -> list[TaskRoom]:
    """Room on which both sides agree."""
    return [TaskRoom(seen=one, real=one) for one in tasks]


def fewer(there: Sequence[TaskRoom], tasks: int, minimum: int = 0) -> int | None:
    """Asked with an array for each count."""
    seen, real = (np.array([getattr(one, side) for one in there], np.int64) for side in ("seen", "real"))
    return fullness.fewer(seen, real, tasks, minimum)


class TestFewer:
    @pytest.mark.parametrize(("tasks", "number"), [(5, 1), (8, 1), (12, 1), (16, 1), (20, 2), (24, 2), (28, 3)])
    def test_the_largest_first(self, tasks: int, number: int) -> None:
        """As many as these take."""
        assert fewer(rooms(*FRAGMENTS), tasks) == number

    @pytest.mark.parametrize("tasks", [37, 1000])
    def test_no_room_for_all(self, tasks: int) -> None:
        """Then the gang waits for whatever is free first, be it on many nodes."""
        assert fewer(rooms(*FRAGMENTS), tasks) is None

    @pytest.mark.parametrize("there", [(8,), (8, 8, 8), (4, 4), (8, 0, 0), (1,) * 8])
    def test_no_choice(self, there: tuple[int, ...]) -> None:
        """Whichever nodes Slurm takes, they are as few: a maximum could only make it wait."""
        assert fewer(rooms(*there), 8) is None

    def test_a_partition_that_gives_no_fewer(self) -> None:
        """A maximum below its minimum would never start."""
        assert fewer(rooms(*FRAGMENTS), 12, 2) == 2
        assert fewer(rooms(*FRAGMENTS), 12, 3) is None

    @given(st.lists(st.integers(0, 6), max_size=5), st.integers(2, 20))
    def test_it_is_the_best_of_all_orders(self, there: list[int], tasks: int) -> None:
        """Slurm fills node after node in an order of its own: the best one, where another would be worse."""
        counts = {one for order in itertools.permutations(there) if (one := _filled(order, tasks)) is not None}
        expected = min(counts) if len(counts) > 1 else None
        assert fewer(rooms(*there), tasks) == expected

    def test_a_node_that_only_slurm_takes_for_free(self) -> None:
        """Kept to one node Slurm would take that one, and the gang would have to be placed anew."""
        deceptive = TaskRoom(seen=12, real=4)
        assert fewer([*rooms(4, 8), deceptive], 8) is None
        assert fewer([*rooms(4, 8), TaskRoom(seen=7, real=4)], 8) == 1

    def test_less_room_than_slurm_counts_yet_enough(self) -> None:
        """It would not put more there than there is room for."""
        assert fewer([*rooms(4, 4), TaskRoom(seen=16, real=15)], 8) == 1

    def test_a_deceptive_node_that_helps_nobody(self) -> None:
        """With it, so few nodes would not do, and Slurm does not take it."""
        assert fewer([*rooms(4, 4, 8, 8), TaskRoom(seen=3, real=0)], 16) == 2


def _filled(order: Iterable[int], tasks: int) -> int | None:
    taken = 0
    for room in (one for one in order if one):
        tasks, taken = tasks - room, taken + 1
        if tasks <= 0:
            return taken
    return None


def machines(*free: int, **fields: Any) -> list[SlurmNode]:
    """Nodes n0, n1 ... of 16 cpus, with so many free."""
    return [slurm_node(f"n{number}", used_cpus=16 - one, **fields) for number, one in enumerate(free)]


def keeper(nodes: Iterable[SlurmNode], *partitions: Any) -> ClusterCache:
    """One that knows these nodes on both sides."""
    made, known = ClusterCache(resources.requests_of), tuple(nodes)
    for one in known:
        made.on_node(None, node(one.name, allocatable={"nvidia.com/gpu": "8"}))
    made.set_slurm(known, partitions or (partition("debug", *(one.name for one in known), default=True),))
    return made


def gang(count: int, *, gpus: int = 0, memory_mib: int = 512, form: Form = Form.TASKS, **fields: Any) -> Translated:
    """So many tasks of one cpu, as translation settles them."""
    requests: dict[str, Any] = {"cpu": "1", "memory": f"{memory_mib}Mi"} | ({"nvidia.com/gpu": gpus} if gpus else {})
    pods = tuple(pod(f"w-{number}", requests=requests) for number in range(count))
    gres = (Gres(name="gpu", count=gpus),) if gpus else ()
    shape = Shape(pods=pods, cpus=1, memory_mib=memory_mib, gres=gres)
    asked = translated(shapes=(shape,), tasks=count, **fields)
    return dataclasses.replace(asked, form=form)


def bound(name: str, where: str, cpu: str, *, ours: bool = True) -> Pod:
    """A pod that runs there, by a job of Slurm or not."""
    labels = {names.LABEL_JOB_ID: "7"} if ours else {}
    return pod(name, requests={"cpu": cpu}, node_name=where, phase="Running", metadata={"labels": labels})


def number(seen: ClusterSnapshot, asked: Translated, eligible: Iterable[str] | None = None) -> int | None:
    """The maximum, for a gang that may have these nodes."""
    return Fewest().number(asked, seen, seen.names if eligible is None else frozenset(eligible))


class TestSnapshot:
    def test_room_by_slurms_count(self) -> None:
        """Cpus that jobs have are not free, whoever's jobs they are."""
        seen = keeper(machines(*FRAGMENTS)).snapshot()
        assert [number(seen, gang(count)) for count in (8, 20, 36, 37)] == [1, 2, None, None]

    def test_only_nodes_that_it_may_have(self) -> None:
        """The one with the most room is not among them."""
        seen = keeper(machines(*FRAGMENTS)).snapshot()
        assert number(seen, gang(12), {"n0", "n1", "n2", "n3"}) == 2
        assert number(seen, gang(12), {"n0", "n1", "n2"}) is None

    def test_memory_and_devices_count_too(self) -> None:
        """Each node has room for the least that any of them allows."""
        gpu = Gres(name="gpu", count=8)
        memory = [slurm_node(f"n{at}", used_memory_mib=60_000 if at else 0) for at in range(3)]
        assert number(keeper(memory).snapshot(), gang(8, memory_mib=1000)) == 1
        used = [(gpu,), (dataclasses.replace(gpu, count=6),), (dataclasses.replace(gpu, count=6),), ()]
        devices = [slurm_node(f"n{at}", gres=(gpu,), used_gres=one) for at, one in enumerate(used)]
        assert number(keeper(devices).snapshot(), gang(4, gpus=1)) == 1
        assert number(keeper(devices[:3]).snapshot(), gang(4, gpus=1)) is None

    def test_pods_that_were_bound_since_slurm_was_read_take_room(self) -> None:
        """Slurm gave them the node, so it knows better than our last reading of it."""
        made = keeper(machines(*FRAGMENTS))
        made.on_pod(None, bound("a", "n4", "12"))
        assert number(made.snapshot(), gang(12)) == 2
        made.assume("uid-b", "n3", resources.requests_of(bound("b", "n3", "13")))
        assert number(made.snapshot(), gang(12)) == 3

    def test_pods_of_which_slurm_does_not_know(self) -> None:
        """The only node that would do is one on which it would count wrongly: it is left alone."""
        made = keeper(machines(*FRAGMENTS))
        made.on_pod(None, bound("a", "n4", "12", ours=False))
        assert number(made.snapshot(), gang(12)) is None
        made.on_pod(bound("a", "n4", "12", ours=False), None)
        assert number(made.snapshot(), gang(12)) == 1

    @pytest.mark.parametrize("states", ["IDLE DRAIN", "DOWN", "IDLE RESERVED", "IDLE NOT_RESPONDING", "MIXED PLANNED"])
    def test_a_node_that_takes_no_job_now_has_no_room(self, states: str) -> None:
        """Whatever is free there."""
        large = slurm_node("n4", states=states)
        assert number(keeper([*machines(4, 4, 4, 8), large]).snapshot(), gang(12)) == 2

    def test_a_node_that_slurm_does_not_have(self) -> None:
        """Kubernetes alone gives no room."""
        made = keeper(machines(4, 4, 4, 8))
        made.on_node(None, node("stranger"))
        assert number(made.snapshot(), gang(12)) == 2

    def test_each_partition_alone(self) -> None:
        """A job runs in one of them: of several the one in which it takes the fewest nodes counts."""
        made = keeper(
            machines(4, 4, 8, 16, 4), partition("one", "n0", "n1", "n2"), partition("two", "n1", "n3"), partition("x")
        )
        seen = made.snapshot()
        assert number(seen, gang(12, partition="one")) == 2
        assert number(seen, gang(12, partition="two")) == 1
        assert number(seen, gang(12, partition="one, two")) == 1
        assert number(seen, gang(12, partition="x")) is None
        assert number(seen, gang(12)) is None, "nobody knows which one is the default"

    def test_a_partition_that_is_closed_or_gives_more_nodes(self) -> None:
        """There is nothing to try, or no fewer than it gives."""
        there = tuple(f"n{at}" for at in range(5))
        closed = partition("p", *there, default=True, states=frozenset({"DOWN"}))
        large = partition("p", *there, default=True, minimum_nodes=2)
        assert number(keeper(machines(*FRAGMENTS), closed).snapshot(), gang(12)) is None
        assert number(keeper(machines(*FRAGMENTS), large).snapshot(), gang(12)) == 2

    @pytest.mark.parametrize(
        "asked",
        [
            gang(8, constraints="rack1"),
            gang(8, reservation="monday"),
            gang(8, minimum_nodes=1),
            gang(8, maximum_nodes=3),
            gang(8, form=Form.PER_NODE),
            gang(8, form=Form.SUM),
            gang(8, form=Form.HET),
            gang(1),
            gang(1, form=Form.SINGLE),
        ],
    )
    def test_others_are_left_alone(self, asked: Translated) -> None:
        """What only Slurm knows, what the user has said, and what is not one task for each pod."""
        assert number(keeper(machines(*FRAGMENTS)).snapshot(), asked) is None

    def test_pods_that_differ_count_as_the_largest(self) -> None:
        """As they are asked for."""
        small, large = gang(4).shapes[0], gang(4, memory_mib=8000).shapes[0]
        asked = dataclasses.replace(gang(8, form=Form.BOUND), shapes=(small, large))
        memory = [slurm_node(f"n{at}", used_memory_mib=used) for at, used in enumerate((4000, 20_000, 48_000, 48_000))]
        assert number(keeper(memory).snapshot(), asked) == 2
        assert number(keeper(memory).snapshot(), gang(8)) is None


def test_what_is_remembered_follows_every_change() -> None:
    """One memory over all the changes of a cluster says what a fresh one says."""
    made, kept = keeper(machines(*FRAGMENTS)), Fewest()
    changes = (
        lambda: made.on_pod(None, bound("a", "n4", "10")),
        lambda: made.set_slurm(machines(4, 4, 4, 8, 6), made.snapshot().partitions),
        lambda: made.on_pod(bound("a", "n4", "10"), None),
        lambda: made.set_slurm(machines(4, 4, 4, 16, 6), made.snapshot().partitions),
        lambda: made.on_node(node("n3"), None),
        lambda: made.on_node(None, node("n3")),
    )
    for change in changes:
        change()
        seen = made.snapshot()
        for count in (6, 8, 12, 20):
            assert kept.number(gang(count), seen, seen.names) == number(seen, gang(count))


def test_a_thousand_nodes_are_as_much_work_as_a_hundred() -> None:
    """Also after each start, which changes a few of them: a gang more is a look at what has changed."""

    def took(nodes: int) -> int:
        large = [slurm_node(f"n{at}", used_cpus=at % 13, used_memory_mib=100 * (at % 100)) for at in range(nodes)]
        made, kept, asked = keeper(large), Fewest(), gang(64)
        kept.number(asked, made.snapshot(), made.snapshot().names)
        made.on_pod(None, bound("p", "n7", "1"))
        seen = made.snapshot()
        with Work() as work:
            kept.number(asked, seen, seen.names)
        return work.total

    assert took(1000) <= took(100) * 1.1
