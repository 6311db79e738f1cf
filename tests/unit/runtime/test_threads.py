"""The life of the process: a dead thread ends it loudly, a stop ends it in order."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from slurm_bridge.runtime import threads
from tests import wait


class House:
    """A supervisor and what happened under it."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, str]] = []
        self.heard: list[str] = []
        self.supervisor = threads.Supervisor(
            lambda name, error: self.reports.append((name, type(error).__name__ if error else "early"))
        )

    def good(self, name: str, *, carries: bool = False) -> None:
        """A thread that lives until it is told."""

        def live(told: threading.Event) -> None:
            assert told.wait(wait.PATIENCE)
            self.heard.append(name)

        self.supervisor.add(name, live, carries=carries)

    def live(self, seconds: float = wait.PATIENCE) -> int:
        """The whole life; the drain is heard too."""
        return self.supervisor.live(lambda: self.heard.append("drain"), seconds=seconds)


@pytest.fixture
def house() -> House:
    """Nobody lives there yet."""
    return House()


def test_a_stop_ends_the_workers_then_drains_then_ends_the_carriers(house: House) -> None:
    """The lease and the doors outlive the work that needs them; the status is 0."""
    house.good("web", carries=True)
    house.good("loop")
    house.supervisor.stop.set()
    assert house.live() == 0
    assert house.heard == ["loop", "drain", "web"]
    assert house.reports == []


def test_a_thread_that_raises_ends_the_process(house: House) -> None:
    """With the others told, the drain done, and a status that makes somebody look."""

    def broken(_: threading.Event) -> None:
        raise ValueError("broken")

    house.good("loop")
    house.supervisor.add("broken", broken)
    assert house.live() == 1
    assert house.reports == [("broken", "ValueError")]
    assert house.heard == ["loop", "drain"]


def test_a_thread_that_returns_early_ends_the_process(house: House) -> None:
    """A loop that is over does no work, and nobody would notice."""
    house.supervisor.add("brief", lambda _: None)
    house.good("web", carries=True)
    assert house.live() == 1
    assert house.reports == [("brief", "early")]


def test_a_carrier_that_dies_ends_the_process_too(house: House) -> None:
    """An election that is over would leave a leader without a lease."""
    house.supervisor.add("election", lambda _: None, carries=True)
    house.good("loop")
    assert house.live() == 1


def test_a_thread_that_does_not_hear_is_left_behind_and_told_of(house: House) -> None:
    """The process ends all the same, before it is killed."""
    release = threading.Event()
    house.supervisor.add("deaf", lambda _: release.wait(wait.PATIENCE) and None)
    house.supervisor.stop.set()
    assert house.live(seconds=0.05) == 1
    assert house.reports == [("deaf", "TimeoutError")]
    release.set()


def test_a_drain_that_fails_still_tells_the_carriers(house: House) -> None:
    """The lease is given back whatever went wrong before."""

    def drain() -> None:
        raise RuntimeError("no drain")

    house.good("election", carries=True)
    house.supervisor.stop.set()
    with pytest.raises(RuntimeError, match="no drain"):
        house.supervisor.live(drain, seconds=wait.PATIENCE)
    assert house.heard == ["election"]


def test_a_report_that_fails_does_not_keep_the_process_alive(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stop is set before anybody can stumble over the words."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def report(_name: str, _error: Exception | None) -> None:
        raise OSError("log pipe closed")

    house.supervisor = threads.Supervisor(report)
    house.supervisor.add("brief", lambda _: None)
    assert house.live() == 1


def test_the_dead_are_named(house: House) -> None:
    """What the probe for life asks."""
    told = threading.Event()

    def hold(stop: threading.Event) -> None:
        told.set()
        assert stop.wait(wait.PATIENCE)

    house.supervisor.add("loop", hold)
    assert house.supervisor.dead() == ("loop",)
    house.supervisor.start()
    assert told.wait(wait.PATIENCE)
    assert house.supervisor.dead() == ()
    house.supervisor.stop.set()
    assert house.supervisor.dead() == ()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_the_stop_and_the_second_is_for_the_impatient(number: signal.Signals) -> None:
    """Kubernetes sends SIGTERM, people press Ctrl-C, and pressing it twice must help."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    stop = threading.Event()
    try:
        threads.install_signals(stop)
        os.kill(os.getpid(), number)
        assert stop.wait(wait.PATIENCE)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


#: Lives under a supervisor; a thread, and not the main one, is handed the signal.
_HANDED_TO_A_THREAD = f"""
import signal, sys, threading
from slurm_bridge.runtime import threads

def main_waits():
    frame = sys._current_frames()[threading.main_thread().ident]
    return frame.f_code is threading.Condition.wait.__code__

def asleep(stop):
    while not main_waits():
        stop.wait(0.01)
    stop.wait(0.01)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    stop.wait()

supervisor = threads.Supervisor(lambda name, error: None)
threads.install_signals(supervisor.stop)
supervisor.add("asleep", asleep)
sys.exit(supervisor.live(lambda: print("drained"), seconds={wait.PATIENCE}))
"""


def test_a_signal_that_reaches_another_thread_ends_the_process_too() -> None:
    """The system chooses the thread; only the main one runs handlers, and it may be asleep."""
    command = [sys.executable, "-c", _HANDED_TO_A_THREAD]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "drained\n", "")
