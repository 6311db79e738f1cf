"""Which workloads have pods evicted for them, or are evicted: a view of their records."""

from collections.abc import Callable, Iterator

from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.scheduler.eviction.cases import EvictionState, EvictionsUnderWay, PreemptionCase, QueueEvictionCase
from slurm_bridge.scheduler.state import Roll, WorkloadStore


class EvictionStore:
    """The part of the records that is about evictions; written by one thread at a time."""

    def __init__(self, states: WorkloadStore) -> None:
        self._states, self._roll = states, Roll()

    def get(self, key: WorkloadKey) -> EvictionState | None:
        """The part of this workload, None where nothing is known of it."""
        state = self._states.find(key)
        return state.eviction if state is not None else None

    def of(self, key: WorkloadKey) -> EvictionState:
        """To write in."""
        with self._states.lock:
            state = self._states.open(key)
            if state.eviction is None:
                state.eviction = EvictionState(number=self._roll.enter(key))
            return state.eviction

    def _all(self) -> Iterator[tuple[WorkloadKey, EvictionState]]:
        with self._states.lock:
            keys = tuple(self._roll)
        return ((key, state) for key in keys if (state := self.get(key)) is not None)

    def preemptions(self) -> dict[WorkloadKey, PreemptionCase]:
        """All that are under way."""
        return {key: case for key, state in self._all() if (case := state.under_way.preemption) is not None}

    def evictions(self) -> dict[WorkloadKey, QueueEvictionCase]:
        """All that are under way."""
        return {key: case for key, state in self._all() if (case := state.under_way.eviction) is not None}

    def was_refused(self, key: WorkloadKey) -> bool:
        """One of the evictions of this workload was refused at some time."""
        state = self.get(key)
        return state is not None and state.was_refused

    def noted(self) -> tuple[WorkloadKey, ...]:
        """Workloads whose pods say that others leave for them."""
        return tuple(key for key, state in self._all() if state.under_way.noted is not None)

    def begin(self) -> None:
        """A leadership begins."""
        for _, state in self._all():
            state.under_way = EvictionsUnderWay()

    def drop_ended(self, exists: Callable[[WorkloadKey], bool]) -> None:
        """Forget workloads that do not exist any more; what is under way for them is ended by its own steps."""
        for key, state in self._all():
            if exists(key):
                continue
            state.was_refused = False
            if state.under_way == EvictionsUnderWay():
                with self._states.lock:
                    self._roll.leave(state.number)
                    self._states.open(key).eviction = None
                    self._states.close(key)
