"""Priorities that compare what is requested with what there is, against a reading of the rules node by node."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.families.kube_scheduler.priorities import demand, shape
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Container, Pod, ResourceNeeds
from tests.unit.families.kube_scheduler.scoring import asking, machine, rated

CPU = st.one_of(st.none(), st.integers(0, 5000))
MEMORY = st.one_of(st.none(), st.integers(0, 10**9))
CONTAINERS = st.lists(st.tuples(CPU, MEMORY), max_size=3)
CAPACITY = st.tuples(st.integers(0, 20000), st.integers(0, 4 * 10**9))
CLUSTERS = st.lists(st.tuples(CAPACITY, st.lists(CONTAINERS, max_size=3)), min_size=1, max_size=4)

Written = list[tuple[int | None, int | None]]


def requests(cpu: int | None, memory: int | None) -> dict[str, Any]:
    """What one container writes."""
    return {
        **({"cpu": f"{cpu}m"} if cpu is not None else {}),
        **({"memory": memory} if memory is not None else {}),
    }


def pod_of(name: str, containers: Written, **others: Any) -> Pod:
    """A pod of these containers."""
    return asking(name, *(requests(*one) for one in containers), **others)


def demand_of(containers: Written) -> tuple[int, int]:
    """CPU and memory with the defaults."""
    return sum(100 if c is None else c for c, _ in containers), sum(
        209715200 if m is None else m for _, m in containers
    )


def built(cluster: Any) -> tuple[list[Node], list[Pod], dict[str, Any]]:
    """Nodes, pods, and by node what is requested of what there is."""
    nodes, pods, facts = [], [], {}
    for number, ((cpu, memory), there) in enumerate(cluster):
        name = f"n{number}"
        nodes.append(machine(name, cpu=f"{cpu}m", memory=memory))
        pods += [pod_of(f"{name}-{place}", one, node=name) for place, one in enumerate(there)]
        sums = [demand_of(one) for one in there]
        facts[name] = ((cpu, sum(c for c, _ in sums)), (memory, sum(m for _, m in sums)))
    return nodes, pods, facts


def both(facts: Any, pod: tuple[int, int], rate: Any) -> dict[str, int]:
    """The mean of both resources, rounded down."""
    return {
        name: sum(rate(used + wanted, has) for (has, used), wanted in zip(pairs, pod, strict=True)) // 2
        for name, pairs in facts.items()
    }


@given(CLUSTERS, CONTAINERS)
def test_least_and_most_requested_follow_their_rules(cluster: Any, containers: Written) -> None:
    """On any nodes, with any pods there."""
    nodes, pods, facts = built(cluster)
    pod, wanted = pod_of("p", containers), demand_of(containers)
    least = both(facts, wanted, lambda r, cap: 0 if cap == 0 or r > cap else (cap - r) * 10 // cap)
    most = both(facts, wanted, lambda r, cap: 0 if cap == 0 or r > cap else r * 10 // cap)
    assert rated("LeastRequested", nodes, pod, pods) == least
    assert rated("MostRequested", nodes, pod, pods) == most


@given(CLUSTERS, CONTAINERS)
def test_a_ratio_follows_its_shape(cluster: Any, containers: Written) -> None:
    """Utilization is rounded up, and more than there is is full."""
    nodes, pods, facts = built(cluster)
    drawn = shape.UtilizationShape(((0, 2), (40, 10), (100, 1)))

    def rate(requested: int, has: int) -> int:
        return drawn.at(100 if has == 0 or requested > has else 100 - (has - requested) * 100 // has)

    args = {"shape": drawn.points}
    expected = both(facts, demand_of(containers), rate)
    assert rated("RequestedToCapacityRatio", nodes, pod_of("p", containers), pods, args) == expected


@given(CLUSTERS, CONTAINERS, st.tuples(st.integers(1, 100), st.integers(1, 100)))
def test_allocation_is_the_weighted_mean_of_what_a_node_has(
    cluster: Any, containers: Written, weights: tuple[int, int]
) -> None:
    """A resource that a node does not have takes no part there."""
    nodes, pods, facts = built(cluster)
    wanted = demand_of(containers)

    def mean(pairs: Any, rate: Any) -> int:
        parts = [
            (rate(used + want, has), weight)
            for (has, used), want, weight in zip(pairs, wanted, weights, strict=True)
            if has
        ]
        return sum(value * weight for value, weight in parts) // max(1, sum(weight for _, weight in parts))

    args = {"resources": [["cpu", weights[0]], ["memory", weights[1]]]}
    pod = pod_of("p", containers)
    least = {
        name: mean(pairs, lambda r, cap: 0 if r > cap else (cap - r) * 100 // cap) for name, pairs in facts.items()
    }
    most = {name: mean(pairs, lambda r, cap: min(r, cap) * 100 // cap) for name, pairs in facts.items()}
    assert rated("LeastAllocated", nodes, pod, pods, args) == least
    assert rated("MostAllocated", nodes, pod, pods, args) == most


@given(CLUSTERS, CONTAINERS)
def test_balance_is_best_where_both_are_used_alike(cluster: Any, containers: Written) -> None:
    """And nothing where one is used up; where a score lies between two, floats may say either."""
    nodes, pods, facts = built(cluster)
    wanted, found = demand_of(containers), rated("BalancedResourceAllocation", nodes, pod_of("p", containers), pods)
    for name, pairs in facts.items():
        shares = [
            Fraction(used + want, has) if has else Fraction(1) for (has, used), want in zip(pairs, wanted, strict=True)
        ]
        exact = (1 - abs(shares[0] - shares[1])) * 10
        if max(shares) >= 1:
            assert found[name] == 0
        else:
            assert found[name] == int(exact) or abs(exact - round(exact)) < Fraction(1, 10**9)


def test_init_containers_count_with_defaults_by_their_maximum() -> None:
    """They run one after the other, before the others."""
    pod = asking(
        "p",
        {"cpu": "50m", "memory": "1Mi"},
        init_containers=(
            Container(name="i"),
            Container(name="j", resources=ResourceNeeds(requests={"cpu": "80m", "memory": "1Mi"})),
        ),
    )
    assert demand.counted(pod, "cpu") == 100
    assert demand.counted(pod, "memory") == 200 * 2**20
    assert demand.asked(pod, "cpu") == 80


def test_amounts_of_the_whole_pod_leave_no_defaults() -> None:
    """Then no container has to say anything."""
    pod = asking("p", {}, {}, resources=ResourceNeeds(requests={"cpu": "1"}))
    assert demand.counted(pod, "cpu") == 1000
    assert demand.counted(pod, "memory") == 400 * 2**20


def test_a_limit_is_a_request() -> None:
    """The API server writes it as one."""
    limited = Container(name="c", resources=ResourceNeeds(limits={"cpu": "2", "memory": "1Gi"}))
    assert demand.counted(asking("p", containers=(limited,)), "cpu") == 2000


def test_extended_resources_have_no_default() -> None:
    """Who does not ask for a device gets none."""
    assert demand.counted(asking("p", {}), "nvidia.com/gpu") == 0


GIB = 2**30
#: Name, cores, GiB, devices, and what a pod there uses of them.
BALANCES = [
    ("a", 4, 8, 8, (2, 1, 0)),
    ("b", 8, 8, 4, (4, 4, 2)),
    ("c", 16, 4, 8, (0, 0, 0)),
    ("full", 1, 1, 0, (2, 0, 0)),
]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        # cpu and memory with the pod, and without: a 3/4, 2/8 and 2/4, 1/8; b 5/8, 5/8 and 4/8, 4/8;
        # c 1/16, 1/4 and nothing; full: more than there is counts as all of it, before and after.
        ({"cpu": 1, "memory": GIB}, {"a": 72, "b": 75, "c": 70, "full": 100}),
        ({"memory": 2 * GIB}, {"a": 81, "b": 68, "c": 62, "full": 100}),
        ({}, {"a": 0, "b": 0, "c": 0, "full": 0}),
    ],
)
def test_balance_is_rated_by_what_the_pod_changes(asked: dict[str, int], expected: dict[str, int]) -> None:
    """As by kube-scheduler 1.36: 75 where the node stays as it is, more where it becomes even, less where uneven."""
    nodes = [machine(name, cpu=cpu, memory=memory * GIB) for name, cpu, memory, _, _ in BALANCES]
    pods = [
        asking(f"on-{name}", {"cpu": cpu, "memory": memory * GIB}, node=name)
        for name, _, _, _, (cpu, memory, _) in BALANCES
    ]
    assert rated("BalancedAllocation", nodes, asking("p", asked), pods) == expected


def test_balance_over_three_resources() -> None:
    """The standard deviation of all shares; a device that the pod does not ask for takes no part."""
    nodes = [machine(n, cpu=c, memory=m * GIB, **{"x.org/gpu": g}) for n, c, m, g, _ in BALANCES]
    pods = [
        asking(f"on-{name}", {"cpu": cpu, "memory": memory * GIB, "x.org/gpu": gpu}, node=name)
        for name, _, _, _, (cpu, memory, gpu) in BALANCES
    ]
    args = {"resources": [["cpu", 1], ["memory", 1], ["x.org/gpu", 1]]}
    with_device = asking("p", {"cpu": 1, "memory": GIB, "x.org/gpu": 1})
    # a: deviations 0.270 and 0.212, so that 73 - 78 is the change; b: 0.059 and 0; c: 0.077 and 0.
    assert rated("BalancedAllocation", nodes, with_device, pods, args) == {"a": 72, "b": 72, "c": 71, "full": 100}
    without = asking("p", {"cpu": 1, "memory": GIB})
    assert rated("BalancedAllocation", nodes, without, pods, args) == {"a": 72, "b": 75, "c": 70, "full": 100}
