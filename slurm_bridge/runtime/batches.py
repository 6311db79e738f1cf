"""Orders of many threads, given together: those that come while one is under way make up the next."""

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

K = TypeVar("K")
R = TypeVar("R")


@dataclasses.dataclass(frozen=True, slots=True)
class _Ticket(Generic[K, R]):
    """A thread in line."""

    key: K
    since: float
    answer: "Future[R]"


class Batches(Generic[K, R]):
    """A thread that is alone waits for no other: its order is given at once, by itself.

    `late` answers a thread that has been in line for more than `patience` seconds: its order is not given any more.
    """

    def __init__(
        self,
        give: Callable[[Sequence[K]], Mapping[K, R]],
        late: Callable[[K], R],
        now: Callable[[], float],
        *,
        patience: float,
    ) -> None:
        self._give, self._late, self._now, self._patience = give, late, now, patience
        self._changed = threading.Condition()
        self._line: list[_Ticket[K, R]] = []
        self._giving = False

    def __len__(self) -> int:
        """How many wait in line."""
        with self._changed:
            return len(self._line)

    def one(self, key: K) -> R:
        """The answer for this key; what an order raises is raised for each key of it."""
        ticket: _Ticket[K, R] = _Ticket(key, self._now(), Future())
        with self._changed:
            self._line.append(ticket)
            self._changed.wait_for(lambda: ticket.answer.done() or not self._giving)
            if ticket.answer.done():
                return ticket.answer.result()
            self._giving = True
            batch, self._line = self._line, []
        try:
            self._give_all(batch)
        finally:
            with self._changed:
                self._giving = False
                self._changed.notify_all()
        return ticket.answer.result()

    def _give_all(self, batch: Sequence[_Ticket[K, R]]) -> None:
        begin = self._now()
        late = [one for one in batch if begin - one.since > self._patience]
        timely = [one for one in batch if begin - one.since <= self._patience]
        for one in late:
            one.answer.set_result(self._late(one.key))
        try:
            answers = self._give([one.key for one in timely]) if timely else {}
            for one in timely:
                one.answer.set_result(answers[one.key])
        except BaseException as problem:  # noqa: BLE001 - whatever it is, each of them has to hear of it
            for one in timely:
                if not one.answer.done():
                    one.answer.set_exception(problem)
