"""The hook in a chain: sampling beside the passes, candidates, retries, and what is left after a restart."""

import queue
import threading
from typing import Any, ClassVar

from slurm_bridge.hooks.attempts import PlanState
from slurm_bridge.hooks.base import Denied, Deny
from slurm_bridge.hooks.chain import Plan
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Workload
from tests import wait
from tests.unit.families.vela.support_vela import FakePost, answering, farm, limited
from tests.unit.families.vela.vela_bench import EAST, Bench, allowing, partly_used
from tests.unit.hooks.builders import cluster, gang, hook, node, shape, workload


def at(plan: Plan, attempt: int) -> PlanState:
    """A job that has come to this attempt of a plan."""
    return PlanState(version=plan.state.version, attempt=attempt, started=0.0)


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
        snapshot = partly_used(4, {"n02": "9", "n01": "6"})
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
        return Bench(partly_used(number, used), *others, **self.OPTIONS)

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
        bench.stage.now = partly_used(3, {"n01": "12", "n00": "12"})
        again = bench.planned(one, previous=at(plan, 0))
        assert [attempt.nodes for attempt in again.course.attempts] == [one.nodes for one in plan.course.attempts]

    def test_until_there_is_a_job_room_is_looked_at_each_time(self):
        """Nothing was written yet."""
        bench = self.bench(3, {"n02": "9", "n01": "6"})
        one = workload(self.wanted())
        assert self.tried(bench, one) == [{"n01"}, {"n00"}]
        bench.stage.now = partly_used(3, {"n01": "12"})
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
        bench = Bench(partly_used(40, {}, gpu=tuple(f"n{place}" for place in range(30, 40))), nodes_bp=10_000)
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
        bench = Bench(partly_used(2, {"n00": "16"}), nodes_bp=10_000)
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

    def test_an_allocation_is_looked_at_while_others_are_sampled(self):
        """A binding waits for no sample, whose thread holds what all workloads have in common."""
        bench = Bench(farm(1))
        one = workload(limited())
        bench.planned(one)
        found: queue.SimpleQueue[Any] = queue.SimpleQueue()
        check = threading.Thread(
            target=lambda: found.put(bench.chain.verify(one, {"uid-p": "n00"}, bench.stage.now)), daemon=True
        )
        with bench.vela._cases.lock:
            check.start()
            assert found.get(timeout=wait.PATIENCE) is None

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
