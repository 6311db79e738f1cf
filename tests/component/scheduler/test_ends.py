"""When one side ends so does the other: in what order, with which words, and on what evidence."""

import dataclasses

import pytest

from slurm_bridge.mirror.jobs import TOGETHER
from slurm_bridge.model import kinds, names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler import workload_pods
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.weather import Side
from tests.unit.mirror.watching import record


def test_the_note_is_written_before_the_cancel(bridge: Bridge) -> None:
    """An ended job takes no note any more."""
    job = bridge.bound("a")
    bridge.slurm_calls.forget()
    bridge.delete("a", grace=0)
    bridge.settle()
    orders = [call.method for call in bridge.slurm_calls.journal if call.method != "GET"]
    assert orders == ["POST", "DELETE"]
    assert bridge.note(job) == "withdrawn: pod is gone"


@pytest.mark.parametrize(
    ("outcome", "note"),
    [
        ("succeed", "withdrawn: pod Succeeded"),
        ("fail", "withdrawn: pod Failed"),
        ("reject", "withdrawn: pod Failed (Out"),
    ],
)
def test_the_outcome_of_the_pod_is_in_the_note(bridge: Bridge, outcome: str, note: str) -> None:
    """Whoever reads the accounting later sees what became of it."""
    job = bridge.bound("a", annotations={"kwok.local/outcome": outcome, "kwok.local/seconds": "1"})
    bridge.run(5)
    assert bridge.of(job).over
    assert bridge.note(job).startswith(note)


def test_a_note_that_cannot_be_written_does_not_keep_a_job_alive(bridge: Bridge) -> None:
    """Its pod is over; the words are a courtesy."""
    job = bridge.bound("a")
    bridge.slurm_calls.plan(faults.Answer(500), method="POST", target=f"/job/{job.job_id}", times=9)
    bridge.delete("a", grace=0)
    bridge.run(3)
    assert bridge.of(job).over


@pytest.mark.parametrize(
    "fault", [faults.Reset(acted=False), faults.Drop(), faults.Answer(500), faults.Hang(acted=True)]
)
def test_a_cancel_without_an_answer_is_tried_until_it_is_certain(bridge: Bridge, fault: faults.Fault) -> None:
    """Done twice does no harm; not done leaks a node."""
    job = bridge.bound("a")
    bridge.slurm_calls.plan(fault, method="DELETE", target=f"/job/{job.job_id}", times=2)
    bridge.delete("a", grace=0)
    bridge.run(30)
    assert bridge.of(job).over
    assert all(state.queued is None for _, state in bridge.core.context.states.all())


def test_nothing_is_left_of_a_workload_that_is_over(bridge: Bridge) -> None:
    """Neither in the queue, nor in the table, nor in anybody's memory."""
    for number in range(5):
        bridge.bound(f"p{number}")
        bridge.delete(f"p{number}", grace=0)
    bridge.run(10)
    assert bridge.core.context.table.all() == ()
    assert all(state.queued is None for _, state in bridge.core.context.states.all())


def test_the_end_of_a_job_is_told_before_its_pod_goes(bridge: Bridge) -> None:
    """A condition, then a deletion of exactly this pod, then an event."""
    job = bridge.bound("a", annotations={"kwok.local/terminating": "20s"})
    bridge.kube_calls.forget()
    bridge.slurm.control.end(job.job_id, "PREEMPTED")
    bridge.until(lambda: bridge.leaving("a"))
    writes = [
        (call.method, call.target.rpartition("/")[2]) for call in bridge.kube_calls.journal if call.method != "GET"
    ]
    assert writes[:3] == [("PATCH", "status"), ("DELETE", "a"), ("POST", "events")]
    assert "eviction" not in str(writes)


def test_no_budget_keeps_a_node_that_slurm_gave_away(bridge: Bridge) -> None:
    """The pod is deleted, not evicted."""
    budget = {"metadata": {"name": "all"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    bridge.kube.create(kinds.PODDISRUPTIONBUDGETS, budget)
    job = bridge.bound("a", labels={"app": "web"})
    bridge.slurm.control.end(job.job_id, "NODE_FAIL")
    bridge.until(lambda: not bridge.exists("a"))


@pytest.mark.parametrize("fault", [faults.Answer(500), faults.Reset(acted=False), faults.Drop()])
def test_a_deletion_that_fails_is_tried_again(bridge: Bridge, fault: faults.Fault) -> None:
    """The pod sits on a node that is somebody else's by now."""
    job = bridge.bound("a")
    bridge.kube_calls.plan(fault, method="DELETE", target="/pods/a", times=2)
    bridge.slurm.control.end(job.job_id, "PREEMPTED")
    bridge.until(lambda: not bridge.exists("a"), 90)


def test_a_job_of_which_nobody_saw_the_pod_go_is_an_orphan_only_after_a_look(bridge: Bridge) -> None:
    """The pod is asked for once; it is alive, though not ours to see: the job stays."""
    bridge.run(1)
    spec = {"schedulerName": "somebody-else", "containers": [{"name": "main", "image": "none"}]}
    made = bridge.kube.create(kinds.PODS, {"metadata": {"name": "hidden"}, "spec": spec})
    text = record("u", "sim").replace(
        '"namespace":"team","name":"u","uid":"u"', '"namespace":"default","name":"hidden","uid":"%s"'
    )
    job = bridge.slurm.world.jobs[bridge.world.submit("hidden", admin_comment=text % made["metadata"]["uid"])]
    bridge.start()
    bridge.run(100, step=2)
    assert not bridge.of(job).over
    assert bridge.slurm_calls.count(method="DELETE") == 0


def test_a_pod_that_cannot_be_asked_for_is_no_orphan(bridge: Bridge) -> None:
    """Silence is no evidence: the job stays until Kubernetes has said that there is no such pod."""
    job = bridge.bound("a")
    bridge.delete("a", grace=0)
    bridge.world.pass_time(1)
    bridge.start()
    bridge.recover()
    bridge.world.weather.hide(Side.KUBE)
    bridge.run(20)
    assert bridge.of(job).running
    bridge.world.weather.show(Side.KUBE)
    bridge.until(lambda: bridge.of(job).over)
    assert bridge.told.ends == ["orphan"]


def test_a_pod_that_somebody_else_bound_needs_no_job(bridge: Bridge) -> None:
    """It is not ours any more; its job goes, the pod stays."""
    job = bridge.waiting("a")
    bridge.steal("a", "n2")
    bridge.run(3)
    assert bridge.of(job).over
    assert "another scheduler" in bridge.note(job)
    assert not bridge.leaving("a")


def many_bound(bridge: Bridge) -> list[str]:
    """Pods that run, whose jobs were read."""
    pods = [f"p{number}" for number in range(TOGETHER)]
    for name in pods:
        bridge.pod(name, cpu="100m", annotations={"kwok.local/terminating": "20s"})
    bridge.until(lambda: all(bridge.node_of(name) for name in pods))
    bridge.run(6)
    bridge.slurm_calls.forget()
    return pods


def many_cancelled(bridge: Bridge) -> list[str]:
    """Likewise; an administrator has cancelled all of their jobs at the same moment."""
    pods = many_bound(bridge)
    for name in pods:
        bridge.slurm.control.end(bridge.job(name).job_id, "CANCELLED")
    return pods


def test_many_cancelled_at_once_cost_no_reading_of_each(bridge: Bridge) -> None:
    """Two answers about all of them are enough; each pod says why it is deleted, without the reason of an old wait."""
    pods = many_cancelled(bridge)
    bridge.until(lambda: bridge.deletes() == len(pods), 1)
    assert bridge.slurm_calls.count(target=r"/job/\d+") == 0
    job_id = names.LABEL_JOB_ID
    for name in pods:
        reason = f"Slurm job {bridge.manifest(name)['metadata']['labels'][job_id]} was cancelled (CANCELLED)"
        assert bridge.condition(name, "DisruptionTarget")[1] == reason


def test_where_slurm_counts_ids_each_that_was_cancelled_is_looked_at(bridge: Bridge) -> None:
    """Such an id may be another job's."""
    bridge = Bridge(bridge.folder, world=bridge.world, slurm={"job_ids": None})
    pods = many_cancelled(bridge)
    bridge.until(lambda: bridge.deletes() == len(pods), 2)
    assert bridge.slurm_calls.count(target=r"/job/\d+") >= len(pods)


@pytest.mark.security("input")
def test_one_wrong_answer_about_many_jobs_ends_no_pod(bridge: Bridge) -> None:
    """No pod is deleted if only one of two answers says that its job, and many others, were cancelled."""
    many_bound(bridge)
    cancelled = faults.Garble(lambda body: body.replace(b"RUNNING", b"CANCELLED"))
    bridge.slurm_calls.plan(cancelled, method="GET", target="/jobs/state/", times=1)
    bridge.run(30)
    assert bridge.deletes() == 0


def test_a_job_that_no_longer_holds_the_pods_node_ends_the_pod(bridge: Bridge) -> None:
    """An administrator shrank it: the node is somebody else's."""
    job = bridge.bound("a", annotations={"kwok.local/terminating": "20s"})
    grant = bridge.of(job).grant
    assert grant is not None
    elsewhere = dataclasses.replace(grant, shares=(dataclasses.replace(grant.shares[0], node="n3"),))
    bridge.slurm.control._change(job.job_id, grant=elsewhere)
    bridge.until(lambda: bridge.leaving("a"), 30)
    assert "no longer holds" in bridge.condition("a", "DisruptionTarget")[1]


def test_a_bound_pod_whose_job_pends_again_is_left_alone(bridge: Bridge) -> None:
    """slurmctld crashed before it had saved the start; it starts the job anew."""
    job = bridge.bound("a")
    bridge.world.crash_slurm(bridge.clock.now() - 60.6)
    bridge.run(20)
    assert bridge.of(job).running
    assert bridge.deletes() == 0


def test_a_second_living_job_of_a_pod_is_cancelled_and_the_first_is_kept(bridge: Bridge) -> None:
    """Whoever made it; nothing is bound before."""
    bridge.world.observer.forgetful()
    job = bridge.waiting("a")
    text = bridge.of(job).ask.text("admin_comment").replace('"uid"', '"attempt":5,"uid"')
    twin = bridge.slurm.world.jobs[bridge.world.submit("a", admin_comment=text)]
    bridge.start()
    bridge.run(3)
    assert (bridge.of(job).over, bridge.of(twin).over) == (False, True)
    assert "second job" in bridge.note(twin)
    assert not bridge.park_note("a")


@pytest.mark.parametrize("fault", [faults.Drop(), faults.Reset(acted=False)])
def test_a_job_that_may_exist_is_found_when_its_pod_goes(bridge: Bridge, fault: faults.Fault) -> None:
    """Its submit was not answered, and then the pod was deleted: nothing is leaked, nothing is kept for ever."""
    bridge.slurm_calls.plan(fault, method="POST", target="/job/submit")
    uid = bridge.pod("a")
    bridge.settle()
    bridge.delete("a", grace=0)
    bridge.run(100, step=2)
    assert all(job.over for job in bridge.jobs(uid))
    assert all(state.queued is None for _, state in bridge.core.context.states.all())


def stray(bridge: Bridge, kind: str) -> state.SlurmJob:
    """A job of this bridge that stands for something else than a pod."""
    text = record("u", "sim").replace('"kind":"Pod"', f'"kind":"{kind}"')
    return bridge.slurm.world.jobs[bridge.world.submit("stray", admin_comment=text)]


def test_the_job_of_a_check_that_was_killed_goes_after_a_while(bridge: Bridge) -> None:
    """A check that still runs cancels its own."""
    job = stray(bridge, "Check")
    bridge.run(50)
    assert not bridge.of(job).over
    bridge.until(lambda: bridge.of(job).over, 30)


def test_what_a_later_version_made_is_left_alone(bridge: Bridge) -> None:
    """This one does not know when it is over."""
    job = stray(bridge, "Constellation")
    bridge.run(120, step=2)
    assert not bridge.of(job).over


def test_parking_needs_kubernetes_and_waits_for_it(bridge: Bridge) -> None:
    """What an administrator wanted is not forgotten because a write failed."""
    job = bridge.waiting("a")
    bridge.kube_calls.plan(faults.Answer(500), method="PATCH", target="/pods/a$", times=3)
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    bridge.slurm.control.unpause()
    bridge.run(20)
    assert bridge.park_note("a")["job"] == job.job_id
    assert bridge.submits() == 1


def test_a_parked_pod_with_a_living_job_gives_it_back(bridge: Bridge) -> None:
    """A submit that was on its way when the pod was parked."""
    job = bridge.waiting("a")
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    bridge.run(2)
    text = bridge.of(job).ask.text("admin_comment")
    late = bridge.slurm.world.jobs[bridge.world.submit("a", admin_comment=text)]
    bridge.start()
    bridge.run(5)
    assert bridge.of(late).over
    assert bridge.park_note("a")["job"] == job.job_id


def test_the_estimate_of_a_parked_pod_is_no_reason_to_write(bridge: Bridge) -> None:
    """It says why it waits, once."""
    job = bridge.waiting("a")
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    bridge.run(10)
    bridge.kube_calls.forget()
    bridge.run(100, step=2)
    assert bridge.kube_calls.count(method="PATCH") == 0


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "٣", "1.5", " 7"])
def test_a_label_that_names_no_job_is_none(text: str) -> None:
    """Users can write labels."""
    pod = Pod(metadata=ObjectMeta(name="a", namespace="team", uid="u", labels={names.LABEL_JOB_ID: text}))
    assert workload_pods.job_id_of(pod) is None
