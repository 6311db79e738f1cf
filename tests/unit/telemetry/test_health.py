"""Probes that tell the truth, with the reasons."""

import pytest

from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.telemetry.health import Health


@pytest.fixture
def clock() -> VirtualClock:
    """Moves when told."""
    return VirtualClock()


@pytest.fixture
def health(clock: VirtualClock) -> Health:
    """Of a process of which nothing is expected yet."""
    return Health(clock.now)


def test_nothing_expected_is_fine(health: Health) -> None:
    """And says so."""
    assert health.livez().good
    assert str(health.readyz()) == "ok\n"


def test_a_loop_that_stands_still_is_not_alive(health: Health, clock: VirtualClock) -> None:
    """A restart would help; the next beat shows that it was not needed."""
    health.expect("scheduler", within=30)
    clock.advance(30)
    assert health.livez().good
    clock.advance(1)
    verdict = health.livez()
    assert not verdict.good
    assert verdict.lines == ("bad scheduler: silent for 31.0 s, at most 30.0 s are normal",)
    health.beat("scheduler")
    assert health.livez().good


def test_a_beat_of_an_unexpected_loop_is_nobodys_concern(health: Health, clock: VirtualClock) -> None:
    """A loop that was not announced has no time limit."""
    health.beat("stranger")
    clock.advance(1000)
    assert health.livez().good


def test_a_dead_thread_is_not_alive(health: Health) -> None:
    """The supervisor, which knows the threads, is asked."""
    dead: list[str] = []
    health.alive_while("threads", lambda: ", ".join(dead))
    assert health.livez().good
    dead.append("mirror")
    assert health.livez().lines == ("bad threads: mirror",)


def test_s2_a_leader_is_ready_while_slurm_answers_real_questions(health: Health, clock: VirtualClock) -> None:
    """Before the first good read, and long after the last one, it is not, however well a ping does."""
    health.fresh("slurm", within=60, needed=lambda: True)
    assert health.readyz().lines == ("bad slurm: no good answer yet",)
    health.read("slurm")
    assert health.readyz().good
    clock.advance(61)
    assert health.readyz().lines == ("bad slurm: last good answer 61.0 s ago, at most 60.0 s are normal",)


def test_a_slurm_that_is_down_does_not_restart_the_daemon(health: Health) -> None:
    """Readiness is degraded, liveness is not."""
    health.fresh("slurm", within=60, needed=lambda: True)
    assert not health.readyz().good
    assert health.livez().good


def test_a_follower_needs_only_its_caches(health: Health) -> None:
    """It asks Slurm nothing, so there is no answer to be old."""
    synced = [""]
    health.fresh("slurm", within=60, needed=lambda: False)
    health.ready_while("pods", lambda: synced[0])
    assert health.readyz().good
    synced[0] = "no list yet"
    assert health.readyz().lines == ("ok  slurm", "bad pods: no list yet")


def test_ages_are_known(health: Health, clock: VirtualClock) -> None:
    """For the metric."""
    assert health.age("slurm") is None
    health.read("slurm")
    clock.advance(3)
    assert health.age("slurm") == 3
