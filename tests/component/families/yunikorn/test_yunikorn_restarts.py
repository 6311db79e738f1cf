"""What ended while nobody looked still counts in its queue: Slurm keeps its nodes until its job is withdrawn."""

import pathlib
from collections.abc import Callable

import pytest

from slurm_bridge.model import marks
from slurm_bridge.scheduler import leftovers
from slurm_bridge.sim import faults
from tests.component.families.yunikorn.yunikorn_scenes import Queues, queue
from tests.component.scheduler.whole_core import Bridge
from tests.simulation.observer import CLUSTER_ID
from tests.simulation.world import NAMESPACE

#: How long a test looks whether something happens after all.
LONG = 10.0
TWO = queue("a", resources={"max": {"vcore": "2"}})
BUSY = faults.Answer(503)


@pytest.fixture
def bridge(tmp_path: pathlib.Path) -> Bridge:
    """Four nodes of four cpus."""
    return Bridge(tmp_path)


def restarted(bridge: Bridge, *queues: object) -> Queues:
    """The next process, which knows nothing of the one before; Slurm takes no job back for as long as is said."""
    bridge.start()
    bridge.slurm_calls.plan(BUSY, method="DELETE", target="/job/", times=1_000)
    made = Queues(bridge, *queues)
    while not all(feed.store.synced for feed in bridge.feeds):
        bridge.hear()
    bridge.recover()
    return made


def relent(bridge: Bridge) -> None:
    """Slurm takes jobs back again."""
    bridge.slurm_calls.clear()


def _has_succeeded(bridge: Bridge) -> None:
    bridge.status("first", phase="Succeeded")


def _has_failed(bridge: Bridge) -> None:
    bridge.status("first", phase="Failed")


def _is_gone(bridge: Bridge) -> None:
    bridge.delete("first", grace=0)


@pytest.mark.parametrize("ends", [_has_succeeded, _has_failed, _is_gone])
def test_a_job_whose_pod_ended_meanwhile_counts_until_it_is_withdrawn(
    bridge: Bridge, ends: Callable[[Bridge], None]
) -> None:
    """However long that takes, nobody is let in for what it keeps."""
    queues = Queues(bridge, TWO)
    queues.pod("first", cpu="2")
    bridge.until(lambda: bridge.node_of("first"))
    ends(bridge)
    queues.pod("second", cpu="2")
    queues = restarted(bridge, TWO)
    bridge.run(LONG)
    assert queues.submitted() == ["first"]
    relent(bridge)
    bridge.until(lambda: bridge.node_of("second"))
    assert queues.submitted() == ["second"]


def left_over(bridge: Bridge) -> Queues:
    """The job of a pod that has gone, one that waits for its queue, and Slurm takes no job back."""
    queues = Queues(bridge, TWO)
    queues.pod("first", cpu="2")
    bridge.until(lambda: bridge.node_of("first"))
    _is_gone(bridge)
    queues.pod("second", cpu="2")
    return restarted(bridge, TWO)


def test_whoever_waits_for_what_was_left_over_reads_it(bridge: Bridge) -> None:
    """Its queue has nothing against it."""
    queues = left_over(bridge)
    bridge.run(LONG)
    assert queues.said("second") == (
        "SlurmJobsLeftOver",
        "1 job of a deleted pod has to leave Slurm first; the job is submitted when that is done",
    )


def test_what_is_left_over_keeps_nobody_out_for_ever(bridge: Bridge) -> None:
    """Some of it may never go."""
    queues = left_over(bridge)
    bridge.run(leftovers.PATIENCE - LONG)
    assert queues.submitted() == ["first"]
    bridge.run(2 * LONG)
    assert queues.submitted() == ["first", "second"]


def test_where_nobody_counts_nobody_waits_for_what_was_left_over(bridge: Bridge) -> None:
    """Slurm itself knows what it has."""
    bridge.bound("first")
    _is_gone(bridge)
    bridge.pod("second")
    bridge.start()
    bridge.slurm_calls.plan(BUSY, method="DELETE", target="/job/", times=1_000)
    bridge.until(lambda: bridge.node_of("second"), LONG)


def test_what_a_later_version_made_keeps_nobody_out(bridge: Bridge) -> None:
    """It is left alone, so that nobody may wait for its end."""
    owner = marks.Owner(cluster=CLUSTER_ID, kind="Galaxy", namespace=NAMESPACE, name="far", uid="far-away")
    bridge.world.submit("far", admin_comment=marks.write(owner))
    queues = restarted(bridge, TWO)
    queues.pod("near", cpu="2")
    bridge.until(lambda: bridge.node_of("near"), LONG)
    assert len(bridge.jobs("far-away")) == 1


def _is_changed_into_nonsense(bridge: Bridge) -> None:
    bridge.annotate("first", timelimit="x")


@pytest.mark.parametrize("changes", [_is_gone, _is_changed_into_nonsense])
def test_a_job_that_may_exist_counts_until_that_is_known(bridge: Bridge, changes: Callable[[Bridge], None]) -> None:
    """Its submit was not answered, and before anybody looks for it its pod goes, or may not have a job any more."""
    bridge = Bridge(bridge.folder, world=bridge.world, slurm={"job_ids": None})
    queues = Queues(bridge, TWO)
    bridge.run(1)
    bridge.slurm_calls.plan(faults.Drop(), method="POST", target="/job/submit")
    queues.pod("first", cpu="2")
    bridge.settle()
    bridge.slurm_calls.clear()
    bridge.slurm_calls.plan(BUSY, target=r"/jobs/state/$", times=1_000)
    changes(bridge)
    queues.pod("second", cpu="2")
    bridge.run(LONG)
    assert queues.submitted() == ["first"]
    relent(bridge)
    bridge.until(lambda: queues.running("second"))
    assert queues.submitted() == ["second"]
