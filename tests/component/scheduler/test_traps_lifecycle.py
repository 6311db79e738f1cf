"""When one side ends so does the other, and nothing ends on missing or doubtful evidence."""

from collections.abc import Callable

import pytest

from slurm_bridge.model import kinds, names
from slurm_bridge.sim import faults
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.weather import Side
from tests.simulation.world import World

WAITING = {
    "containerStatuses": [{"name": "main", "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
}
INIT = {"initContainerStatuses": [{"name": "setup", "ready": False, "state": {"running": {}}}], "phase": "Pending"}
STANDS = {"running": {}, "crash loop": {}, "init": INIT, "image": {**WAITING, "phase": "Pending"}}


@pytest.mark.parametrize("stand", STANDS)
def test_t31_scancel_of_a_running_job_ends_its_pod_whatever_its_state(bridge: Bridge, stand: str) -> None:
    """Running, CrashLoopBackOff, Init or ImagePullBackOff: its nodes are somebody else's now."""
    outcome = {"kwok.local/outcome": "crash-loop", "kwok.local/seconds": "1"} if stand == "crash loop" else {}
    job = bridge.bound("a", annotations=outcome)
    bridge.run(3)
    bridge.status("a", **STANDS[stand])
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    bridge.until(lambda: not bridge.exists("a"), 30)
    assert bridge.told.ends == ["cancelled"]


@pytest.mark.parametrize("word", ["FAILED", "CANCELLED", "PREEMPTED", "TIMEOUT"])
def test_t32_a_queued_pod_is_never_deleted_because_its_job_died(bridge: Bridge, word: str) -> None:
    """It had nothing to lose yet."""
    job = bridge.waiting("a")
    bridge.slurm.control.end(job.job_id, word)
    bridge.run(60)
    assert bridge.exists("a")
    assert bridge.deletes() == 0


def test_t32_a_queued_pod_without_any_job_is_never_deleted(bridge: Bridge) -> None:
    """Slurm has forgotten it: it is asked for again."""
    bridge.waiting("a")
    bridge.slurm.control.crash(1e6)
    bridge.run(20)
    assert bridge.job("a").pending
    assert bridge.deletes() == 0


def test_t33_a_terminating_pod_keeps_its_job_until_it_is_over(bridge: Bridge) -> None:
    """Another pod on its node before that would be one too many."""
    job = bridge.bound("a", cpu="3", annotations={"kwok.local/terminating": "40s"})
    bridge.delete("a", grace=60)
    bridge.run(35)
    assert bridge.of(job).running
    bridge.until(lambda: bridge.phase("a") == "Failed")
    bridge.run(3)
    assert bridge.of(job).over
    assert bridge.note(job).startswith("withdrawn: pod")


def test_t33_a_node_is_not_given_to_the_next_pod_while_the_last_one_is_still_there(bridge: Bridge) -> None:
    """Slurm frees it at once; the pod that lost its job takes its time."""
    spec = {"nodeSelector": {"kubernetes.io/hostname": "n4"}}
    old = bridge.bound("old", cpu="4", annotations={"kwok.local/terminating": "20s"}, spec=spec)
    bridge.slurm.control.end(old.job_id, "PREEMPTED")
    new = bridge.pod("new", cpu="4", spec=spec)
    bridge.until(lambda: bridge.condition("new")[0] == "NodeNotVacated", 20)
    assert "default/old" in bridge.condition("new")[1]
    bridge.until(lambda: bridge.node_of("new") == "n4", 40)
    assert bridge.phase("old") == "Failed"
    assert len(bridge.jobs(new)) == 1


def test_t34_a_job_that_ended_asks_for_one_deletion_only(bridge: Bridge) -> None:
    """However long the pod takes, and however often somebody looks."""
    job = bridge.bound("a", annotations={"kwok.local/terminating": "hang"})
    bridge.slurm.control.end(job.job_id, "PREEMPTED")
    bridge.run(120, step=2)
    assert bridge.leaving("a")
    assert bridge.deletes() == 1


def test_t34_a_withdrawn_job_is_cancelled_once(bridge: Bridge) -> None:
    """The pod has finished: one DELETE, and nothing more for as long as the pod is there."""
    bridge.bound("a", annotations={"kwok.local/outcome": "succeed", "kwok.local/seconds": "1"})
    bridge.run(120, step=2)
    assert bridge.exists("a")
    assert bridge.slurm_calls.count(method="DELETE") == 1


GONE = {
    "a plain 404": None,
    "a 404 with a body": faults.Answer(404, b'{"jobs":[],"errors":[{"error_number":2017,"error":"Invalid job id"}]}'),
    "an older Slurm's 500": faults.Answer(500, b'{"errors":[{"error_number":2017,"error":"Invalid job id"}]}'),
}


@pytest.mark.parametrize("answer", GONE)
def test_t35_a_purged_job_is_the_same_as_one_that_ended(bridge: Bridge, answer: str) -> None:
    """The daemon was away for longer than Slurm remembers; the pod lost its node all the same."""
    job = bridge.bound("a")
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    bridge.world.pass_time(120)
    assert job.job_id not in bridge.slurm.world.jobs
    bridge.start()
    fault = GONE[answer]
    if fault is not None:
        bridge.slurm_calls.plan(fault, method="GET", target=f"/job/{job.job_id}", times=100)
    bridge.until(lambda: not bridge.exists("a"))
    assert str(job.job_id) in dict(bridge.events("a"))["SlurmJobEnded"]


def test_t35_a_job_that_ended_and_was_purged_during_an_outage_is_not_brought_back(bridge: Bridge) -> None:
    """Nobody could see its end; it was somebody's wish all the same."""
    job = bridge.bound("a")
    hide(bridge)
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    bridge.run(120, step=3)
    assert job.job_id not in bridge.slurm.world.jobs
    bridge.world.weather.show(Side.SLURM)
    bridge.until(lambda: not bridge.exists("a"))
    assert bridge.submits() == 1


def hide(bridge: Bridge) -> None:
    """slurmrestd is not reached."""
    bridge.world.weather.hide(Side.SLURM)


def fail(bridge: Bridge) -> None:
    """slurmrestd answers, and slurmctld does not."""
    answer = b'{"jobs":null,"errors":[{"error_number":5005,"error":"Zero Bytes were transmitted or received"}]}'
    bridge.slurm_calls.plan(faults.Answer(500, answer), times=10_000)


def lie(bridge: Bridge) -> None:
    """A proxy answers in its place."""
    bridge.slurm_calls.plan(faults.Answer(200, b"<html>Welcome</html>", "text/html"), times=10_000)


OUTAGES: dict[str, Callable[[Bridge], object]] = {
    "slurmrestd is away": hide,
    "slurmctld is down": lambda bridge: bridge.slurm.control.down(),
    "slurmctld hangs": lambda bridge: bridge.slurm.control.hang(),
    "500 with an empty list": fail,
    "a proxy's page": lie,
    "silence": lambda bridge: bridge.slurm_calls.plan(faults.Hang(acted=False), times=10_000),
}


@pytest.mark.parametrize("outage", OUTAGES)
def test_t36_a_slurm_that_does_not_answer_has_lost_no_job(bridge: Bridge, outage: str) -> None:
    """No pod is deleted for it; afterwards all is as it was."""
    job = bridge.bound("a")
    waiting = bridge.waiting("b")
    OUTAGES[outage](bridge)
    bridge.run(90, step=3)
    assert bridge.core.context.mirror.failing
    bridge.slurm_calls.clear()
    bridge.slurm.control.up()
    bridge.world.weather.show(Side.SLURM)
    bridge.slurm.control.unpause()
    bridge.until(lambda: bridge.node_of("b"))
    assert bridge.of(job).running
    assert bridge.job("b").job_id == waiting.job_id
    assert bridge.deletes() == 0


def crowd(bridge: Bridge, number: int) -> None:
    """So many bound pods."""
    for each in range(number):
        bridge.pod(f"p{each}")
    bridge.until(lambda: all(bridge.node_of(f"p{each}") for each in range(number)))


def test_t37_a_slurm_that_lost_its_memory_is_reminded(bridge: Bridge) -> None:
    """The same jobs are asked for again, under their ids and for their nodes: no pod notices."""
    bridge = Bridge(bridge.folder, world=bridge.world, mirror={"vanished_minimum": 3})
    crowd(bridge, 5)
    before = {job.job_id: job.grant.nodes for job in bridge.jobs() if job.grant is not None}
    bridge.world.crash_slurm(1e6)
    bridge.run(60, step=1)
    assert {job.job_id: job.grant.nodes for job in bridge.jobs() if job.grant is not None} == before
    assert bridge.deletes() == 0
    assert any(reason == "SlurmJobRestored" for reason, _ in bridge.events("p0"))


def counted(bridge: Bridge) -> Bridge:
    """A bridge where Slurm itself gives out the ids: what is lost there cannot be asked for again."""
    return Bridge(bridge.folder, world=bridge.world, mirror={"vanished_minimum": 3}, slurm={"job_ids": None})


def test_t37_a_slurm_that_lost_its_memory_costs_no_pod(bridge: Bridge) -> None:
    """All jobs unknown at once needs evidence: the operator is told, nothing is deleted."""
    bridge = counted(bridge)
    crowd(bridge, 5)
    bridge.world.crash_slurm(1e6)
    bridge.run(120, step=2)
    assert bridge.deletes() == 0
    assert any(reason == "SlurmJobsVanished" for reason, _ in bridge.events("p0"))


def test_t37_one_lost_job_of_many_is_believed_after_a_pause(bridge: Bridge) -> None:
    """A single one is no mystery."""
    bridge = counted(bridge)
    crowd(bridge, 5)
    job = bridge.job("p2")
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    del bridge.slurm.world.jobs[job.job_id]
    bridge.run(6)
    assert bridge.exists("p2")
    bridge.until(lambda: not bridge.exists("p2"), 30)
    assert bridge.deletes() == 1


def test_t37_an_operator_can_say_that_it_is_true(bridge: Bridge) -> None:
    """Raising the limit is the evidence."""
    bridge = counted(bridge)
    crowd(bridge, 4)
    bridge.world.crash_slurm(1e6)
    bridge.run(40)
    assert bridge.deletes() == 0
    given = {"mirror": {"vanished_minimum": 100}, "slurm": {"job_ids": None}}
    bridge = Bridge(bridge.folder, world=bridge.world, **given)
    bridge.until(lambda: bridge.deletes() == 4)


def test_t38_a_pod_that_hangs_on_a_dead_node_gives_its_job_back(bridge: Bridge) -> None:
    """After a time; and nobody but the user forces the pod away."""
    bridge = Bridge(bridge.folder, world=bridge.world, ends={"stuck_seconds": 30})
    job = bridge.bound("a", annotations={"kwok.local/terminating": "hang"})
    dead = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    bridge.kube.merge(kinds.NODES, ("", bridge.node_of("a")), {"status": {"conditions": [dead]}}, subresource="status")
    bridge.delete("a")
    bridge.run(25)
    assert bridge.of(job).running
    bridge.until(lambda: bridge.of(job).over, 40)
    assert bridge.exists("a")
    assert not bridge.manifest("a")["metadata"].get("finalizers")


def test_t38_a_pod_that_hangs_on_a_living_node_keeps_its_job(bridge: Bridge) -> None:
    """Its kubelet still speaks for it."""
    bridge = Bridge(bridge.folder, world=bridge.world, ends={"stuck_seconds": 30})
    job = bridge.bound("a", annotations={"kwok.local/terminating": "hang"})
    bridge.delete("a")
    bridge.run(200, step=2)
    assert bridge.of(job).running


def test_t39_a_pod_that_is_deleted_before_it_had_a_node_takes_its_job_along(bridge: Bridge) -> None:
    """At once, not with the next sweep."""
    job = bridge.waiting("a")
    bridge.delete("a")
    bridge.settle()
    assert bridge.of(job).over
    assert bridge.note(job).startswith("withdrawn")


def test_t40_lost_watch_events_are_made_up_for(bridge: Bridge) -> None:
    """The history is gone, and with it what happened meanwhile: the next list tells it."""
    kept, lost = bridge.bound("kept"), bridge.bound("lost")
    bridge.delete("lost", grace=0)
    bridge.pod("new")
    bridge.kube.settle()
    bridge.world.observer.look()
    bridge.kube.compact()
    bridge.world.observer.skip()
    bridge.until(lambda: bridge.node_of("new"))
    assert bridge.of(lost).over
    assert bridge.of(kept).running


def test_t40_a_job_that_nobody_told_us_of_is_found_by_the_sweep(bridge: Bridge) -> None:
    """Its pod is long gone: a submit whose answer was lost made it."""
    bridge = Bridge(bridge.folder, world=bridge.world, mirror={"sweep_seconds": 20})
    bridge.run(1)
    text = '{"mark":"slurm-bridge/1","owner":{"cluster":"sim","kind":"Pod","namespace":"default","name":"z","uid":"z"}}'
    stray = bridge.slurm.world.jobs[bridge.world.submit("stray", admin_comment=text)]
    bridge.until(lambda: bridge.of(stray).over, 40)
    assert bridge.told.ends == ["orphan"]


def test_t41_when_its_pod_is_gone_the_job_goes(bridge: Bridge) -> None:
    """Even when it went while nobody watched."""
    job = bridge.bound("a")
    bridge.delete("a", grace=0)
    bridge.world.pass_time(1)
    bridge.start()
    bridge.run(2)
    assert bridge.of(job).over


def test_t41_jobs_that_are_not_ours_are_never_touched(bridge: Bridge) -> None:
    """A native job, one with any JSON for a comment, and another cluster's placeholder."""
    foreign = {job.job_id: job for job in bridge.slurm.world.jobs.values()}
    assert len(foreign) == 3
    bridge = Bridge(bridge.folder, world=bridge.world, mirror={"sweep_seconds": 5})
    bridge.bound("a")
    bridge.delete("a")
    bridge.run(30)
    bridge.start()
    bridge.run(30)
    assert {job_id: bridge.slurm.world.jobs[job_id].state for job_id in foreign} == {
        job_id: job.state if job.state != "PENDING" else bridge.slurm.world.jobs[job_id].state
        for job_id, job in foreign.items()
    }
    assert all(not bridge.slurm.world.jobs[job_id].over for job_id in foreign)


def test_t42_a_pod_of_the_same_name_gets_a_job_of_its_own(bridge: Bridge) -> None:
    """As StatefulSets make them: the old incarnation's job goes with it."""
    old = bridge.bound("web-0")
    bridge.delete("web-0", grace=0)
    uid = bridge.pod("web-0")
    bridge.until(lambda: bridge.node_of("web-0"))
    assert bridge.of(old).over
    assert [job.job_id != old.job_id for job in bridge.jobs(uid)] == [True]


def test_t43a_scancel_of_a_pending_placeholder_is_respected(bridge: Bridge) -> None:
    """Said on the pod at once; nothing is submitted behind the administrator's back."""
    job = bridge.waiting("a")
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    bridge.slurm.control.unpause()
    bridge.run(5)
    assert bridge.park_note("a")["job"] == job.job_id
    bridge.run(400, step=5)
    assert bridge.submits() == 1
    assert names.ANNOTATION_RETRY in bridge.condition("a")[1]


def test_t43a_a_parked_pod_stays_parked_over_a_restart(bridge: Bridge) -> None:
    """Slurm has forgotten the job by then; the pod has not."""
    job = bridge.waiting("a")
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    bridge.run(5)
    bridge.slurm.control.unpause()
    bridge.world.pass_time(120)
    bridge.start()
    bridge.run(30)
    assert bridge.submits() == 0


@pytest.mark.parametrize("change", [{"retry": "1"}, {"timelimit": "9"}])
def test_t43a_a_parked_pod_is_submitted_again_when_somebody_changes_it(bridge: Bridge, change: dict[str, str]) -> None:
    """The description, or the annotation that asks for another try."""
    job = bridge.waiting("a")
    bridge.slurm.control.end(job.job_id, "CANCELLED")
    bridge.run(5)
    bridge.slurm.control.unpause()
    bridge.annotate("a", **change)
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.submits() == 2


def made_by_job(bridge: Bridge) -> str:
    """The pod that the batch Job has now, "" when it has none."""
    pods = bridge.kube.list(kinds.PODS, "default")
    living = [
        pod for pod in pods if pod["metadata"].get("ownerReferences") and "deletionTimestamp" not in pod["metadata"]
    ]
    return str(living[-1]["metadata"]["name"]) if living else ""


@pytest.mark.parametrize(("policy", "submitted"), [("hold", 1), ("resubmit", 2)])
def test_t43b_a_pod_whose_time_is_up_is_not_recreated_endlessly(bridge: Bridge, policy: str, submitted: int) -> None:
    """Its controller makes another, which is held where the policy says so until the user changes something."""
    bridge = Bridge(bridge.folder, world=bridge.world, ends={"after_timeout": {"Job": policy}})
    bridge.world.job("batch", completions=1, parallelism=1, outcome="run")
    bridge.until(lambda: bridge.node_of(made_by_job(bridge)))
    first = made_by_job(bridge)
    bridge.slurm.control.end(bridge.job(first).job_id, "TIMEOUT")
    bridge.until(lambda: made_by_job(bridge) not in ("", first))
    bridge.run(30)
    second = made_by_job(bridge)
    assert bridge.submits() == submitted
    assert bool(bridge.park_note(second)) == (policy == "hold")
    if policy == "hold":
        bridge.annotate(second, retry="1")
        bridge.until(lambda: bridge.node_of(second))


def test_t66_a_token_that_is_replaced_is_read_again(bridge: Bridge) -> None:
    """Also with SLURM_JWT= before it; the old one is refused from then on, and nobody notices."""
    bridge.bound("a")
    bridge.slurm.tokens = {"new": "slurm"}
    (bridge.folder / "token").write_text("SLURM_JWT=new\n")
    bridge.bound("b")
    assert bridge.submits() == 2
    assert not bridge.core.context.mirror.failing


@pytest.mark.parametrize("content", ["", "old", None])
def test_t66_without_a_good_token_nothing_is_lost_and_nothing_spins(bridge: Bridge, content: str | None) -> None:
    """An empty, missing or refused token: few calls, no deleted pod, and on it goes with a good one."""
    job = bridge.bound("a")
    good = bridge.slurm.secret
    token = bridge.folder / "token"
    token.unlink()
    if content is not None:
        token.write_text(content)
    bridge.slurm_calls.forget()
    bridge.pod("b")
    bridge.run(60)
    assert len(bridge.slurm_calls.journal) < 60
    token.write_text(good)
    bridge.until(lambda: bridge.node_of("b"))
    assert bridge.of(job).running
    assert bridge.deletes() == 0


def test_t67_a_new_leader_submits_nothing_twice(bridge: Bridge) -> None:
    """It finds what the old one did; the old one, awake again, writes nothing."""
    bound, waiting = bridge.bound("a"), bridge.waiting("b")
    bridge.pod("c")
    bridge.hear()
    heir = Bridge(bridge.folder, world=bridge.world, name="d2")
    bridge.leads = False
    heir.run(5)
    bridge.run(5)
    assert heir.submits() == 1
    assert (heir.job("a").job_id, heir.job("b").job_id) == (bound.job_id, waiting.job_id)
    heir.slurm.control.unpause()
    heir.until(lambda: heir.node_of("b") and heir.node_of("c"))


def test_t67_an_old_leader_that_wakes_up_late_cannot_make_a_second_job(bridge: Bridge) -> None:
    """Both submit the same attempt: Slurm itself refuses the second, and both know the one that there is."""
    heir = Bridge(bridge.folder, world=bridge.world, name="d2")
    bridge.recover()
    heir.recover()
    uid = bridge.pod("a")
    bridge.hear()
    heir.settle()
    bridge.settle()
    assert bridge.submits() == heir.submits() == len(bridge.jobs(uid)) == 1
    assert bridge.known(bridge.job("a"))


def test_t67_where_ids_cannot_be_chosen_the_second_job_goes_before_anything_is_bound(bridge: Bridge) -> None:
    """The sweep of whoever leads finds it; the older one stays."""
    world = World(1, bridge.folder / "token", fenced=False)
    old = Bridge(bridge.folder, world=world, slurm={"job_ids": None})
    new = Bridge(bridge.folder, world=world, name="d2", slurm={"job_ids": None}, mirror={"sweep_seconds": 2})
    old.recover()
    new.recover()
    old.slurm.control.pause()
    uid = old.pod("a")
    old.hear()
    new.settle()
    old.settle()
    first, second = old.jobs(uid)
    old.leads = False
    new.run(10)
    assert (new.of(first).over, new.of(second).over) == (False, True)
    new.slurm.control.unpause()
    new.until(lambda: new.node_of("a"))


def test_c7_no_pod_ever_waits_for_us_to_let_it_go(bridge: Bridge) -> None:
    """We put finalizers on nothing: without us every pod still ends."""
    bridge.bound("a")
    bridge.waiting("b")
    assert not any(pod["metadata"].get("finalizers") for _, pod in bridge.world.pods())
    bridge.delete("a")
    bridge.delete("b")
    bridge.world.pass_time(30)
    assert not bridge.exists("a")
    assert not bridge.exists("b")
