"""What a chain does in order, later and during a session, and what it tells."""

from collections.abc import Mapping

import pytest

from slurm_bridge.hooks import base
from slurm_bridge.hooks.base import Admit, Ask, Denied, HookPhase, NodeSet, Rank, Subsets
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.hooks.needs import Need
from slurm_bridge.hooks.pass_context import SessionOver
from slurm_bridge.model.verdict import Wait
from tests.unit.hooks.builders import Around, hook, pod, translated, workload
from tests.unit.hooks.chain_scenes import FOUR, planned, stopped, told_users


class TestOrder:
    def test_without_an_order_hook(self, around: Around) -> None:
        """Priority first, then age, then uid."""
        low = workload(pod("a", priority=1, metadata={"creation_timestamp": "2026-01-01T00:00:00Z"}))
        high = workload(pod("b", priority=9, metadata={"creation_timestamp": "2026-01-03T00:00:00Z"}))
        old = workload(pod("c", priority=9, metadata={"creation_timestamp": "2026-01-02T00:00:00Z"}))
        twin = workload(pod("d", priority=9, metadata={"creation_timestamp": "2026-01-02T00:00:00Z"}))
        chain = Chain([], around.make())
        assert sorted([low, high, twin, old], key=chain.order_key) == [old, twin, high, low]
        assert chain.less(high, low)

    def test_the_hooks_key_comes_first(self, around: Around) -> None:
        """Equal keys fall back to the usual order."""
        by_length = hook(order=lambda one: Rank(key=len(one.root.name)))
        long, short, shorter = workload(pod("aaa", priority=9)), workload(pod("bb")), workload(pod("cc", priority=1))
        assert sorted([long, short, shorter], key=Chain([by_length], around.make()).order_key) == [shorter, short, long]

    def test_a_failing_order_hook_stops_nothing(self, around: Around) -> None:
        """Workloads that it could rank go first; keys of different kinds are never compared."""
        ranks = {"a": "word"}
        chain = Chain([hook(order=lambda one: Rank(key=ranks[one.root.name]))], around.make())
        unknown = workload(pod("b", priority=9))
        assert sorted([unknown, workload(pod("a"))], key=chain.order_key)[1] is unknown

    @pytest.mark.parametrize(("emit", "nice"), [("order", None), ("nice", 7), ("none", None)])
    def test_nice_is_sent_only_where_the_hook_says_so(self, emit: str, nice: int | None, around: Around) -> None:
        """`emit` is the hook's attribute."""
        ordering = hook(order=Rank(key=1, nice=7))
        ordering.hook.emit = emit
        assert planned(Chain([ordering], around.make())).request.nice == nice

    def test_nice_is_never_negative(self, around: Around) -> None:
        """That is for operators."""
        ordering = hook(order=Rank(key=1, nice=-7))
        ordering.hook.emit = "nice"
        assert planned(Chain([ordering], around.make())).request.nice == 0

    def test_none_leaves_the_usual_order(self, around: Around) -> None:
        """A hook that is configured not to order does not."""
        ordering = hook(order=lambda one: Rank(key=one.root.name))
        ordering.hook.emit = "none"
        high, low = workload(pod("z", priority=9)), workload(pod("a"))
        assert Chain([ordering], around.make()).less(high, low)


class TestLater:
    def test_commit_passes(self, around: Around) -> None:
        """With hooks that agree, and with none."""
        for hooks in ([], [hook(commit=base.GO)]):
            chain = Chain(hooks, around.make())
            assert chain.commit(workload(), planned(chain), FOUR) is None

    def test_commit_hears_the_annotations_for_hooks(self, around: Around) -> None:
        """As every phase before it."""
        heard: list[Mapping[str, str]] = []
        chain = Chain([hook(commit=lambda _s, ask: heard.append(ask.hints) or base.GO)], around.make())
        plan = planned(chain, translated(hints={"queue": "root.a"}))
        assert chain.commit(workload(), plan, FOUR) is None
        assert heard == [{"queue": "root.a"}]

    def test_commit_stops(self, around: Around) -> None:
        """The obstacle is the hook's."""
        full = Wait(reason="QueueFull", message="queue root.a is full")
        chain = Chain([hook(commit=full)], around.make())
        assert chain.commit(workload(), planned(chain), FOUR) is full

    def test_verify(self, around: Around) -> None:
        """The first denial is the answer; agreement is none."""
        denial = base.Deny(nodes=frozenset({"a"}), message="a is gone")
        hooks = [hook("one", verify=base.GO), hook("two", verify=denial), hook("three", verify=pytest.fail)]
        assert Chain(hooks, around.make()).verify(workload(), {"uid-p": "a"}, FOUR) is denial
        assert Chain(hooks[:1], around.make()).verify(workload(), {"uid-p": "a"}, FOUR) is None

    def test_verify_can_wait(self, around: Around) -> None:
        """An obstacle like any other."""
        wait = Wait(reason="R", message="m")
        assert Chain([hook(verify=wait)], around.make()).verify(workload(), {}, FOUR) is wait


class TestSession:
    def test_it_ends_with_its_pass(self, around: Around) -> None:
        """A hook that keeps it can do nothing with it."""
        kept: list[base.Session] = []
        chain = Chain([hook(admit=lambda session, _: kept.append(session) or base.GO)], around.make())
        planned(chain)
        for use in ("snapshot", "now", "mode", "dice", "log"):
            with pytest.raises(SessionOver):
                getattr(kept[0], use)
        with pytest.raises(SessionOver):
            kept[0].view(Need.PODS)
        with pytest.raises(SessionOver):
            kept[0].filter_nodes(Ask(workload=workload(), request=translated().request), FOUR.names)

    def test_what_it_shows(self, around: Around) -> None:
        """The snapshot, the time, the mode, the dice, and a logger in the hook's name."""

        def admit(session: base.Session, _ask: Ask) -> Admit:
            session.log.info("hello")
            assert (session.snapshot, session.now, session.mode) == (FOUR, 100.0, base.Mode.REAL)
            assert 0 <= session.dice.random() < 1
            return Admit(note="hello")

        plan = planned(Chain([hook(admit=admit)], around.make()))
        assert around.log.said == [("h", "info", "hello")]
        assert [(line.phase, line.reason) for line in plan.lines] == [(HookPhase.ADMIT, "hello")]

    def test_lines_without_a_reader_are_not_kept(self, around: Around) -> None:
        """Nothing else of the plan is different, and neither is what a user is told of nodes that are denied."""
        hooks = [
            hook("first", admit=Admit(note="hello"), express=base.Fields(account="a")),
            hook("second", filter=Denied.because("no", ["a"]), subset=Subsets(sets=(NodeSet(nodes=frozenset("bc")),))),
            hook("broken", "skip", score=None),
        ]
        told, untold = (planned(Chain(hooks, around.make(keeps_lines=keeps))) for keeps in (True, False))
        assert (len(told.lines), untold.lines) == (5, ())
        for part in ("request", "basis", "values", "state", "course", "eligible", "moving", "excluded"):
            assert getattr(untold, part) == getattr(told, part)
        nowhere = [*hooks, hook("last", filter=Denied.because("full", FOUR.names))]
        before, after = (stopped(Chain(nowhere, around.make(keeps_lines=keeps))) for keeps in (True, False))
        assert before == after
        assert "3 full" in after.message

    def test_a_simulated_pass(self, around: Around) -> None:
        """Whoever tries something out says so, and uses every phase over all layers."""
        modes: list[base.Mode] = []

        def subset(session: base.Session, *_: object) -> Subsets:
            modes.append(session.mode)
            return Subsets(relevant=False)

        chain = Chain([hook(subset=subset, filter=Denied.because("no", ["a"]))], around.make())
        asked = Ask(workload=workload(), request=translated().request)
        with chain.session(FOUR, now=1.0, mode=base.Mode.SIMULATED) as session:
            left = session.filter_nodes(asked, FOUR.names)
            sets = session.subset_nodes(asked, asked.workload.pods, left)
        assert modes == [base.Mode.SIMULATED]
        assert sets == (NodeSet(nodes=frozenset("bcd")),)

    def test_a_hook_may_use_other_phases(self, around: Around) -> None:
        """Inside one phase, for example to see what the filters would say."""

        def capacity(session: base.Session, ask: Ask) -> Admit:
            return Admit(note=f"{len(session.filter_nodes(ask, session.snapshot.names))} could do")

        chain = Chain([hook("c", capacity=capacity), hook("f", filter=Denied.because("no", ["a"]))], around.make())
        assert "3 could do" in told_users(planned(chain))

    def test_views_are_for_those_who_declared_them(self, around: Around) -> None:
        """A hook sees what it said that it needs."""
        seen: list[int] = []

        def admit(session: base.Session, _ask: Ask) -> Admit:
            seen.append(len(session.view(Need.PODS)))
            return base.GO

        chain = Chain([hook(admit=admit, needs=[Need.PODS])], around.make())
        chain.see({Need.PODS: _Nothing()})
        planned(chain)
        assert seen == [0]
        assert chain.needs == {Need.PODS}
        undeclared = Chain([hook(admit=admit)], around.make())
        undeclared.see({Need.PODS: _Nothing()})
        assert "failed in phase admit" in stopped(undeclared).message
        assert "hook h has not declared Need.PODS in its needs" in around.log.said[-1][2]

    def test_what_is_needed_has_to_be_there(self, around: Around) -> None:
        """The chain refuses to start half blind."""
        chain = Chain([hook(admit=base.GO, needs=[Need.PODS, Need.PVS])], around.make())
        with pytest.raises(LookupError, match="hooks need persistentvolumes, which are not watched"):
            chain.see({Need.PODS: _Nothing()})


class _Nothing:
    def get(self, _namespace: str, _name: str) -> None:
        return None

    def __len__(self) -> int:
        return 0


def test_calls_are_observed(around: Around) -> None:
    """By hook and phase, with their outcome."""
    planned(Chain([hook("x", admit=base.GO, filter=Denied(nodes={}))], around.make()))
    assert around.observer.calls == [("x", "admit", "ok"), ("x", "filter", "ok")]
