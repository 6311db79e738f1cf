"""Hooks are called with a watch in hand: what they answer is checked, and one that hangs blocks nobody but itself."""

import dataclasses
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurm_bridge.hooks import base, calls
from slurm_bridge.hooks.base import HookPhase
from slurm_bridge.hooks.calls import HookCaller, HookFailed, OnError, Outcome
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.runtime.clock import VirtualClock
from tests import wait
from tests.unit.hooks.builders import Around, Counted, Says


@pytest.fixture
def counted() -> Counted:
    """What is told of calls."""
    return Counted()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Lets hanging hooks end, at the latest with the test."""
    event = threading.Event()
    yield event
    event.set()


Foreign = Callable[..., calls.Hook]


@pytest.fixture
def left() -> calls.Left:
    """The threads that were left behind."""
    return calls.Left()


@pytest.fixture
def foreign(left: calls.Left) -> Iterator[Foreign]:
    """Makes hooks with workers, which end with the test."""
    workers: list[calls.Worker] = []

    def make(budget: float = 30.0, **methods: Any) -> calls.Hook:
        workers.append(calls.Worker("h", left))
        return calls.Hook(name="h", hook=Says(**methods), budget_seconds=budget, worker=workers[-1])

    yield make
    for worker in workers:
        worker.close()


def ask(caller: HookCaller, hook: calls.Hook, phase: HookPhase = HookPhase.ADMIT, *arguments: object) -> Any:
    """The answer's value."""
    return caller.call(hook, phase, *arguments).value


def test_foreign_hooks_run_in_a_thread_of_their_own(counted: Counted, foreign: Foreign) -> None:
    """One thread, whatever is asked how often."""
    threads = []

    def admit() -> base.Admit:
        threads.append(threading.current_thread().name)
        return base.GO

    hook, caller = foreign(admit=admit), HookCaller(VirtualClock(), counted)
    assert [ask(caller, hook), ask(caller, hook)] == [base.GO, base.GO]
    assert threads == ["hook-h", "hook-h"]
    assert counted.calls == [("h", "admit", "ok")] * 2


def test_a_hanging_hook_is_left_behind(
    counted: Counted, foreign: Foreign, left: calls.Left, release: threading.Event
) -> None:
    """Its caller goes on; until it comes back it is not asked, and its thread is counted; then it is asked again."""
    threads: list[threading.Thread] = []
    began = threading.Event()

    def admit() -> base.Admit:
        threads.append(threading.current_thread())
        began.set()
        release.wait()
        return base.GO

    hook, caller = foreign(0.01, admit=admit), HookCaller(VirtualClock(), counted)
    with pytest.raises(HookFailed, match="did not answer within 10 ms") as caught:
        ask(caller, hook)
    assert caught.value.outcome is Outcome.TIMEOUT
    with pytest.raises(HookFailed, match="has not come back"):
        ask(caller, hook)
    assert [outcome for _, _, outcome in counted.calls] == ["timeout", "quarantined"]
    assert left.count == 1
    assert began.wait(10)
    release.set()
    threads[0].join(10)
    assert left.count == 0
    assert ask(caller, dataclasses.replace(hook, budget_seconds=10.0)) is base.GO


def test_a_worker_that_is_closed_ends(counted: Counted, foreign: Foreign) -> None:
    """A late call starts it again."""
    where: list[threading.Thread] = []

    def admit() -> base.Admit:
        where.append(threading.current_thread())
        return base.GO

    hook, caller = foreign(admit=admit), HookCaller(VirtualClock(), counted)
    ask(caller, hook)
    assert hook.worker is not None
    hook.worker.close()
    where[0].join(10)
    assert not where[0].is_alive()
    assert ask(caller, hook) == base.GO
    assert where[1] is not where[0]


def test_callers_take_turns(counted: Counted, foreign: Foreign) -> None:
    """A hook never runs twice at once, and waiting for one's turn costs no budget."""
    inside, most, answers, here, never = [], [], [], threading.Barrier(8), threading.Event()

    def admit() -> base.Admit:
        inside.append(1)
        most.append(len(inside))
        # Whoever could come in beside this one would do so now. All together take longer than the budget of each.
        never.wait(0.15)
        inside.pop()
        return base.GO

    hook, caller = foreign(1.0, admit=admit), HookCaller(VirtualClock(), counted)

    def come() -> None:
        here.wait(wait.PATIENCE)
        answers.append(ask(caller, hook))

    callers = [threading.Thread(target=come) for _ in range(8)]
    for one in callers:
        one.start()
    for one in callers:
        one.join(wait.PATIENCE)
    assert (most, answers) == ([1] * 8, [base.GO] * 8)


@pytest.mark.parametrize("worker", [True, False])
def test_what_a_hook_raises_is_its_failure(worker: bool, counted: Counted, foreign: Foreign) -> None:
    """With the name of the exception, wherever the hook runs."""

    def admit() -> base.Admit:
        raise ValueError("no such queue")

    hook = foreign(admit=admit) if worker else calls.Hook(name="h", hook=Says(admit=admit))
    with pytest.raises(HookFailed, match="ValueError: no such queue") as caught:
        ask(HookCaller(VirtualClock(), counted), hook)
    assert caught.value.hook is hook
    assert counted.calls == [("h", "admit", "error")]


def test_a_hook_that_tries_to_end_the_program(counted: Counted, foreign: Foreign) -> None:
    """It ends nothing."""

    def admit() -> base.Admit:
        raise SystemExit(3)

    with pytest.raises(HookFailed, match="tried to end its thread with SystemExit"):
        ask(HookCaller(VirtualClock(), counted), foreign(admit=admit))


@pytest.mark.parametrize(
    ("phase", "answer", "allowed"),
    [
        (HookPhase.ADMIT, None, "Admit or Wait or Reject"),
        (HookPhase.FILTER, {"n1": "full"}, "Denied"),
        (HookPhase.VERIFY, True, "Admit or Deny or Wait or Reject"),
        (HookPhase.ORDER, 5, "Rank"),
    ],
)
def test_nonsense_is_no_answer(phase: HookPhase, answer: object, allowed: str, counted: Counted) -> None:
    """The message says what the phase allows."""
    hook = calls.Hook(name="h", hook=Says(**{phase.value: lambda: answer}))
    with pytest.raises(HookFailed, match=f"answered with {type(answer).__name__}, not with {allowed}"):
        ask(HookCaller(VirtualClock(), counted), hook, phase)


def test_a_slow_built_in_hook_is_told(counted: Counted) -> None:
    """It answers all the same: only foreign hooks are left behind."""
    clock = VirtualClock()

    def admit() -> base.Admit:
        clock.advance(1)
        return base.GO

    hook = calls.Hook(name="h", hook=Says(admit=admit), budget_seconds=0.5, on_error=OnError.HOLD)
    answer = HookCaller(clock, counted).call(hook, HookPhase.ADMIT)
    assert (answer.value, answer.seconds) == (base.GO, 1.0)
    assert counted.calls == [("h", "admit", "slow")]


def test_every_phase_has_its_shape() -> None:
    """Registration and calls look nowhere else."""
    assert tuple(calls.SHAPES) == tuple(HookPhase)


class Closing:
    """Something that has to be closed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.closed: list[str] = []
        self._error = error

    def admit(self, *_: object) -> base.Admit:
        """Nothing against it."""
        return base.GO

    def close(self) -> None:
        self.closed.append(threading.current_thread().name)
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize("error", [None, OSError("the pipe is broken")])
def test_hooks_are_closed_in_the_thread_in_which_they_are_called(left: calls.Left, error: Exception | None) -> None:
    """Built-in ones where the chain is closed, those with foreign code in their worker; a failure stops no other."""
    around = Around()
    own, foreign = Closing(error), Closing(error)
    made = calls.Hook(name="foreign", hook=foreign, worker=calls.Worker("foreign", left))
    Chain([calls.Hook(name="own", hook=own), made], around.make()).close()
    assert own.closed == [threading.current_thread().name]
    assert foreign.closed == ["hook-foreign"]
    assert len(around.log.said) == (2 if error else 0)
