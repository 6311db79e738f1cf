"""What hooks are asked in: the hooks of a chain by phase, which outlive a pass, and what belongs to one pass."""

import random
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from slurm_bridge.cluster.columns import NodeColumns
from slurm_bridge.cluster.columns.members import MOST_SETS
from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.hooks.base import Denied, HookPhase, Log, Matrix, Mode, Nodes
from slurm_bridge.hooks.calls import Hook, HookCaller
from slurm_bridge.hooks.explain import Line
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.model.features import Feature
from slurm_bridge.model.verdict import Obstacle

LogOf = Callable[[str], Log]


class SessionOver(RuntimeError):
    """A hook used the session of a pass that has ended."""


class Stopped(Exception):
    """A hook's answer, or its failure, ends the pass here."""

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(obstacle.message)
        self.obstacle = obstacle


class Layers:
    """The hooks of a chain by phase, and what outlives a pass: what calls them, where they log, what they may see."""

    def __init__(
        self,
        hooks: tuple[Hook, ...],
        caller: HookCaller,
        logs: LogOf,
        dice: random.Random,
        shows_scores: Callable[[], bool] = lambda: True,
        *,
        strict: bool = True,
    ) -> None:
        self.hooks = hooks
        self.caller = caller
        self.dice = dice
        #: How scores came about is shown, also for those from which nothing follows.
        self.shows_scores = shows_scores
        #: What hooks say becomes lines: they have a reader.
        self.keeps_lines = True
        self.views: Mapping[Need, View] = {}
        #: What pods may ask for beside amounts and nodes, and some hook sees to; `strict`: others wait.
        self.strict = strict
        self.honoured = frozenset[Feature]().union(*(hook.honours for hook in hooks))
        self.own_log = logs("chain")
        self.logs = {hook.name: logs(hook.name) for hook in hooks}
        self.by_phase = {phase: tuple(hook for hook in hooks if phase in hook.phases) for phase in HookPhase}
        # A hook whose fields depend on what the others have chosen, such as the partition, is asked after them.
        expressing = self.by_phase[HookPhase.EXPRESS]
        self.by_phase[HookPhase.EXPRESS] = tuple(
            sorted(expressing, key=lambda hook: getattr(hook.hook, "expresses_last", False) is True)
        )
        #: By identity: to hash a set of thousands takes longer than most of what is asked about it.
        self.left: VersionCache[tuple[int, Denied], tuple[Nodes, Nodes]] = VersionCache(MOST_SETS)
        self.said: VersionCache[Denied, str] = VersionCache()


class Pass:
    """A context manager: its end is the end of the pass, and any later use of it is an error."""

    __slots__ = (
        "_attempt",
        "_layers",
        "_memos",
        "_mode",
        "_now",
        "_over",
        "_placed",
        "_running",
        "_snapshot",
        "denied",
        "given_up",
        "lines",
        "matrices",
        "members",
        "memos",
        "partial",
        "retry_after",
        "shifting",
        "wanted",
        "whole",
    )

    def __init__(
        self,
        layers: Layers,
        snapshot: ClusterSnapshot,
        *,
        now: float,
        mode: Mode = Mode.REAL,
        attempt: int | None = None,
        memos: Mapping[str, str] | None = None,
    ) -> None:
        self._layers = layers
        self._memos = memos or {}
        self._snapshot = snapshot
        self._now = now
        self._mode = mode
        self._attempt = attempt or 0
        self._placed = attempt is not None
        self._over = False
        self._running: Hook | None = None
        #: What was said on the way, and the denials of nodes.
        self.lines: list[Line] = []
        self.denied: list[Denied] = []
        #: How the scores came about, by hook.
        self.matrices: dict[str, Matrix] = {}
        #: The pod that the next lines are about, "" for the whole workload.
        self.members = ""
        #: Some nodes are not looked at, and when others would be; `whole`: all are, whatever hooks sample.
        self.partial = False
        self.whole = False
        self.retry_after: float | None = None
        #: What is told beside the reasons where no node is left, and nothing more is tried for a while.
        self.given_up = ""
        #: What hooks want to be told of their sets next time, what the sets are about for the user, and whether they
        #: depend on what runs.
        self.memos: dict[str, str] = {}
        self.wanted: dict[str, None] = {}
        self.shifting = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True

    @property
    def snapshot(self) -> ClusterSnapshot:
        if self._over:
            self._alive()
        return self._snapshot

    @property
    def columns(self) -> NodeColumns:
        if self._over:
            self._alive()
        return self._snapshot.columns

    @property
    def attempt(self) -> int:
        if self._over:
            self._alive()
        return self._attempt

    @property
    def placed(self) -> bool:
        if self._over:
            self._alive()
        return self._placed

    @property
    def memo(self) -> str:
        if self._over:
            self._alive()
        return self._memos.get(self._running.name, "") if self._running else ""

    @property
    def now(self) -> float:
        if self._over:
            self._alive()
        return self._now

    @property
    def mode(self) -> Mode:
        if self._over:
            self._alive()
        return self._mode

    @property
    def dice(self) -> random.Random:
        if self._over:
            self._alive()
        return self._layers.dice

    @property
    def log(self) -> Log:
        if self._over:
            self._alive()
        return self._layers.logs[self._running.name] if self._running else self._layers.own_log

    def view(self, need: Need) -> View:
        if self._over:
            self._alive()
        if self._running is not None and need not in self._running.needs:
            raise LookupError(f"hook {self._running.name} has not declared {need} in its needs")
        views = self._layers.views
        if need not in views:
            raise LookupError(f"{need.value} are not watched")
        return views[need]

    def _alive(self) -> None:
        """Asked of every use; most of them look at `_over` themselves, because there are dozens for each workload."""
        if self._over:
            raise SessionOver("this session's pass has ended; keep nothing of it")
