"""Troubles strike when they are due, and are counted."""

from collections.abc import Iterator

import pytest

from slurm_bridge.demo import pocket, troubles


@pytest.fixture
def world() -> Iterator[pocket.PocketWorld]:
    """One in which nothing has gone wrong yet."""
    with pocket.world(nodes=4) as made:
        yield made


def test_an_outage_begins_and_ends_at_its_moments(world: pocket.PocketWorld) -> None:
    """And the schedule is over only after its end."""
    schedule, control = troubles.Schedule(world, ["slurm-down"]), world.slurmctld.control
    seen = []
    for seconds in (1.9, 2.0, 5.9, 6.0):
        schedule.step(seconds)
        seen.append((control.outage is not None, schedule.over, schedule.struck))
    assert seen == [(False, False, 0), (True, False, 1), (True, False, 1), (False, True, 2)]


def test_a_moment_that_was_missed_is_made_up_for(world: pocket.PocketWorld) -> None:
    """Looks may be slow; what was due happens in its order."""
    schedule = troubles.Schedule(world, ["slurm-down"])
    schedule.step(60.0)
    assert (world.slurmctld.control.outage, schedule.over) == (None, True)


@pytest.mark.parametrize("name", ["lost-answers", "slow", "watch-cuts", "apiserver-errors"])
def test_what_breaks_calls_is_armed_at_once(name: str, world: pocket.PocketWorld) -> None:
    """It waits for its calls."""
    schedule = troubles.Schedule(world, [name])
    assert world.kube_calls.pending + world.slurm_calls.pending > 0
    assert (schedule.over, schedule.struck) == (True, 0)


def test_what_struck_is_counted_from_the_beginning_of_the_show(world: pocket.PocketWorld) -> None:
    """The second submit is the first one whose answer is lost for certain."""
    schedule = troubles.Schedule(world, ["lost-answers", "lost-answers"])
    for _ in range(2):
        world.slurm_calls.strike("POST", "/slurm/v0.0.45/job/submit")
    assert schedule.struck >= 1
    assert troubles.Schedule(world, []).struck == 0


def test_watches_are_not_slowed_down(world: pocket.PocketWorld) -> None:
    """A delayed stream would be one long call."""
    troubles.Schedule(world, ["slow", "apiserver-errors"])
    assert {world.kube_calls.strike("GET", "/api/v1/pods?watch=1&x=y") for _ in range(50)} == {None}
