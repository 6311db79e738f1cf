"""Faults on order."""

import threading

import pytest

from slurm_bridge.sim import faults
from tests import wait


@pytest.fixture
def planned() -> faults.Faults:
    """Nothing planned yet."""
    return faults.Faults()


def test_nothing_strikes_without_a_plan(planned: faults.Faults) -> None:
    """A world without plans is a healthy one."""
    assert planned.strike("GET", "/anything") is None


def test_the_nth_matching_call_is_struck(planned: faults.Faults) -> None:
    """Counting starts with the plan, and only matching calls count."""
    planned.plan(faults.Drop(), method="POST", target="/job/submit$", nth=2)
    seen = [planned.strike(m, t) for m, t in [("POST", "/job/submit"), ("GET", "/job/submit"), ("POST", "/job/submit")]]
    assert seen == [None, None, faults.Drop()]


def test_a_plan_strikes_as_often_as_it_says(planned: faults.Faults) -> None:
    """After its last strike a plan is forgotten."""
    planned.plan(faults.Answer(503), times=2)
    assert [planned.strike("GET", "/") for _ in range(3)] == [faults.Answer(503), faults.Answer(503), None]
    assert planned.pending == 0


def test_query_parameters_can_be_matched(planned: faults.Faults) -> None:
    """A watch differs from a list in its query only."""
    planned.plan(faults.Cut(3), target=r"[?&]watch=")
    assert planned.strike("GET", "/api/v1/pods?limit=500") is None
    assert planned.strike("GET", "/api/v1/pods?watch=true") == faults.Cut(3)


def test_dice_are_repeatable() -> None:
    """The same seed strikes the same calls."""

    def struck(seed: int) -> list[bool]:
        planned = faults.Faults()
        planned.at_random(faults.Reset(), probability=0.3, seed=seed)
        return [planned.strike("GET", "/") is not None for _ in range(200)]

    assert struck(1) == struck(1) != struck(2)
    assert 30 <= sum(struck(1)) <= 90


def test_clear_forgets_plans_and_keeps_the_journal(planned: faults.Faults) -> None:
    """What was seen stays seen."""
    planned.plan(faults.Drop())
    planned.note(faults.Call(method="GET", target="/", status=200))
    planned.clear()
    assert planned.strike("GET", "/") is None
    assert planned.count() == 1


def test_the_journal_counts_by_method_and_target(planned: faults.Faults) -> None:
    """A test asks how often something was called."""
    for method, target in [("GET", "/a"), ("POST", "/a"), ("GET", "/b?x=1")]:
        planned.note(faults.Call(method=method, target=target, status=200))
    assert planned.count(method="GET") == 2
    assert planned.count(target="^/a") == 2
    assert planned.count(method="GET", target="x=1") == 1
    planned.forget()
    assert planned.journal == ()


def test_release_lets_go_what_hangs(planned: faults.Faults) -> None:
    """Whoever hangs since before it goes on, nobody else."""
    before = planned.releases
    planned.release()
    planned.hang(before)
    thread = threading.Thread(target=planned.hang, args=(planned.releases,), daemon=True)
    thread.start()
    thread.join(0.01)
    assert thread.is_alive()
    planned.release()
    thread.join(wait.PATIENCE)
    assert not thread.is_alive()
