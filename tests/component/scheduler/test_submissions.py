"""One placeholder for each workload, whatever happens between asking and knowing."""

import json

import msgspec
import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.placeholder import Certainty
from slurm_bridge.scheduler.ids import IdRange
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.observer import CLUSTER_ID

SUBMIT = "/job/submit"
#: How often one question is asked before it counts as not answered.
ASKED = 2


def answer(status: int = 200, **body: object) -> faults.Answer:
    """slurmrestd says this without doing anything."""
    return faults.Answer(status, json.dumps({"errors": [], "warnings": [], **body}).encode())


def error(number: int, text: str = "no") -> dict[str, object]:
    """Slurm's way to say what is wrong."""
    return {"error_number": number, "error": text, "description": text, "source": "x"}


def id_of(bridge: Bridge, uid: str, attempt: int = 0) -> int:
    """The id that this attempt asks for."""
    ids = bridge.core.context.limits.ids
    assert isinstance(ids, IdRange)
    record = Owner(cluster=CLUSTER_ID, kind="Pod", namespace="default", name="a", uid=uid, attempt=attempt)
    return int(ids.choose(record))


def test_a_job_that_waits_is_told_once(bridge: Bridge) -> None:
    """A condition that says for what it waits; and, once it has waited, an event with what was asked for."""
    job = bridge.waiting("a")
    assert bridge.condition("a") == ("SlurmJobPending", f"Slurm job {job.job_id} is pending")
    bridge.run(30)
    bridge.until(lambda: any(reason == "SlurmJobSubmitted" for reason, _ in bridge.events("a")), 30)
    submitted = [text for reason, text in bridge.events("a") if reason == "SlurmJobSubmitted"]
    assert submitted == [f"Slurm job {job.job_id}: 1 cpus, 500 MiB"]
    assert bridge.told.attempts == ["submitted"]


def test_the_job_says_whose_it_is_and_what_was_asked_for(bridge: Bridge) -> None:
    """A later start reads it there: the pod, the attempt, the request and the plan."""
    uid = bridge.pod("a")
    bridge.settle()
    owner = bridge.world.observer.owner(bridge.job("a"))
    assert owner is not None
    assert (owner.uid, owner.attempt) == (uid, 0)
    assert owner.request.count(":") == owner.plan.count(":") == 2


@pytest.mark.parametrize("comment", ["{}", "", "another pod"])
def test_an_id_that_a_stranger_has_costs_one_attempt(bridge: Bridge, comment: str) -> None:
    """He is left alone, and the next id is asked for at once."""
    uid = bridge.pod("a")
    bridge.hear()
    taken = id_of(bridge, uid)
    bridge.world.submit("stranger", job_id=taken, admin_comment=comment)
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.job("a").job_id == id_of(bridge, uid, 1)
    assert bridge.slurm.world.jobs[taken].running


def test_an_id_that_our_own_living_job_has_is_that_job(bridge: Bridge) -> None:
    """Somebody submitted it before us: another replica, or we, before we were killed."""
    job = bridge.waiting("a")
    record = bridge.known(job)
    assert record is not None
    bridge.core.context.table.drop(record.job_id)
    bridge.core.queue.activate(bridge.key("a"))
    bridge.settle()
    assert bridge.known(job) is not None
    assert len(bridge.jobs(bridge.uid("a"))) == 1


def test_the_remains_of_a_refused_submit_are_passed_over(bridge: Bridge) -> None:
    """A refusal can leave an ended record behind that holds the id."""
    uid = bridge.pod("a")
    bridge.hear()
    owner = Owner(cluster=CLUSTER_ID, kind="Pod", namespace="default", name="a", uid=uid)
    text = json.dumps(
        {
            "mark": "slurm-bridge/1",
            "owner": {k: getattr(owner, k) for k in ("cluster", "kind", "namespace", "name", "uid")},
        }
    )
    left = bridge.world.submit("a", job_id=id_of(bridge, uid), admin_comment=text)
    bridge.slurm.control.end(left, "FAILED")
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.job("a").job_id == id_of(bridge, uid, 1)


@pytest.mark.security("fairness")
def test_ids_that_a_stranger_has_worked_out_keep_no_group_out(bridge: Bridge) -> None:
    """Jobs of another namespace cannot take all job ids that a group would use next."""
    ids = bridge.core.context.limits.ids
    assert ids is not None
    record = Owner(cluster=CLUSTER_ID, kind="Group", namespace="default", name="g", uid="Group:default/g")
    for attempt in (0, *((1 << step) - 1 for step in range(1, 10))):
        taken = ids.choose(msgspec.structs.replace(record, attempt=attempt))
        bridge.world.submit("stranger", job_id=int(taken), admin_comment="whatever")
    bridge.pod("a", cpu="100m", labels={names.GROUP: "g", names.GROUP_SIZE: "1"})
    bridge.until(lambda: bridge.node_of("a"))


def test_many_taken_ids_in_a_row_are_told(bridge: Bridge) -> None:
    """Something else must be wrong: somebody uses our range."""
    bridge.slurm_calls.plan(
        answer(500, errors=[error(2011, "Duplicate job id")]), method="POST", target=SUBMIT, times=99
    )
    bridge.pod("a")
    bridge.step()
    assert bridge.condition("a")[0] == "SlurmJobRejected"
    assert bridge.submits() <= 10


def test_a_lost_answer_is_looked_for_before_anything_else(bridge: Bridge) -> None:
    """The job is known as one that may exist; then as one that does."""
    bridge.slurm.control.pause()
    bridge.slurm_calls.plan(faults.Drop(), method="POST", target=SUBMIT)
    bridge.pod("a")
    bridge.settle()
    (maybe,) = bridge.core.context.table.of(bridge.key("a"))
    assert maybe.certainty is Certainty.MAYBE
    assert bridge.condition("a")[0] == "SlurmUnavailable"
    bridge.run(5)
    (seen,) = bridge.core.context.table.of(bridge.key("a"))
    assert seen.certainty is Certainty.SEEN
    assert bridge.submits() == 1
    assert bridge.condition("a")[0] == "SlurmJobPending"


def test_a_job_that_was_made_with_errors_is_looked_at(bridge: Bridge) -> None:
    """500 and a job id: it exists, and it is this pod's."""
    real = json.dumps({"job_id": 0, "errors": [error(9000, "unknown flag")]})

    def garble() -> None:
        body = json.loads(real)
        body["job_id"] = id_of(bridge, bridge.uid("a"))
        bridge.slurm_calls.plan(faults.Garble(json.dumps(body).encode(), status=500), method="POST", target=SUBMIT)

    bridge.pod("a")
    garble()
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.submits() == 1


def test_a_yes_without_a_job_is_a_no(bridge: Bridge) -> None:
    """200, warnings, and nothing made: it is said, and not taken for a job."""
    warning = {"description": "tasks: not a number", "source": "#/job/tasks"}
    bridge.slurm_calls.plan(answer(200, warnings=[warning]), method="POST", target=SUBMIT)
    bridge.pod("a")
    bridge.step()
    assert bridge.condition("a")[0] == "SlurmJobRejected"
    assert "tasks" in bridge.condition("a")[1]


def test_a_busy_controller_is_asked_later_and_later(bridge: Bridge) -> None:
    """One second, two, four: never all the time, and never for ever."""
    bridge.slurm_calls.plan(answer(500, errors=[error(2007, "Too many jobs")]), method="POST", target=SUBMIT, times=99)
    bridge.pod("a")
    bridge.run(70)
    assert 5 <= bridge.submits() <= 8


def test_a_refused_request_is_tried_again_after_minutes(bridge: Bridge) -> None:
    """Nothing of ours has changed, but administrators repair things."""
    bridge.run(2)
    bridge.slurm_calls.plan(answer(422, errors=[error(2000, "Invalid partition")]), method="POST", target=SUBMIT)
    bridge.pod("a")
    bridge.run(290, step=10)
    assert bridge.submits() == 1
    bridge.until(lambda: bridge.node_of("a"), 30)


def test_a_refused_request_is_tried_at_once_when_the_user_changes_it(bridge: Bridge) -> None:
    """That is what he changed it for."""
    bridge.slurm_calls.plan(answer(422, errors=[error(2000, "Invalid partition")]), method="POST", target=SUBMIT)
    bridge.pod("a")
    bridge.run(5)
    bridge.annotate("a", timelimit="5")
    bridge.until(lambda: bridge.node_of("a"), 10)


def test_a_node_that_slurm_does_not_know_makes_us_ask_for_its_nodes(bridge: Bridge) -> None:
    """What we knew was out of date; the next try knows better."""
    bridge.kube.merge(kinds.NODES, ("", "n4"), {"spec": {"unschedulable": True}})
    bridge.run(3)
    bridge.slurm.control.delete_node("s4")
    bridge.pod("a")
    bridge.until(lambda: bridge.node_of("a"), 20)
    assert 2 <= bridge.submits() <= 3
    assert bridge.job("a").ask.excluded == ()


def test_a_pending_job_stays_while_its_pod_can_run_nowhere(bridge: Bridge) -> None:
    """The pod says why; the place in the queue is kept."""
    job = bridge.waiting("a")
    for node in ("n1", "n2", "n3", "n4"):
        bridge.kube.merge(kinds.NODES, ("", node), {"spec": {"unschedulable": True}})
    bridge.run(10)
    assert bridge.of(job).pending
    assert f"Slurm job {job.job_id} stays as it was" in bridge.condition("a")[1]
    bridge.slurm_calls.forget()
    bridge.run(10)
    assert bridge.slurm_calls.count(method="POST") == 0


def test_an_update_without_an_answer_is_read_back(bridge: Bridge) -> None:
    """What the job says now is what counts: it is not sent again when it was done."""
    limit = names.JOB_PREFIX + "timelimit"
    job = bridge.waiting("a", annotations={limit: "30"})
    bridge.slurm_calls.plan(faults.Drop(), method="POST", target=f"/job/{job.job_id}")
    bridge.slurm_calls.forget()
    bridge.annotate("a", timelimit="9")
    bridge.run(10)
    assert bridge.of(job).ask.minutes == 9
    assert bridge.slurm_calls.count(method="POST") == 1


def test_an_update_that_a_busy_controller_refuses_is_sent_later(bridge: Bridge) -> None:
    """Nothing is replaced for it."""
    job = bridge.waiting("a", annotations={names.JOB_PREFIX + "timelimit": "30"})
    busy = answer(500, errors=[error(2016, "busy")])
    bridge.slurm_calls.plan(busy, method="POST", target=f"/job/{job.job_id}", times=2)
    bridge.annotate("a", timelimit="9")
    bridge.until(lambda: bridge.of(job).ask.minutes == 9, 30)
    assert bridge.submits() == 1


def test_a_job_is_never_replaced_without_a_note(bridge: Bridge) -> None:
    """Else its end would look like an administrator's deed, and the pod would be parked."""
    bridge.slurm.world.partitions["other"] = state.Partition(name="other", nodes=("n1", "n2", "n3", "s4"))
    job = bridge.waiting("a")
    bridge.slurm_calls.plan(
        answer(500, errors=[error(2016, "busy")]), method="POST", target=f"/job/{job.job_id}", times=2
    )
    bridge.annotate("a", partition="other")
    bridge.step()
    assert bridge.slurm_calls.count(method="DELETE") == 0
    bridge.until(lambda: bridge.of(job).over, 20)
    assert bridge.note(job) == "withdrawn: replaced: the request changed"
    bridge.run(5)
    assert bridge.job("a").ask.partitions == ("other",)


def test_a_killed_replacement_goes_on_after_the_restart(bridge: Bridge) -> None:
    """Noted and cancelled, not yet submitted: the note tells the new process that it was us."""
    bridge.slurm.world.partitions["other"] = state.Partition(name="other", nodes=("n1", "n2", "n3", "s4"))
    job = bridge.waiting("a")
    bridge.annotate("a", partition="other")
    bridge.hear()
    while not bridge.of(job).over:
        assert bridge.core.schedule_step()
    bridge.start()
    bridge.run(5)
    assert bridge.job("a").ask.partitions == ("other",)
    assert not bridge.park_note("a")


def test_attempts_never_go_back(bridge: Bridge) -> None:
    """An id of an attempt that ended is not asked for again while its record may be there."""
    uid = bridge.pod("a")
    bridge.slurm.control.pause()
    for _ in range(3):
        bridge.settle()
        bridge.slurm.control.end(bridge.job("a").job_id, "FAILED")
        bridge.run(2)
    assert [job.job_id for job in bridge.jobs(uid)] == [id_of(bridge, uid, attempt) for attempt in range(4)]


def test_without_chosen_ids_lost_submits_share_their_scans(bridge: Bridge) -> None:
    """Two scans with a gap for all of them together, then they are submitted again."""
    bridge = Bridge(bridge.folder, world=bridge.world, slurm={"job_ids": None})
    bridge.run(1)
    bridge.slurm_calls.plan(faults.Reset(acted=False), method="POST", target=SUBMIT, times=6)
    for number in range(6):
        bridge.pod(f"p{number}")
    bridge.settle()
    bridge.slurm_calls.forget()
    bridge.run(12)
    assert bridge.submits() == 0
    bridge.until(lambda: all(bridge.node_of(f"p{number}") for number in range(6)), 30)
    assert bridge.slurm_calls.count(target=r"/jobs/state/$") <= 3
    assert bridge.submits() == 6


def test_without_chosen_ids_a_job_that_shows_up_late_is_adopted(bridge: Bridge) -> None:
    """slurmctld creates it after slurmrestd has given up: the second scan is there for that."""
    bridge = Bridge(bridge.folder, world=bridge.world, slurm={"job_ids": None})
    bridge.run(1)
    bridge.slurm.control.hang()
    uid = bridge.pod("a")
    bridge.settle()
    bridge.run(8)
    bridge.world.wake_slurm()
    bridge.until(lambda: bridge.node_of("a"))
    assert len(bridge.jobs(uid)) == 1


def test_the_job_of_a_lost_submit_ends_with_its_pod(bridge: Bridge) -> None:
    """The pod is gone before anything is known of the job."""
    bridge = Bridge(bridge.folder, world=bridge.world, slurm={"job_ids": None}, mirror={"sweep_seconds": 10})
    bridge.run(1)
    bridge.slurm_calls.plan(faults.Drop(), method="POST", target=SUBMIT)
    uid = bridge.pod("a")
    bridge.settle()
    bridge.delete("a", grace=0)
    bridge.until(lambda: all(job.over for job in bridge.jobs(uid)), 30)
    assert len(bridge.jobs(uid)) == 1


def test_a_lost_submit_is_looked_for_at_once_when_its_pod_is_gone(bridge: Bridge) -> None:
    """Its job does not live until the next sweep, a minute later."""
    bridge = Bridge(bridge.folder, world=bridge.world, slurm={"job_ids": None})
    bridge.run(1)
    bridge.slurm_calls.plan(faults.Drop(), method="POST", target=SUBMIT)
    uid = bridge.pod("a")
    bridge.settle()
    bridge.delete("a", grace=0)
    bridge.run(3)
    assert [job.over for job in bridge.jobs(uid)] == [True]


def test_a_search_that_was_not_answered_finds_nothing_out(bridge: Bridge) -> None:
    """The job of a lost submit exists, both searches for it are lost, and no second job is submitted."""
    bridge = Bridge(bridge.folder, world=bridge.world, slurm={"job_ids": None})
    bridge.run(1)
    bridge.slurm.control.pause()
    bridge.slurm_calls.plan(faults.Drop(), method="POST", target=SUBMIT)
    uid = bridge.pod("a")
    bridge.settle()
    for _ in range(2):
        bridge.slurm_calls.plan(faults.Drop(), target=r"/jobs/state/$", times=ASKED)
        bridge.run(13)
    assert len(bridge.jobs(uid)) == 1
