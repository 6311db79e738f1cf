"""Which workloads nodes are kept for: a view of their records; and what is to be given back."""

from collections.abc import Callable, Iterator

from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.reservations.cases import Debt, ReservationCase, ReservationState
from slurm_bridge.scheduler.state import Roll, WorkloadStore


class ReservationStore:
    """The part of the records that is about reservations, and debts by the reservation's name; one thread at a time."""

    def __init__(self, states: WorkloadStore) -> None:
        self._states, self._roll = states, Roll()
        self.debts: dict[str, Debt] = {}

    def get(self, key: WorkloadKey) -> ReservationState | None:
        """The part of this workload, None where nothing is known of it."""
        state = self._states.find(key)
        return state.reservation if state is not None else None

    def of(self, key: WorkloadKey) -> ReservationState:
        """To write in."""
        with self._states.lock:
            state = self._states.open(key)
            if state.reservation is None:
                state.reservation = ReservationState(number=self._roll.enter(key))
            return state.reservation

    def _all(self) -> Iterator[tuple[WorkloadKey, ReservationState]]:
        with self._states.lock:
            keys = tuple(self._roll)
        return ((key, state) for key in keys if (state := self.get(key)) is not None)

    def kept(self) -> dict[WorkloadKey, ReservationCase]:
        """All that nodes are kept for."""
        return {key: state.kept for key, state in self._all() if state.kept is not None}

    def begin(self) -> None:
        """A leadership begins: all of it is read anew."""
        for key, state in self._all():
            self._remove(key, state)
        self.debts.clear()

    def drop_ended(self, exists: Callable[[WorkloadKey], bool], now: float) -> None:
        """Forget workloads that do not exist any more, and those of which nothing is left to know."""
        for key, state in self._all():
            if not exists(key):
                state.in_vain = frozenset()
            if state.kept is None and not state.in_vain and state.rest_until <= now:
                self._remove(key, state)

    def _remove(self, key: WorkloadKey, state: ReservationState) -> None:
        with self._states.lock:
            self._roll.leave(state.number)
            self._states.open(key).reservation = None
            self._states.close(key)
