"""Components of a job that waits although all of them have room get nodes of their own."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.cluster import cluster_cache, node_shares
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks import component_shares, usable_nodes
from slurm_bridge.hooks.attempts import PLAIN, Attempt, Course, PlanState, Then
from slurm_bridge.hooks.base import Nodes
from slurm_bridge.translate import resources
from slurm_bridge.translate.shapes import Shape
from slurm_bridge.translate.translator import Translated
from tests.effort import Work
from tests.unit.hooks.builders import node, partition, pod, request, slurm_node, translated

Sized = tuple[int, int]
Parts = tuple[Nodes, ...]

A, B, C = frozenset("a"), frozenset("b"), frozenset("c")
WAITS = PlanState(version="0", attempt=0, started=5.0, seen=6.0)


def machines(free: Mapping[str, int], cpus: int = 8) -> ClusterSnapshot:
    """Nodes of so many CPUs, of which so many are free for Slurm."""
    made = cluster_cache.ClusterCache(resources.requests_of)
    for name in free:
        made.on_node(None, node(name, allocatable={"cpu": str(cpus)}))
    known = [slurm_node(name, cpus=cpus, used_cpus=cpus - left) for name, left in free.items()]
    made.set_slurm(known, (partition("debug", *free, default=True),))
    return made.snapshot()


def asking(*kinds: Sized) -> Translated:
    """A component for each kind of pods: how many, and the CPUs of each."""
    shapes = tuple(
        Shape(
            pods=tuple(pod(f"p{kind}-{number}", requests={"cpu": str(cpus)}) for number in range(count)),
            cpus=cpus,
            memory_mib=1,
        )
        for kind, (count, cpus) in enumerate(kinds)
    )
    first, *others = (request(tasks=count, cpus_per_task=cpus) for count, cpus in kinds)
    return dataclasses.replace(translated(shapes=shapes), request=dataclasses.replace(first, components=tuple(others)))


def shared(free: Mapping[str, int], *kinds: Sized, attempt: Attempt = PLAIN.attempts[0]) -> Parts | None:
    """The shares in an attempt."""
    every = tuple(frozenset(free) for _ in kinds)
    return component_shares.of_attempt(machines(free).columns, asking(*kinds), (), every, attempt)


def fits(free: Mapping[str, int], kinds: Sequence[Sized]) -> bool:
    """Some way to give each node to one component leaves room for all."""
    return any(
        all(
            sum(free[name] // cpus for name, owner in zip(free, owners, strict=True) if owner == kind) >= count
            for kind, (count, cpus) in enumerate(kinds)
        )
        for owners in itertools.product(range(len(kinds)), repeat=len(free))
    )


class TestShares:
    def test_the_leader_leaves_the_workers_the_only_node_on_which_they_fit(self) -> None:
        """Where Slurm would give it the first node that will do."""
        assert shared({"a": 4, "b": 2, "c": 0}, (1, 2), (3, 1)) == (B, A)

    def test_what_is_in_use_has_no_room(self) -> None:
        """However large the node is."""
        assert shared({"a": 4, "b": 0}, (1, 2), (3, 1)) is None

    def test_only_nodes_of_the_attempt_are_shared(self) -> None:
        """A required set is not left."""
        within = Attempt(nodes=A | B, within=A | B)
        assert shared({"a": 4, "b": 2, "c": 4}, (1, 2), (1, 4), attempt=within) == (B, A)
        assert shared({"a": 4, "b": 2, "c": 4}, (1, 3), (1, 4), attempt=within) is None

    def test_parts_that_have_their_nodes_keep_to_them(self) -> None:
        """As in two racks."""
        parts = Attempt(nodes=A | B | C, within=A | B | C, parts=(A | B, C))
        assert shared({"a": 4, "b": 4, "c": 4}, (1, 4), (1, 4), attempt=parts) == (A, C)
        assert shared({"a": 4, "b": 4, "c": 1}, (1, 4), (1, 4), attempt=parts) is None

    @given(
        st.lists(st.integers(0, 8), min_size=1, max_size=5),
        st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=2, max_size=3),
    )
    def test_there_are_shares_exactly_where_all_fit(self, left: Sequence[int], kinds: Sequence[Sized]) -> None:
        """No node is in two of them, and each has room for all pods of its component."""
        free = dict(zip("abcde", left, strict=False))
        found = shared(free, *kinds)
        assert (found is not None) is fits(free, kinds)
        for share, (count, cpus) in zip(found or (), kinds, strict=False):
            assert sum(free[name] // cpus for name in share) >= count
        assert sum(map(len, found or ())) == len(frozenset().union(*(found or ())))

    @given(
        st.lists(st.integers(1, 8), min_size=1, max_size=5),
        st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=2, max_size=3),
    )
    def test_a_job_fits_on_empty_nodes_exactly_where_there_are_shares(
        self, sizes: Sequence[int], kinds: Sequence[Sized]
    ) -> None:
        """What is in use at the moment does not count."""
        most = dict(zip("abcde", sizes, strict=False))
        made = cluster_cache.ClusterCache(resources.requests_of)
        for name, cpus in most.items():
            made.on_node(None, node(name, allocatable={"cpu": str(cpus)}))
        known = [slurm_node(name, cpus=cpus, used_cpus=cpus) for name, cpus in most.items()]
        made.set_slurm(known, (partition("debug", *most, default=True),))
        every = tuple(frozenset(most) for _ in kinds)
        assert usable_nodes.fit_apart(made.snapshot(), asking(*kinds), every) is fits(most, kinds)

    @pytest.mark.security("fairness")
    def test_what_takes_too_long_to_find_out_counts_as_fitting(self) -> None:
        """A job that fits is never refused, and the answer about another one takes no time."""
        seen = machines({f"n{number:03}": 8 for number in range(400)})
        every = frozenset(seen.names)
        for number in (node_shares.MOST_COMPONENTS, 100):
            asked = asking(*((401 + kind, 8) for kind in range(number)))
            with Work() as done:
                assert usable_nodes.fit_apart(seen, asked, (every,) * number)
            assert done.total < 3 * node_shares.MOST_STEPS

    @pytest.mark.security("fairness")
    def test_many_components_on_many_nodes_cost_few_steps(self) -> None:
        """Whatever a user writes: components with a hundred pods each do not fit on 400 nodes with room for one pod."""
        columns = machines({f"n{number:03}": 1 for number in range(400)}).columns
        most = node_shares.MOST_COMPONENTS
        for number in (most, most + 1, 100):
            asked = asking(*((100, 1) for _ in range(number)))
            every = (frozenset(columns.names.tolist()),) * number
            with Work() as done:
                assert component_shares.of_attempt(columns, asked, (), every, PLAIN.attempts[0]) is None
            assert done.total < node_shares.MOST_STEPS


def some(_attempt: Attempt) -> Parts | None:
    return A, B


def none(_attempt: Attempt) -> Parts | None:
    return None


class TestCourses:
    def test_slurm_chooses_first(self) -> None:
        """A job that is not there yet is asked for on all nodes."""
        assert component_shares.with_shares(PLAIN, None, some, 45.0) == (PLAIN, None)

    def test_a_job_that_waits_for_room_stays_as_it_is(self) -> None:
        """And in its place in the queue."""
        assert component_shares.with_shares(PLAIN, WAITS, none, 45.0) == (PLAIN, WAITS)

    def test_a_job_that_has_room_is_asked_for_in_shares_after_a_window(self) -> None:
        """Only where Slurm lacks resources for it; then on all nodes again."""
        course, _ = component_shares.with_shares(PLAIN, WAITS, some, 45.0)
        before, shares, last = course.attempts
        assert (before.nodes, before.window_seconds, before.lacking) == (None, 45.0, True)
        assert (shares.nodes, shares.parts, shares.then) == (A | B, (A, B), Then.WIDEN)
        assert last == PLAIN.attempts[0]
        again, _ = component_shares.with_shares(
            PLAIN, PlanState(version=course.version, attempt=1, started=9), some, 45
        )
        assert again.version == course.version

    @pytest.mark.parametrize("attempt", [0, 1, 2])
    def test_without_room_it_is_back_in_its_last_attempt(self, attempt: int) -> None:
        """Whatever it was asked for last."""
        course, _ = component_shares.with_shares(PLAIN, WAITS, some, 45.0)
        state = PlanState(version=course.version, attempt=attempt, started=9.0)
        back, kept = component_shares.with_shares(PLAIN, state, none, 45.0)
        assert back is PLAIN
        assert kept is not None
        assert (kept.version, kept.attempt) == ("0", 0)

    def test_shares_follow_the_attempt_before_them_whatever_its_number(self) -> None:
        """A job that ended by itself is followed by a first attempt."""
        state = PlanState(version="x.shares", attempt=1, started=5.0)
        assert component_shares.follows(state, PlanState(version="x", attempt=9, started=1.0))
        assert component_shares.follows(state, PlanState(version="x.shares", attempt=0, started=1.0))
        assert not component_shares.follows(state, PlanState(version="x.shares", attempt=1, started=1.0))

    def test_an_attempt_that_begins_is_made_in_shares(self) -> None:
        """It is another job anyway; the one that stays is not."""
        course = Course(attempts=(Attempt(nodes=A | B, within=A | B, window_seconds=5), Attempt(nodes=C)), version="x")
        first, last = (PlanState(version="x", attempt=number, started=1.0) for number in (0, 1))
        assert component_shares.begun(course, first, some).attempts[0].parts == (A, B)
        assert component_shares.begun(course, first, none) is course
        assert component_shares.begun(course, last, some) is course


class TestSetsWithRoom:
    COURSE = Course(
        attempts=(
            Attempt(nodes=A, within=A, name="one", window_seconds=5, then=Then.NEXT),
            Attempt(nodes=B, within=B, name="two", window_seconds=5, then=Then.NEXT),
            Attempt(nodes=C, within=C, name="three"),
        ),
        version="x",
    )

    def moved(self, attempt: int, *roomy: Nodes) -> tuple[Course, PlanState]:
        """From this attempt, where these nodes have room."""
        state = PlanState(version="x", attempt=attempt, started=1.0, seen=2.0)
        return component_shares.with_room(
            self.COURSE, state, lambda one: (one.nodes or A,) if one.nodes in roomy else None, 7.0
        )

    def test_a_set_without_room_is_passed_over(self) -> None:
        """For one with room that would come later; time counts from now."""
        course, state = self.moved(0, C)
        assert (course, state) == (self.COURSE, PlanState(version="x", attempt=2, started=7.0))

    def test_no_set_is_tried_twice_in_turn(self) -> None:
        """Else two of them could take turns for ever."""
        assert self.moved(1, A)[1].attempt == 1

    @pytest.mark.parametrize("attempt", [0, 1, 2])
    def test_a_set_with_room_is_kept(self, attempt: int) -> None:
        """Whatever others have."""
        course, state = self.moved(attempt, A, B, C)
        assert course is self.COURSE
        assert state.attempt == attempt

    def test_a_job_that_stays_is_moved_to_a_set_with_room(self) -> None:
        """Under the name of the set that it stays in, so that its course remains the same."""
        course, state = self.moved(2, B)
        assert (course.attempts[2].nodes, course.attempts[2].name) == (B, "three")
        assert course.attempts[2].window_seconds is None
        assert (course.version, state.attempt) == ("x", 2)
