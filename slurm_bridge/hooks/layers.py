"""The hooks of a chain by phase, and what of them outlives a pass."""

import random
from collections.abc import Callable, Mapping

from slurm_bridge.cluster.columns.members import MOST_SETS
from slurm_bridge.cluster.memo import Memo
from slurm_bridge.hooks.base import Denied, Log, Nodes, Phase
from slurm_bridge.hooks.calls import Caller, Hook
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
    """The hooks of a chain by phase, and what outlives a pass: who calls them, where they log, what they may see."""

    def __init__(
        self,
        hooks: tuple[Hook, ...],
        caller: Caller,
        logs: LogOf,
        dice: random.Random,
        shows_scores: Callable[[], bool] = lambda: True,
        *,
        strict: bool = True,
    ) -> None:
        self.hooks = hooks
        self.caller = caller
        self.dice = dice
        #: Somebody reads how scores came about, also those from which nothing follows.
        self.shows_scores = shows_scores
        self.views: Mapping[Need, View] = {}
        #: What pods may ask for beside amounts and nodes, and some hook sees to; `strict`: others wait.
        self.strict = strict
        self.honoured = frozenset[Feature]().union(*(hook.honours for hook in hooks))
        self.own_log = logs("chain")
        self.logs = {hook.name: logs(hook.name) for hook in hooks}
        self.by_phase = {phase: tuple(hook for hook in hooks if phase in hook.phases) for phase in Phase}
        #: By identity: to hash a set of thousands takes longer than most of what is asked about it.
        self.left: Memo[tuple[int, Denied], tuple[Nodes, Nodes]] = Memo(MOST_SETS)
        self.said: Memo[Denied, str] = Memo()
