"""What is remembered about nodes while the cluster changes, and words that are made only when somebody reads them."""

import dataclasses
import gc
import weakref

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.vela import pipeline, samples, smart
from slurm_bridge.families.vela.book import SPARE, Book
from slurm_bridge.families.vela.decision import OTHER_NODE, Decider, SamplingDecision
from slurm_bridge.families.vela.options import DecisionOptions, PipelineOptions
from slurm_bridge.families.vela.samples import Picked, SamplingResponse
from slurm_bridge.families.vela.scene import Alike, SamplingScene, SceneCache, never, same_node
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.translate import resources
from tests.unit.families.vela.support_vela import limited
from tests.unit.hooks.builders import node, partition, pod, slurm_node


class Cluster:
    """A keeper with some nodes, which changes."""

    def __init__(self, number: int = 3) -> None:
        self.keeper = cluster_cache.ClusterCache(resources.requests_of)
        self.nodes = {f"n{place}": node(f"n{place}") for place in range(number)}
        for one in self.nodes.values():
            self.keeper.on_node(None, one)
        self.slurm(*(slurm_node(name) for name in self.nodes))

    def seen(self) -> ClusterSnapshot:
        """Now."""
        return self.keeper.snapshot()

    def slurm(self, *known: SlurmNode) -> None:
        """What Slurm says."""
        self.keeper.set_slurm(known, (partition("debug", *self.nodes, default=True),))

    def cordon(self, name: str) -> None:
        """One of them takes no pods any more."""
        self.keeper.on_node(self.nodes[name], node(name, unschedulable=True, version="2"))

    def run(self, name: str) -> None:
        """A pod begins there."""
        self.keeper.on_pod(None, pod(f"on-{name}", requests={"cpu": "1"}, node_name=name, phase="Running"))

    def replace(self, name: str) -> None:
        """Another machine of the same name."""
        other = node(name, uid="another", version="9")
        self.keeper.on_node(self.nodes[name], None)
        self.keeper.on_node(None, other)


class TestKnown:
    def asked(self, cluster: Cluster, alike: Alike, change: str) -> int:
        """How often an answer is worked out before and after such a change."""
        known: SceneCache[str, int] = SceneCache(alike)
        often: list[int] = []

        def work_out() -> int:
            often.append(1)
            return len(often)

        known.get(cluster.seen().columns, "", work_out)
        if change == "pod":
            cluster.run("n1")
        elif change == "cordoned":
            cluster.cordon("n1")
        elif change == "partition":
            cluster.slurm(*(slurm_node(name, partitions=("other",)) for name in cluster.nodes))
        else:
            cluster.keeper.on_node(None, node("n9"))
        return known.get(cluster.seen().columns, "", work_out)

    @pytest.mark.parametrize(
        ("alike", "change", "often"),
        [
            (never, "pod", 2),
            (same_node, "pod", 1),
            (same_node, "cordoned", 2),
            (same_node, "partition", 1),
            (same_node, "node", 2),
            (pipeline.alike, "pod", 1),
            (pipeline.alike, "cordoned", 2),
            (pipeline.alike, "partition", 2),
        ],
    )
    def test_an_answer_stands_until_something_changes_that_matters_to_it(self, alike: Alike, change: str, often: int):
        """A pod that starts costs no rule about nodes anything."""
        assert self.asked(Cluster(), alike, change) == often

    def test_a_node_that_slurm_learns_of_matters_to_a_shard(self):
        """And one that it forgets."""
        facts = Cluster().seen().nodes["n0"]
        bare = dataclasses.replace(facts, slurm=None)
        assert not pipeline.alike(bare, facts)
        assert pipeline.alike(bare, bare)


class TestPicked:
    @hypothesis.given(st.lists(st.text(), min_size=1), st.data())
    def test_is_the_words_at_its_codes(self, words: list[str], data: st.DataObject):
        """Out of a tuple or an array."""
        codes = data.draw(st.lists(st.integers(0, len(words) - 1)))
        array = np.empty(len(words), object)
        array[:] = words
        expected = [words[code] for code in codes]
        for values in (tuple(words), array):
            found = Picked(values, np.array(codes, np.intp))
            assert (list(found), len(found), found == expected) == (expected, len(expected), True)
            assert [found[place] for place in range(len(found))] == expected
            assert found[1:] == expected[1:]

    def test_parts_of_the_same_words_stay_codes(self):
        """Others are put together as they are."""
        words = ("a", "b")
        one, other = Picked(words, np.array([1])), Picked(words, np.array([0, 1]))
        joined = samples.joined([one, other])
        assert isinstance(joined, Picked)
        assert joined == ["b", "a", "b"]
        assert samples.joined([one, ["x"]]) == ["b", "x"]
        assert samples.joined([]) == []


def _sampled(cluster: Cluster) -> SamplingResponse:
    columns = cluster.seen().columns
    rows = np.flatnonzero(columns.present)
    numbers = np.zeros(len(rows), np.int64)
    return SamplingResponse(
        cluster="here",
        nodes=samples.names(columns, rows),
        uids=samples.uids(columns, rows),
        accumulated=numbers,
        plugins=numbers,
    )


def _decided(answer: SamplingResponse, snapshot: ClusterSnapshot) -> SamplingDecision:
    merged = smart.merge({answer.cluster: answer})
    return Decider(DecisionOptions(), PipelineOptions()).decide(merged, SamplingScene(limited(), snapshot.columns, 0.0))


class TestDecision:
    def test_a_node_that_was_replaced_since_it_was_sampled_is_dropped(self):
        """Although it has the same name, and even the same row."""
        cluster = Cluster()
        answer = _sampled(cluster)
        cluster.replace("n1")
        cluster.slurm(*(slurm_node(name) for name in cluster.nodes))
        found = _decided(answer, cluster.seen())
        assert (sorted(found.nodes), found.dropped) == (["n0", "n2"], {OTHER_NODE: 1})

    def test_knows_under_which_uid_a_node_was_sampled(self):
        """Also when the columns of that time are gone."""
        cluster = Cluster()
        found = _decided(_sampled(cluster), cluster.seen())
        assert [found.uid_of(name) for name in ("n0", "n2", "n7")] == ["uid-n0", "uid-n2", ""]
        del cluster
        gc.collect()
        assert found.members() is None
        assert [found.uid_of(name) for name in ("n0", "n2", "n7")] == ["uid-n0", "uid-n2", ""]

    def test_a_small_sample_keeps_nothing_of_a_large_cluster(self):
        """Thousands of jobs may wait while nodes come and go."""
        cluster = Cluster(20)
        answer = _sampled(cluster)
        few = SamplingResponse(
            cluster="here",
            nodes=answer.nodes[:2],
            uids=answer.uids[:2],
            accumulated=answer.accumulated[:2],
            plugins=answer.plugins[:2],
        )
        found, members = _decided(few, cluster.seen()), weakref.ref(cluster.seen().columns.members)
        del cluster, answer, few
        gc.collect()
        assert members() is None
        assert (found.nodes, found.uids) == (["n0", "n1"], ["uid-n0", "uid-n1"])


class TestBook:
    def test_a_node_of_the_same_name_is_another_one(self):
        """Whatever was written before stays."""
        cluster, book = Cluster(), Book()
        before = book.written(cluster.seen().columns, np.array([1, 0]))
        cluster.replace("n1")
        after = book.written(cluster.seen().columns, np.array([1, 2]))
        assert before == (["n1", "n0"], ["uid-n1", "uid-n0"])
        assert (after[0], after[1][1]) == (["n1", "n2"], "uid-n2")
        assert after[1][0] != "uid-n1"

    def test_nodes_that_have_gone_are_forgotten_in_time(self):
        """By the book, and not by whoever was given them."""
        cluster, book, given = Cluster(1), Book(), list[Picked]()
        for number in range(3 * SPARE):
            cluster.keeper.on_node(None, node("n0", uid=f"uid-{number}", version=str(number)))
            given.append(book.written(cluster.seen().columns, np.array([0]))[1])
        assert [one[0] for one in given] == [f"uid-{number}" for number in range(3 * SPARE)]
        assert len(given[-1].values) <= SPARE + 3
