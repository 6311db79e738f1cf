"""An explanation says what the daemon would do, why, and with which words to Slurm."""

import json
import pathlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

from slurm_bridge import app, errors
from slurm_bridge.demo import pocket
from slurm_bridge.explain import text
from slurm_bridge.explain.explainer import Explainer
from slurm_bridge.explain.explanation import Explanation
from slurm_bridge.explain.sketch import NO_UID
from slurm_bridge.model import job, kinds, marks
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.scheduler import records
from slurm_bridge.settings.model import Settings
from tests import wait
from tests.component.explain import explained

Explain = Callable[..., Explanation]


def body(found: Explanation) -> dict[str, Any]:
    """The job of the submission."""
    assert found.body is not None, found.obstacle
    inside: Any = found.body["job"]
    return dict(inside)


def value(found: Explanation, field: str) -> tuple[str, str]:
    """A value and where it comes from."""
    (one,) = (one for one in found.values if one.field == field)
    return one.value, one.source


def test_a_job_is_explained_through_the_pod_that_it_makes(explain: Explain) -> None:
    """Under the Job's name, with the Job's annotations."""
    found = explain(explained.job(annotations={"partition": "batch"}))
    assert found.status == 0
    assert (body(found)["name"], body(found)["partition"]) == ("train", "batch")
    assert value(found, "partition")[1].endswith("of Job default/train")


def test_every_value_that_is_sent_names_its_source(explain: Explain) -> None:
    """Defaults, requests and annotations."""
    found = explain(explained.pod(annotations={"timelimit": "30"}))
    assert value(found, "user") == ("slurm-bridge", "setting defaults.user")
    assert value(found, "cpus_per_task") == ("1", "requests of Pod default/a")
    assert value(found, "time_limit_minutes")[0] == "30"


def test_slurms_own_limits_are_part_of_the_answer(explain: Explain) -> None:
    """The partition's default time is sent, and said to be that."""
    found = explain(explained.pod(annotations={"partition": "limited"}))
    assert body(found)["time_limit"]["number"] == 5
    assert "limited" in value(found, "time_limit_minutes")[1]


def test_what_cannot_be_translated_is_refused(explain: Explain) -> None:
    """With the words that the pod would show, and the status of a refusal."""
    found = explain(explained.pod(annotations={"timelimt": "5"}))
    assert (found.status, found.body) == (4, None)
    assert isinstance(found.obstacle, Reject)
    assert "did you mean timelimit?" in found.obstacle.message


def test_what_slurm_would_never_start_is_refused(explain: Explain) -> None:
    """More time than any partition named allows."""
    found = explain(explained.pod(annotations={"partition": "limited", "timelimit": "60"}))
    assert found.status == 4


def test_a_pod_that_fits_nowhere_waits_and_every_node_has_its_reason(explain: Explain) -> None:
    """The status of waiting, and the nodes by reason."""
    found = explain(explained.pod(nodeSelector={"disk": "ssd"}))
    assert (found.status, isinstance(found.obstacle, Wait)) == (3, True)
    (reasons,) = found.reasons
    assert not reasons.eligible
    assert sum(len(nodes) for nodes in reasons.excluded.values()) == 10
    assert "10 node(s) didn't match" in text.render(found, verbose=False)


def test_nodes_outside_the_partition_are_told_apart(explain: Explain) -> None:
    """They would do, but the job's partition has them not."""
    found = explain(explained.pod(annotations={"partition": "gpu"}))
    (reasons,) = found.reasons
    assert reasons.eligible == {"ext004", "ext005", "ext006", "ext007", "ext008"}
    assert "node(s) are not in Slurm partition gpu" in reasons.excluded


def test_a_drained_node_is_eligible_and_said_to_be_drained(explain: Explain, world: pocket.PocketWorld) -> None:
    """A job may wait for it; whoever asks why nothing starts reads that Slurm starts nothing there now."""
    world.slurmctld.control.drain("ext004", "disk is replaced")
    found = explain(explained.pod(annotations={"partition": "gpu"}))
    world.slurmctld.control.resume("ext004")
    (reasons,) = found.reasons
    assert "ext004" in reasons.eligible
    said = text.render(found, verbose=False)
    assert "1 of these on which Slurm starts no job now (DRAIN+EXTERNAL+IDLE, disk is replaced): ext004" in said


TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
JOBS = {"spec": {"parallelism": 10_000, "template": TEMPLATE}}
LEADERS = {"size": 10_000, "workerTemplate": TEMPLATE}


@pytest.mark.parametrize(
    ("version", "kind", "spec", "problem"),
    [
        (
            "apps/v1",
            "Deployment",
            {"replicas": 2_000_000_000},
            "ReplicaSet default/web-xxxxx: spec.replicas is more than",
        ),
        ("apps/v1", "StatefulSet", {"replicas": "many"}, "StatefulSet default/web: spec.replicas is no number"),
        ("batch/v1", "Job", {"parallelism": 2_000_000_000}, "Job default/web: spec.parallelism is more than 10000"),
        (
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            {"replicatedJobs": [{"name": "part", "replicas": 10_000, "template": JOBS}]},
            "JobSet default/web web-part-0.*make more than 10000 pods",
        ),
        (
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"replicas": 10_000, "leaderWorkerTemplate": LEADERS},
            "worker of leader of LeaderWorkerSet default/web web-0-.*make more than 10000 pods",
        ),
    ],
)
def test_a_manifest_of_more_pods_than_can_be_drawn_is_refused(
    explain: Explain, version: str, kind: str, spec: dict[str, object], problem: str
) -> None:
    """Before memory ends, with the object and what is too much of it."""
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}}
    with pytest.raises(errors.BadConfiguration, match=problem):
        explain({**manifest, "spec": {"template": TEMPLATE, **spec}}, offline=True)


def test_the_policy_has_its_say_offline_too(explain: Explain) -> None:
    """No server is asked, and still an account is refused that no rule allows."""
    found = explain(explained.pod(annotations={"account": "physics"}), offline=True)
    assert found.status == 4
    assert found.obstacle is not None
    assert found.obstacle.reason == "NotAllowed"


def test_offline_a_partition_is_not_waited_for(explain: Explain) -> None:
    """Whether root alone may use it is only known to Slurm, which is not asked."""
    found = explain(explained.pod(annotations={"partition": "batch"}), offline=True)
    assert found.obstacle is None
    assert found.status == 0


def test_offline_no_server_is_asked_and_the_answer_says_what_that_leaves_out(
    explain: Explain, world: pocket.PocketWorld
) -> None:
    """Translation and policy only."""
    calls = world.kube_calls.calls + world.slurm_calls.calls
    found = explain(explained.job(), offline=True)
    assert world.kube_calls.calls + world.slurm_calls.calls == calls
    assert found.status == 0
    assert any(note.startswith("offline:") for note in found.notes)
    assert (found.reasons, found.jobs) == ((), None)


def test_offline_a_hook_that_needs_the_cluster_is_left_out_by_name(explain: Explain) -> None:
    """A claim cannot be looked up."""
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    found = explain(explained.pod(volumes=[claim]), offline=True)
    assert found.status == 0
    assert "hook eligibility cannot answer offline: it was skipped" in found.notes


def test_against_the_cluster_a_claim_is_looked_up(explain: Explain) -> None:
    """It does not exist: the pod waits."""
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    assert explain(explained.pod(volumes=[claim])).status == 3


@pytest.mark.parametrize("offline", [True, False])
def test_a_pod_of_another_scheduler_is_refused(explain: Explain, offline: bool) -> None:
    """The mistake that is made most often, seen without a cluster too."""
    found = explain(explained.pod(schedulerName="default-scheduler"), offline=offline)
    assert found.obstacle is not None
    assert found.obstacle.reason == "NotOurs"


def test_a_gated_pod_waits(explain: Explain) -> None:
    """The status of waiting."""
    assert explain(explained.pod(schedulingGates=[{"name": "queue"}])).status == 3


def test_the_daemon_submits_what_was_explained(
    explainer: Explainer, world: pocket.PocketWorld, settings: Callable[..., Settings], tmp_path: pathlib.Path
) -> None:
    """The same id, and the same digest of the whole request in the owner record."""
    world.cluster.create(kinds.PODS, "default", explained.pod("sent", {"partition": "limited"}))
    before = explainer.pod("default", "sent")
    assert (before.jobs, before.placeholder) == ((), None)
    settings("leader_election.enabled=false")
    overrides = (*world.overrides, "leader_election.enabled=false")
    with app.daemon(app.Configuration(path=tmp_path / "config.yaml", environ={}, overrides=overrides)) as daemon:
        thread = threading.Thread(target=daemon.run)
        thread.start()
        try:
            wait.until(lambda: body(before)["job_id"] in world.slurmctld.control.jobs(), "job of the explained id")
        finally:
            daemon.stop()
            thread.join()
    sent = marks.read(world.slurmctld.control.job(body(before)["job_id"]).ask.text("admin_comment"))
    told = marks.read(str(body(before)["admin_comment"]))
    assert sent is not None
    assert told is not None
    assert (sent.uid, sent.request, sent.attempt) == (told.uid, told.request, 0)
    after = explainer.pod("default", "sent")
    assert after.placeholder is not None
    assert f"is in Slurm as job {after.placeholder.job_id}" in text.render(after, verbose=False)


def test_after_a_job_that_ended_the_next_attempt_is_explained(
    explainer: Explainer, world: pocket.PocketWorld, settings: Callable[..., Settings]
) -> None:
    """With an id of its own."""
    pod = world.cluster.create(kinds.PODS, "default", explained.pod("again"))
    first = body(explainer.pod("default", "again"))
    owner = marks.read(str(first["admin_comment"]))
    assert owner is not None
    request = job.JobRequest(name="again", owner=owner, job_id=first["job_id"], memory=job.Memory(mib=64))
    with app.both(settings(), world.clock) as (_, slurm):
        slurm.submit(request)
        slurm.cancel(first["job_id"])
    found = explainer.pod(*pod.key)
    second = marks.read(str(body(found)["admin_comment"]))
    assert second is not None
    assert (second.attempt, body(found)["job_id"] != first["job_id"]) == (1, True)
    assert "was cancelled" in text.render(found, verbose=False)


def test_a_job_without_a_chosen_id_is_found_by_its_owner_record(
    settings: Callable[..., Settings], world: pocket.PocketWorld
) -> None:
    """Where the token may not choose ids."""
    pod = world.cluster.create(kinds.PODS, "default", explained.pod("counted"))
    chosen = settings("slurm.job_ids=null")
    owner = records.owner_of(explained.root("counted", pod.uid), "east")
    with app.both(chosen, world.clock) as (_, slurm):
        slurm.submit(job.JobRequest(name="counted", owner=owner, memory=job.Memory(mib=64)))
    with app.explainer(chosen, offline=False) as one:
        found = one.pod("default", "counted")
    assert found.placeholder is not None
    assert "job_id" not in body(found)


def test_a_cancelled_request_stays_parked_until_it_changes(explainer: Explainer, world: pocket.PocketWorld) -> None:
    """The pod says that exactly this request was cancelled."""
    made = world.cluster.create(kinds.PODS, "default", explained.pod("parked"))
    owner = marks.read(str(body(explainer.pod("default", "parked"))["admin_comment"]))
    assert owner is not None
    intent = owner.request.partition(":")[0]
    note = json.dumps({"job": 7, "why": "Slurm job 7 was cancelled by root", "intent": intent})
    world.cluster.patch(kinds.PODS, made, {"metadata": {"annotations": {explained.PARKED: note}}})
    found = explainer.pod("default", "parked")
    assert (found.status, found.obstacle) == (3, Wait(reason="Parked", message="Slurm job 7 was cancelled by root"))


def test_a_bound_pod_is_explained_as_if_it_were_to_be_scheduled_now(
    explainer: Explainer, world: pocket.PocketWorld
) -> None:
    """And the answer says so."""
    world.kube.create(kinds.PODS, explained.pod("bound", nodeName="ext001"))
    found = explainer.pod("default", "bound")
    assert found.status == 0
    assert "it is bound to node ext001" in found.notes[0]


def test_a_pod_that_does_not_exist_is_an_error_that_names_it(explainer: Explainer) -> None:
    """Nothing is guessed."""
    with pytest.raises(errors.NotFound, match="no pod nobody in namespace default"):
        explainer.pod("default", "nobody")


def test_offline_a_pod_by_name_is_refused(settings: Callable[..., Settings]) -> None:
    """Only the cluster has it."""
    with app.explainer(settings(), offline=True) as one, pytest.raises(errors.BadConfiguration, match="offline"):
        one.pod("default", "a")


def test_manifests_that_make_no_pods_are_an_error_that_names_them(explainer: Explainer) -> None:
    """Together with what does make pods."""
    with pytest.raises(errors.BadConfiguration, match="nothing to explain in Service: pods come from Pod, Job"):
        explainer.manifests([{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}])


def test_objects_beside_those_that_make_pods_are_passed_over(explainer: Explainer) -> None:
    """A file often has a ServiceAccount too."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
    assert len(explainer.manifests([account, explained.pod(), explained.job()])) == 2


def test_the_owners_of_a_pod_speak_for_it(explainer: Explainer, world: pocket.PocketWorld) -> None:
    """A Job's annotations, read from the cluster."""
    made = world.cluster.create(kinds.JOBS, "default", explained.job("crew", {"partition": "batch"}, suspend=True))
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "crew", "uid": made.uid, "controller": True}
    manifest = explained.pod("of-crew")
    manifest["metadata"]["ownerReferences"] = [reference]
    world.kube.create(kinds.PODS, manifest)
    assert value(explainer.pod("default", "of-crew"), "partition")[0] == "batch"


def test_zeros_stand_for_the_uid_of_a_pod_that_is_not_there_yet(explain: Explain) -> None:
    """And the answer says so."""
    found = explain(explained.pod())
    owner = marks.read(str(body(found)["admin_comment"]))
    assert owner is not None
    assert owner.uid == NO_UID
    assert "zeros stand for them here" in found.notes[0]
