"""What goes wrong between a daemon and the two worlds: by seeded dice, at chosen calls, or for a while.

Every call of every daemon passes here, is counted and written down, and is followed by a look of the observer. A call
may be lost on its way (nothing was done), lose its answer (it was done), be refused, take long, or be the last one that
its daemon ever makes.
"""

import dataclasses
import enum
import json
import random
import zlib
from collections.abc import Callable

from slurm_bridge.sim import wire
from tests import direct_line

Chore = Callable[[], object]


class Killed(BaseException):
    """kill -9: nothing of the program may see it."""


class Side(enum.Enum):
    """Which of the two worlds."""

    KUBE = "kube"
    SLURM = "slurm"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """How likely each of these is, for each call."""

    lost: float = 0.0
    unanswered: float = 0.0
    orders_unanswered: float = 0.0
    slow: float = 0.0
    killed: float = 0.0
    #: Of calls to Kubernetes: a conflict (of an order), too many requests, or an error of the server.
    refused: float = 0.0


#: Answers without a deed; the first is for orders only.
REFUSALS = (409, 429, 500)

CALM = Odds()


class Fate(enum.Enum):
    """What becomes of one call."""

    LOST = "lost"
    UNANSWERED = "unanswered"
    CONFLICT = "conflict"
    BUSY = "busy"
    FAILED = "failed"


_STATUS = dict(zip((Fate.CONFLICT, Fate.BUSY, Fate.FAILED), REFUSALS, strict=True))


class Weather:
    """Stands before both handlers."""

    def __init__(self, dice: random.Random, *, now: Callable[[], float], pass_time: Callable[[float], object]) -> None:
        self._dice = dice
        self._now, self._pass_time = now, pass_time
        self._after: dict[int, Chore] = {}
        self._instead: dict[int, Fate] = {}
        self._away: set[Side] = set()
        self.odds = CALM
        self.calls = 0
        self.orders: list[int] = []
        self.journal: list[str] = []
        self.watcher: Callable[[str], object] = _unwatched

    def note(self, text: str) -> None:
        """One more line in the journal."""
        self.journal.append(f"{self._now():9.3f} {text}")

    def after(self, call: int, chore: Chore) -> None:
        """Do this right after that call was acted on, before its answer arrives."""
        self._after[call] = chore

    def instead(self, call: int, fate: "Fate") -> None:
        """That call comes to this."""
        self._instead[call] = fate

    def kill(self) -> None:
        """A chore: the caller is no more."""
        self.note("killed")
        raise Killed

    def hide(self, side: Side) -> None:
        """That server is not reached any more."""
        self._away.add(side)

    def show(self, side: Side) -> None:
        """It is back."""
        self._away.discard(side)

    def calm(self) -> None:
        """Nothing goes wrong any more."""
        self.odds = CALM
        self._away.clear()
        self._after.clear()
        self._instead.clear()

    def before(self, handler: wire.Handler, side: Side, who: str) -> wire.Handler:
        """The handler as this daemon reaches it."""

        def pass_on(request: wire.Request) -> wire.Response:
            self.calls += 1
            number = self.calls
            self.watcher("")
            what = f"#{number} {who} {side.value} {request.method} {request.target}"
            fate = self._instead.pop(number, None)
            self._on_the_way(side, what, lost=fate is Fate.LOST)
            status = self._refusal(side, fate, order=request.method != "GET")
            response = _refused(status) if status else handler(request)
            self.watcher(who)
            self.note(f"{what} {zlib.crc32(request.body):08x} -> {response.status}")
            if request.method != "GET":
                self.orders.append(number)
            if fate is Fate.UNANSWERED:
                raise direct_line.NotAnswered("lost on the way back")
            self._on_the_way_back(number, what, order=request.method != "GET")
            return response

        return pass_on

    def _refusal(self, side: Side, fate: "Fate | None", *, order: bool) -> int:
        """With which status; 0 where it is served."""
        if fate in _STATUS:
            return _STATUS[fate]
        if side is Side.KUBE and self._strikes(self.odds.refused):
            return self._dice.choice(REFUSALS if order else REFUSALS[1:])
        return 0

    def _on_the_way(self, side: Side, what: str, *, lost: bool) -> None:
        if side in self._away:
            self._pass_time(self._dice.uniform(0.0, 1.0))
            self.note(f"{what}: nobody there")
            raise direct_line.NotReached(f"{side.value} is away")
        if self._strikes(self.odds.slow):
            self._pass_time(self._dice.choice((0.5, 3.0, 12.0)))
            self.note(f"{what}: slow")
        if lost or self._strikes(self.odds.lost):
            self.note(f"{what}: lost")
            raise direct_line.NotReached("lost on the way")

    def _on_the_way_back(self, number: int, what: str, *, order: bool) -> None:
        chore = self._after.pop(number, None)
        if chore is not None:
            chore()
        if self._strikes(self.odds.killed):
            self.note(f"{what}: killed")
            raise Killed
        if self._strikes(max(self.odds.unanswered, self.odds.orders_unanswered if order else 0.0)):
            self.note(f"{what}: unanswered")
            raise direct_line.NotAnswered("lost on the way back")

    def _strikes(self, probability: float) -> bool:
        return probability > 0 and self._dice.random() < probability


def _refused(status: int) -> wire.Response:
    told = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "bad weather", "code": status}
    return wire.Response(status=status, body=json.dumps(told).encode())


def _unwatched(_: str) -> None:
    """Nothing watches yet."""
