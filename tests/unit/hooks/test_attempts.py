"""Attempts follow each other in order, each for its window, and then it is any node, or the required ones for good."""

import dataclasses
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.hooks import attempts, plans
from slurm_bridge.hooks.attempts import AttemptLimits, Course, PlanState, Then
from slurm_bridge.hooks.base import NodeSet, Scores, Tiers
from slurm_bridge.hooks.combined import Ranking
from tests.unit.hooks.builders import cluster, node

ALL = frozenset(f"n{number}" for number in range(40))
SEEN = cluster([node(name) for name in sorted(ALL)])


def some(*numbers: int, name: str = "", required: bool = False) -> NodeSet:
    """A set of nodes."""
    return NodeSet(nodes=frozenset(f"n{number}" for number in numbers), name=name, required=required)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Left:
    """What is left for a workload of so many nodes that can start on so many."""

    every: frozenset[str] = ALL
    count: int = 1
    partial: bool = False
    changeable: bool = True
    least: int = 1

    def suits(self, nodes: frozenset[str]) -> bool:
        """Enough of them."""
        return len(nodes) >= self.least


#: A higher number, a better node.
RISING = {f"n{number}": float(number) for number in range(40)}


def course(
    *sets: NodeSet,
    limits: AttemptLimits = attempts.DEFAULTS,
    scores: Mapping[str, float] | None = None,
    tiers: Tiers | None = None,
    left: Left | None = None,
    previous: PlanState | None = None,
) -> Course:
    """The course through these sets."""
    ranking = Ranking(scores=Scores(nodes=scores or {}, tiers=tiers), columns=SEEN.columns)
    return attempts.course(sets, ranking, left or Left(), limits, previous)


def steps(made: Course) -> list[tuple[int, float | None, Then]]:
    """How many nodes, how long, and what then; 0 nodes stand for all that are eligible."""
    return [(len(one.nodes or ()), one.window_seconds, one.then) for one in made.attempts]


def test_nothing_preferred_is_one_attempt_without_a_window() -> None:
    """With the built-in hooks alone there is nothing to wait for."""
    assert course(NodeSet(nodes=ALL)) is attempts.PLAIN
    assert steps(attempts.PLAIN) == [(0, None, Then.STAY)]


def test_sets_are_tried_in_order_then_any_node() -> None:
    """45 seconds each."""
    made = course(some(1, name="a"), some(2, 3, name="b"))
    assert steps(made) == [(1, 45.0, Then.NEXT), (2, 45.0, Then.WIDEN), (0, None, Then.STAY)]


def test_no_more_attempts_than_allowed() -> None:
    """Ten in all, and then any node."""
    made = course(*(some(number, name=str(number)) for number in range(20)))
    assert len(made.attempts) == 11
    assert [one.name for one in made.attempts][-2:] == ["9", "any"]


def test_nodes_that_cannot_start_it_use_no_window() -> None:
    """A set that is too small is no attempt, and a tier that is too small is the next one that will do."""
    big, small = some(*range(30), name="big"), some(30, 31, name="small")
    made = course(small, big, scores=RISING, left=Left(least=21))
    assert [(one.name, len(one.nodes or ()), one.window_seconds) for one in made.attempts] == [
        ("big/tier 1", 30, 0.0),
        ("big", 30, 45.0),
        ("any", 0, None),
    ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parts(Left):
    """What is left for a workload of two parts: one needs an even node, the other an odd one."""

    def suits(self, nodes: frozenset[str]) -> bool:
        """One of each."""
        return {int(name[1:]) % 2 for name in nodes} == {0, 1}


def test_scores_that_move_do_not_start_the_course_anew() -> None:
    """Which tiers can start a job of several parts changes with the scores, and not how many there are."""
    tiers, left = Tiers(count=3, first=2), Parts(count=2)
    mixed = course(NodeSet(nodes=ALL), scores=RISING, tiers=tiers, left=left)
    state = PlanState(version=mixed.version, attempt=1, started=1.0)
    even = {name: score + (100 if int(name[1:]) % 2 == 0 else 0) for name, score in RISING.items()}
    for bonus in (even, {name: score + 1000 * (name == "n1") for name, score in even.items()}):
        now = course(NodeSet(nodes=ALL), scores=bonus, tiers=tiers, left=left, previous=state)
        assert attempts.resume(now, state, now=9.0) == state
        assert all(one.nodes is None or left.suits(one.nodes) for one in now.attempts)


def test_the_last_attempt_is_no_tier() -> None:
    """The best nodes are preferred, and nobody is kept to them for good: of a required set all stay."""
    racks = [some(*range(8 * rack, 8 * rack + 8), name=f"r{rack}", required=True) for rack in range(5)]
    made = course(*racks, scores=RISING, tiers=Tiers(count=3, first=2))
    assert made.attempts[-1].nodes == racks[3].nodes
    assert steps(made)[-1] == (8, None, Then.STAY)


def test_a_whole_set_that_was_tried_is_not_narrowed_again() -> None:
    """With one required set there is nowhere to go; of several the whole ones are gone through again."""
    one, other = some(*range(20), name="a", required=True), some(*range(20, 40), name="b", required=True)
    tiers = Tiers(count=2, first=5)
    assert [made.name for made in course(one, scores=RISING, tiers=tiers).attempts] == ["a/tier 1", "a"]
    several = course(one, other, scores=RISING, tiers=tiers, limits=AttemptLimits(total=6))
    assert [made.name for made in several.attempts] == ["a/tier 1", "a", "b/tier 1", "b", "a", "b"]


def test_who_stays_is_offered_all_nodes_in_the_end() -> None:
    """Where nothing divides the nodes, and the last step is to stay, the tiers are tried once."""
    made = course(NodeSet(nodes=ALL), scores=RISING, tiers=Tiers(count=3), limits=AttemptLimits(then=Then.STAY))
    assert [len(one.nodes or ALL) for one in made.attempts] == [10, 20, 40]
    assert made.attempts[-1].window_seconds is None


def test_one_attempt_in_all_is_for_good() -> None:
    """Though it would have been the first tier."""
    made = course(some(1, 2, required=True), scores=RISING, tiers=Tiers(first=1), limits=AttemptLimits(total=1))
    assert steps(made) == [(2, None, Then.STAY)]


def test_stay_can_be_configured() -> None:
    """Then the sets are gone through again until the attempts are used up, and the last one stays."""
    made = course(some(1), some(2, 3), limits=AttemptLimits(total=5, then=Then.STAY))
    assert steps(made) == [(1, 45.0, Then.NEXT), (2, 45.0, Then.NEXT)] * 2 + [(1, None, Then.STAY)]


def test_a_required_set_is_never_left() -> None:
    """However long it waits; other sets of the course are tried too, any other node is not."""
    made = course(some(1, required=True), some(2, 3, required=True))
    assert len(made.attempts) == 10
    assert all(one.nodes for one in made.attempts)
    assert made.attempts[-1].window_seconds is None


def test_one_required_set_needs_no_window() -> None:
    """There is nothing to go on to."""
    assert steps(course(some(1, 2, required=True))) == [(2, None, Then.STAY)]


def test_empty_sets_are_passed_over() -> None:
    """A set of which nothing is left is no attempt."""
    assert steps(course(some(), some(1)))[0] == (1, 45.0, Then.WIDEN)


def test_scores_put_the_best_nodes_first() -> None:
    """Ten at least, so that Slurm has a choice; then all."""
    made = course(NodeSet(nodes=ALL), scores=RISING)
    assert steps(made) == [(10, 45.0, Then.WIDEN), (0, None, Then.STAY)]
    assert made.attempts[0].nodes == {f"n{number}" for number in range(30, 40)}


def test_equal_scores_prefer_nothing() -> None:
    """No reason to wait."""
    assert course(NodeSet(nodes=ALL), scores=dict.fromkeys(ALL, 5.0)) is attempts.PLAIN


def test_scores_apply_inside_each_set() -> None:
    """The best of the first set, the first set, the best of the second, the second."""
    made = course(some(*range(20), name="a"), some(*range(20, 40), name="b"), scores=RISING)
    assert [(one.name, len(one.nodes or ())) for one in made.attempts] == [
        ("a/tier 1", 10),
        ("a", 20),
        ("b/tier 1", 10),
        ("b", 20),
        ("any", 0),
    ]


def test_more_nodes_asked_more_nodes_offered() -> None:
    """Twice as many as the workload needs."""
    assert steps(course(NodeSet(nodes=ALL), scores=RISING, left=Left(count=8)))[0] == (16, 45.0, Then.WIDEN)


def test_tiers_widen_to_all_nodes() -> None:
    """Each larger than the one before by the same factor, for as long as the hook says; the last is any node."""
    made = course(NodeSet(nodes=ALL), scores=RISING, tiers=Tiers(count=3, first=10, widen_after=15.0))
    assert steps(made) == [(10, 15.0, Then.NEXT), (20, 15.0, Then.WIDEN), (0, None, Then.STAY)]


def test_one_tier_is_all_nodes() -> None:
    """Who asks for a single one wants the scores to be shown, not to be followed."""
    assert course(NodeSet(nodes=ALL), scores=RISING, tiers=Tiers(count=1)) is attempts.PLAIN


def test_a_tier_is_no_larger_than_it_is_to_be_though_many_are_equal() -> None:
    """Thousands of names in each submission would cost more than the choice is worth."""
    scores = {**RISING, **{f"n{number}": 50.0 for number in range(25)}}
    assert steps(course(NodeSet(nodes=ALL), scores=scores))[0] == (10, 45.0, Then.WIDEN)


def test_a_job_that_was_offered_all_nodes_is_not_kept_from_them_later() -> None:
    """The scores have come to differ while it waited: that some are better now is no reason to offer it fewer."""
    before = PlanState(version=attempts.PLAIN.version, attempt=0, started=1.0)
    assert course(NodeSet(nodes=ALL), scores=RISING, previous=before) is attempts.PLAIN


def test_a_job_that_began_with_the_best_goes_on_when_all_have_become_equal() -> None:
    """At the attempt where it was."""
    began = course(NodeSet(nodes=ALL), scores=RISING)
    before = PlanState(version=began.version, attempt=1, started=1.0)
    made = course(NodeSet(nodes=ALL), scores=dict.fromkeys(ALL, 5.0), previous=before)
    assert attempts.resume(made, before, now=9.0) == before


@given(st.integers(1, 60), st.integers(1, 2000), st.integers(1, 6))
def test_each_tier_holds_the_one_before(first: int, every: int, count: int) -> None:
    """None has more nodes than there are, and none fewer than the one before, but where there are fewer in all."""
    found = [*attempts.sizes(first, every, count), every]
    assert len(found) == count
    assert found == sorted(found)
    assert found[0] == (min(first, every) if count > 1 else every)


def test_the_version_follows_the_sets_not_their_nodes() -> None:
    """A node that comes or goes does not start the course anew; another division does."""
    one = course(some(1, 2, name="rack1"), some(3, name="rack2"))
    assert course(some(1, name="rack1"), some(3, 4, name="rack2")).version == one.version
    assert course(some(1, name="rack1"), some(3, name="rack3")).version != one.version
    assert course(some(1, name="rack1")).version != one.version


def test_a_restart_resumes_the_same_attempt() -> None:
    """The text of the owner record is all that is needed."""
    made = course(some(1, name="a"), some(2, name="b"))
    state = PlanState(version=made.version, attempt=1, started=1_700_000_000.0)
    assert attempts.resume(made, PlanState.parse(state.text), now=9.0) == state


@pytest.mark.parametrize(
    "previous",
    [None, PlanState(version="other", attempt=1, started=1), PlanState(version="0", attempt=7, started=1)],
)
def test_what_does_not_belong_to_the_course_starts_anew(previous: PlanState | None) -> None:
    """Another division, or an attempt that is no longer in it."""
    assert attempts.resume(attempts.PLAIN, previous, now=9.0) == PlanState(version="0", attempt=0, started=9.0)


@given(st.from_regex(r"[0-9a-f]{1,8}", fullmatch=True), st.integers(0, 10), st.integers(0, 2**33))
def test_text_round_trip(version: str, attempt: int, started: int) -> None:
    """What is written is read."""
    state = PlanState(version=version, attempt=attempt, started=float(started))
    assert PlanState.parse(state.text) == state


@given(st.text(max_size=12) | st.sampled_from(["", ":", "a:1", "a:1:x", "a:-1:5", ":1:5", "a:1:5:6", "a:\u0661:5"]))
def test_foreign_text_never_crashes(text: str) -> None:
    """It is None, or a state that says the same."""
    state = PlanState.parse(text)
    assert state is None or PlanState.parse(state.text) == state


def follow(made: Course, state: PlanState, *looks: tuple[float, float]) -> list[int]:
    """The attempt after each look: our time, and when Slurm last looked at the job. Written at 100."""
    seen = []
    for now, evaluated in looks:
        state = attempts.advance(made, state, now=now, last_evaluation=evaluated, updated_at=100.0)
        seen.append(state.attempt)
    return seen


TWO = course(some(1), some(2, 3))
BEGUN = PlanState(version=TWO.version, attempt=0, started=100.0)


def test_a_window_counts_only_once_slurm_has_looked() -> None:
    """Before that nothing was tried, however long it takes."""
    assert follow(TWO, BEGUN, (150, 0), (10_000, 99), (10_001, 100)) == [0, 0, 0]
    assert follow(TWO, BEGUN, (10_000, 101), (10_044, 101), (10_045, 130)) == [0, 0, 1]


def test_a_restart_within_a_window_lengthens_it_at_most() -> None:
    """What we saw is lost, and counted from the next look on."""
    resumed = PlanState.parse(BEGUN.text)
    assert resumed is not None
    assert follow(TWO, resumed, (200, 150), (244, 150), (245, 150)) == [0, 0, 1]


def test_the_last_attempt_stays() -> None:
    """It has no window."""
    last = PlanState(version=TWO.version, attempt=2, started=100.0)
    assert follow(TWO, last, (1e6, 1e6), (2e6, 2e6)) == [2, 2]


def test_each_attempt_has_its_own_window() -> None:
    """The next one begins unseen."""
    state = PlanState(version=TWO.version, attempt=0, started=100.0, seen=101.0)
    following = attempts.advance(TWO, state, now=200.0, last_evaluation=150.0, updated_at=100.0)
    assert following == PlanState(version=TWO.version, attempt=1, started=200.0)


_sets = st.lists(
    st.builds(
        lambda numbers, required: some(*numbers, name=str(sorted(numbers)), required=required),
        st.frozensets(st.integers(0, 5), min_size=1),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


@given(_sets, st.integers(1, 12), st.sampled_from([Then.STAY, Then.WIDEN]))
def test_every_course_ends(sets: list[NodeSet], total: int, then: Then) -> None:
    """At most `total` attempts and one more; only the last has no window; a required set lets nobody out."""
    made = course(*sets, limits=AttemptLimits(total=total, then=then))
    assert len(made.attempts) <= total + 1
    assert [one.window_seconds is None for one in made.attempts] == [False] * (len(made.attempts) - 1) + [True]
    if any(one.required for one in sets[:total]):
        assert all(one.nodes is not None for one in made.attempts)


class TestBounded:
    """A gang that tries the fewest nodes first: what it was submitted with decides what can be done later."""

    def bounded(self, previous: str, tasks: int = 8, fewest: int | None = 2, made: Course = attempts.PLAIN) -> Course:
        """The course after this plan text; "" for a gang that is not submitted yet."""
        return plans.bounded(made, PlanState.of_running(previous) if previous else None, tasks, lambda: fewest)

    def most(self, made: Course) -> list[int | None]:
        """The maximum of each attempt."""
        return [one.most for one in made.attempts]

    def test_the_fewest_first_then_as_many_as_there_are_tasks(self) -> None:
        """The first for a short while, the last for good; the version tells both numbers."""
        made = self.bounded("")
        assert steps(made) == [(0, plans.FEW_SECONDS, Then.WIDEN), (0, None, Then.STAY)]
        assert (self.most(made), made.version) == ([2, 8], "0.2-8")

    def test_no_number_no_maximum(self) -> None:
        """As before."""
        assert self.bounded("", fewest=None) is attempts.PLAIN

    @pytest.mark.parametrize("fewest", [1, 5, None])
    def test_the_number_stands(self, fewest: int | None) -> None:
        """Whatever becomes of the room: a restart reads it from the record of the job."""
        for text in ("0.2-8:0:100", "0.2-8:1:100"):
            made = self.bounded(text, fewest=fewest)
            assert self.most(made) == [2, 8]
            assert attempts.resume(made, PlanState.parse(text), now=9.0) == PlanState.parse(text)

    @pytest.mark.parametrize("text", ["0:0:100", "3f00aa11:1:100", "unreadable"])
    def test_a_job_without_a_maximum_never_gets_one(self, text: str) -> None:
        """It could not be taken away from it again."""
        made = course(some(1, name="a"))
        assert self.bounded(text) is attempts.PLAIN
        assert self.bounded(text, made=made) is made

    def test_other_members_are_looked_at_anew(self) -> None:
        """By the same update that they need in any case; where there is no room the maximum is as high as they are."""
        made = self.bounded("0.2-8:1:100", tasks=12, fewest=3)
        assert (self.most(made), made.version) == ([3, 12], "0.3-12")
        assert attempts.resume(made, PlanState.parse("0.2-8:1:100"), now=9.0).attempt == 0
        wide = self.bounded("0.2-8:0:100", tasks=12, fewest=None)
        assert (self.most(wide), wide.version, steps(wide)) == ([12], "0.12-12", [(0, None, Then.STAY)])
        assert self.most(self.bounded("0.12-12:0:100", tasks=12, fewest=3)) == [12]

    def test_what_hooks_prefer_comes_first(self) -> None:
        """Their courses stay as they are; a job that has a maximum already keeps one that limits nothing."""
        made = course(some(1, name="a"), some(2, name="b"))
        assert self.bounded("", made=made) is made
        kept = self.bounded("0.2-8:0:100", made=made)
        assert self.most(kept) == [8, 8, 8]
        assert steps(kept) == steps(made)
        assert kept.version == f"{made.version}.8-8"
        again = self.bounded(f"{kept.version}:0:100", made=made)
        assert again.version == kept.version
        assert self.most(self.bounded(f"{kept.version}:0:100")) == [8]

    @given(
        st.none() | st.integers(1, 7),
        st.lists(st.tuples(st.integers(2, 9), st.none() | st.integers(1, 9), st.booleans()), max_size=8),
    )
    def test_a_maximum_is_there_from_the_first_request_to_the_last_or_never(
        self, first: int | None, later: list[tuple[int, int | None, bool]]
    ) -> None:
        """However members, room and hooks change; and asked again, the same plan says the same."""
        made = self.bounded("", fewest=first)
        state = attempts.resume(made, None, now=1.0)
        limited = made.attempts[state.attempt].most is not None
        for tasks, number, preferred in later:
            chosen = course(some(1, name="a")) if preferred else attempts.PLAIN
            made = self.bounded(state.text, tasks=tasks, fewest=number, made=chosen)
            state = attempts.resume(made, state, now=2.0)
            assert all((one.most is not None) == limited for one in made.attempts)
            assert all(one.most is None or one.most <= tasks for one in made.attempts)
            again = self.bounded(state.text, tasks=tasks, fewest=None, made=chosen)
            assert again.version == made.version


def test_a_plan_that_nobody_can_read_belongs_to_no_course() -> None:
    """Its job lives, so it is not the first request either."""
    state = PlanState.of_running("?")
    assert attempts.resume(attempts.PLAIN, state, now=9.0) == PlanState(version="0", attempt=0, started=9.0)
    assert PlanState.of_running("0:1:5") == PlanState.parse("0:1:5")


def test_a_job_that_cannot_be_changed_prefers_nothing() -> None:
    """Of several components Slurm takes no update: the first attempt would be its last, whoever has these nodes."""
    fixed = Left(changeable=False)
    assert course(NodeSet(nodes=ALL), scores=RISING, tiers=Tiers(first=2), left=fixed) is attempts.PLAIN
    assert course(some(1, name="one"), left=fixed) is attempts.PLAIN


def test_a_job_that_cannot_be_changed_stays_where_it_has_to_be() -> None:
    """A set that is required is no preference."""
    required = some(1, name="one", required=True)
    assert course(required, left=Left(changeable=False)).attempts[0].nodes == {"n1"}


def test_a_rewritten_attempt_keeps_whatever_is_not_given() -> None:
    """It is written field by field: one that is added later must not be forgotten."""
    one = attempts.Attempt(**{field.name: object() for field in dataclasses.fields(attempts.Attempt)})  # type: ignore[arg-type]
    expected = dataclasses.replace(one, window_seconds=7.0, then=Then.NEXT, most=3)
    assert attempts.rewritten(one, 7.0, Then.NEXT, 3) == expected
