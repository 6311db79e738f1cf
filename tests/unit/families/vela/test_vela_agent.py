"""An agent: its shard, its strategies, its pipelines."""

import concurrent.futures
import dataclasses
import itertools
import random
import threading
from typing import Any

import msgspec
import numpy as np
import pytest

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.columns import Mask
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.vela import catalogue
from slurm_bridge.families.vela.options import PipelineOptions, ShardOptions
from slurm_bridge.families.vela.pipeline import Agent, Busy, PodRefused, UnknownStrategy
from slurm_bridge.families.vela.samples import SamplingRequest
from slurm_bridge.families.vela.scene import Rows, SamplingScene
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.translate import resources
from tests.unit.families.vela.support_vela import farm, limited
from tests.unit.families.vela.vela_bench import partly_used
from tests.unit.hooks.builders import cluster, node, partition


def agent(snapshot: ClusterSnapshot, shard: ShardOptions | None = None, **options: Any) -> Agent:
    """With repeatable dice."""
    return Agent(
        "east",
        lambda: snapshot,
        clock=VirtualClock(),
        options=PipelineOptions.model_validate(options),
        shard=shard,
        dice=random.Random(1),
    )


def asked(nodes_bp: int = 10_000, **limits: Any) -> SamplingRequest:
    """For a pod with these limits."""
    return SamplingRequest(pod=limited(limits=limits), nodes_bp=nodes_bp)


class TestSample:
    def test_gives_so_many_basis_points_of_its_nodes(self):
        """200 of them unless it is told."""
        one = agent(farm(100))
        assert [len(one.sample(asked(points), "random").nodes) for points in (0, 200, 1000)] == [2, 2, 10]

    def test_gives_names_uids_and_scores_by_place(self):
        """Of the cluster under its own name."""
        found = agent(farm(3), scores=[{"name": "ResourcesFit", "weight": 2}]).sample(asked(), "round-robin")
        assert (found.cluster, found.nodes) == ("east", ["n00", "n01", "n02"])
        assert found.uids == ["uid-n00", "uid-n01", "uid-n02"]
        assert (found.accumulated.tolist(), found.plugins.tolist()) == ([200] * 3, [1] * 3)

    def test_nodes_that_the_filters_reject_are_replaced_by_others(self):
        """As long as the rounds go, which is without end unless it is configured."""
        snapshot = cluster([node(f"n{place}", ready=place >= 6) for place in range(10)])
        one = agent(snapshot)
        assert one.sample(asked(3000), "round-robin").nodes == ["n6", "n7", "n8"]
        few = agent(snapshot, max_rounds=1)
        assert few.sample(asked(3000), "round-robin").nodes == []

    def test_once_all_nodes_were_drawn_no_further_round_begins(self):
        """Nothing new can come: whoever goes round is where it was."""
        one = agent(cluster([node(f"n{place}", ready=place >= 2) for place in range(4)]), max_rounds=2)
        assert one.sample(asked(), "round-robin").nodes == ["n2", "n3"]
        assert one.sample(asked(5000), "round-robin").nodes == ["n2", "n3"]

    @pytest.mark.parametrize("strategy", ["random", "round-robin"])
    def test_the_only_node_that_passes_is_found_at_once(self, strategy: str):
        """Also with a filter that looks at each node alone; no node is looked at twice."""
        near = {"slinky.slurm.net/geo-location": "48.2,16.37"}
        nodes = [node(f"n{place:03}") for place in range(100)]
        metadata = msgspec.structs.replace(nodes[77].metadata, annotations=near)
        nodes[77] = msgspec.structs.replace(nodes[77], metadata=metadata)
        snapshot = cluster(nodes)
        one = limited(annotations={"scheduler.slinky.slurm.net/geo-target": "48.2,16.37"})
        found = agent(snapshot, filters=["NodeRules", "GeoLocation"]).sample(SamplingRequest(pod=one), strategy)
        assert found.nodes == ["n077"]

    def test_after_the_time_no_further_round_begins(self, monkeypatch: pytest.MonkeyPatch):
        """What was found by then is the answer: here each look at a node takes a tenth of a second."""
        clock = VirtualClock()

        class Slow:
            rejects = "are not the last one"

            def fits(self, scene: SamplingScene, rows: Rows) -> Mask:
                clock.advance(0.1 * len(rows))
                return np.asarray(scene.nodes.names[rows] == "n099")

        monkeypatch.setitem(catalogue.PLUGINS, "Slow", Slow)
        snapshot = cluster([node(f"n{place:03}") for place in range(100)])
        options = PipelineOptions.model_validate({"filters": ["Slow"], "timeout_ms": 500})
        one = Agent("east", lambda: snapshot, clock=clock, options=options)
        assert one.sample(asked(100), "round-robin").nodes == []
        assert clock.now() == pytest.approx(0.5)

    def test_nodes_outside_of_the_partitions_are_not_drawn(self):
        """Where the request says which these are, and the agent knows any."""
        seen = partly_used(10, {}, gpu=("n08", "n09"))
        one = agent(seen)
        told = [SamplingRequest(pod=limited(), nodes_bp=10_000, partition=name) for name in ("gpu", "", "debug,gpu")]
        assert [len(one.sample(request, "random").nodes) for request in told] == [2, 8, 10]
        assert len(one.sample(SamplingRequest(pod=limited(), nodes_bp=10_000), "random").nodes) == 10

    def test_an_agent_without_slurm_takes_nodes_of_any_partition(self):
        """It does not know better; the decision does."""
        made = cluster_cache.ClusterCache(resources.requests_of)
        made.on_node(None, node("n0"))
        request = SamplingRequest(pod=limited(), partition="gpu")
        assert agent(made.snapshot()).sample(request, "random").nodes == ["n0"]

    def test_nothing_fits_is_an_answer(self):
        """Without nodes."""
        assert agent(farm(5)).sample(asked(cpu="900"), "random").nodes == []

    def test_an_empty_shard_is_an_answer(self):
        """Without nodes."""
        assert agent(farm(0)).sample(asked(), "random").nodes == []

    def test_an_unknown_strategy_is_named_with_what_there_is(self):
        """Configured ones only."""
        with pytest.raises(UnknownStrategy, match="strategy 'random' is not offered here; there are round-robin"):
            agent(farm(1), strategies=["round-robin"]).sample(asked(), "random")

    def test_a_pod_that_a_plugin_cannot_read_is_refused(self):
        """And the pipeline is idle again."""
        one = agent(farm(2), filters=["GeoLocation"], parallel_sampling_pipelines=1)
        wrong = limited(annotations={catalogue.GeoLocation.Options().pod_target: "Vienna"})
        with pytest.raises(PodRefused, match=r"^annotation .*geo-target: 'Vienna' is not LATITUDE"):
            one.sample(SamplingRequest(pod=wrong), "random")
        assert one.sample(asked(), "random").nodes

    def test_a_score_that_cannot_read_it_refuses_it_too(self):
        """Likewise."""
        one = agent(farm(2), filters=[], scores=["GeoLocation"])
        wrong = limited(annotations={catalogue.GeoLocation.Options().pod_target: "Vienna"})
        with pytest.raises(PodRefused, match="Vienna"):
            one.sample(SamplingRequest(pod=wrong), "random")

    def test_equal_seeds_sample_equally(self):
        """So simulations repeat."""
        one, other = (agent(farm(50)).sample(asked(1000), "random").nodes for _ in range(2))
        assert one == other


class TestPipelines:
    def test_concurrent_round_robin_requests_get_disjoint_nodes_until_the_list_wraps(self):
        """Over whichever pipelines they run."""
        one = agent(farm(96), parallel_sampling_pipelines=4)
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            samples = list(pool.map(lambda _: one.sample(asked(834), "round-robin").nodes, range(12)))
        assert len(set(itertools.chain.from_iterable(samples))) == 96

    @pytest.mark.parametrize(("configured", "seconds", "waited"), [(0.01, None, "0.01"), (60.0, 0.02, "0.01")])
    def test_a_request_waits_for_an_idle_pipeline(self, configured: float, seconds: float | None, waited: str):
        """And is told when there is none in time, which is well before its caller has gone."""
        started, go_on = threading.Event(), threading.Event()
        snapshot = farm(2)

        class Held(Agent):
            def _sample(self, *arguments: Any) -> Any:
                started.set()
                assert go_on.wait(30)
                return super()._sample(*arguments)

        options = PipelineOptions(parallel_sampling_pipelines=1, wait_seconds=configured)
        one = Held("east", lambda: snapshot, clock=VirtualClock(), options=options)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(one.sample, asked(), "random")
            assert started.wait(30)
            with pytest.raises(Busy, match=f"no pipeline became idle within {waited} s"):
                one.sample(dataclasses.replace(asked(), seconds=seconds), "random")
            go_on.set()
            assert len(first.result(30).nodes) == 2


class TestShard:
    SNAPSHOT = cluster(
        [
            node(f"n{place}", labels={"rack": f"r{place % 3}", "topology.kubernetes.io/zone": f"z{place % 2}"})
            for place in range(6)
        ],
        partition("left", "n0", "n1", "n2"),
    )

    @pytest.mark.parametrize(
        ("shard", "nodes"),
        [
            ({}, ["n0", "n1", "n2", "n3", "n4", "n5"]),
            ({"selector": "rack in (r0,r1)"}, ["n0", "n1", "n3", "n4"]),
            ({"zone": "z1"}, ["n1", "n3", "n5"]),
            ({"zone": "z1", "selector": "rack=r0"}, ["n3"]),
            ({"partition": "debug"}, ["n0", "n1", "n2", "n3", "n4", "n5"]),
            ({"partition": "none"}, []),
        ],
    )
    def test_covers_what_meets_all_that_is_configured(self, shard: dict[str, str], nodes: list[str]):
        """And nothing else is counted, or sampled."""
        one = agent(self.SNAPSHOT, ShardOptions.model_validate(shard))
        assert one.nodes_count == len(nodes)
        assert sorted(one.sample(asked(), "round-robin").nodes) == nodes

    def test_follows_the_nodes(self):
        """Of the snapshot that there is when it is asked."""
        now = [farm(1)]
        one = Agent("east", lambda: now[0], clock=VirtualClock())
        assert one.nodes_count == 1
        now[0] = farm(4)
        assert one.nodes_count == 4
