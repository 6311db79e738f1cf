"""From hooks and a request to a plan, or to the reason why there is none."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.hooks import attempts, base, calls
from slurm_bridge.hooks.base import Ask, Audience, Denied, NodeSet, Sample, Scores, Subsets
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.translate.translator import Translated, Value
from tests.unit.hooks.builders import Around, cluster, hook, node, partition, translated
from tests.unit.hooks.chain_scenes import planned, stopped, told_operators, told_users


class TestPlan:
    def test_without_hooks_the_request_stays_as_it_is(self, around: Around) -> None:
        """Nothing is narrowed, nothing is added, and there is one attempt without a window."""
        asked = translated()
        plan = planned(Chain([], around.make()), asked)
        assert plan.request is asked.request
        assert (plan.eligible, plan.window_seconds, plan.lines) == (4, None, ())
        assert plan.state.text == "0:0:100"

    def test_phases_are_asked_in_order(self, around: Around) -> None:
        """Each phase over all hooks, before the next phase."""
        asked: list[tuple[str, str]] = []

        def says(name: str, phase: str, answer: Any) -> Any:
            return lambda *_: asked.append((phase, name)) or answer

        answers: Mapping[str, Any] = {
            "express": base.Fields(),
            "subset": Subsets(relevant=False),
            "score": Scores(nodes={}),
            "filter": Denied(nodes={}),
            "capacity": base.GO,
            "admit": base.GO,
        }
        made = [hook(n, **{p: says(n, p, a) for p, a in answers.items()}) for n in ("one", "two")]
        planned(Chain(made, around.make()))
        order = ("admit", "capacity", "filter", "express", "score", "subset")
        assert asked == [(phase, name) for phase in order for name in ("one", "two")]

    @pytest.mark.parametrize("phase", ["admit", "capacity"])
    @pytest.mark.parametrize(
        "obstacle", [Wait(reason="R", message="m", retry_after=5.0), Reject(reason="R", message="m")]
    )
    def test_an_obstacle_ends_the_pass(self, phase: str, obstacle: Wait | Reject, around: Around) -> None:
        """As the hook said it; later hooks are not asked."""
        chain = Chain([hook("no", **{phase: obstacle}), hook("late", filter=pytest.fail)], around.make())
        assert stopped(chain) is obstacle

    def test_denied_nodes_are_excluded(self, around: Around) -> None:
        """The plan says which, and the lines say why."""
        denied = Denied(nodes={"a": ("node(s) were full",), "elsewhere": ("no matter",)})
        plan = planned(Chain([hook(filter=denied)], around.make()))
        assert plan.request.excluded_nodes == ("a",)
        assert (plan.excluded, plan.eligible) == ({"a"}, 3)
        assert [(line.nodes_in, line.nodes_out) for line in plan.lines] == [(4, 3)]

    def test_filters_see_what_is_left(self, around: Around) -> None:
        """Layer after layer."""
        seen: list[frozenset[str]] = []

        def second(_session: object, _ask: Ask, nodes: frozenset[str]) -> Denied:
            seen.append(nodes)
            return Denied.because("node(s) were bad", ["b"])

        first = Denied.because("node(s) were worse", ["a"])
        plan = planned(Chain([hook("one", filter=first), hook("two", filter=second)], around.make()))
        assert seen == [{"b", "c", "d"}]
        assert plan.request.excluded_nodes == ("a", "b")

    def test_t15_no_node_left_is_said_in_the_words_of_kubernetes(self, around: Around) -> None:
        """Each node counts with its first denial, each reason with its number."""
        first = Denied(nodes={"a": ("Insufficient cpu", "Insufficient memory"), "b": ("Insufficient cpu",)})
        second = Denied.because("node(s) were unschedulable", ["a", "c", "d"])
        chain = Chain([hook("one", filter=first), hook("two", filter=second)], around.make())
        said = "0/4 nodes are available: 1 Insufficient memory, 2 Insufficient cpu, 2 node(s) were unschedulable."
        assert stopped(chain) == Wait(reason="Unschedulable", message=said)

    def test_reasons_for_operators_are_withheld_from_users(self, around: Around) -> None:
        """The condition on the pod is everybody's."""
        secret = Denied(nodes=dict.fromkeys("abcd", ("rack 7 is on fire",)), audience=Audience.OPERATOR)
        found = stopped(Chain([hook(filter=secret)], around.make()))
        assert found.message == "0/4 nodes are available: 4 node(s) were ruled out by this cluster's rules."

    def test_no_nodes_at_all(self, around: Around) -> None:
        """An empty cluster is no plan."""
        assert stopped(Chain([], around.make()), cluster([])).message == "0/0 nodes are available."

    def test_no_node_in_the_partition(self, around: Around) -> None:
        """Eligible nodes elsewhere do not help, and the message says so."""
        seen = cluster([node("a"), node("b")], partition("one", "a"), partition("two", "b"))
        chain = Chain([hook(filter=Denied.because("node(s) were full", ["a"]))], around.make())
        found = stopped(chain, seen, asked=translated(partition="one"))
        assert found.message == (
            "0/2 nodes are available: 1 node(s) are not in Slurm partition one, 1 node(s) were full."
        )

    def test_no_node_in_the_default_partition(self, around: Around) -> None:
        """Where the pod names no partition, and Slurm says which one is the default, it is that one."""
        seen = cluster([node("a"), node("b")], partition("usual", "a", default=True), partition("gpu", "b"))
        chain = Chain([hook(filter=Denied.because("node(s) were full", ["a"]))], around.make())
        assert stopped(chain, seen).message == (
            "0/2 nodes are available: 1 node(s) are not in Slurm's default partition, 1 node(s) were full."
        )

    def test_no_node_in_any_partition(self, around: Around) -> None:
        """Where Slurm does not say which partition is the default, it may be any."""
        seen = cluster([node("a"), node("b")], partition("one", "a"), partition("two", "a"))
        chain = Chain([hook(filter=Denied.because("node(s) were full", ["a"]))], around.make())
        assert stopped(chain, seen).message == (
            "0/2 nodes are available: 1 node(s) are not in any Slurm partition, 1 node(s) were full."
        )

    def test_avoided_nodes(self, around: Around) -> None:
        """What went wrong there before keeps this workload away, with the reason."""
        plan = planned(Chain([], around.make()), avoid={"b": "node(s) refused the pod"})
        assert plan.request.excluded_nodes == ("b",)
        assert told_users(plan) == ["1 node(s) refused the pod"]
        found = stopped(Chain([], around.make()), avoid=dict.fromkeys("abcd", "node(s) refused the pod"))
        assert found.message == "0/4 nodes are available: 4 node(s) refused the pod."

    def test_a_sample_narrows(self, around: Around) -> None:
        """Nodes that are not looked at are left out; names that nobody has are ignored."""
        plan = planned(Chain([hook(sample=Sample(nodes=frozenset({"a", "zzz"})))], around.make()))
        assert plan.request.excluded_nodes == ("b", "c", "d")
        assert plan.lines[0].audience is Audience.OPERATOR

    def test_required_sets_are_looked_for_among_all_nodes(self, around: Around) -> None:
        """A sample may have no node of any set that would do, and a required set is never left."""
        asked: list[frozenset[str]] = []

        def divide(_session: object, _ask: object, _tasks: object, nodes: frozenset[str]) -> Subsets:
            asked.append(nodes)
            return Subsets(sets=(NodeSet(nodes=nodes - {"a"}, name="set", required=True),))

        sampling = hook("sampling", sample=Sample(nodes=frozenset("a")))
        plan = planned(Chain([sampling, hook("dividing", subset=divide)], around.make()))
        assert asked == [frozenset("a"), frozenset("abcd")]
        assert plan.request.excluded_nodes == ("a",)
        assert "a set of nodes is required: all nodes are looked at" in told_operators(plan)

    def test_a_sample_is_enough_where_nothing_is_required(self, around: Around) -> None:
        """Other nodes are not looked at."""
        asked: list[frozenset[str]] = []

        def divide(_session: object, _ask: object, _tasks: object, nodes: frozenset[str]) -> Subsets:
            asked.append(nodes)
            return Subsets(sets=(NodeSet(nodes=nodes, name="set"),))

        sampling = hook("sampling", sample=Sample(nodes=frozenset("a")))
        planned(Chain([sampling, hook("dividing", subset=divide)], around.make()))
        assert asked == [frozenset("a")]

    def test_when_every_set_was_tried_all_nodes_count(self, around: Around) -> None:
        """Also those that were not sampled, whatever the hook behind the sample knows of the sets that would do."""
        too_small = NodeSet(nodes=frozenset(), name="two")
        divide = Subsets(sets=(NodeSet(nodes=frozenset("a"), name="one"), too_small))
        sampling = hook("sampling", sample=Sample(nodes=frozenset("ab")), subset=divide)
        chain = Chain([sampling], around.make())
        first = planned(chain)
        assert first.request.excluded_nodes == ("b", "c", "d")
        last = dataclasses.replace(first.state, attempt=len(first.course.attempts) - 1)
        assert planned(chain, previous=last).request.excluded_nodes == ()

    def test_a_job_goes_on_with_its_sets_whatever_is_sampled_next(self, around: Around) -> None:
        """Of another sample another set would be left, and the job would be tried on this one and that one by turns."""
        sampled = iter(["cd", "ab", "cd"])

        def divide(_session: object, _ask: object, _tasks: object, nodes: frozenset[str]) -> Subsets:
            halves = {name: nodes & frozenset(name) for name in ("ab", "cd")}
            return Subsets(sets=tuple(NodeSet(nodes=some, name=name) for name, some in halves.items() if some))

        sampling = hook("sampling", sample=lambda *_: Sample(nodes=frozenset(next(sampled))))
        chain = Chain([sampling, hook("dividing", subset=divide)], around.make())
        first = planned(chain)
        second = planned(chain, previous=first.state)
        assert "it is being tried on other sets: all nodes are looked at" in told_operators(second)
        third = planned(chain, previous=second.state)
        assert third.state == second.state
        assert third.request == second.request

    def test_a_sample_of_which_no_set_would_do_keeps_the_job_from_no_node(self, around: Around) -> None:
        """The set that was sampled for one pod after the other has no node for the whole job."""
        sampling = hook("sampling", sample=Sample(nodes=frozenset("ab")))
        dividing = hook("dividing", subset=Subsets(sets=(NodeSet(nodes=frozenset("a"), name="candidate"),)))
        asked = translated(minimum_nodes=2, maximum_nodes=2, tasks=2)
        plan = planned(Chain([sampling, dividing], around.make()), asked)
        assert plan.request.excluded_nodes == ()
        assert "the sampled nodes do not suffice: all nodes are looked at" in told_operators(plan)

    def test_operators_read_why_all_nodes_are_looked_at(self, around: Around) -> None:
        """A hook found no set among the sampled nodes, and requires none."""

        def divide(_session: object, _ask: object, _tasks: object, nodes: frozenset[str]) -> Subsets:
            return Subsets(sets=(NodeSet(nodes=nodes, name="set"),) if "b" in nodes else ())

        sampling = hook("sampling", sample=Sample(nodes=frozenset("a")))
        plan = planned(Chain([sampling, hook("dividing", subset=divide)], around.make()))
        assert "there is no set of sampled nodes: all nodes are looked at" in told_operators(plan)

    def test_sets_are_made_of_nodes_in_the_partition_of_the_job(self, around: Around) -> None:
        """Also where a hook has chosen the partition."""
        asked: list[frozenset[str]] = []

        def divide(_session: object, _ask: object, _tasks: object, nodes: frozenset[str]) -> Subsets:
            asked.append(nodes)
            return Subsets(relevant=False)

        seen = cluster([node(name) for name in "abc"], partition("debug", *"abc", default=True), partition("few", "b"))
        planned(Chain([hook(subset=divide, express=base.Fields(partition="few"))], around.make()), seen=seen)
        assert asked == [frozenset("b")]

    def test_preferred_sets_leave_a_later_hook_all_nodes(self, around: Around) -> None:
        """It has no set in any of them, or only such as are never left: then it is asked about all nodes too."""

        def pair(_session: object, _ask: object, _tasks: object, nodes: frozenset[str]) -> Subsets:
            chosen = (NodeSet(nodes=nodes, name="pair", required=True),) if len(nodes) > 1 else ()
            return Subsets(sets=chosen)

        for sets, names in ((("a", "c"), ["pair"]), (("ab", "c"), ["0/pair", "pair"])):
            rather = Subsets(sets=tuple(NodeSet(nodes=frozenset(one), name=str(n)) for n, one in enumerate(sets)))
            plan = planned(Chain([hook("rather", subset=rather), hook("pair", subset=pair)], around.make()))
            assert list(dict.fromkeys(one.name for one in plan.course.attempts)) == names

    def test_a_sampler_can_make_it_wait(self, around: Around) -> None:
        """No agent answered: that is no verdict about nodes."""
        wait = Wait(reason="NoAgents", message="no agent answered", retry_after=1.0)
        assert stopped(Chain([hook(sample=wait)], around.make())) is wait

    def test_equal_plans_are_equal_requests(self, around: Around) -> None:
        """Whatever is asked twice comes out the same, so that nothing is updated without need."""
        chain = Chain([hook(filter=Denied.because("node(s) were full", ["c", "a"]))], around.make())
        assert planned(chain).request == planned(chain).request


class TestFields:
    def test_layers_see_each_other(self, around: Around) -> None:
        """The later one has the last word, each value says where it came from."""
        seen: list[str | None] = []

        def second(_session: object, ask: Ask) -> base.Fields:
            seen.append(ask.request.account)
            return base.Fields(account="late", source="the late one")

        first = base.Fields(account="early", priority=5)
        chain = Chain([hook("one", express=first), hook("two", express=second)], around.make())
        plan = planned(chain, translated(Value(field="account", value="d", source="setting"), account="d"))
        assert seen == ["early"]
        assert (plan.request.account, plan.request.priority) == ("late", 5)
        assert {(value.field, value.value, value.source) for value in plan.values} == {
            ("account", "late", "the late one"),
            ("priority", "5", "hook one"),
        }

    def test_a_partition_from_a_hook_counts_for_the_nodes(self, around: Around) -> None:
        """Fields come before node fields."""
        seen = cluster([node("a"), node("b"), node("c")], partition("one", "a", "b"), partition("two", "c"))
        denied = hook("f", filter=Denied.because("node(s) were full", ["a", "c"]))
        chain = Chain([denied, hook("e", express=base.Fields(partition="one"))], around.make())
        assert planned(chain, seen=seen).request.excluded_nodes == ("a",)

    def test_settling_comes_after_the_fields(self, around: Around) -> None:
        """Slurm's own limits apply to what the hooks have made of the request."""

        def settle(asked: Translated, _seen: object, _eligible: object) -> Translated:
            limit = {"one": 60}.get(asked.request.partition or "", 0)
            return dataclasses.replace(asked, request=dataclasses.replace(asked.request, time_limit_minutes=limit))

        made = around.make(settle=settle)
        plan = planned(Chain([hook(express=base.Fields(partition="one"))], made), seen=cluster([node("a")]))
        assert plan.request.time_limit_minutes == 60

    def test_what_slurm_cannot_take_is_an_obstacle(self, around: Around) -> None:
        """The settler's own verdict."""
        no = Reject(reason="UnknownPartition", message="no such partition")
        assert stopped(Chain([], around.make(settle=lambda *_: no))) is no


def layered(**sets: Any) -> Any:
    """A subset hook: by the first node of the incoming set, names of sets and their nodes."""

    def subset(_session: object, _ask: Ask, _tasks: object, nodes: frozenset[str]) -> Subsets:
        found = sets.get("".join(sorted(nodes)), {})
        return Subsets(sets=tuple(NodeSet(nodes=frozenset(text), name=name) for name, text in found.items()))

    return subset


class TestSubsets:
    def test_two_layers(self, around: Around) -> None:
        """P1 and P2, each divided by R: P1R1, P1R2, P2R1; a set never grows beyond the one around it."""
        p = hook("P", subset=layered(abcd={"P1": "abc", "P2": "d"}))
        r = hook("R", subset=layered(abc={"R1": "a", "R2": "bcd"}, d={"R1": "d"}))
        chain = Chain([p, r], around.make())
        plan = planned(chain)
        tried = [(one.name, "".join(sorted(one.nodes or ()))) for one in plan.course.attempts]
        assert tried == [("P1/R1", "a"), ("P1/R2", "bc"), ("P2/R1", "d"), ("any", "")]
        assert (plan.request.excluded_nodes, plan.excluded) == (("b", "c", "d"), {"b", "c", "d"})
        assert plan.window_seconds == 45.0

    def test_the_log_lines(self, around: Around) -> None:
        """What runs, how many subsets came out, and at the finest level which nodes."""
        planned(Chain([hook("topology", subset=layered(abcd={"x": "ab", "y": "cd"}))], around.make()))
        assert around.log.said == [
            ("topology", "debug", "Performing topology logic"),
            ("topology", "debug", "Result of topology logic is 2 subsets"),
            ("topology", "trace", "Result of topology logic is [a, b], [c, d]"),
        ]

    def test_not_relevant(self, around: Around) -> None:
        """The incoming set stays as it is, and the log says so."""
        plan = planned(Chain([hook("t", subset=Subsets(relevant=False))], around.make()))
        assert plan.course is attempts.PLAIN
        assert ("t", "debug", "t logic is not relevant") in around.log.said

    def test_relevant_without_sets_is_no_attempt(self, around: Around) -> None:
        """The user learns that it fits nowhere, and no name of a set."""
        found = stopped(Chain([hook(subset=Subsets(sets=()))], around.make()))
        assert found == Wait(reason="Unschedulable", message="unschedulable on cluster")

    def test_sets_outside_the_partition_are_no_attempt(self, around: Around) -> None:
        """Slurm could not choose their nodes."""
        seen = cluster([node("a"), node("b")], partition("one", "a"), partition("two", "b"))
        chain = Chain([hook(subset=layered(ab={"x": "b"}))], around.make())
        assert stopped(chain, seen, asked=translated(partition="one")).message == "unschedulable on cluster"

    def test_a_failing_layer_ends_the_division(self, around: Around) -> None:
        """No partial sets: skip means the one set of all nodes."""
        broken = hook("broken", "skip", subset=lambda *_: {}["x"])
        chain = Chain([hook("t", subset=layered(abcd={"x": "a"})), broken], around.make())
        assert planned(chain).course is attempts.PLAIN
        assert ("chain", "warning", "hook broken failed in phase subset: KeyError: 'x'") in around.log.said

    @pytest.mark.parametrize("first", [True, False])
    def test_a_failing_layer_weakens_no_required_set(self, around: Around, first: bool) -> None:
        """Whichever of the two comes first."""
        broken = hook("broken", "skip", subset=lambda *_: {}["x"])
        rack = hook("rack", subset=Subsets(sets=(NodeSet(nodes=frozenset("a"), name="x", required=True),)))
        chain = Chain([broken, rack] if first else [rack, broken], around.make())
        assert [one.nodes for one in planned(chain).course.attempts] == [frozenset("a")]

    def test_a_failing_layer_makes_no_attempt_of_none(self, around: Around) -> None:
        """Where another layer has no set that is left."""
        broken = hook("broken", "skip", subset=lambda *_: {}["x"])
        chain = Chain([hook("rack", subset=Subsets(sets=())), broken], around.make())
        assert stopped(chain).message == "unschedulable on cluster"

    def test_a_failing_layer_holds_by_default(self, around: Around) -> None:
        """The workload waits rather than being placed against somebody's rules."""
        found = stopped(Chain([hook("broken", subset=lambda *_: {}["x"])], around.make()))
        assert isinstance(found, Wait)

    def test_attempts_go_on(self, around: Around) -> None:
        """Asked with the state that `advance` gave, the chain plans the next attempt, and at last any node."""
        chain = Chain([hook(subset=layered(abcd={"x": "a"}))], around.make())
        first = planned(chain)
        looked = chain.advance(first, now=110.0, last_evaluation=105.0, updated_at=100.0)
        assert looked.attempt == 0
        waited = dataclasses.replace(first, state=looked)
        over = chain.advance(waited, now=155.0, last_evaluation=150.0, updated_at=100.0)
        second = planned(chain, previous=over)
        assert (second.state.attempt, second.request.excluded_nodes, second.window_seconds) == (1, (), None)

    def test_scores_put_the_best_nodes_first(self, around: Around) -> None:
        """Scores of several hooks are added."""
        many = cluster([node(f"n{number:02}") for number in range(30)])
        by_number = Scores(nodes={f"n{number:02}": float(number) for number in range(30)})
        favourite = Scores(nodes={"n00": 100.0})
        plan = planned(Chain([hook("one", score=by_number), hook("two", score=favourite)], around.make()), seen=many)
        assert plan.course.attempts[0].nodes == {"n00", *(f"n{number}" for number in range(21, 30))}

    @pytest.mark.parametrize("shown", [False, True])
    def test_scores_from_which_nothing_follows_are_worked_out_for_readers_only(
        self, around: Around, *, shown: bool
    ) -> None:
        """Whoever wants a single tier has decided that, whatever the others would say."""
        asked: list[str] = []

        def second(*_: object) -> Scores:
            asked.append("two")
            return Scores(nodes={"a": 1.0})

        single = Scores(nodes={"b": 1.0}, tiers=base.Tiers(count=1))
        hooks = [hook("one", score=single), hook("two", score=second)]
        plan = planned(Chain(hooks, around.make(shows_scores=lambda: shown)))
        assert (asked, len(plan.course.attempts)) == (["two"] if shown else [], 1)


class TestFailures:
    def broken(self, on_error: str, around: Around) -> Chain:
        """A chain with a hook that fails in its filter."""
        return Chain([hook("broken", on_error, filter=lambda *_: 1 / 0)], around.make())

    def test_hold(self, around: Around) -> None:
        """The user is told which hook; what was wrong is in the log, and it is tried again."""
        found = stopped(self.broken("hold", around))
        assert isinstance(found, Wait)
        assert (found.reason, found.retry_after) == ("HookFailed", 60.0)
        assert "hook broken failed in phase filter" in found.message
        assert "ZeroDivisionError" not in found.message
        assert around.log.said == [
            ("chain", "warning", "hook broken failed in phase filter: ZeroDivisionError: division by zero")
        ]

    def test_reject(self, around: Around) -> None:
        """Configured so, it is refused."""
        assert isinstance(stopped(self.broken("reject", around)), Reject)

    def test_skip(self, around: Around) -> None:
        """Configured so, the hook counts as if it were not there; operators see it in the explanation."""
        plan = planned(self.broken("skip", around))
        assert plan.request.excluded_nodes == ()
        assert [(line.hook, line.audience) for line in plan.lines] == [("broken", Audience.OPERATOR)]
        assert not told_users(plan)

    @pytest.mark.parametrize("phase", ["admit", "capacity", "sample", "score", "express"])
    def test_skip_in_every_phase(self, phase: str, around: Around) -> None:
        """The plan is the one without the hook."""
        chain = Chain([hook("broken", "skip", **{phase: lambda *_: 1 / 0})], around.make())
        assert planned(chain).request == translated().request


def test_lines_read_well(around: Around) -> None:
    """Phase, hook, nodes, time and reason."""
    plan = planned(Chain([hook("site", filter=Denied.because("node(s) were full", ["a"]))], around.make()))
    assert str(plan.lines[0]) == "filter site 4 → 3 nodes (0.0 ms): 1 node(s) were full"


def test_nothing_was_abandoned(around: Around) -> None:
    """Built-in hooks leave no thread behind, and close without one."""
    chain = Chain([hook(admit=base.GO)], around.make())
    planned(chain)
    chain.close()
    assert chain.abandoned == 0
    assert isinstance(chain.hooks[0], calls.Hook)
