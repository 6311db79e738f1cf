"""From a pending pod to exactly one placeholder, and what must not go wrong on the way."""

import json

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.weather import Side

HOSTNAME = "kubernetes.io/hostname"


def refused(number: int, text: str, status: int = 500) -> faults.Answer:
    """What slurmrestd says when slurmctld says no."""
    body = {"errors": [{"error_number": number, "error": text, "source": "slurm_submit_batch_job()"}], "warnings": []}
    return faults.Answer(status, json.dumps(body).encode())


def test_t06_an_invalid_annotation_is_told_once_and_never_a_hot_loop(bridge: Bridge) -> None:
    """Object, key, value and what is allowed are on the pod; nothing is asked of anybody until it changes."""
    bridge.pod("a", annotations={names.JOB_PREFIX + "timelimit": "soon"})
    bridge.run(2)
    reason, message = bridge.condition("a")
    assert "soon" in message
    assert "timelimit" in message
    assert "a" in message
    assert reason in [told for told, _ in bridge.events("a")]
    bridge.kube_calls.forget()
    bridge.run(60)
    assert not bridge.submits()
    assert not bridge.kube_calls.count(method="PATCH")
    bridge.annotate("a", timelimit="10")
    bridge.until(lambda: bridge.node_of("a"))


def test_t12_many_changes_at_once_make_one_job(bridge: Bridge) -> None:
    """Whatever wakes the workload, it is one workload."""
    uid = bridge.pod("a")
    bridge.recover()
    for number in range(5):
        bridge.kube.merge(kinds.PODS, ("default", "a"), {"metadata": {"annotations": {"colour": str(number)}}})
        bridge.hear()
    bridge.run(3)
    assert len(bridge.jobs(uid)) == bridge.submits() == 1


def test_t12_a_restart_between_submit_and_the_next_breath_adopts_the_job(bridge: Bridge) -> None:
    """The owner record is in the job itself: the new process finds it."""
    job = bridge.waiting("a")
    bridge.start()
    bridge.run(10)
    assert bridge.submits() == 0
    assert bridge.job("a").job_id == job.job_id


@pytest.mark.parametrize("ids", [True, False])
def test_t12_a_submit_whose_answer_was_lost_is_found_and_not_repeated(bridge: Bridge, *, ids: bool) -> None:
    """With chosen ids by looking at the id, without them by scans."""
    if not ids:
        bridge = Bridge(bridge.folder, world=bridge.world, slurm={"job_ids": None})
    bridge.slurm_calls.plan(faults.Drop(), method="POST", target="/job/submit")
    uid = bridge.pod("a")
    bridge.until(lambda: bridge.node_of("a"))
    assert len(bridge.jobs(uid)) == 1


@pytest.mark.parametrize("ids", [True, False])
def test_t12_a_submit_that_never_arrived_is_repeated(bridge: Bridge, *, ids: bool) -> None:
    """Nothing was created, and that is found out before the next try."""
    if not ids:
        bridge = Bridge(bridge.folder, world=bridge.world, slurm={"job_ids": None})
    bridge.slurm_calls.plan(faults.Reset(acted=False), method="POST", target="/job/submit")
    uid = bridge.pod("a")
    bridge.until(lambda: bridge.node_of("a"))
    assert len(bridge.jobs(uid)) == 1


def taint(bridge: Bridge, *nodes: str) -> None:
    """These nodes are for somebody else."""
    for node in nodes:
        rule = {"key": "team", "value": "red", "effect": "NoSchedule"}
        bridge.kube.merge(kinds.NODES, ("", node), {"spec": {"taints": [rule]}})


def test_t13_an_untolerated_tainted_node_is_never_offered(bridge: Bridge) -> None:
    """It is excluded before Slurm ever sees the job."""
    taint(bridge, "n1", "n2", "n4")
    job = bridge.bound("a")
    assert job.ask.excluded == ("n1", "n2", "s4")
    assert bridge.node_of("a") == "n3"


def test_t13_a_toleration_counts_from_the_first_submit(bridge: Bridge) -> None:
    """Tolerations are in place before feasibility is computed."""
    taint(bridge, "n1", "n2", "n3", "n4")
    job = bridge.bound("a", spec={"tolerations": [{"key": "team", "operator": "Exists"}]})
    assert job.ask.excluded == ()
    assert bridge.submits() == 1


def test_t14_a_pod_waits_for_its_claim_before_it_is_submitted(bridge: Bridge) -> None:
    """Where its volume will be is not known yet."""
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "late", "accessModes": ["ReadWriteOnce"]}}
    bridge.kube.create(kinds.PERSISTENTVOLUMECLAIMS, claim)
    bridge.pod("a", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]})
    bridge.run(30)
    assert bridge.submits() == 0
    assert "data" in bridge.condition("a")[1]
    where = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n3"]}
    reach = {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}}
    spec = {"capacity": {"storage": "1Gi"}, "nodeAffinity": reach, "claimRef": {"name": "data", "namespace": "default"}}
    bridge.kube.create(kinds.PERSISTENTVOLUMES, {"metadata": {"name": "disk"}, "spec": spec})
    bridge.kube.merge(kinds.PERSISTENTVOLUMECLAIMS, ("default", "data"), {"spec": {"volumeName": "disk"}})
    bound = {"status": {"phase": "Bound"}}
    bridge.kube.merge(kinds.PERSISTENTVOLUMECLAIMS, ("default", "data"), bound, subresource="status")
    bridge.until(lambda: bridge.node_of("a"), 20)
    assert bridge.node_of("a") == "n3"


def test_t15_a_resource_that_no_node_has_is_never_asked_of_slurm(bridge: Bridge) -> None:
    """It would wait there for ever without anybody knowing why."""
    needs = {"requests": {"example.com/fpga": "1"}, "limits": {"example.com/fpga": "1"}}
    bridge.pod("a", spec={"containers": [{"name": "main", "image": "none", "resources": needs}]})
    bridge.run(30)
    assert bridge.submits() == 0
    assert "example.com/fpga" in bridge.condition("a")[1]


def test_t15_an_amount_that_no_node_has_is_never_asked_of_slurm(bridge: Bridge) -> None:
    """More cpus than any node: the reason says cpu."""
    bridge.pod("a", cpu="40")
    bridge.run(30)
    assert bridge.submits() == 0
    assert "cpu" in bridge.condition("a")[1]


def test_t16_a_node_that_leaves_slurm_takes_no_placeholder_with_it(bridge: Bridge) -> None:
    """Neither one that runs elsewhere nor one that waits: what they name are exclusions only."""
    taint(bridge, "n1")
    running = bridge.bound("a")
    bridge.slurm.control.pause()
    bridge.pod("b")
    bridge.step()
    waiting = bridge.job("b")
    assert waiting.ask.required == running.ask.required == ()
    bridge.slurm.control.delete_node("s4")
    bridge.slurm.control.reconfigure()
    bridge.run(5)
    assert (bridge.of(running).state, bridge.of(waiting).state) == ("RUNNING", "PENDING")
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of("b"))
    assert bridge.deletes() == 0


def test_t16_a_job_that_names_a_deleted_node_is_replaced_when_it_has_to_change(bridge: Bridge) -> None:
    """Slurm refuses every later update of it, also one that would repair the list."""
    taint(bridge, "n4")
    old = bridge.waiting("a")
    assert old.ask.excluded == ("s4",)
    bridge.slurm.control.delete_node("s4")
    taint(bridge, "n1")
    bridge.until(lambda: bridge.of(old).over)
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.job("a").ask.excluded == ("n1",)


def test_t16_a_job_that_lost_its_node_before_the_pod_had_it_is_submitted_again(bridge: Bridge) -> None:
    """NODE_FAIL of a job that never ran for a pod says nothing about the pod."""
    uid = bridge.pod("a")
    bridge.settle()
    first = bridge.job("a")
    bridge.slurm.control.end(first.job_id, "NODE_FAIL")
    bridge.until(lambda: bridge.node_of("a"))
    assert len(bridge.jobs(uid)) == 2


def test_t17_a_pending_job_is_updated_only_when_its_description_changed(bridge: Bridge) -> None:
    """A label that means nothing changes nothing; a shorter limit is one update of the same job."""
    job = bridge.waiting("a", annotations={names.JOB_PREFIX + "timelimit": "30"})
    bridge.slurm_calls.forget()
    bridge.kube.merge(kinds.PODS, ("default", "a"), {"metadata": {"labels": {"colour": "red"}}})
    bridge.run(5)
    assert bridge.slurm_calls.count(method="POST") == 0
    bridge.annotate("a", timelimit="7")
    bridge.run(5)
    assert bridge.job("a").job_id == job.job_id
    assert bridge.of(job).ask.minutes == 7
    assert bridge.slurm_calls.count(method="POST") == 1


def test_t17_what_an_update_cannot_change_is_submitted_anew(bridge: Bridge) -> None:
    """Another partition is another job; the old one says that it was us."""
    bridge.slurm.world.partitions["other"] = state.Partition(name="other", nodes=("n1", "n2", "n3", "s4"))
    old = bridge.waiting("a")
    bridge.annotate("a", partition="other")
    bridge.run(10)
    assert bridge.of(old).over
    assert bridge.note(old).startswith("withdrawn: replaced")
    assert bridge.job("a").ask.partitions == ("other",)
    assert not bridge.park_note("a")


def test_t17_a_refused_update_leaves_the_old_job_and_is_not_repeated(bridge: Bridge) -> None:
    """The user is told; the job goes on waiting as it was."""
    job = bridge.waiting("a", annotations={names.JOB_PREFIX + "timelimit": "30"})
    bridge.slurm_calls.forget()
    bridge.slurm_calls.plan(refused(2072, "Invalid GRES"), method="POST", target=f"/job/{job.job_id}", times=100)
    bridge.annotate("a", timelimit="7")
    bridge.run(20)
    assert bridge.job("a") == bridge.of(job)
    assert bridge.of(job).ask.minutes == 30
    assert bridge.slurm_calls.count(method="POST") == 1
    assert any(reason == "SlurmJobRejected" and "stays as it was" in text for reason, text in bridge.events("a"))


def test_t18_an_update_that_races_with_the_start_ends_in_a_bound_pod(bridge: Bridge) -> None:
    """Slurm says that it is no longer pending: then it is bound."""
    job = bridge.waiting("a")

    def start() -> None:
        bridge.slurm.control.unpause()
        bridge.slurm.tick()

    bridge.slurm_calls.plan(faults.Meanwhile(start), method="POST", target=f"/job/{job.job_id}")
    bridge.kube.merge(kinds.NODES, ("", "n4"), {"spec": {"unschedulable": True}})
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.job("a").job_id == job.job_id


def test_t20_pods_that_wait_neither_sleep_nor_starve_others(bridge: Bridge) -> None:
    """Every pod is in Slurm's queue at once, whatever its priority and however many wait before it."""
    for number in range(20):
        bridge.pod(f"wide{number}", cpu="4", spec={"priority": 1000})
    bridge.pod("small")
    bridge.settle()
    assert bridge.submits() == 21
    assert bridge.job("small").pending
    bridge.until(lambda: bridge.node_of("small"))


def test_t20_a_job_that_starts_after_a_long_wait_is_bound_at_once(bridge: Bridge) -> None:
    """Nothing that has waited for ten minutes waits for a pause of its own."""
    bridge.waiting("a")
    bridge.run(600, step=5)
    bridge.slurm.control.unpause()
    bridge.run(8)
    assert bridge.node_of("a")


FATAL = {
    "node configuration": (refused(2014, "Requested node configuration is not available", 422), "SlurmJobRejected"),
    "invalid account": (refused(2045, "Invalid account or account/partition combination"), "SlurmJobRejected"),
    "unknown partition": (refused(2000, "Invalid partition name specified", 422), "SlurmJobRejected"),
}
TRANSIENT = {
    "too many jobs": (refused(2007, "Too many jobs"), "SlurmUnavailable"),
    "a proxy's page": (faults.Answer(502, b"<html>Bad Gateway</html>", "text/html"), "SlurmUnavailable"),
    "nothing but a status": (faults.Answer(500), "SlurmUnavailable"),
    "a reset": (faults.Reset(acted=False), "SlurmUnavailable"),
    "silence": (faults.Hang(acted=False), "SlurmUnavailable"),
}


@pytest.mark.parametrize("case", [*FATAL, *TRANSIENT])
def test_t21_a_submit_that_fails_is_told_and_tried_again(bridge: Bridge, case: str) -> None:
    """No crash, the right class, a visible reason; once Slurm takes it, all goes on."""
    fault, expected = (FATAL | TRANSIENT)[case]
    bridge.run(2)
    bridge.slurm_calls.plan(fault, method="POST", target="/job/submit")
    uid = bridge.pod("a")
    bridge.step()
    assert bridge.condition("a")[0] == expected
    bridge.until(lambda: bridge.node_of("a"), 1000 if case in FATAL else 60)
    assert len(bridge.jobs(uid)) == 1


@pytest.mark.parametrize(("status", "number"), [(401, 0), (511, 1007), (404, 0), (422, 2014)])
def test_t21_other_failures_stop_neither_the_daemon_nor_other_pods(bridge: Bridge, status: int, number: int) -> None:
    """One pod's bad luck is its own."""
    fault = refused(number, "no", status) if number else faults.Answer(status, b"no", "text/plain")
    bridge.slurm_calls.plan(fault, method="POST", target="/job/submit")
    bridge.pod("a")
    bridge.step()
    bridge.pod("b")
    bridge.until(lambda: bridge.node_of("b"))
    bridge.until(lambda: bridge.node_of("a"), 400)


def test_t22_a_job_that_an_administrator_holds_stays_held(bridge: Bridge) -> None:
    """The pod says so; no update, no second job. Released, it runs."""
    job = bridge.waiting("a")
    bridge.slurm.control.hold(job.job_id)
    bridge.slurm.control.unpause()
    bridge.slurm_calls.forget()
    bridge.run(60)
    assert bridge.of(job).held
    assert bridge.slurm_calls.count(method="POST") + bridge.slurm_calls.count(method="DELETE") == 0
    assert "JobHeldAdmin" in bridge.condition("a")[1]
    bridge.slurm.control.release(job.job_id)
    bridge.until(lambda: bridge.node_of("a"))


def test_t23_a_full_kubernetes_never_keeps_a_workload_out_of_slurms_queue(bridge: Bridge) -> None:
    """It has to age there, be seen there, and be able to preempt."""
    for node in ("n1", "n2", "n3", "n4"):
        used = {"image": "none", "name": "main", "resources": {"requests": {"cpu": "3500m"}}}
        spec = {"nodeName": node, "containers": [used]}
        bridge.kube.create(kinds.PODS, {"metadata": {"name": f"full-{node}"}, "spec": spec})
    job = bridge.waiting("a")
    assert job.pending
    assert job.ask.excluded == ()


def test_t23_a_job_that_got_a_node_that_is_full_gives_it_back(bridge: Bridge) -> None:
    """What Slurm does not know of takes the room: said, released, and elsewhere next time."""
    bridge.slurm.control.pause()
    bridge.pod("a", cpu="3")
    bridge.settle()
    for node in ("n1", "n2", "n3"):
        used = {"image": "none", "name": "main", "resources": {"requests": {"cpu": "3"}}}
        spec = {"nodeName": node, "containers": [used]}
        bridge.kube.create(kinds.PODS, {"metadata": {"name": f"full-{node}"}, "spec": spec})
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of("a") == "n4", 200)
    assert "NodeFull" in [reason for reason, _ in bridge.events("a")]


def test_s1_what_speaks_for_somebody_else_is_refused_unless_the_policy_allows_it(bridge: Bridge) -> None:
    """An account, a user, a priority: nobody gets it by writing it down."""
    for key, value in {"account": "rich", "user-id": "5001", "priority": "99", "qos": "high"}.items():
        bridge.pod(key, annotations={names.JOB_PREFIX + key: value})
    bridge.run(5)
    assert bridge.submits() == 0
    assert all("not allowed" in bridge.condition(key)[1] for key in ("account", "user-id", "priority", "qos"))


def test_s2_a_hung_slurmctld_freezes_nothing(bridge: Bridge) -> None:
    """Every call has its end; Kubernetes is still listened to, and all goes on afterwards."""
    bridge.slurm_calls.plan(faults.Hang(acted=False), times=4)
    bridge.pod("a")
    bridge.kube_calls.forget()
    with pytest.raises(Exception, match="no answer"):
        bridge.recover()
    bridge.slurm_calls.clear()
    bridge.until(lambda: bridge.node_of("a"))


def test_s2_pods_learn_that_slurm_does_not_answer(bridge: Bridge) -> None:
    """Readiness is one thing, the user at his pod another."""
    bridge.run(1)
    bridge.world.weather.hide(Side.SLURM)
    bridge.run(20)
    bridge.pod("a")
    bridge.run(10)
    assert bridge.condition("a")[0] == "SlurmUnavailable"
    bridge.world.weather.show(Side.SLURM)
    bridge.until(lambda: bridge.node_of("a"), 15)


def test_s3_slurms_reason_and_estimate_reach_the_pod(bridge: Bridge) -> None:
    """Condition and event, in words."""
    bridge.pod(
        "first", cpu="4", annotations={names.JOB_PREFIX + "timelimit": "30"}, spec={"nodeSelector": {HOSTNAME: "n4"}}
    )
    bridge.until(lambda: bridge.node_of("first"))
    bridge.pod("a", cpu="4", spec={"nodeSelector": {HOSTNAME: "n4"}})
    bridge.until(lambda: "Resources" in bridge.condition("a")[1])
    bridge.run(10)
    assert bridge.condition("a")[0] == "SlurmJobPending"
    assert "estimated start" in bridge.condition("a")[1]
    assert {"SlurmJobSubmitted", "SlurmJobPending"} <= {reason for reason, _ in bridge.events("a")}
