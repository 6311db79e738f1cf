"""Priorities that are written for single nodes, as a site writes its own: run side by side, every failure kept.

1 functions and maps   each function at once with all others, maps over the nodes in as many parts as may run together
2 reduces              each at once with all others, after all maps
Where nothing failed there is a score for every candidate; results do not depend on which thread finishes first.
"""

import collections
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from slurm_bridge.cluster.columns import Mask, NodeColumns, Whole
from slurm_bridge.families.kube_scheduler import matrix
from slurm_bridge.families.kube_scheduler.kept import Carried
from slurm_bridge.families.kube_scheduler.priorities.rule import (
    ColumnFunction,
    ColumnMap,
    ColumnReduce,
    HostPriority,
    HostPriorityList,
    PriorityConfig,
)
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.hooks.base import Session

Piece = Callable[[], None]

#: Scores are weighed and added in 64 bits.
_MOST = 2**31


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class PriorityFailure:
    """A priority that raised or answered nonsense; `node` is empty where it is not about one."""

    priority: str
    node: str
    message: str

    def __str__(self) -> str:
        return f"priority {self.priority} failed{f' on node {self.node}' if self.node else ''}: {self.message}"


class Run:
    """One run of some priorities over the candidates."""

    def __init__(
        self, scene: Scene, session: Session, nodes: Mask, parallelism: int, carried: Carried | None = None
    ) -> None:
        self._scene, self._session, self._nodes = scene, session, nodes
        self._carried = carried
        self._parallelism = parallelism
        self._lock = threading.Lock()
        self.failures: list[PriorityFailure] = []
        self.values: dict[str, Whole | None] = {}

    @functools.cached_property
    def _rows(self) -> Sequence[int]:
        rows: list[int] = np.flatnonzero(self._nodes).tolist()
        return rows

    def all(self, configs: Sequence[PriorityConfig]) -> None:
        """Scores of all that did not fail, by name, in `values`; what failed is in `failures`, in a fixed order."""
        functions = [functools.partial(self._function, config) for config in configs if config.function is not None]
        maps = [config for config in configs if config.map is not None]
        single = [config for config in maps if not isinstance(config.map, ColumnMap)]
        for config in single:
            self.values[config.name] = np.zeros(len(self._scene.columns), np.int64)
        whole = [functools.partial(self._column_map, config) for config in maps if isinstance(config.map, ColumnMap)]
        together = range(self._parallelism) if single else ()
        parts = [part for start in together if (part := self._rows[start :: self._parallelism])]
        side_by_side(
            [*functions, *whole, *(functools.partial(self._maps, single, part) for part in parts)], self._parallelism
        )
        reduces = [functools.partial(self._reduce, config) for config in maps if config.reduce is not None]
        side_by_side(reduces, self._parallelism)
        self.failures.sort()

    def _function(self, config: PriorityConfig) -> None:
        if isinstance(config.function, ColumnFunction):
            of = config.function.of
            self._keep(config, lambda: of(self._scene, self._nodes))
        elif config.function is not None:
            function, every = config.function, (self._scene.columns.facts[row] for row in self._rows)
            facts = [one for one in every if one is not None]
            self._keep(config, lambda: self._column(function(self._scene.pod, self._session, facts)))

    def _column_map(self, config: PriorityConfig) -> None:
        rated, carried = config.map, self._carried
        if isinstance(rated, ColumnMap):
            of = rated.of
            if carried is not None and rated.by_row:
                self._keep(config, lambda: carried.raw(config.name, of))
            else:
                self._keep(config, lambda: of(self._scene))

    def _maps(self, configs: Sequence[PriorityConfig], rows: Sequence[int]) -> None:
        for row in rows:
            facts = self._scene.columns.facts[row]
            for config in configs:
                if facts is not None:
                    # A node whose map fails stays in the list, with nothing, so that reduces see every candidate.
                    values = self.values[config.name]
                    try:
                        if values is not None and callable(config.map):
                            values[row] = _score(config.map(self._scene.pod, self._session, facts), facts.name)
                    except Exception as error:  # noqa: BLE001 - foreign code; every failure ends up in the aggregate
                        self._fail(config, facts.name, error)

    def _reduce(self, config: PriorityConfig) -> None:
        raw, reduce = self.values.get(config.name), config.reduce
        if raw is None:
            return
        if isinstance(reduce, ColumnReduce):
            of = reduce.of
            self._keep(config, lambda: of(self._scene, raw, self._nodes))
        elif reduce is not None:
            listed, plain = matrix.listed(self._scene.columns, raw, self._nodes), reduce
            self._keep(config, lambda: self._column(plain(self._scene.pod, self._session, listed)))

    def _keep(self, config: PriorityConfig, work: Callable[[], Whole | None]) -> None:
        try:
            self.values[config.name] = work()
        except Exception as error:  # noqa: BLE001 - likewise
            self._fail(config, "", error)

    def _column(self, scores: HostPriorityList) -> Whole:
        return column(self._scene.columns, scores, self._nodes)

    def _fail(self, config: PriorityConfig, node: str, error: Exception) -> None:
        with self._lock:
            self.failures.append(PriorityFailure(config.name, node, f"{type(error).__name__}: {error}"))


def side_by_side(pieces: Iterable[Piece], parallelism: int) -> None:
    """Each piece once, all of them done when it returns; a piece keeps its own result and its own failure.

    The threads end with the work. A piece that hangs blocks only its caller, and not the end of the process.
    """
    waiting = collections.deque(pieces)
    threads = [
        threading.Thread(target=_work, args=(waiting,), name=f"priorities-{number}", daemon=True)
        for number in range(min(parallelism, len(waiting)) - 1)
    ]
    for thread in threads:
        thread.start()
    _work(waiting)
    for thread in threads:
        thread.join()


def _work(waiting: collections.deque[Piece]) -> None:
    while True:
        try:
            piece = waiting.popleft()
        except IndexError:
            return
        piece()


def column(columns: NodeColumns, scores: HostPriorityList, nodes: Mask) -> Whole:
    """A list as a column; every candidate has to be in it once. Raises ValueError naming the node."""
    values, left = np.zeros(len(columns), np.int64), nodes.copy()
    for one in scores:
        row = columns.row(one.host)
        if row is None or not left[row]:
            raise ValueError(f"{one.host!r} is rated twice, or is no candidate")
        values[row] = _score(one, one.host)
        left[row] = False
    if left.any():
        raise ValueError(f"{columns.names[left].tolist()[0]!r} is a candidate and not rated")
    return values


def _score(given: HostPriority, node: str) -> int:
    """The score, checked: it comes from a site's own code."""
    if not isinstance(given, HostPriority):
        raise TypeError(f"answered {type(given).__name__}, not HostPriority")
    if given.host != node:
        raise ValueError(f"answered for node {given.host!r}")
    score: Any = given.score
    whole = isinstance(score, int | np.integer) and not isinstance(score, bool)
    if not whole or not -_MOST <= int(score) <= _MOST:
        raise ValueError(f"answered the score {score!r}; a score is a whole number, at most {_MOST}")
    return int(score)
