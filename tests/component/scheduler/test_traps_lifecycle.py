"""When one side ends so does the other, and nothing ends on missing or doubtful evidence."""

from collections.abc import Callable

import pytest

from slurm_bridge.model import kinds
from slurm_bridge.sim import faults
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.weather import Side

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


def test_t37_one_by_one_is_no_evidence_either(bridge: Bridge) -> None:
    """Slurm lists nothing and denies the jobs that it is asked for: how many are gone is not known, and no pod ends."""
    bridge = counted(bridge)
    crowd(bridge, 5)
    lost = bridge.known(bridge.job("p0"))
    assert lost is not None
    bridge.world.crash_slurm(1e6)
    bridge.slurm_calls.plan(faults.Answer(500), method="GET", target="/jobs/", times=1_000_000)
    bridge.core.context.mirror.look(lost.job_id, lost.owner)
    bridge.run(120, step=2)
    assert bridge.deletes() == 0


def test_t37_an_administrator_may_end_nearly_all_jobs(bridge: Bridge) -> None:
    """Jobs that Slurm shows as ended have not vanished: their pods end within a second, and no others."""
    bridge = Bridge(bridge.folder, world=bridge.world, mirror={"vanished_minimum": 3})
    crowd(bridge, 5)
    bridge.run(6)
    kept = bridge.job("p0")
    for job in bridge.jobs():
        if job.job_id != kept.job_id:
            bridge.slurm.control.end(job.job_id, "CANCELLED")
    bridge.run(1)
    assert bridge.deletes() == 4
    assert bridge.phase("p0") == "Running"


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
