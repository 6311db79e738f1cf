"""Jobs that users cancel, and leaders that change: nothing is brought back or submitted twice."""

import pytest

from slurm_bridge.model import kinds, names
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.world import World


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
    """An empty, missing or refused token: few calls beside polls, no deleted pod, and on it goes with a good one."""
    job = bridge.bound("a")
    good = bridge.slurm.secret
    token = bridge.folder / "token"
    token.unlink()
    if content is not None:
        token.write_text(content)
    bridge.slurm_calls.forget()
    bridge.pod("b")
    bridge.run(60)
    assert len([call for call in bridge.slurm_calls.journal if "/jobs/state/" not in call.target]) < 60
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
