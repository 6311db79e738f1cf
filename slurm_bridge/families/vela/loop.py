"""The sampling loop: draw what is missing, keep what passes, until there is enough or it has gone on for too long."""

import dataclasses
import enum
import math
from collections.abc import Callable

import numpy as np

from slurm_bridge.families.vela import dice
from slurm_bridge.families.vela.dice import Places
from slurm_bridge.families.vela.scene import UnreadablePod
from slurm_bridge.runtime import frozen_records

NOTHING_LEFT = "no candidates left after Filter plugins"


class LoopStatus(enum.Enum):
    """How it ended, in the words of the wire."""

    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"
    INTERNAL_ERROR = "InternalError"


_NONE: Places = np.zeros(0, np.intp)


@frozen_records.quick
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Collected:
    """What was found, in the order in which it was drawn; `asked` is how many were wanted in each round."""

    asked: tuple[int, ...]
    found: Places
    status: LoopStatus
    reason: str = ""


def collect(
    draw: Callable[[int], Places],
    keep: Callable[[Places], Places],
    size: int,
    *,
    max_rounds: int | None = None,
    repeats: bool = True,
    expired: Callable[[], bool] = lambda: False,
) -> Collected:
    """So many places that pass, as far as the time goes; there is always one round.

    `max_rounds`: not more rounds than that, None: as many as it takes. `repeats`: one draw may give a place more than
    once. A strategy or a filter that raises (which is no rejection) ends it at once, and nothing of it is kept;
    UnreadablePod goes on.
    """
    most = math.inf if max_rounds is None else max_rounds
    asked: list[int] = []
    found, number = _NONE, 0
    while number < size and len(asked) < most and not (asked and expired()):
        missing = size - number
        asked.append(missing)
        try:
            kept = keep(draw(missing)[:missing])
        except UnreadablePod:
            raise
        except Exception as error:  # noqa: BLE001 - plugins are foreign code: the error is the answer, and names what was wrong
            wrong = f"{type(error).__name__}: {error}"
            return Collected(asked=tuple(asked), found=_NONE, status=LoopStatus.INTERNAL_ERROR, reason=wrong)
        if number or repeats:
            kept = dice.firsts(np.concatenate([found, kept]))
        found, number = kept, len(kept)
    status = LoopStatus.SUCCESS if number else LoopStatus.UNSCHEDULABLE
    return Collected(asked=tuple(asked), found=found, status=status, reason="" if number else NOTHING_LEFT)
