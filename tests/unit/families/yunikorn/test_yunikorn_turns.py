"""The core works in the thread that told it something, or in its own; nothing that was told is left undone."""

import threading
from collections.abc import Callable, Iterator

import pytest

from slurm_bridge.families.shared.inline import IN_A_ROW, InlineBudget
from slurm_bridge.families.yunikorn.turns import CoreTurns
from slurm_bridge.runtime.clock import SystemClock, VirtualClock

SECONDS = 20.0


class Work:
    """Things to do, done by whoever settles; `during` happens in the middle of it."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.done: list[tuple[str, str]] = []
        self.failed: list[Exception] = []
        self.during: Callable[[], None] = lambda: None
        self.changed = threading.Condition()

    def settle(self) -> None:
        with self.changed:
            taken, self.told = self.told, []
        self.during()
        with self.changed:
            self.done += [(one, threading.current_thread().name) for one in taken]
            self.changed.notify_all()

    def fail(self, error: Exception) -> None:
        self.failed.append(error)

    def tell(self, turns: CoreTurns, what: str) -> None:
        """As a pass does."""
        with self.changed:
            self.told.append(what)
        turns.take()

    def await_done(self, *what: str) -> None:
        """Until all of this is."""
        with self.changed:
            assert self.changed.wait_for(lambda: {one for one, _ in self.done} >= {*what}, SECONDS)


@pytest.fixture
def work() -> Work:
    """Nothing to do yet."""
    return Work()


@pytest.fixture
def started() -> Iterator[Callable[[CoreTurns], None]]:
    """Gives turns their thread."""
    stop, every = threading.Event(), []

    def start(turns: CoreTurns) -> None:
        thread = threading.Thread(target=turns.serve, args=(stop,), name="its own", daemon=True)
        every.append((turns, thread))
        thread.start()

    yield start
    stop.set()
    for turns, thread in every:
        turns.wake()
        thread.join(SECONDS)
        assert not thread.is_alive()


def made(work: Work, most: float = SECONDS) -> CoreTurns:
    """Whose thread is not started."""
    inline = InlineBudget(VirtualClock(), most)
    return CoreTurns(work.settle, work.fail, SystemClock(), threads=True, inline=inline)


def another_at(work: Work, turns: CoreTurns, what: str) -> tuple[threading.Thread, threading.Event]:
    """Somebody else is in the middle of this, until the event is set; what comes after it is not held up."""
    here, go_on = threading.Event(), threading.Event()

    def held_up() -> None:
        work.during = go_on.set
        here.set()
        assert go_on.wait(SECONDS)

    work.during = held_up
    other = threading.Thread(target=work.tell, args=(turns, what), daemon=True)
    other.start()
    assert here.wait(SECONDS)
    return other, go_on


def test_who_tells_does_the_work(work: Work):
    """It is done when the call returns."""
    work.tell(made(work), "one")
    assert work.done == [("one", threading.current_thread().name)]


def test_what_is_told_from_within_the_work_does_not_begin_it_again(work: Work):
    """The work itself goes on until nothing is left; what came too late for that is its thread's."""
    turns, depth = made(work), []

    def again() -> None:
        depth.append(1)
        turns.take()

    work.during = again
    work.tell(turns, "one")
    assert (len(depth), len(work.done)) == (1, 1)


def test_what_is_told_while_another_works_is_done_by_the_thread(work: Work, started: Callable[[CoreTurns], None]):
    """However late it came for the other."""
    turns = made(work)
    other, go_on = another_at(work, turns, "one")
    work.tell(turns, "two")
    assert work.done == []
    go_on.set()
    other.join(SECONDS)
    started(turns)
    work.await_done("one", "two")
    assert ("two", "its own") in work.done


def test_what_takes_long_is_done_by_the_thread(work: Work, started: Callable[[CoreTurns], None]):
    """A pass has no time for it."""
    turns = made(work, most=-1.0)
    for _ in range(IN_A_ROW):
        work.tell(turns, "long")
    work.done.clear()
    work.tell(turns, "one")
    assert work.done == []
    started(turns)
    work.await_done("one")
    assert work.done == [("one", "its own")]


def test_who_has_patience_waits_for_another_who_is_at_it(work: Work):
    """And does what is left then."""
    turns = made(work)
    other, go_on = another_at(work, turns, "one")
    work.told.append("two")
    threading.Timer(0.01, go_on.set).start()
    turns.take(SECONDS)
    assert {one for one, _ in work.done} == {"one", "two"}
    other.join(SECONDS)


def test_work_that_fails_is_reported_and_fails_nobody_who_told_something(work: Work):
    """What comes next is tried again."""

    def fails() -> None:
        raise LookupError("broken")

    turns, work.during = made(work), fails
    work.tell(turns, "one")
    assert [str(error) for error in work.failed] == ["broken"]
    work.during = lambda: None
    work.tell(turns, "two")
    assert [one for one, _ in work.done] == ["two"]


def test_without_a_thread_a_failure_is_the_callers(work: Work):
    """Nobody would hear of it otherwise."""

    def fails() -> None:
        raise LookupError("broken")

    work.during = fails
    turns = CoreTurns(work.settle, work.fail, SystemClock(), threads=False)
    with pytest.raises(LookupError, match="broken"):
        work.tell(turns, "one")


def test_what_nobody_waits_for_is_left_to_whoever_asks_next(work: Work):
    """With what was asked, as one piece of work."""
    turns = made(work)
    work.told.append("left")
    turns.leave()
    assert work.done == []
    work.tell(turns, "asked")
    assert [one for one, _ in work.done] == ["left", "asked"]


def test_what_nobody_waits_for_is_done_where_nobody_asks(work: Work, started: Callable[[CoreTurns], None]):
    """By the thread, soon."""
    turns = made(work)
    started(turns)
    work.told.append("left")
    turns.leave()
    work.await_done("left")
    assert work.done == [("left", "its own")]


def test_without_a_thread_it_is_done_at_once(work: Work):
    """There is nobody to leave it to."""
    turns = CoreTurns(work.settle, work.fail, SystemClock(), threads=False)
    work.told.append("left")
    turns.leave()
    assert [one for one, _ in work.done] == ["left"]


def test_only_its_own_thread_may_take_its_time(work: Work, started: Callable[[CoreTurns], None]) -> None:
    """A pass waits for what is done inline; where there are no threads, no other one would do it."""
    turns, said = made(work), dict[str, bool]()
    work.during = lambda: said.update({threading.current_thread().name: turns.may_take_time})
    work.tell(turns, "inline")
    assert said == {threading.current_thread().name: False}
    started(turns)
    work.told.append("later")
    turns.leave()
    work.await_done("later")
    assert said["its own"]
    assert CoreTurns(work.settle, work.fail, SystemClock(), threads=False).may_take_time
