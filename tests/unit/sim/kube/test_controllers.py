"""What happens by itself in the pocket world: kubelets, Jobs, garbage."""

from typing import Any

import pytest

from slurm_bridge.model import kinds
from slurm_bridge.sim.kube import kubelet, pods, world


def marks(**wishes: str) -> dict[str, str]:
    """Annotations for the kubelet."""
    return {kubelet.PREFIX + name.replace("_", "-"): value for name, value in wishes.items()}


class TestKubelet:
    def test_a_bound_pod_runs(self, kube: world.PocketKube, scene: Any) -> None:
        """It is ready, and stays so."""
        scene.pod(node="n1")
        kube.advance(1000)
        assert scene.phase() == "Running"
        lines = kube.get(kinds.PODS, "default", "pod")["status"]["conditions"]
        assert {line["type"]: line["status"] for line in lines}["Ready"] == "True"

    def test_an_unbound_pod_waits(self, kube: world.PocketKube, scene: Any) -> None:
        """There is no scheduler here."""
        scene.pod()
        kube.advance(1000)
        assert scene.phase() == "Pending"

    def test_a_pod_on_a_node_that_does_not_exist_waits_until_it_does(self, kube: world.PocketKube, scene: Any) -> None:
        """No node, no kubelet."""
        scene.pod(node="later")
        kube.advance(10)
        assert scene.phase() == "Pending"
        kube.add_nodes("later")
        kube.settle()
        assert scene.phase() == "Running"

    @pytest.mark.parametrize(("outcome", "phase"), [("succeed", "Succeeded"), ("fail", "Failed")])
    def test_a_pod_ends_as_its_annotations_say(
        self, kube: world.PocketKube, scene: Any, outcome: str, phase: str
    ) -> None:
        """After so many seconds, not before."""
        scene.pod(node="n1", annotations=marks(outcome=outcome, seconds="7", exit_code="3"))
        kube.advance(6.9)
        assert scene.phase() == "Running"
        kube.advance(0.2)
        assert scene.phase() == phase
        state = kube.get(kinds.PODS, "default", "pod")["status"]["containerStatuses"][0]["state"]
        assert state["terminated"]["exitCode"] == (3 if outcome == "fail" else 0)

    def test_a_pod_can_crash_again_and_again(self, kube: world.PocketKube, scene: Any) -> None:
        """It is Running all the same."""
        scene.pod(node="n1", annotations=marks(outcome="crash-loop"))
        kube.advance(3)
        status = kube.get(kinds.PODS, "default", "pod")["status"]
        assert status["phase"] == "Running"
        assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"

    def test_a_kubelet_can_reject(self, kube: world.PocketKube, scene: Any) -> None:
        """As one that has no room any more."""
        scene.pod(node="n1", annotations=marks(outcome="reject"))
        kube.settle()
        assert scene.phase() == "Failed"
        assert kube.get(kinds.PODS, "default", "pod")["status"]["reason"] == "OutOfcpu"

    def test_a_deleted_pod_goes(self, kube: world.PocketKube, scene: Any) -> None:
        """Once its kubelet has stopped it."""
        scene.pod(node="n1")
        kube.settle()
        kube.delete(kinds.PODS, ("default", "pod"))
        assert scene.phase() == "Running"
        kube.settle()
        assert scene.phase() == "gone"

    def test_stopping_takes_time_or_for_ever(self, kube: world.PocketKube, scene: Any) -> None:
        """A pod may hang while terminating."""
        scene.pod("slow", node="n1", annotations=marks(terminating="5s"))
        scene.pod("stuck", node="n1", annotations=marks(terminating="hang"))
        kube.settle()
        for name in ("slow", "stuck"):
            kube.delete(kinds.PODS, ("default", name))
        kube.advance(4)
        assert (scene.phase("slow"), scene.phase("stuck")) == ("Running", "Running")
        kube.advance(100_000)
        assert (scene.phase("slow"), scene.phase("stuck")) == ("gone", "Running")
        kube.delete(kinds.PODS, ("default", "stuck"), grace=0)
        assert scene.phase("stuck") == "gone"

    def test_a_finalizer_shows_the_end(self, kube: world.PocketKube, scene: Any) -> None:
        """A stopped pod is Failed and stays until it is let go."""
        scene.pod(node="n1", finalizers=["example.com/hold"])
        kube.settle()
        kube.delete(kinds.PODS, ("default", "pod"))
        kube.advance(10)
        assert scene.phase() == "Failed"
        kube.merge(kinds.PODS, ("default", "pod"), {"metadata": {"finalizers": None}})
        kube.settle()
        assert scene.phase() == "gone"


class TestJobs:
    def run(self, kube: world.PocketKube, scene: Any) -> None:
        """Bind what waits and let it end."""
        for name in scene.waiting():
            scene.bind(name)
        kube.advance(5)

    def test_as_many_as_it_wants_at_once(self, kube: world.PocketKube, scene: Any) -> None:
        """Never more than are still missing."""
        scene.job(parallelism=2, completions=3)
        assert len(scene.waiting()) == 2
        self.run(kube, scene)
        assert len(scene.waiting()) == 1
        self.run(kube, scene)
        status = scene.job_status()
        assert (status["succeeded"], status["conditions"][0]["type"]) == (3, "Complete")
        assert scene.waiting() == []

    def test_a_deleted_pod_is_replaced_later(self, kube: world.PocketKube, scene: Any) -> None:
        """It counts as failed; the next one waits for the backoff."""
        scene.job()
        kube.delete(kinds.PODS, ("default", scene.waiting()[0]))
        kube.settle()
        assert (scene.job_status()["failed"], scene.waiting()) == (1, [])
        kube.advance(10)
        assert len(scene.waiting()) == 1

    def test_too_many_failures_end_it(self, kube: world.PocketKube, scene: Any) -> None:
        """With the reason in its condition."""
        scene.job(backoffLimit=1)
        for _ in range(2):
            kube.delete(kinds.PODS, ("default", scene.waiting()[0]))
            kube.advance(1000)
        (line,) = scene.job_status()["conditions"]
        assert (line["type"], line["reason"]) == ("Failed", "BackoffLimitExceeded")

    @pytest.mark.parametrize(("action", "failed", "left"), [("FailJob", 1, 0), ("Ignore", 0, 1), ("Count", 1, 1)])
    def test_a_rule_decides_about_disruptions(
        self, kube: world.PocketKube, scene: Any, action: str, failed: int, left: int
    ) -> None:
        """Only FailJob keeps it from trying again."""
        rules = [{"action": action, "onPodConditions": [{"type": "DisruptionTarget"}]}]
        scene.job(podFailurePolicy={"rules": rules})
        name = scene.waiting()[0]
        pods.evict(kube.objects, "default", name, {"metadata": {"name": name}})
        kube.advance(1000)
        assert (scene.job_status().get("failed", 0), len(scene.waiting())) == (failed, left)

    def test_exit_codes_can_decide(self, kube: world.PocketKube, scene: Any) -> None:
        """The first rule that fits."""
        rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]
        template = {
            "metadata": {"annotations": marks(outcome="fail", exit_code="3")},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]},
        }
        scene.job(podFailurePolicy={"rules": rules}, template=template)
        self.run(kube, scene)
        assert scene.job_status()["conditions"][0]["reason"] == "PodFailurePolicy"

    def test_a_suspended_one_has_no_pods(self, kube: world.PocketKube, scene: Any) -> None:
        """Until it is resumed."""
        scene.job(suspend=True, parallelism=2, completions=2)
        assert scene.waiting() == []
        kube.merge(kinds.JOBS, ("default", "j"), {"spec": {"suspend": False}})
        kube.settle()
        assert len(scene.waiting()) == 2

    def test_indexes_are_given_once(self, kube: world.PocketKube, scene: Any) -> None:
        """Each pod knows its number."""
        scene.job(completionMode="Indexed", parallelism=3, completions=3)
        found = [
            pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in kube.list(kinds.PODS)
        ]
        assert sorted(found) == ["0", "1", "2"]


class TestGarbage:
    def test_dependents_go_with_their_owner(self, kube: world.PocketKube, scene: Any) -> None:
        """In the background."""
        scene.job(parallelism=2, completions=2)
        kube.delete(kinds.JOBS, ("default", "j"))
        kube.settle()
        assert kube.list(kinds.PODS) == []

    def test_a_namespace_is_emptied_first(self, kube: world.PocketKube) -> None:
        """Everything in it goes, then it goes itself."""
        kube.create(kinds.NAMESPACES, {"metadata": {"name": "doomed"}})
        kube.create(kinds.LEASES, {"metadata": {"name": "l", "namespace": "doomed"}})
        kube.delete(kinds.NAMESPACES, ("", "doomed"))
        assert kube.get(kinds.NAMESPACES, "", "doomed")["status"]["phase"] == "Terminating"
        kube.settle()
        assert kube.get(kinds.NAMESPACES, "", "doomed") is None
        assert kube.list(kinds.LEASES, "doomed") == []

    def test_a_namespace_with_a_job_goes(self, kube: world.PocketKube, scene: Any) -> None:
        """The pods' counting finalizers are no obstacle."""
        scene.job()
        kube.delete(kinds.NAMESPACES, ("", "default"))
        kube.settle()
        assert kube.get(kinds.NAMESPACES, "", "default") is None

    def test_compaction_hides_nothing_from_controllers(self, kube: world.PocketKube, scene: Any) -> None:
        """They list again, like all watchers."""
        scene.pod(node="n1")
        kube.compact()
        kube.settle()
        assert scene.phase() == "Running"
