"""The hook in a chain: sampling beside the passes, candidates, retries, and what is left after a restart."""

import dataclasses
import threading
from typing import Any, ClassVar

import pytest

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.vela import cases
from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.hooks.base import Denied, Deny, Mode, Sample
from slurm_bridge.hooks.chain import Chain, Plan, asked
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.translate import resources
from tests.unit.families.vela.support_vela import DOWN, FakePost, Stage, answering, farm, limited
from tests.unit.hooks.builders import cluster, gang, hook, node, partition, pod, shape, slurm_node, translated, workload

EAST = [{"name": "east", "url": "http://east"}]


class Bench:
    """A chain with the hook, and the cluster that it sees."""

    def __init__(self, snapshot: ClusterSnapshot, *others: Any, post: Any = None, **options: Any) -> None:
        self.stage = Stage(snapshot, post=post)
        self.options = options
        self.others = others
        self.restart()

    def restart(self) -> None:
        """Nothing of the hook is in memory any more."""
        self.vela = self.stage.hook(**self.options)
        self.chain = self.stage.chain(self.vela, *self.others)

    def plan(self, one: Workload | None = None, previous: PlanState | None = None, **fields: Any) -> Plan | Wait:
        """One pass."""
        found = self.chain.plan(
            one or workload(limited()),
            translated(**fields),
            self.stage.now,
            now=self.stage.clock.wall(),
            previous=previous,
        )
        assert isinstance(found, Plan | Wait)
        return found

    def planned(self, one: Workload | None = None, previous: PlanState | None = None, **fields: Any) -> Plan:
        """One that gives a plan."""
        found = self.plan(one, previous, **fields)
        assert isinstance(found, Plan), found
        return found

    def waits(self, one: Workload | None = None, **fields: Any) -> Wait:
        """One that gives none."""
        found = self.plan(one, **fields)
        assert isinstance(found, Wait)
        return found

    def allowed(self, plan: Plan) -> set[str]:
        """The nodes that the request can have."""
        return set(self.stage.now.names) - plan.excluded

    def counted(self, what: str) -> int:
        """How often it happened."""
        return self.stage.counters.counted.get(what, 0)


def at(plan: Plan, attempt: int) -> PlanState:
    """A job that has come to this attempt of a plan."""
    return PlanState(version=plan.state.version, attempt=attempt, started=0.0)


def allowing(*names: str) -> Any:
    """Another hook, which can use only these nodes."""
    return hook(
        "other", filter=lambda session, *_: Denied.because("is not wanted", session.snapshot.names - set(names))
    )


class TestCandidates:
    def test_the_best_sampled_nodes_are_tried_one_after_the_other_and_then_all(self):
        """The names of the attempts are those of the candidates."""
        bench = Bench(farm(40), nodes_bp=1000)
        plan = bench.planned()
        assert [one.name for one in plan.course.attempts] == ["candidate 1", "candidate 2", "candidate 3", "any"]
        tried = [bench.allowed(bench.planned(previous=at(plan, attempt))) for attempt in range(4)]
        assert [len(nodes) for nodes in tried] == [1, 1, 1, 40]
        assert len(tried[0] | tried[1] | tried[2]) == 3

    def test_the_fullest_nodes_are_best_where_so_configured(self):
        """Agents and the decision agree."""
        most = [{"name": "ResourcesFit", "args": {"mode": "MostAllocated"}}]
        snapshot = _used(4, {"n02": "9", "n01": "6"})
        options = {"sampling": {"scores": most}, "decision": {"scores": most}, "nodes_bp": 10_000}
        bench = Bench(snapshot, **options)
        plan = bench.planned()
        assert bench.allowed(plan) == {"n02"}
        assert bench.allowed(bench.planned(previous=at(plan, 1))) == {"n01"}

    def test_a_sample_stays_while_its_job_waits(self):
        """However often it is looked at."""
        bench = Bench(farm(40))
        plan = bench.planned()
        bench.stage.clock.advance(10_000)
        again = bench.planned(previous=at(plan, 0))
        assert (bench.allowed(again), bench.counted("sampled")) == (bench.allowed(plan), 1)

    def test_a_sample_that_led_to_no_job_is_made_anew(self):
        """After a while, and without costing a retry; also when there was a job before."""
        bench = Bench(farm(40))
        bench.planned(previous=at(bench.planned(), 1))
        bench.stage.clock.advance(15)
        bench.planned()
        assert bench.counted("sampled") == 2

    def test_one_node_is_tried_and_then_all(self):
        """Also when the filters leave nothing else of the sample, or of the whole cluster."""
        bench = Bench(farm(40), allowing("n07"), nodes_bp=10_000 - 1, strategy="round-robin")
        plan = bench.planned()
        assert [one.name for one in plan.course.attempts] == ["candidate 1", "any"]
        again = bench.planned(previous=at(plan, 1))
        assert (again.state.attempt, again.state.version) == (1, plan.state.version)
        assert bench.allowed(again) == {"n07"}

    def test_a_group_gets_as_many_nodes_for_each_candidate_as_it_has_pods(self):
        """And more of them are sampled than for one pod."""
        bench = Bench(farm(90), nodes_bp=100)
        members = gang(*(limited(f"p{number}") for number in range(8)))
        plan = bench.planned(members, tasks=8)
        sets = [one.nodes for one in plan.course.attempts[:3]]
        assert [len(nodes or ()) for nodes in sets] == [8, 8, 8]

    def test_shapes_are_sampled_one_after_the_other_and_tried_together(self):
        """Each candidate has nodes for all of them."""
        lead, *workers = (limited(name) for name in ("lead", "w1", "w2"))
        shapes = (shape(lead), shape(*workers))
        bench = Bench(farm(90))
        plan = bench.planned(gang(lead, *workers), shapes=shapes)
        assert bench.counted("sampled") == 2
        assert [1 <= len(one.nodes or ()) <= 3 for one in plan.course.attempts[:3]] == [True] * 3

    def test_a_group_of_pods_that_all_differ_is_sampled_once(self):
        """However many they are."""
        pods = [limited(f"p{number}", limits={"cpu": f"{number + 1}m"}) for number in range(100)]
        bench = Bench(farm(40), nodes_bp=5000)
        for _ in range(2):
            bench.planned(gang(*pods), shapes=tuple(shape(one) for one in pods))
        assert bench.counted("sampled") == 100


class TestRoom:
    """The fullest nodes are the best here, and of sixteen cpus the pod wants ten."""

    MOST: ClassVar = [{"name": "ResourcesFit", "args": {"mode": "MostAllocated"}}]
    OPTIONS: ClassVar[dict[str, Any]] = {
        "sampling": {"scores": MOST},
        "decision": {"scores": MOST},
        "nodes_bp": 10_000,
    }

    def bench(self, number: int, used: dict[str, str], *others: Any) -> Bench:
        """All nodes are sampled, and some are in use."""
        return Bench(_used(number, used), *others, **self.OPTIONS)

    def wanted(self, name: str = "p") -> Pod:
        """Such a pod."""
        return limited(name, limits={"cpu": "10"})

    def tried(self, bench: Bench, one: Workload, previous: PlanState | None = None, **fields: Any) -> list[Any]:
        """The nodes of each candidate."""
        attempts = bench.planned(one, previous, **fields).course.attempts
        return [set(attempt.nodes or ()) for attempt in attempts if attempt.name.startswith("candidate")]

    def test_candidates_are_made_of_nodes_that_have_room_now(self):
        """A full one may be the best by its score, and the job would wait for nothing."""
        bench = self.bench(4, {"n02": "9", "n01": "6", "n03": "15"})
        assert self.tried(bench, workload(self.wanted())) == [{"n01"}, {"n00"}]

    def test_where_none_has_room_the_best_are_tried(self):
        """All of them are waited for."""
        bench = self.bench(3, {"n00": "7", "n01": "9", "n02": "8"})
        assert self.tried(bench, workload(self.wanted())) == [{"n01"}, {"n02"}, {"n00"}]

    def test_a_group_gets_enough_nodes_for_a_candidate_though_some_are_full(self):
        """It could not start on fewer of them."""
        bench = self.bench(5, {"n00": "7", "n01": "9", "n02": "8"})
        members = gang(*(self.wanted(f"p{number}") for number in range(3)))
        assert self.tried(bench, members, tasks=3) == [{"n03", "n04", "n01"}]

    def test_what_was_written_stays_while_the_job_waits(self):
        """Whatever room comes or goes: each pod that starts would else be an update of every job."""
        bench = self.bench(3, {"n02": "9", "n01": "6"})
        one = workload(self.wanted())
        plan = bench.planned(one)
        bench.stage.now = _used(3, {"n01": "12", "n00": "12"})
        again = bench.planned(one, previous=at(plan, 0))
        assert [attempt.nodes for attempt in again.course.attempts] == [one.nodes for one in plan.course.attempts]

    def test_until_there_is_a_job_room_is_looked_at_each_time(self):
        """Nothing was written yet."""
        bench = self.bench(3, {"n02": "9", "n01": "6"})
        one = workload(self.wanted())
        assert self.tried(bench, one) == [{"n01"}, {"n00"}]
        bench.stage.now = _used(3, {"n01": "12"})
        assert self.tried(bench, one)[0] <= {"n00", "n02"}

    def test_a_node_that_ceases_to_be_eligible_is_replaced(self):
        """There are as many candidates as before, and the course goes on."""
        wanted = ["n00", "n01", "n02"]
        other = hook(
            "other", filter=lambda session, *_: Denied.because("is not wanted", session.snapshot.names - set(wanted))
        )
        bench = self.bench(3, {"n02": "9", "n01": "6"}, other)
        one = workload(self.wanted())
        plan = bench.planned(one)
        wanted.remove("n01")
        again = bench.planned(one, previous=at(plan, 1))
        assert self.tried(bench, one, at(plan, 1)) == [{"n00"}, {"n02"}]
        assert (again.state.attempt, again.state.version) == (1, plan.state.version)


class TestRestart:
    def test_after_the_last_candidate_nothing_is_sampled(self):
        """The attempt in the owner record says so."""
        bench = Bench(farm(40), nodes_bp=1000)
        plan = bench.planned()
        bench.restart()
        again = bench.planned(previous=at(plan, 3))
        assert (again.state.attempt, again.state.version) == (3, plan.state.version)
        assert (bench.allowed(again), bench.counted("sampled")) == (set(bench.stage.now.names), 1)

    def test_after_the_last_candidate_its_partition_is_enough(self):
        """What stands for the candidates that nobody remembers has to be where the job can be."""
        bench = Bench(_used(40, {}, gpu=tuple(f"n{place}" for place in range(30, 40))), nodes_bp=10_000)
        plan = bench.planned(partition="gpu")
        bench.restart()
        again = bench.planned(previous=at(plan, 3), partition="gpu")
        assert (again.state.attempt, again.state.version) == (3, plan.state.version)

    def test_in_the_middle_the_same_candidate_of_another_sample_is_tried(self):
        """The course goes on."""
        bench = Bench(farm(40), nodes_bp=1000)
        plan = bench.planned()
        bench.restart()
        again = bench.planned(previous=at(plan, 1))
        assert (again.state.attempt, again.state.version) == (1, plan.state.version)
        assert (len(bench.allowed(again)), bench.counted("sampled")) == (1, 2)
        bench.stage.clock.advance(10_000)
        bench.planned(previous=at(plan, 1))
        assert bench.counted("sampled") == 2


class TestForgetting:
    def test_of_a_workload_that_has_ended_nothing_is_kept(self):
        """Neither its sample, nor that it is to be woken when an agent comes back."""
        bench = Bench(farm(4), max_retries=0)
        bench.waits(workload(limited(limits={"cpu": "900"})))
        assert len(bench.vela._cases) == 1
        bench.vela.forget(workload(limited()).root.key)
        assert len(bench.vela._cases) == 0

    def test_what_an_agent_says_of_it_later_is_not_kept(self):
        """It was asked while the pod went."""
        one = workload(limited())

        def answers(_body: Any) -> Any:
            bench.vela.forget(one.root.key)
            return answering("east", "n00")

        bench = Bench(farm(4), post=FakePost(east=answers), agents=EAST)
        bench.plan(one)
        assert len(bench.vela._cases) == 0


class TestNowhere:
    def test_agents_that_have_no_node_are_asked_again_later_and_later(self):
        """Then it is parked, which is the event."""
        bench = Bench(farm(4), max_retries=2)
        big = workload(limited(limits={"cpu": "900"}))
        first = bench.waits(big)
        assert (first.reason, first.retry_after) == ("Unschedulable", 1.0)
        assert first.message == (
            "no node of local: no candidates left after Filter plugins; "
            "of 4 nodes here 4 are too small for its limits; it is sampled again, 1 of 2 times"
        )
        bench.stage.clock.advance(1)
        assert bench.waits(big).retry_after == 2.0
        bench.stage.clock.advance(2)
        parked = bench.waits(big)
        assert (parked.reason, parked.retry_after) == ("FailedScheduling", cases.RESYNC_SECONDS)
        assert "it was tried 3 times" in parked.message
        assert (bench.counted("unschedulable"), bench.counted("parked")) == (3, 1)

    def test_what_is_wrong_with_all_nodes_here_is_told(self):
        """Each node with the first filter that rejects it, and those that were only not looked at."""
        nodes = [
            *(node(f"n{place}", ready=False) for place in range(8)),
            node("tiny", allocatable={"cpu": "1"}),
            node("good"),
        ]
        bench = Bench(cluster(nodes), strategy="round-robin", nodes_bp=1000)
        assert bench.waits(workload(limited(limits={"cpu": "2"}))).message == (
            "no node of local: no candidates left after Filter plugins; of 10 nodes here 8 are not ready, cordoned, "
            "tainted, or not what its node selector and affinity ask for, 1 are too small for its limits, 1 could take "
            "it, and were not sampled or not offered; it is sampled again, 1 of 10 times"
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

    def test_whoever_is_parked_is_sampled_again_though_nothing_changes(self):
        """The next sample may have what none of the others had: nobody would tell."""
        nodes = [*(node(f"n{place}") for place in range(3)), node("huge", allocatable={"cpu": "128"})]
        options = {"strategy": "round-robin", "nodes_bp": 1, "sampling": {"max_rounds": 1}}
        bench = Bench(cluster(nodes), max_retries=0, **options)
        big = workload(limited(limits={"cpu": "90"}))
        for _ in range(3):
            parked = bench.waits(big)
            assert parked.retry_after == cases.RESYNC_SECONDS
            bench.stage.clock.advance(parked.retry_after)
        assert bench.allowed(bench.planned(big)) == {"huge"}

    def test_other_hooks_may_have_no_use_for_a_sample(self):
        """Their reasons are told, and another sample is tried by itself; in the end it is parked."""
        bench = Bench(farm(40), allowing(), max_retries=1)
        first = bench.waits()
        assert (first.reason, first.retry_after) == ("Unschedulable", 1.0)
        assert "is not wanted" in first.message
        bench.stage.clock.advance(1)
        assert (bench.waits().retry_after, bench.counted("sampled")) == (2.0, 2)
        bench.stage.clock.advance(2)
        assert (bench.waits().reason, bench.counted("parked")) == ("FailedScheduling", 1)

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
        alone = Bench(farm(2), agents=EAST, post=FakePost(east=answering("east", "mine")))
        assert "1 were not a node of this cluster" in alone.waits().message

    def test_a_plugin_that_raises_costs_a_retry_and_not_the_pod(self):
        """What it said is in the message."""
        options = {"decision": {"filters": ["GeoLocation"]}, "sampling": {"filters": []}}
        bench = Bench(farm(4), **options)
        wrong = limited(annotations={"scheduler.slinky.slurm.net/geo-target": "Vienna"})
        wait = bench.waits(workload(wrong))
        assert wait.reason == "Unschedulable"
        assert "sampling failed: ValueError: 'Vienna' is not LATITUDE,LONGITUDE" in wait.message

    def test_an_agent_that_comes_back_wakes_who_waits_for_nodes(self):
        """They need not wait for their time."""
        answers = [DOWN, answering("east")]
        post = FakePost(east=lambda _body: _next(answers))
        bench = Bench(farm(4), agents=EAST, post=post)
        assert bench.waits().reason == "AgentsUnavailable"
        bench.plan(workload(limited("other")))
        assert bench.stage.woken == [workload(limited()).root.key]


class TestVerify:
    def test_an_allocation_of_a_candidate_is_counted(self):
        """With how many candidates were tried in vain before."""
        bench = Bench(farm(40), nodes_bp=1000)
        one = workload(limited())
        plan = bench.planned(one)
        (second,) = bench.allowed(bench.planned(one, previous=at(plan, 1)))
        assert bench.chain.verify(one, {"uid-p": second}, bench.stage.now) is None
        assert (bench.counted("bound-to-candidate"), bench.counted("commit-retries")) == (1, 1)

    def test_a_conflict_denies_the_node_and_samples_anew(self):
        """The next plan rests on another sample."""
        bench = Bench(_used(2, {"n00": "16"}), nodes_bp=10_000)
        one = workload(limited(limits={"cpu": "2"}))
        bench.planned(one)
        denied = bench.chain.verify(one, {"uid-p": "n00"}, bench.stage.now)
        assert isinstance(denied, Deny)
        assert denied.nodes == {"n00"}
        assert denied.message == (
            "nodes that Slurm allocated cannot be used: n00: too little cpu is left for Pod team/p"
        )
        bench.planned(one)
        assert (bench.counted("conflicts"), bench.counted("sampled")) == (1, 2)

    def test_a_node_that_was_replaced_is_not_the_one_that_was_sampled(self):
        """Its name is all that is left of it."""
        bench = Bench(farm(1))
        one = workload(limited())
        bench.planned(one)
        bench.stage.now = cluster([node("n00", uid="another")])
        assert isinstance(bench.chain.verify(one, {"uid-p": "n00"}, bench.stage.now), Deny)

    def test_after_a_restart_only_the_room_is_checked(self):
        """Nobody remembers what was sampled."""
        bench = Bench(farm(2))
        assert bench.chain.verify(workload(limited()), {"uid-p": "n00"}, bench.stage.now) is None
        assert bench.counted("bound-elsewhere") == 1


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

    def test_only_nodes_of_the_partition_that_the_job_names_are_of_use(self):
        """Agents do not know of it, so it may take another sample."""
        bench = Bench(_used(6, {}, gpu=("n04", "n05")), strategy="round-robin", nodes_bp=3334)
        for _ in range(2):
            assert bench.waits(partition="gpu").message.startswith(
                "none of 2 sampled nodes is left: 2 cannot take the pod"
            )
            bench.stage.clock.advance(2)
        plan = bench.planned(partition="gpu")
        assert plan.course.attempts[0].nodes == {"n04"}

    @pytest.mark.parametrize("named", ["gpu", "gpu, none", ""])
    def test_the_partition_is_the_one_that_slurm_would_take(self, named: str):
        """Blanks after a comma, and where none is named the default one."""
        seen = _used(6, {}, gpu=("n04", "n05"))
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


def _used(number: int, cpus: dict[str, str], gpu: tuple[str, ...] = ()) -> ClusterSnapshot:
    """Nodes of which some are in use, and some in a partition of their own."""
    made = cluster_cache.ClusterCache(resources.requests_of)
    names = [f"n{place:02}" for place in range(number)]
    for name in names:
        made.on_node(None, node(name))
    for name, cpu in cpus.items():
        there: Pod = pod(f"on-{name}", requests={"cpu": cpu}, node_name=name, phase="Running")
        made.on_pod(None, there)
    rest = tuple(name for name in names if name not in gpu)
    known = [slurm_node(name, partitions=("gpu",) if name in gpu else ("debug",)) for name in names]
    made.set_slurm(known, (partition("debug", *rest, default=True), partition("gpu", *gpu)))
    return made.snapshot()
