"""What the mirror asks when Slurm has lost a job: all others at once, before it tells of any start."""

import pathlib

import pytest

from slurm_bridge.model.job import Phase
from slurm_bridge.model.names import JobId
from slurm_bridge.model.placeholder import Certainty
from slurm_bridge.sim import faults
from tests.unit.mirror.watching import Watch, maybe, owner


@pytest.fixture
def watch(tmp_path: pathlib.Path) -> Watch:
    """A mirror as it is shipped."""
    return Watch(tmp_path)


def settled(watch: Watch, *uids: str) -> list[JobId]:
    """Jobs that have run for a while: their turn comes with the slowest period only."""
    ids = [watch.submit(uid) for uid in uids]
    watch.start()
    for _ in range(30):
        watch.step(0.5)
    return ids


def test_jobs_that_run_are_asked_for_as_soon_as_one_that_waits_is_lost(watch: Watch) -> None:
    """The nodes of a forgotten job may be another one's already: that must not be told first."""
    running = settled(watch, "a", "b")
    watch.pocket.control.pause()
    lost, starts = watch.submit("c"), watch.submit("d")
    watch.step(0.5)
    for job_id in (lost, running[0]):
        watch.lose(job_id)
    watch.pocket.control.unpause()
    watch.start()
    watch.woken.clear()
    watch.mirror.poll([watch.known(lost), watch.known(starts)])
    assert [watch.known(job_id).certainty for job_id in (lost, running[0])] == [Certainty.GONE, Certainty.GONE]
    assert watch.known(running[1]).phase is watch.known(starts).phase is Phase.RUNNING
    assert watch.woken.index(owner("a").key) < watch.woken.index(owner("d").key)


def test_while_nothing_is_lost_jobs_that_run_keep_their_turn(watch: Watch) -> None:
    """One that waits costs a question about that job alone."""
    running = settled(watch, "a", "b")
    watch.pocket.control.pause()
    waits = watch.submit("c")
    both, alone = watch.asked(f"job_id={running[0]}"), watch.asked(f"job_id={waits}$")
    watch.mirror.poll([watch.known(waits)])
    assert (watch.asked(f"job_id={running[0]}"), watch.asked(f"job_id={waits}$")) == (both, alone + 1)


def test_an_order_without_an_answer_is_no_lost_job(watch: Watch) -> None:
    """It may stay away for a minute: jobs that run are not asked for each time."""
    running = settled(watch, "a", "b")
    before = watch.asked(f"job_id={running[0]}")
    watch.table.put(maybe(77, "m", since=watch.clock.now()))
    for _ in range(3):
        watch.mirror.poll([watch.known(JobId(77))])
    assert watch.asked("job_id=77") == 3
    assert watch.asked(f"job_id={running[0]}") == before


def test_t35_a_job_that_ended_and_was_purged_in_an_outage_is_not_lost_beside_one_that_waits(watch: Watch) -> None:
    """The first answer after an outage is about all jobs: one that only waits says nothing of those that ran."""
    (ran,) = settled(watch, "a")
    watch.pocket.control.pause()
    waits = watch.submit("c")
    watch.step(0.5)
    watch.calls.plan(faults.Reset(), times=1000)
    for _ in range(40):
        watch.step(5.0)
    watch.calls.clear()
    watch.lose(ran)
    for _ in range(4):
        watch.step(5.0)
    assert watch.known(ran).certainty is Certainty.GONE
    assert not watch.known(ran).lost
    assert watch.known(waits).certainty is Certainty.SEEN
