"""The hook when nothing is found, when it only tries out, and with threads."""

import dataclasses
import threading
from typing import Any

import pytest

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.vela import cases
from slurm_bridge.hooks.base import Mode, Sample
from slurm_bridge.hooks.chain import Chain, Plan, asked
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime.clock import SystemClock
from tests.unit.families.vela.support_vela import DOWN, FakePost, Stage, answering, farm, limited
from tests.unit.families.vela.vela_bench import EAST, Bench, allowing, partly_used
from tests.unit.hooks.builders import cluster, node, pod, translated, workload


class TestNowhere:
    def test_agents_that_have_no_node_are_asked_again_later_and_later(self):
        """Then it is parked, which is the event."""
        bench = Bench(farm(4), max_retries=2)
        big = workload(limited(limits={"cpu": "900"}))
        first = bench.waits(big)
        assert (first.reason, first.retry_after) == ("Unschedulable", 1.0)
        assert first.message == (
            "no node of local: no candidates left after Filter plugins; "
            "of 4 nodes here 4 are too small for its requests; it is sampled again, 1 of 2 times"
        )
        bench.stage.clock.advance(1)
        assert bench.waits(big).retry_after == 2.0
        bench.stage.clock.advance(2)
        parked = bench.waits(big)
        assert (parked.reason, parked.retry_after) == ("FailedScheduling", cases.RESYNC_SECONDS)
        assert "it was tried 3 times" in parked.message
        assert (bench.counted("unschedulable"), bench.counted("parked")) == (3, 1)

    def test_what_is_wrong_with_all_nodes_here_is_told(self):
        """Each node with the first filter that rejects it."""
        nodes = [*(node(f"n{place}", ready=False) for place in range(8)), node("tiny", allocatable={"cpu": "1"})]
        bench = Bench(cluster(nodes), strategy="round-robin", nodes_bp=1000)
        assert bench.waits(workload(limited(limits={"cpu": "2"}))).message == (
            "no node of local: no candidates left after Filter plugins; of 9 nodes here 8 are not ready, cordoned, "
            "tainted, or not what its node selector and affinity ask for, 1 are too small for its requests; "
            "it is sampled again, 1 of 10 times"
        )

    def test_before_it_is_due_nobody_is_asked(self):
        """The reason stays, and the time shrinks."""
        bench = Bench(farm(4))
        big = workload(limited(limits={"cpu": "900"}))
        bench.waits(big)
        bench.stage.clock.advance(0.75)
        assert (bench.waits(big).retry_after, bench.counted("sampled")) == (pytest.approx(0.25), 1)

    def test_a_node_that_comes_ends_the_parking(self):
        """With all of its retries."""
        bench = Bench(farm(4), max_retries=0, nodes_bp=10_000)
        big = workload(limited(limits={"cpu": "90"}))
        assert bench.waits(big).reason == "FailedScheduling"
        bench.stage.clock.advance(2)
        assert (bench.waits(big).reason, bench.counted("sampled")) == ("FailedScheduling", 1)
        bench.stage.now = dataclasses.replace(cluster([node("huge", allocatable={"cpu": "128"})]), version=77)
        assert bench.allowed(bench.planned(big)) == {"huge"}

    def test_before_it_is_parked_all_nodes_here_are_looked_at(self):
        """Also those that no agent has: the agent of a rack has no large node, another rack has one."""
        small = [node(f"n{place}", labels={"rack": "a"}) for place in range(3)]
        huge = node("huge", labels={"rack": "b"}, allocatable={"cpu": "128"})
        agents = [{"name": "a", "shard": {"selector": "rack=a"}}]
        bench = Bench(cluster([*small, huge]), agents=agents, max_retries=0)
        plan = bench.planned(workload(limited(limits={"cpu": "90"})))
        assert bench.allowed(plan) == {"huge"}
        assert (bench.counted("found-by-last-look"), bench.counted("parked")) == (1, 0)

    def test_all_nodes_are_looked_at_where_the_decision_has_no_use_for_the_sample(self):
        """An agent that answers with nodes that are too small hides no node."""
        nodes = [node("n0"), node("huge", allocatable={"cpu": "128"})]
        bench = Bench(cluster(nodes), agents=EAST, post=FakePost(east=answering("east", "n0")))
        assert bench.allowed(bench.planned(workload(limited(limits={"cpu": "90"})))) == {"huge"}

    def test_other_hooks_may_have_no_use_for_a_sample(self):
        """Their reasons are told; then all nodes are looked at, and what none of them passes waits for a change."""
        bench = Bench(farm(40), allowing(), max_retries=1)
        first = bench.waits()
        assert (first.reason, first.retry_after) == ("Unschedulable", 1.0)
        assert "is not wanted" in first.message
        bench.stage.clock.advance(1)
        second = bench.waits()
        assert (second.message, second.retry_after) == ("0/40 nodes are available: 40 is not wanted.", None)
        for _ in range(2):
            bench.stage.clock.advance(4)
            bench.waits()
        assert bench.counted("sampled") == 2

    def test_what_no_node_passes_is_parked_in_the_end(self):
        """After so many samples and as many looks at all nodes."""
        bench = Bench(farm(40), allowing(), max_retries=1)
        reasons = []
        for _ in range(5):
            reasons.append(bench.waits().reason)
            bench.stage.clock.advance(4)
        assert reasons == ["Unschedulable"] * 4 + ["FailedScheduling"]
        assert bench.counted("parked") == 1

    def test_of_a_parked_pod_the_hooks_that_exclude_its_nodes_say_why(self):
        """The agents have nodes for it. It is a warning, and the pod is tried again after five minutes."""
        bench = Bench(farm(40), allowing(), max_retries=1)
        for _ in range(4):
            bench.waits()
            bench.stage.clock.advance(4)
        parked = bench.waits()
        assert parked.message == (
            "0/40 nodes are available: 40 is not wanted; "
            "it was tried 2 times, and is tried again when nodes or agents change"
        )
        assert (parked.reason, parked.warning, parked.retry_after) == ("FailedScheduling", True, cases.RESYNC_SECONDS)
        bench.stage.clock.advance(1)
        assert bench.waits().message == parked.message

    def test_a_node_that_only_another_hook_knows_of_is_found_in_the_next_round(self):
        """All nodes are looked at then, and the job may have any that is left, for as long as it waits."""
        bench = Bench(farm(40), allowing("n39"), strategy="round-robin")
        bench.waits()
        bench.stage.clock.advance(1)
        plan = bench.planned()
        assert bench.allowed(plan) == {"n39"}
        bench.stage.clock.advance(100)
        assert bench.allowed(bench.planned(previous=plan.state)) == {"n39"}

    def test_another_sample_may_have_what_the_first_had_not(self):
        """The chain then finds it."""
        bench = Bench(farm(4), allowing("n01"), strategy="round-robin", nodes_bp=2500)
        assert bench.waits().reason == "Unschedulable"
        bench.stage.clock.advance(1)
        assert bench.allowed(bench.planned()) == {"n01"}

    def test_agents_that_do_not_answer_cost_no_retry(self):
        """It is not said that the pod fits nowhere."""
        bench = Bench(farm(4), agents=EAST, post=FakePost(east=DOWN), max_retries=0, failures=1000)
        for seconds in (1.0, 2.0, 4.0, 8.0):
            wait = bench.waits()
            assert (wait.reason, wait.retry_after) == ("AgentsUnavailable", seconds)
            bench.stage.clock.advance(seconds)
        assert wait.message.startswith("no agent answered: agent east: http://north: connection refused")
        assert (bench.counted("agents-unavailable"), bench.counted("parked")) == (4, 0)

    def test_nodes_that_only_the_agent_knows_are_dropped_and_counted(self):
        """The message says so."""
        bench = Bench(farm(2), agents=EAST, post=FakePost(east=answering("east", "n00", "mine", "mine-too")))
        assert bench.allowed(bench.planned()) == {"n00"}
        assert bench.counted("dropped-unknown") == 2
        alone = Bench(farm(2, ready=False), agents=EAST, post=FakePost(east=answering("east", "mine")))
        assert "1 were not a node of this cluster" in alone.waits().message

    def test_a_plugin_that_raises_costs_a_retry_and_not_the_pod(self):
        """What it said is in the message."""
        options = {"decision": {"filters": ["GeoLocation"]}, "sampling": {"filters": []}}
        bench = Bench(farm(4), **options)
        wrong = limited(annotations={"scheduler.slinky.slurm.net/geo-target": "Vienna"})
        wait = bench.waits(workload(wrong))
        assert wait.reason == "Unschedulable"
        assert "sampling failed: annotation " in wait.message
        assert "geo-target: 'Vienna' is not LATITUDE,LONGITUDE" in wait.message

    def test_an_agent_that_comes_back_wakes_who_waits_for_nodes(self):
        """They need not wait for their time."""
        answers = [DOWN, answering("east")]
        post = FakePost(east=lambda _body: _next(answers))
        bench = Bench(farm(4), agents=EAST, post=post)
        assert bench.waits().reason == "AgentsUnavailable"
        bench.plan(workload(limited("other")))
        assert bench.stage.woken == [workload(limited()).root.key]


class TestSimulated:
    def test_looks_at_all_nodes_where_nothing_was_sampled_and_at_the_sample_where_it_was(self):
        """Nobody is asked, and nothing changes."""
        bench = Bench(farm(40))
        ask, now = asked(workload(limited()), translated()), bench.stage.now
        assert len(self._sampled(bench, ask, now)) == 40
        assert bench.counted("sampled") == 0
        plan = bench.planned()
        assert self._sampled(bench, ask, now) == bench.allowed(plan) | self._sampled(bench, ask, now)
        assert len(self._sampled(bench, ask, now)) == 1

    def _sampled(self, bench: Bench, ask: Any, now: ClusterSnapshot) -> frozenset[str]:
        with bench.chain.session(now, now=0.0, mode=Mode.SIMULATED) as session:
            answer = bench.vela.sample(session, ask, now.names)
            assert isinstance(answer, Sample)
            return answer.nodes


class TestThreads:
    def test_a_pass_never_waits_for_agents(self):
        """It ends at once, and the workload is woken when the answer is there."""
        stage = Stage(farm(40), post=FakePost(east=answering("east", "n03")), threads=True, clock=SystemClock())
        vela = stage.hook(agents=EAST)
        chain = stage.chain(vela)
        try:
            one = workload(limited())
            first = chain.plan(one, translated(), stage.now, now=stage.clock.wall())
            assert isinstance(first, Wait)
            assert (first.reason, first.message) == ("Sampling", "nodes are being sampled for it")
            assert stage.awake.wait(30)
            plan = chain.plan(one, translated(), stage.now, now=stage.clock.wall())
            assert isinstance(plan, Plan)
            assert set(stage.now.names) - plan.excluded == {"n03"}
            assert stage.woken == [workload(limited()).root.key]
        finally:
            chain.close()

    def test_a_pass_samples_itself_where_nobody_far_away_is_asked(self):
        """And wakes nobody for an answer that it has seen."""
        stage = Stage(farm(40), threads=True, clock=SystemClock())
        chain = stage.chain(stage.hook())
        try:
            assert isinstance(_pass(chain, stage, "p"), Plan)
            assert stage.woken == []
        finally:
            chain.close()

    def test_every_workload_is_answered_with_agents_dead_and_hanging(self):
        """None is lost, whoever of three agents does not answer."""
        post = FakePost(east=answering("east", "n03", "n04"), north=DOWN, west=lambda _body: hang.wait(30))
        stage = Stage(farm(40), post=post, threads=True, clock=SystemClock())
        hang = threading.Event()
        seconds = {"east": 30, "north": 30, "west": 0.05}
        agents = [{"name": name, "url": f"http://{name}", "timeout_seconds": most} for name, most in seconds.items()]
        vela = stage.hook(agents=agents, clusters_percent=100, failures=1000)
        chain, left = stage.chain(vela), {f"p{number}" for number in range(20)}
        try:
            while left:
                stage.awake.clear()
                left = {name for name in left if not isinstance(_pass(chain, stage, name), Plan)}
                assert not left or stage.awake.wait(30)
        finally:
            hang.set()
            chain.close()


class TestOffice:
    def test_without_room_to_wait_a_pod_comes_again_soon(self):
        """What was known of it stays."""
        bench = Bench(farm(4))
        big = workload(limited(limits={"cpu": "900"}))
        bench.waits(big)
        bench.stage.clock.advance(1)
        bench.chain.close()
        assert bench.waits(big).message == "too many pods wait to be sampled"
        assert bench.waits(workload(limited("other"))).retry_after == 1.0

    def test_the_snapshot_itself_can_be_sampled(self):
        """Then nobody else is asked, whatever agents there are."""
        bench = Bench(farm(4), agents=EAST, post=FakePost(), sample_nodes="LocalNodesSampler")
        assert len(bench.allowed(bench.planned())) == 1

    def test_only_nodes_of_the_partition_that_the_job_names_are_sampled(self):
        """Here, and by agents that are told of it."""
        seen = partly_used(6, {}, gpu=("n04", "n05"))
        bench = Bench(seen, strategy="round-robin", nodes_bp=3334)
        assert bench.planned(partition="gpu").course.attempts[0].nodes == {"n04"}
        post = FakePost(east=answering("east", "n05"))
        far = Bench(seen, agents=EAST, post=post)
        assert far.planned(partition="gpu").course.attempts[0].nodes == {"n05"}
        assert post.calls[0][2]["partition"] == "gpu"

    def test_an_agent_that_does_not_know_the_partition_hides_no_node_of_it(self):
        """It names others, and the last look finds what there is."""
        post = FakePost(east=answering("east", "n00", "n01"))
        bench = Bench(partly_used(6, {}, gpu=("n04", "n05")), agents=EAST, post=post)
        assert bench.planned(partition="gpu").course.attempts[0].nodes < {"n04", "n05"}

    @pytest.mark.parametrize("named", ["gpu", "gpu, none", ""])
    def test_the_partition_is_the_one_that_slurm_would_take(self, named: str):
        """Blanks after a comma, and where none is named the default one."""
        seen = partly_used(6, {}, gpu=("n04", "n05"))
        parts = [dataclasses.replace(one, default=one.name == "gpu") for one in seen.partitions]
        bench = Bench(dataclasses.replace(seen, partitions=tuple(parts)), nodes_bp=10_000, clusters_percent=100)
        plan = bench.planned(partition=named or None)
        tried = frozenset().union(*(one.nodes or () for one in plan.course.attempts))
        assert tried == {"n04", "n05"}

    def test_who_decides_has_the_last_word(self):
        """Nodes that an agent found, and that cannot take the pod, are no nodes."""
        bench = Bench(farm(4), agents=EAST, post=FakePost(east=answering("east", "n00", "n01")))
        wait = bench.waits(workload(limited(limits={"cpu": "900"})))
        assert wait.message.startswith("none of 2 sampled nodes is left: 2 cannot take the pod")

    def test_of_a_workload_that_nobody_knows_nothing_is_said(self):
        """It has no scores."""
        bench = Bench(farm(4))
        now = bench.stage.now
        with bench.chain.session(now, now=0.0) as session:
            assert bench.vela.score(session, asked(workload(limited()), translated()), now.names).nodes == {}


class TestOrder:
    def test_orders_by_priority_and_age(self):
        """As the sort plugin says."""
        old, new = _made("old", "2026-01-01T00:00:00Z"), _made("new", "2026-01-02T00:00:00Z", priority=None)
        urgent = _made("urgent", "2026-01-03T00:00:00Z", priority=5)
        bench = Bench(farm(1))
        assert sorted([new, old, urgent], key=bench.chain.order_key) == [urgent, old, new]

    def test_may_leave_the_order_to_others(self):
        """The queue is then sorted as without hooks."""
        assert not Bench(farm(1), emit="none").chain.orders


def test_close_ends_all_threads():
    """Whatever waits is dropped."""
    before = set(threading.enumerate())
    stage = Stage(farm(4), post=FakePost(east=answering("east", "n00")), threads=True, clock=SystemClock())
    chain = stage.chain(stage.hook(agents=EAST))
    for number in range(20):
        _pass(chain, stage, f"p{number}")
    chain.close()
    assert not [one for one in set(threading.enumerate()) - before if one.is_alive()]


def test_operators_read_whom_it_came_from():
    """And who was left out."""
    agents = [{"name": name, "url": f"http://{name}"} for name in ("east", "north")]
    post = FakePost(east=answering("east", "n00", "n01"), north=DOWN)
    plan = Bench(farm(4), agents=agents, clusters_percent=100, post=post).planned()
    (line,) = (line for line in plan.lines if line.phase.value == "sample")
    assert (line.nodes_in, line.nodes_out) == (4, 2)
    assert line.reason == (
        "2 of 2 sampled nodes are left, from east; agent north is left out: http://north: connection refused"
    )


def _next(answers: list[Any]) -> Any:
    answer = answers.pop(0) if len(answers) > 1 else answers[0]
    if isinstance(answer, Exception):
        raise answer
    return answer


def _pass(chain: Chain, stage: Stage, name: str) -> object:
    return chain.plan(workload(limited(name)), translated(), stage.now, now=stage.clock.wall())


def _made(name: str, created: str, *, priority: int | None = 0) -> Workload:
    return workload(pod(name, metadata={"creation_timestamp": created}, priority=priority))
