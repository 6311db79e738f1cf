"""Work beside the passes: in order, once for each key, bounded, and never the end of the thread that does it."""

import threading

import pytest

from slurm_bridge.families.shared.worker_pool import KeyedWorkerPool
from slurm_bridge.hooks.services import HookServices, NotAnswered, Target, nowhere
from slurm_bridge.runtime.clock import SystemClock
from tests import threads, wait


class Said:
    """A logger that remembers its warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def trace(self, message: str, /) -> None:
        """Not of interest."""

    debug = info = trace

    def warning(self, message: str, /) -> None:
        self.warnings.append(message)


def desk(workers: int = 1, most: int = 3, *, threads: bool = True, log: Said | None = None) -> KeyedWorkerPool:
    """A desk on the real clock."""
    services = HookServices(clock=SystemClock(), log=log or Said(), threads=threads)
    return KeyedWorkerPool("test", services, workers=workers, most=most)


def blocked(on: KeyedWorkerPool, key: str = "first") -> threading.Event:
    """Somebody works until the event is set."""
    begun, released = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        released.wait(10)

    assert on.submit(key, work)
    assert begun.wait(10)
    return released


def test_without_threads_work_is_done_at_once() -> None:
    """Simulations and explanations see the result in the pass that asked."""
    done: list[int] = []
    on = desk(threads=False)
    assert on.submit("a", lambda: done.append(1))
    assert (done, len(on)) == ([1], 0)


def test_work_is_done_in_order() -> None:
    """By one worker; with more of them they begin in order."""
    on, done = desk(), list[str]()
    released = blocked(on)
    on.submit("b", lambda: done.append("b"))
    on.submit("c", lambda: done.append("c"))
    released.set()
    wait.until(lambda: not len(on), "an empty desk", 10)
    assert done == ["b", "c"]
    on.close()


def test_the_same_key_is_worked_on_once() -> None:
    """Whoever asks again while it waits or is under way is told that it is there."""
    on, done = desk(), list[str]()
    released = blocked(on, "same")
    assert on.submit("same", lambda: done.append("twice"))
    assert "same" in on
    assert len(on) == 1
    released.set()
    wait.until(lambda: not len(on), "an empty desk", 10)
    assert done == []
    on.close()


def test_a_full_desk_says_no() -> None:
    """Those at work count too."""
    on = desk(most=2)
    released = blocked(on)
    assert on.submit("b", lambda: None)
    assert not on.submit("c", lambda: None)
    released.set()
    on.close()


def test_several_work_at_the_same_time() -> None:
    """As many as it has workers."""
    on = desk(workers=2)
    both = [blocked(on, key) for key in "ab"]
    for one in both:
        one.set()
    on.close()


def test_idle_hands_are_lent_to_whoever_asks() -> None:
    """Then the work is done here, in this thread."""
    on, done = desk(), list[threading.Thread]()
    assert on.run_inline("a", lambda: done.append(threading.current_thread()))
    assert (done, len(on)) == ([threading.current_thread()], 0)


def test_nothing_is_lent_while_all_hands_are_full() -> None:
    """Nor by a desk that is closed, nor what is worked on already."""
    on = desk(workers=2)
    released = blocked(on, "same")
    assert not on.run_inline("same", lambda: None)
    assert on.run_inline("other", lambda: None)
    second = blocked(on, "second")
    assert not on.run_inline("third", lambda: None)
    for one in (released, second):
        one.set()
    on.close()
    assert not on.run_inline("late", lambda: None)


def test_no_more_work_at_the_same_time_than_there_are_hands() -> None:
    """What is lent counts: the desk's own thread begins when it is over."""
    on, done = desk(), list[str]()

    def lent() -> None:
        assert on.submit("next", lambda: done.append("next"))
        done.append("lent")

    assert on.run_inline("lent", lent)
    wait.until(lambda: not len(on), "an empty pool", 10)
    assert done == ["lent", "next"]
    on.close()


@pytest.mark.parametrize("threads", [True, False])
def test_work_that_fails_is_told_and_the_next_is_done(*, threads: bool) -> None:
    """A defect in one piece of work is no reason to leave all others undone."""
    log, done = Said(), list[str]()
    on = desk(log=log, threads=threads)

    def broken() -> None:
        raise ValueError("no such node")

    on.submit("a", broken)
    on.submit("b", lambda: done.append("b"))
    wait.until(lambda: not len(on), "an empty desk", 10)
    assert (done, log.warnings) == (["b"], ["test: a: ValueError: no such node"])
    on.close()


def test_a_closed_desk_drops_what_waits_and_takes_nothing() -> None:
    """Its threads end; what is under way is finished."""
    on, done = desk(), list[str]()
    released = blocked(on)
    on.submit("b", lambda: done.append("b"))
    released.set()
    closing = threading.Thread(target=on.close)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()
    assert not on.submit("c", lambda: done.append("c"))
    assert not any(one.name.startswith("test-") for one in threading.enumerate())
    assert "c" not in done


def test_a_process_without_connections_asks_nobody() -> None:
    """And says whom it would have asked, without his token."""
    target = Target(url="https://agent:1", token_file="secret")
    with pytest.raises(NotAnswered, match="https://agent:1/v1: this process asks no service"):
        nowhere(target, "/v1", {}, seconds=1)


def test_what_no_thread_can_do_is_not_taken_in() -> None:
    """The process may have as many as it is allowed: nobody must wait for an answer that never comes."""
    log, done = Said(), threading.Event()
    on = desk(log=log)
    with threads.refused_to(threading.current_thread()):
        assert not on.submit("a", done.set)
    assert ("a" in on, len(on), len(log.warnings)) == (False, 0, 1)
    assert on.submit("a", done.set)
    assert done.wait(10)
    on.close()
