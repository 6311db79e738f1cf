"""The simulation's own controllers do to pods what the real ones were seen to do."""

from typing import Any

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.sim.kube import pods
from slurm_bridge.sim.kube.world import PocketKube
from tests.simulation import controllers, jobsets, troupes
from tests.simulation.troupes import Form, Size, Troupe

SMALL = Size()
LWS, JOBSET = controllers.LWS, jobsets.JOBSET


class Stage:
    """A pocket Kubernetes with all controllers."""

    def __init__(self) -> None:
        self.kube = PocketKube(clock=VirtualClock())
        jobsets.employ(self.kube)
        self.kube.add_nodes("n1")

    def enter(self, troupe: Troupe) -> None:
        """Let it come."""
        for kind, manifest in troupes.manifests(troupe, names.SCHEDULER_NAME):
            self.kube.create(kind, manifest)
        self.kube.settle()

    @property
    def pods(self) -> dict[str, dict[str, Any]]:
        return {pod["metadata"]["name"]: pod for pod in self.kube.list(kinds.PODS, "default")}

    def bind(self) -> None:
        """All of them."""
        for name, pod in self.pods.items():
            if not pod["spec"].get("nodeName"):
                pods.bind(self.kube.objects, "default", name, {"metadata": {"name": name}, "target": {"name": "n1"}})
        self.kube.settle()

    def fail(self, name: str) -> None:
        """Its container ends badly."""
        self.kube.merge(kinds.PODS, ("default", name), {"status": {"phase": "Failed"}}, "status")
        self.kube.settle()

    def delete(self, name: str, grace: int | None = None) -> None:
        """As a user."""
        self.kube.delete(kinds.PODS, ("default", name), grace=grace)
        self.kube.settle()


@pytest.fixture
def stage() -> Stage:
    """Empty."""
    return Stage()


def lws(**changes: Any) -> Troupe:
    """A leader and two workers."""
    return Troupe(**{"form": Form.LWS, "name": "l", "leader": SMALL, "worker": SMALL, "workers": 2, **changes})


def jobset(**changes: Any) -> Troupe:
    """A driver and two workers in two Jobs."""
    return lws(**{"form": Form.JOBSET, "name": "s", **changes})


def uids(stage: Stage) -> set[str]:
    """Of all pods."""
    return {pod["metadata"]["uid"] for pod in stage.pods.values()}


def test_an_lws_has_a_leader_and_workers(stage: Stage) -> None:
    """Names, labels and the annotation with the size are those of the real one."""
    stage.enter(lws())
    found = {name: pod["metadata"]["labels"] for name, pod in stage.pods.items()}
    assert sorted(found) == ["l-0", "l-0-1", "l-0-2"]
    assert {marks[LWS + "group-index"] for marks in found.values()} == {"0"}
    assert [found[name][LWS + "worker-index"] for name in sorted(found)] == ["0", "1", "2"]
    assert {pod["metadata"]["annotations"][LWS + "size"] for pod in stage.pods.values()} == {"3"}


def test_workers_wait_for_a_leader_that_has_to_be_ready_first(stage: Stage) -> None:
    """LeaderReady: they never wait for nodes together."""
    stage.enter(lws(waves=2))
    assert sorted(stage.pods) == ["l-0"]
    stage.bind()
    assert sorted(stage.pods) == ["l-0", "l-0-1", "l-0-2"]


@pytest.mark.parametrize("loss", ["fail", "delete"])
@pytest.mark.parametrize("bound", [True, False])
def test_one_member_lost_makes_the_group_anew(stage: Stage, loss: str, *, bound: bool) -> None:
    """RecreateGroupOnPodRestart: the same names, other pods, whether they ran or not."""
    stage.enter(lws())
    if bound:
        stage.bind()
    before = uids(stage)
    getattr(stage, loss)("l-0-2")
    stage.kube.advance(60.0)
    assert sorted(stage.pods) == ["l-0", "l-0-1", "l-0-2"]
    assert not before & uids(stage)


def test_the_leader_goes_last(stage: Stage) -> None:
    """While old workers take their time to end, their leader stays, and no new pod comes."""
    stage.enter(lws(slow_end=True))
    stage.bind()
    before = uids(stage)
    stage.fail("l-0-1")
    stage.kube.advance(2.0)
    assert stage.pods["l-0"]["metadata"]["uid"] in before
    assert "deletionTimestamp" in stage.pods["l-0"]["metadata"]
    stage.kube.advance(30.0)
    assert not before & uids(stage)


def test_without_a_restart_policy_only_the_lost_worker_comes_again(stage: Stage) -> None:
    """The others are the same."""
    stage.enter(lws(recreates=False))
    stage.bind()
    before = uids(stage)
    stage.fail("l-0-2")
    stage.kube.advance(60.0)
    assert len(before & uids(stage)) == 2
    assert sorted(stage.pods) == ["l-0", "l-0-1", "l-0-2"]


def test_a_jobset_has_jobs_that_have_pods(stage: Stage) -> None:
    """One of the driver, one of each workers' Job; all carry the attempt."""
    stage.enter(jobset())
    marks = [pod["metadata"]["labels"] for pod in stage.pods.values()]
    assert sorted(one[JOBSET + "replicatedjob-name"] for one in marks) == ["d", "w", "w"]
    assert {one[JOBSET + "restart-attempt"] for one in marks} == {"0"}
    assert sorted(one[JOBSET + "job-global-index"] for one in marks) == ["0", "1", "2"]


def test_a_failed_job_restarts_its_jobset(stage: Stage) -> None:
    """All Jobs are made anew, and their pods carry the next attempt."""
    stage.enter(jobset())
    stage.bind()
    driver = next(name for name in stage.pods if name.startswith("s-d-0"))
    stage.fail(driver)
    stage.kube.advance(30.0)
    assert {pod["metadata"]["labels"][JOBSET + "restart-attempt"] for pod in stage.pods.values()} == {"1"}
    assert len(stage.pods) == 3


def test_a_jobset_is_complete_when_all_its_jobs_are(stage: Stage) -> None:
    """Nothing comes again."""
    stage.enter(jobset(seconds=2))
    stage.bind()
    stage.kube.advance(10.0)
    found = stage.kube.get(kinds.JOBSETS, "default", "s")
    assert found is not None
    assert found["status"]["terminalState"] == "Completed"


def test_a_part_that_depends_on_another_comes_when_that_one_runs(stage: Stage) -> None:
    """Their pods never wait together."""
    stage.enter(jobset(form=Form.PARTS))
    assert [name[:5] for name in stage.pods] == ["s-d-0"]
    stage.bind()
    assert len(stage.pods) == 3


def test_a_suspended_jobset_has_no_pods(stage: Stage) -> None:
    """They come when it may run, and go when it may not, which is no failure."""
    stage.enter(jobset(suspended=True))
    assert not stage.pods
    stage.kube.merge(kinds.JOBSETS, ("default", "s"), {"spec": {"suspend": False}})
    stage.kube.settle()
    stage.bind()
    assert len(stage.pods) == 3
    stage.kube.merge(kinds.JOBSETS, ("default", "s"), {"spec": {"suspend": True}})
    stage.kube.advance(30.0)
    assert not stage.pods
    stage.kube.merge(kinds.JOBSETS, ("default", "s"), {"spec": {"suspend": False}})
    stage.kube.settle()
    assert len(stage.pods) == 3
    assert {pod["metadata"]["labels"][JOBSET + "restart-attempt"] for pod in stage.pods.values()} == {"0"}


def test_a_job_gives_the_index_of_a_failed_pod_to_its_successor(stage: Stage) -> None:
    """Ranks have no holes."""
    stage.enter(lws(form=Form.JOB, name="j"))
    stage.bind()
    stage.fail(next(iter(stage.pods)))
    stage.kube.advance(15.0)
    alive = [pod for pod in stage.pods.values() if pod["status"]["phase"] != "Failed"]
    assert sorted(pod["metadata"]["annotations"][names.ANNOTATION_COMPLETION_INDEX] for pod in alive) == ["0", "1", "2"]


@pytest.mark.parametrize("form", [Form.LWS, Form.JOBSET, Form.JOB])
def test_nothing_is_left_of_a_group_that_is_deleted(stage: Stage, form: Form) -> None:
    """Its pods go with it."""
    stage.enter(lws(form=form))
    stage.bind()
    kind = {Form.LWS: kinds.LEADERWORKERSETS, Form.JOBSET: kinds.JOBSETS, Form.JOB: kinds.JOBS}[form]
    stage.kube.delete(kind, ("default", "l"))
    stage.kube.advance(30.0)
    assert not stage.pods
    assert stage.kube.next_due() is None
