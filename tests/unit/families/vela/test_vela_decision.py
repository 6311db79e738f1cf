"""The decision among sampled nodes, candidates, and the conflict check."""

import dataclasses

import hypothesis
import numpy as np
from hypothesis import strategies as st

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.families.vela import candidates, conflict, decision, smart
from slurm_bridge.families.vela.counts import WORDS
from slurm_bridge.families.vela.decision import Decider, SamplingDecision
from slurm_bridge.families.vela.options import DecisionOptions, PipelineOptions
from slurm_bridge.families.vela.samples import SamplingResponse
from slurm_bridge.families.vela.scene import SamplingScene
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import resources
from tests.unit.families.vela.support_vela import farm, limited, response
from tests.unit.hooks.builders import cluster, node, pod

SNAPSHOT = farm(4)


def decided(*answers: SamplingResponse, one: Pod | None = None, **options: object) -> SamplingDecision:
    """What is left of these answers."""
    merged = smart.merge({answer.cluster: answer for answer in answers})
    decider = Decider(DecisionOptions.model_validate(options), PipelineOptions())
    return decider.decide(merged, SamplingScene(one or limited(), SNAPSHOT.columns, 0.0))


class TestDecide:
    def test_the_best_come_first(self):
        """By what agents and plugins say together, through the number of plugins."""
        found = decided(response("east", "n00", "n01", "n02", scores=(10, 90, 50)))
        assert (found.nodes, found.scores.tolist()) == (["n01", "n02", "n00"], [95, 75, 55])
        assert found.uids == ["uid-n01", "uid-n02", "uid-n00"]

    def test_without_plugins_on_either_side_all_are_equal(self):
        """And keep the order in which they were found."""
        answer = response("east", "n02", "n00")
        none = dataclasses.replace(answer, plugins=np.zeros(2, np.int64))
        found = decided(none, scores=[])
        assert (found.nodes, found.scores.tolist()) == (["n02", "n00"], [0, 0])

    def test_nodes_of_no_use_here_are_dropped_and_counted_by_reason(self):
        """Of a node that is named twice the first naming counts."""
        known = cluster([node("n00"), node("n01"), node("n02")], slurm=["n00", "n01"])
        answers = {
            "east": response("east", "n00", "nobody", "n02", scores=(10, 0, 0), uids=("uid-n00", "", "")),
            "west": response("west", "n00", "n01", scores=(90, 50), uids=("", "of another one")),
        }
        found = Decider(DecisionOptions(scores=()), PipelineOptions()).decide(
            smart.merge(answers), SamplingScene(limited(), known.columns, 0.0)
        )
        assert (found.nodes, found.scores.tolist(), found.sampled) == (["n00"], [10], 5)
        assert found.dropped == {
            decision.UNKNOWN_HERE: 1,
            decision.UNKNOWN_TO_SLURM: 1,
            decision.OTHER_NODE: 1,
            decision.TWICE: 1,
        }

    def test_every_reason_has_a_counter(self):
        """Of its own."""
        reasons = {decision.UNKNOWN_HERE, decision.UNKNOWN_TO_SLURM, decision.OTHER_NODE, decision.TWICE}
        assert set(decision.DROPPED) == reasons
        assert len(set(decision.DROPPED.values()) & set(WORDS)) == len(reasons)

    def test_the_filters_of_the_decision_have_the_last_word(self):
        """An agent's view may be older than ours."""
        found = decided(response("east", "n00"), one=limited(limits={"cpu": "900"}))
        assert (found.nodes, found.sampled, found.dropped) == ([], 1, {})

    def test_no_nodes_at_all(self):
        """Is a decision too."""
        assert decided(response("east")).nodes == []

    def test_rows_are_found_in_columns_of_other_members(self):
        """Nodes that are gone are nowhere."""
        found = decided(response("east", "n03", "n01", scores=(9, 1)), scores=[])
        fewer = cluster([node("n01"), node("n02")]).columns
        assert found.rows_in(fewer).tolist() == [-1, fewer.row("n01")]


class TestCandidates:
    @hypothesis.given(st.lists(st.integers(0, 30), unique=True), st.integers(1, 5), st.integers(1, 4))
    def test_each_is_the_next_best(self, ranked: list[int], pods: int, most: int):
        """As long as there are nodes; none of them in two."""
        names = [f"n{number}" for number in ranked]
        sets = candidates.candidates([(names, pods)], frozenset(names), most)
        joined = [name for one in sets for name in sorted(one, key=names.index)]
        assert joined == names[: pods * most]
        assert all(len(one) == pods for one in sets[:-1])

    def test_nodes_that_are_not_eligible_are_passed_over(self):
        """The next one takes their place."""
        sets = candidates.candidates([(["a", "b", "c"], 1)], frozenset("bc"), 2)
        assert sets == (frozenset("b"), frozenset("c"))

    def test_shapes_are_put_together(self):
        """One that has no further nodes keeps its last ones."""
        sets = candidates.candidates([(["a", "b", "c"], 1), (["x"], 1)], frozenset("abcx"), 2)
        assert sets == (frozenset("ax"), frozenset("bx"))

    def test_a_shape_without_nodes_has_no_candidates(self):
        """Nor has the whole."""
        assert candidates.candidates([(["a"], 1), ([], 1)], frozenset("a"), 2) == ()


class TestConflicts:
    def check(self, *pods: Pod, there: tuple[Pod, ...] = (), uids: dict[str, str] | None = None) -> dict[str, str]:
        """All of them on node n, beside those that are there."""
        made = cluster_cache.ClusterCache(resources.requests_of)
        made.on_node(None, node("n", allocatable={"cpu": "4"}))
        for one in there:
            made.on_pod(None, one)
        return conflict.conflicts(pods, {one.uid: "n" for one in pods}, made.snapshot(), uids or {})

    def test_what_fits_together_is_no_conflict(self):
        """Each is committed after the one before."""
        assert self.check(pod("a", requests={"cpu": "2"}), pod("b", requests={"cpu": "2"})) == {}

    def test_the_one_that_does_not_fit_any_more_is_named(self):
        """With what there is too little of."""
        found = self.check(pod("a", requests={"cpu": "3"}), pod("b", requests={"cpu": "2"}))
        assert found == {"n": "too little cpu is left for Pod team/b"}

    def test_pods_of_others_take_room(self):
        """Whoever scheduled them."""
        there = (pod("x", requests={"cpu": "3"}, node_name="n", phase="Running"),)
        assert self.check(pod("a", requests={"cpu": "2"}), there=there)

    def test_a_pod_that_counts_there_already_is_not_in_its_own_way(self):
        """An earlier binding whose answer was lost."""
        there = (pod("a", requests={"cpu": "3"}, node_name="n", phase="Running"),)
        assert self.check(pod("a", requests={"cpu": "3"}), there=there) == {}

    def test_another_node_of_the_same_name_is_not_the_one_that_was_sampled(self):
        """A machine that was replaced meanwhile."""
        assert "another node" in self.check(pod("a"), uids={"n": "uid of before"})["n"]
        assert self.check(pod("a"), uids={"n": "uid-n"}) == {}

    def test_a_node_that_is_gone_cannot_be_read(self):
        """Nothing is committed there."""
        found = conflict.conflicts([pod("a"), pod("b")], {"uid-a": "gone"}, SNAPSHOT, {})
        assert found == {"gone": "its state cannot be read: it is gone from Kubernetes"}
