"""Sets within sets, the parts of a job of several components, and what a plan keeps of them."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.hooks import attempts, combined, usable_nodes
from slurm_bridge.hooks import chain as chains
from slurm_bridge.hooks.attempts import Course, PlanState
from slurm_bridge.hooks.base import Ask, Audience, Mode, Nodes, NodeSet, Session, Subsets
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.usable_nodes import UsableNodes
from slurm_bridge.model.verdict import Wait
from tests.unit.hooks.builders import Around, cluster, hook, node, translated, workload

ABCD = frozenset("abcd")
FOUR = cluster([node(name) for name in "abcd"])


def some(names: str, *parts: str, name: str = "x", required: bool = False) -> NodeSet:
    """Nodes of one letter each."""
    return NodeSet(nodes=frozenset(names), name=name, required=required, parts=tuple(map(frozenset, parts)))


def test_who_may_not_leave_a_set_has_all_of_it_in_the_end() -> None:
    """What a later hook prefers within it is tried before."""
    outer = some("abc", name="rack", required=True)
    found = combined.layer(outer, Subsets(sets=(some("a", name="best"), some("b", name="second"))))
    assert [(one.name, one.required) for one in found] == [("rack/best", True), ("rack/second", True), ("rack", True)]


def test_who_may_leave_it_has_any_node_in_the_end_anyway() -> None:
    """Nothing is added to sets that nobody requires, and none to those that are required again."""
    inner = Subsets(sets=(some("a", name="best"),))
    assert [one.name for one in combined.layer(some("abc", name="rack"), inner)] == ["rack/best"]
    again = Subsets(sets=(some("a", name="row", required=True),))
    assert [one.name for one in combined.layer(some("abc", name="rack", required=True), again)] == ["rack/row"]


def test_parts_are_kept_within_what_surrounds_them() -> None:
    """Whichever layer has them."""
    (one,) = combined.layer(some("abc"), Subsets(sets=(some("abcd", "ad", "bc"),)))
    assert one.parts == (frozenset("a"), frozenset("bc"))
    (one,) = combined.layer(some("abc", "ab", "c"), Subsets(sets=(some("bcd"),)))
    assert one.parts == (frozenset("b"), frozenset("c"))
    (one,) = combined.layer(some("abc", "ab", "c"), Subsets(sets=(some("abc", "bc", "ac"),)))
    assert one.parts == (frozenset("b"), frozenset("c"))


def reached(*parts: str, least: int = 1) -> UsableNodes:
    """The nodes of each component."""
    nodes = tuple(map(frozenset, parts))
    return UsableNodes(parts=nodes, least=(least,) * len(nodes), every=frozenset().union(*nodes), count=1)


def test_parts_are_for_jobs_that_have_them() -> None:
    """A job of one component is passed by."""
    sets = [some("abcd", "ab", "cd", name="apart"), some("ab", name="together")]
    assert [one.name for one in usable_nodes.within(sets, reached("abcd"))] == ["together"]
    assert [one.name for one in usable_nodes.within(sets, reached("abcd", "abcd"))] == ["apart", "together"]


def test_parts_need_nodes_of_their_own() -> None:
    """No two components share a node."""
    assert usable_nodes.within([some("a", "a", "a")], reached("abcd", "abcd")) == []
    (one,) = usable_nodes.within([some("abcd", "ab", "bd")], reached("abc", "abc"))
    assert (one.nodes, one.parts) == (frozenset("ab"), (frozenset("ab"), frozenset("b")))


_WORDS = st.text("abcdef0123456789-", min_size=1, max_size=40)


@given(st.dictionaries(st.sampled_from(["kai", "other-hook", "x"]), _WORDS))
def test_memos_are_read_as_they_were_written(notes: dict[str, str]) -> None:
    """In one word of the owner record."""
    assert attempts.noted(attempts.memo(notes)) == notes
    state = PlanState(version="ab12", attempt=3, started=17.0, memo=attempts.memo(notes))
    assert PlanState.parse(state.text) == state


def test_a_record_of_an_older_release_is_read() -> None:
    """It has no memo."""
    assert PlanState.parse("ab12:3:17") == PlanState(version="ab12", attempt=3, started=17.0)


@pytest.mark.parametrize("text", ["ab12:3:17:", "ab12:3:17:x:y", "ab12:x:17:y"])
def test_a_strange_record_is_planned_anew(text: str) -> None:
    """Whoever has written it."""
    assert PlanState.parse(text) is None


def test_another_memo_is_another_plan() -> None:
    """A hook that notes something else begins anew, though its sets are called the same."""
    made = Course(attempts=attempts.PLAIN.attempts * 2, version="v")
    before = PlanState(version="v", attempt=1, started=1.0, memo="kai=a")
    assert attempts.resume(made, before, 5.0, "kai=a") is before
    assert attempts.resume(made, before, 5.0, "kai=b") == PlanState(version="v", attempt=0, started=5.0, memo="kai=b")


class TestSession:
    def said(self, **others: Any) -> Subsets:
        """Two sets, and all that can be said of them."""
        return Subsets(sets=(some("ab", name="x"), some("cd", name="y")), **others)

    def test_a_memo_comes_back(self, around: Around) -> None:
        """To the hook that said it, as long as its plan is carried out."""
        seen: list[str] = []

        def subset(session: Session, *_: object) -> Subsets:
            seen.append(session.memo)
            return self.said(memo="x1")

        chain = Chain([hook("one", subset=subset), hook("two", subset=Subsets(relevant=False))], around.make())
        plan = chain.plan(workload(), translated(), FOUR, now=1.0)
        assert not isinstance(plan, Wait)
        state = PlanState.parse(plan.state.text)  # type: ignore[union-attr]
        chain.plan(workload(), translated(), FOUR, now=2.0, previous=state)
        assert seen == ["", "x1"]

    def test_what_is_never_relevant_is_asked_once(self, around: Around) -> None:
        """All sets stay, in their order, and another hook divides each of them all the same."""
        asked: list[Nodes] = []

        def never(_session: Session, _ask: Ask, _tasks: object, nodes: Nodes) -> Subsets:
            asked.append(nodes)
            return Subsets(relevant=False, everywhere=True)

        last = hook("three", subset=lambda *given: Subsets(sets=(NodeSet(nodes=given[-1], name="all"),)))
        for hooks, expected in (
            ([hook("two", subset=never)], ["x", "y"]),
            ([hook("two", subset=never), last], ["x/all", "y/all"]),
        ):
            asked.clear()
            chain = Chain([hook("one", subset=self.said()), *hooks], around.make())
            with chain.session(FOUR, now=1.0) as session:
                found = session.subset_nodes(_asked(), (), ABCD)
                lines = [(line.nodes_in, line.reason) for line in session.lines if line.hook == "two"]
            assert [one.name for one in found] == expected
            assert (asked, lines) == ([frozenset("ab")], [(2, "not relevant")])

    def test_what_is_relevant_is_asked_about_each_set(self, around: Around) -> None:
        """Whatever a hook claims besides: its sets are about the nodes that it was asked about."""
        inner = hook("two", subset=lambda *given: Subsets(sets=(NodeSet(nodes=given[-1], name="in"),), everywhere=True))
        with Chain([hook("one", subset=self.said()), inner], around.make()).session(FOUR, now=1.0) as session:
            found = session.subset_nodes(_asked(), (), ABCD)
        assert [(one.name, one.nodes) for one in found] == [("x/in", frozenset("ab")), ("y/in", frozenset("cd"))]

    def test_a_note_is_for_operators(self, around: Around) -> None:
        """In the line of the hook."""
        chain = Chain([hook(subset=self.said(note="why"))], around.make())
        with chain.session(FOUR, now=1.0, mode=Mode.SIMULATED) as session:
            session.subset_nodes(_asked(), (), ABCD)
            (line,) = session.lines
        assert (line.reason, line.audience) == ("2 subsets; why", Audience.OPERATOR)

    def test_what_was_wanted_is_for_the_user(self, around: Around) -> None:
        """When no set takes it."""
        chain = Chain([hook(subset=Subsets(wanted=("one rack", "one row")))], around.make())
        found = chain.plan(workload(), translated(), FOUR, now=1.0)
        assert found == Wait(reason="Unschedulable", message="unschedulable on cluster: one rack; one row")

    def test_sets_that_depend_on_what_runs_are_looked_at_again(self, around: Around) -> None:
        """As denials that do."""
        for moving in (True, False):
            plan = Chain([hook(subset=self.said(moving=moving))], around.make()).plan(
                workload(), translated(), FOUR, now=1.0
            )
            assert plan.moving is moving  # type: ignore[union-attr]

    def test_each_set_is_tried_once_before_any_is_tried_again(self, around: Around) -> None:
        """A hook that divides each of two sets into several attempts keeps the second from no turn."""
        racks = Subsets(
            sets=tuple(
                NodeSet(nodes=one, name=name) for name, one in zip("12", (ABCD - {"a"}, ABCD - {"b"}), strict=True)
            )
        )

        def thrice(_session: object, _ask: object, _tasks: object, nodes: Nodes) -> Subsets:
            return Subsets(sets=tuple(NodeSet(nodes=nodes, name=f"x{again}", again=again) for again in range(3)))

        chain = Chain([hook("racks", subset=racks), hook("thrice", subset=thrice)], around.make())
        with chain.session(FOUR, now=1.0) as session:
            found = session.subset_nodes(_asked(), (), ABCD)
        assert [one.name for one in found] == ["1/x0", "2/x0", "1/x1", "2/x1", "1/x2", "2/x2"]

    def test_when_everything_was_tried(self, around: Around) -> None:
        """Each of the sets once."""
        sets = tuple(dataclasses.replace(one, required=True) for one in self.said().sets)
        chain = Chain([hook(subset=Subsets(sets=sets))], around.make())
        plan = chain.plan(workload(), translated(), FOUR, now=1.0)
        state: PlanState = plan.state  # type: ignore[union-attr]
        second = chain.plan(workload(), translated(), FOUR, now=2.0, previous=dataclasses.replace(state, attempt=1))
        assert (plan.tried, second.tried) == (False, True)  # type: ignore[union-attr]


def _asked() -> Ask:
    return chains.asked(workload(), translated())
