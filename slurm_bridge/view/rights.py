"""What a viewer may see, as the API server says of the owner of the token.

    list pods in all namespaces     workloads of all namespaces
    list pods in a namespace        workloads of this namespace
    list nodes                      nodes and queues, with the numbers of all namespaces together

Answers count for a minute, and then the token is reviewed again: a right that was taken back ends with that.
"""

from collections.abc import Collection
from typing import Final

from slurm_bridge import ports
from slurm_bridge.model import kinds
from slurm_bridge.model.callers import Caller, Token
from slurm_bridge.view.live_model import EVERYTHING, ViewScope

#: Seconds for which the answers count.
COUNTS_FOR: Final = 60.0
#: So many namespaces are asked about for one viewer, by name; beyond that a viewer has to name one.
MOST_NAMESPACES: Final = 256


class LocalRights:
    """Of viewers on this machine, where the daemon listens on loopback only; they are not told apart."""

    caller: Final = ""

    def scope(self, _namespaces: Collection[str]) -> ViewScope:
        """Everything."""
        return EVERYTHING

    def expired(self) -> bool:
        """They end with the machine."""
        return False


class TokenRights:
    """Of the owner of a token; used by one thread. The errors of ports.Callers pass through."""

    def __init__(self, callers: ports.Callers, token: Token, clock: ports.Clock, caller: str) -> None:
        self.caller = caller
        self._callers, self._token, self._clock = callers, token, clock
        self._until = clock.now() + COUNTS_FOR
        self._everywhere: bool | None = None
        self._totals = False
        self._asked: dict[str, bool] = {}

    def expired(self) -> bool:
        """Whether the token is no good any more. It is asked for when the answers are too old, which end with that."""
        if self._clock.now() < self._until:
            return False
        self._until = self._clock.now() + COUNTS_FOR
        self._everywhere, self._asked = None, {}
        caller: Caller | None = self._callers.who(self._token)
        return caller is None

    def scope(self, namespaces: Collection[str]) -> ViewScope:
        """What of these namespaces the owner may see; asks only about those that are new."""
        if self._everywhere is None:
            self._everywhere = self._may("list", kinds.PODS)
            self._totals = self._may("list", kinds.NODES)
        if self._everywhere:
            return ViewScope(None, totals=self._totals)
        for namespace in sorted(set(namespaces) - self._asked.keys()):
            if len(self._asked) >= MOST_NAMESPACES:
                break
            self._asked[namespace] = self._may("list", kinds.PODS, namespace)
        return ViewScope(frozenset(name for name, may in self._asked.items() if may), totals=self._totals)

    def _may(self, verb: str, kind: kinds.Kind[ports.T], namespace: str = "") -> bool:
        return self._callers.may(self._token, verb, kind, namespace)


Rights = LocalRights | TokenRights
