"""Whole workloads on a bench, and resources among queues."""

import random
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.families.kai.topology import TaskOwner, Topology, TopologyConstraint
from tests.conformance.kai_arithmetic import allocation, fairshare
from tests.conformance.kai_arithmetic.allocation import TaskGroup
from tests.conformance.kai_arithmetic.bench import Bench, Machine, TaskRequest
from tests.conformance.kai_arithmetic.fairshare import QueueClaim

JOB = TaskOwner(namespace="team", name="train")
RACKS = Topology(name="racks", levels=("zone", "rack"))

_PLACES = st.tuples(st.sampled_from("ab"), st.sampled_from("12"))


def machine(name: str, place: tuple[str, str] = ("a", "1"), gpus: int = 4) -> Machine:
    """A node with GPUs in a zone and a rack."""
    return Machine(name=name, labels=dict(zip(RACKS.levels, place, strict=True)), total={"gpu": gpus})


def tasks(*gpus: int) -> tuple[TaskRequest, ...]:
    """One task for each number of GPUs."""
    return tuple(TaskRequest(name=f"t{number}", resources={"gpu": count}) for number, count in enumerate(gpus))


def rooms(bench: Bench) -> dict[str, int]:
    """GPUs that are free."""
    return {name: bench.free(name, "gpu") for name in sorted(bench.names)}


_CLUSTERS = st.dictionaries(st.sampled_from("pqrstu"), st.tuples(_PLACES, st.integers(0, 4)), min_size=1).map(
    lambda found: [machine(name, place, gpus) for name, (place, gpus) in found.items()]
)
_CONSTRAINTS = st.sampled_from(
    [
        None,
        TopologyConstraint(topology="racks", required="zone"),
        TopologyConstraint(topology="racks", required="rack"),
        TopologyConstraint(topology="racks", preferred="rack"),
        TopologyConstraint(topology="racks", required="zone", preferred="rack"),
    ]
)


class TestAllocating:
    @given(_CLUSTERS, _CONSTRAINTS, st.lists(st.integers(0, 3), max_size=6))
    def test_all_or_nothing(
        self, cluster: list[Machine], constraint: TopologyConstraint | None, gpus: list[int]
    ) -> None:
        """Every task has its room in one set, or the bench is as it was."""
        bench = Bench(cluster, [RACKS])
        before = rooms(bench)
        done = allocation.allocate(bench, JOB, TaskGroup(constraint=constraint, tasks=tasks(*gpus)))
        if done.nodes is None:
            assert (rooms(bench), bench.placement, done.placement) == (before, {}, {})
            return
        assert done.placement.keys() == {f"t{number}" for number in range(len(gpus))}
        assert set(done.placement.values()) <= set(done.nodes)
        assert all(free >= 0 for free in rooms(bench).values())
        assert sum(before.values()) - sum(rooms(bench).values()) == sum(gpus)

    @given(_CLUSTERS, st.sampled_from(["zone", "rack"]), st.lists(st.integers(0, 3), min_size=1, max_size=4))
    def test_a_required_level_is_one_domain(self, cluster: list[Machine], level: str, gpus: list[int]) -> None:
        """All nodes of the placement share it, and all levels above it."""
        bench = Bench(cluster, [RACKS])
        group = TaskGroup(constraint=TopologyConstraint(topology="racks", required=level), tasks=tasks(*gpus))
        used = set(allocation.allocate(bench, JOB, group).placement.values())
        domains = [tuple(one.labels.values())[: RACKS.depth(level)] for one in cluster if one.name in used]
        assert len(set(domains)) <= 1

    def test_a_group_within_stays_in_the_set_around_it(self) -> None:
        """The first zone takes one of two groups only, so that both go to the second."""
        nodes = [machine("n1", ("a", "1"), 2), machine("n2", ("b", "1"), 4), machine("n3", ("b", "2"), 4)]
        parts = tuple(
            TaskGroup(
                name=name,
                constraint=TopologyConstraint(topology="racks", required="rack"),
                tasks=(TaskRequest(name=name, resources={"gpu": 2}),),
            )
            for name in ("one", "other")
        )
        group = TaskGroup(constraint=TopologyConstraint(topology="racks", required="zone"), groups=parts)
        done = allocation.allocate(Bench(nodes, [RACKS]), JOB, group)
        assert set(done.placement.values()) <= {"n2", "n3"}

    def test_what_a_group_is_short_of_is_told_once(self) -> None:
        """However many sets of the group around it were tried."""
        nodes = [machine("n1", ("a", "1"), 2), machine("n2", ("b", "1"), 2)]
        inner = TaskGroup(
            name="inner", constraint=TopologyConstraint(topology="racks", required="floor"), tasks=tasks(1)
        )
        group = TaskGroup(constraint=TopologyConstraint(topology="racks", preferred="zone"), groups=(inner,))
        done = allocation.allocate(Bench(nodes, [RACKS]), JOB, group)
        assert done.tried == 3
        assert [error.partition(" as ")[0] for error in done.errors] == [
            "topology constraint error: sub-group inner specified 'floor'"
        ]

    def test_undone_in_order(self) -> None:
        """A bench returns to any mark."""
        bench = Bench([machine("n1"), machine("n2")])
        first, second = tasks(3, 2)
        bench.seat(first, bench.names, {})
        mark = bench.mark
        bench.seat(second, bench.names, {})
        assert bench.placement == {"t0": "n1", "t1": "n2"}
        bench.undo(mark)
        assert (bench.placement, rooms(bench)) == ({"t0": "n1"}, {"n1": 1, "n2": 4})

    def test_trees_follow_the_bench(self) -> None:
        """What is placed is no longer free for the next group."""
        bench = Bench([machine("n1"), machine("n2", ("b", "1"))], [RACKS])
        group = TaskGroup(constraint=TopologyConstraint(topology="racks", required="rack"), tasks=tasks(3))
        one = allocation.allocate(bench, JOB, group)
        other = allocation.allocate(bench, JOB, TaskGroup(constraint=group.constraint, tasks=(tasks(0, 0, 3)[2],)))
        assert (one.placement, other.placement) == ({"t0": "n1"}, {"t0": "n1", "t2": "n2"})


_CLAIMS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "q4"]),
    st.builds(
        QueueClaim,
        request=st.integers(0, 40),
        deserved=st.none() | st.integers(0, 20),
        weight=st.integers(0, 4),
        max=st.none() | st.integers(0, 40),
        priority=st.integers(0, 1),
        created=st.integers(0, 1),
        usage=st.sampled_from([0, 0.1, 0.5]),
    ),
)


class TestFairShare:
    @given(st.integers(0, 100), _CLAIMS, st.sampled_from([0, 0.5, 2]))
    def test_nothing_is_lost(self, total: int, claims: Mapping[str, QueueClaim], k_value: float) -> None:
        """Shares and what remains are the total, unless what is deserved is more than there is."""
        done = fairshare.divide(total, claims, k_value)
        given_away = sum(done.shares.values())
        assert done.remaining >= 0
        assert given_away + done.remaining == total or (done.remaining == 0 and given_away > total)

    @given(st.integers(0, 100), _CLAIMS, st.sampled_from([0, 0.5, 2]))
    def test_whole_requests_are_never_exceeded(
        self, total: int, claims: Mapping[str, QueueClaim], k_value: float
    ) -> None:
        """Nor is a maximum, and what is deserved is never taken away."""
        done = fairshare.divide(total, claims, k_value)
        for name, claim in claims.items():
            deserved = total if claim.deserved is None else claim.deserved
            assert min(deserved, claim.requestable) <= done.shares[name] <= claim.requestable

    @given(st.integers(0, 100), _CLAIMS, st.randoms())
    def test_the_order_of_queues_is_no_matter(
        self, total: int, claims: Mapping[str, QueueClaim], dice: random.Random
    ) -> None:
        """Age and name decide between equals."""
        shuffled = dict(sorted(claims.items(), key=lambda _: dice.random()))
        assert fairshare.divide(total, claims) == fairshare.divide(total, shuffled)

    @given(st.integers(0, 100), _CLAIMS, st.integers(0, 100))
    def test_a_higher_priority_is_served_first(
        self, total: int, claims: Mapping[str, QueueClaim], request: int
    ) -> None:
        """Alone in its priority, a queue has all that it can use of what deserved shares leave."""
        done = fairshare.divide(total, {**claims, "top": QueueClaim(request=request, weight=1, priority=2)})
        deserved = (
            min(total if one.deserved is None else one.deserved, int(one.requestable)) for one in claims.values()
        )
        assert done.shares["top"] == min(request, max(0, total - sum(deserved)))

    def test_a_lower_priority_has_what_is_left_of_whole_units(self) -> None:
        """Units of which no higher queue's part is a whole one go down before fractions are made good."""
        high = {f"h{number}": QueueClaim(request=5, weight=1, priority=1) for number in range(3)}
        done = fairshare.divide(2, {**high, "low": QueueClaim(request=5, weight=1)})
        assert done.shares == {"h0": 0, "h1": 0, "h2": 0, "low": 2}

    def test_equal_fractions_are_equal(self) -> None:
        """A third is a third however it came about: the older queue has the last unit."""
        claims = {
            "q1": QueueClaim(request=90, weight=1, created=2),
            "q2": QueueClaim(request=90, weight=4, created=1),
            "q3": QueueClaim(request=90, weight=4, created=3),
        }
        assert fairshare.divide(3, claims).shares == {"q1": 0, "q2": 2, "q3": 1}
