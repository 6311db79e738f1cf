"""The fewest nodes over columns are those that a look at node after node finds, whatever the cluster is like."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_bridge.cluster import fewest, fullness
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.fewest import Fewest, TaskRoom
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.model import names
from slurm_bridge.model.job import Gres
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.translate import resources
from slurm_bridge.translate.shapes import Form, Shape
from slurm_bridge.translate.translator import Translated
from tests.examples import examples
from tests.unit.cluster import fewest_oracle
from tests.unit.hooks.builders import node, partition, pod, slurm_node, translated

#: Nodes that may be there.
NAMES = tuple(f"n{number}" for number in range(7))

#: What nodes have, and what pods ask for: in thousandths, fifths and billionths, and more than a column holds.
ALLOCATABLE = {
    "cpu": ("16", "15500m", "4", "7000000001n"),
    "memory": ("62.3Gi", "9Gi", "8E", "5000000000000001n"),
    "nvidia.com/gpu": (8, 4, 0),
}
REQUESTS = {
    "cpu": ("100m", "500m", "1", "1500m", "300000001n"),
    "memory": ("100Mi", "0.1Gi", "2.3Gi", "1000000000000000n", "1.0000000001"),
    "nvidia.com/gpu": (0, 1),
}
RUNNING = {"cpu": ("1", "2500m", "4", "9"), "memory": ("1Gi", "0.3Gi"), "nvidia.com/gpu": (1, 4)}
HUGE = {**REQUESTS, "memory": ("7E", "9223372036854775807", "1000000001000000001n", "9223372036854775807000m")}

GRES = st.builds(Gres, name=st.sampled_from(["gpu", "shard"]), count=st.integers(1, 4), type=st.sampled_from(["", "a"]))
STATES = st.sampled_from(
    ["IDLE", "MIXED", "IDLE EXTERNAL", "MIXED COMPLETING"] * 5 + ["IDLE DRAIN", "ALLOCATED", "DOWN"]
)


def amounts(among: Mapping[str, Sequence[Any]], *, sure: Sequence[str] = ()) -> st.SearchStrategy[dict[str, Any]]:
    """Some of each resource, or of all but those that are sure to be there."""
    each = {name: st.sampled_from(some) for name, some in among.items()}
    return st.fixed_dictionaries(
        {name: each[name] for name in sure}, optional={name: one for name, one in each.items() if name not in sure}
    )


def kube(name: str) -> st.SearchStrategy[Node]:
    """A node in Kubernetes."""
    sure = st.sampled_from([*[tuple(ALLOCATABLE)] * 4, ()])
    return sure.flatmap(lambda them: amounts(ALLOCATABLE, sure=them)).map(lambda has: node(name, allocatable=has))


@st.composite
def machines(draw: st.DrawFn) -> list[SlurmNode]:
    """What Slurm says of most nodes."""
    return [draw(machine(name)) for name in draw(st.sets(st.sampled_from(NAMES), min_size=5))]


@st.composite
def machine(draw: st.DrawFn, name: str) -> SlurmNode:
    """One of them, of which more may be used than there is."""
    gres = st.lists(GRES, max_size=3).map(lambda some: (Gres(name="gpu", count=6), *some))
    return slurm_node(
        name,
        states=draw(STATES),
        cpus=draw(st.sampled_from([16, 7, 4])),
        used_cpus=draw(st.sampled_from([0, 0, 1, 3, 5])),
        memory_mib=draw(st.sampled_from([64_000, 8192, 2000])),
        used_memory_mib=draw(st.sampled_from([0, 0, 1000, 7000])),
        gres=draw(gres),
        used_gres=tuple(draw(st.lists(GRES, max_size=2))),
        threads_per_core=draw(st.sampled_from([1, 1, 2, 4])),
    )


@st.composite
def partitions(draw: st.DrawFn) -> tuple[Partition, ...]:
    """Two, which may overlap, be closed, or give several nodes at least."""
    return tuple(
        partition(
            name,
            *draw(st.permutations([*NAMES, "stranger"]))[draw(st.integers(0, 2)) :],
            default=name == "one" or draw(st.booleans()),
            states=frozenset({draw(st.sampled_from(["UP", "UP", "UP", "DOWN"]))}),
            minimum_nodes=draw(st.sampled_from([0, 0, 0, 1, 2])),
        )
        for name in ("one", "two")
    )


@st.composite
def shape(draw: st.DrawFn) -> Shape:
    """Pods of one kind: what Slurm is asked for need not be what Kubernetes is asked for."""
    requests = draw(st.one_of(*[amounts(REQUESTS)] * 4, amounts(HUGE)))
    gres = {one.name: one for one in draw(st.lists(GRES, max_size=1) if draw(st.booleans()) else st.just([]))}
    return Shape(
        pods=(pod("w", requests=requests),),
        cpus=draw(st.integers(1, 3)),
        memory_mib=draw(st.sampled_from([1, 300, 300, 1000, 2049])),
        gres=tuple(gres.values()),
    )


@st.composite
def gangs(draw: st.DrawFn) -> Translated:
    """Tasks of one kind or two."""
    found = draw(st.lists(shape(), min_size=1, max_size=2))
    where = draw(st.sampled_from([None, None, "one", "two", "one, two", "nowhere"]))
    asked = translated(shapes=tuple(found), tasks=draw(st.integers(2, 24)), partition=where)
    return dataclasses.replace(asked, form=draw(st.sampled_from([Form.TASKS, Form.BOUND])))


@st.composite
def running(draw: st.DrawFn, name: str) -> Pod:
    """A pod there, which has its node from Slurm or not."""
    labels = {"labels": {names.LABEL_JOB_ID: "7"}} if draw(st.booleans()) else {}
    requests = draw(amounts(RUNNING, sure=["cpu"]))
    return pod(f"{name}-{draw(st.integers(0, 1))}", requests=requests, node_name=name, phase="Running", metadata=labels)


Change = Callable[[ClusterCache], None]


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """A node or a pod that comes or goes, or what Slurm says anew."""
    name = draw(st.sampled_from(NAMES))
    there, one = draw(running(name)), draw(kube(name))
    told = draw(machines()), draw(partitions())
    return draw(
        st.sampled_from(
            [
                lambda made: made.on_pod(None, there),
                lambda made: made.on_pod(there, None),
                lambda made: made.assume(there.uid, name, resources.requests_of(there)),
                lambda made: made.on_node(None, one),
                lambda made: made.on_node(one, None),
                lambda made: made.set_slurm(*told),
            ]
        )
    )


@st.composite
def clusters(draw: st.DrawFn) -> ClusterCache:
    """Nodes on both sides, or on one of them."""
    made = ClusterCache(resources.requests_of)
    for name in NAMES[: len(NAMES) - draw(st.integers(0, 2))]:
        made.on_node(None, draw(kube(name)))
        if draw(st.integers(0, 2)):
            made.on_pod(None, draw(running(name)))
    made.set_slurm(draw(machines()), draw(partitions()))
    return made


def same(kept: Fewest, seen: ClusterSnapshot, asked: Translated, eligible: frozenset[str]) -> None:
    """The number, and behind it the room on each node, in columns and one by one."""
    assert kept.number(asked, seen, eligible) == fewest_oracle.number(asked, seen, eligible)
    task, plain = fewest.task_of(asked.shapes), fewest_oracle.task(asked.shapes)
    rooms = fewest.packed(task, seen.columns).tolist()
    for name, facts in seen.nodes.items():
        expected = fewest_oracle.room(plain, facts)
        assert fewest.room(task, facts) == expected
        row = seen.columns.row(name)
        assert row is not None
        assert divmod(rooms[row], 1 << 32) == (expected.seen, expected.real)


@settings(max_examples=examples(150))
@given(clusters(), st.lists(changes(), max_size=4), st.lists(gangs(), min_size=1, max_size=3), st.data())
def test_every_number_is_that_of_a_look_at_each_node(
    made: ClusterCache, steps: list[Change], asked: list[Translated], data: st.DataObject
) -> None:
    """Over all that happens to a cluster, for gangs that were asked about before and for others."""
    kept, before = Fewest(), made.snapshot()
    for step in (lambda _: None, *steps):
        step(made)
        seen = made.snapshot()
        some = data.draw(st.sets(st.sampled_from(NAMES), min_size=4).map(frozenset))
        for one in asked:
            same(kept, seen, one, seen.names)
            same(kept, seen, one, some)
    same(kept, before, asked[0], before.names)


ROOMS = st.lists(st.builds(TaskRoom, seen=st.integers(0, 12), real=st.integers(0, 12)), max_size=9)


@settings(max_examples=examples(400))
@given(ROOMS, st.integers(2, 30), st.integers(0, 4))
def test_counted_by_size_is_what_lined_up_nodes_give(there: list[TaskRoom], tasks: int, minimum: int) -> None:
    """Wherever the nodes are that deceive."""
    seen, real = (np.array([getattr(one, side) for one in there], np.int64) for side in ("seen", "real"))
    assert fullness.fewer(seen, real, tasks, minimum) == fewest_oracle.fewer(there, tasks, minimum)
