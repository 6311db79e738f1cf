"""Expected obstacles as values: a workload that waits, and one that cannot go on as it is.

`reason` is a CamelCase word for machines and events, `message` is for the user: it names the object, the field and
what would help. `retry_after` is for obstacles that no event announces; None means that a change wakes the workload.
`moving`: pods that come or go on any node can change it, too; without it these wake nobody.
`warning`: the user is told by an event too, as nothing will happen by itself.
Messages are bounded here, before they come into conditions, events, logs and memory.
"""

import dataclasses

from slurm_bridge.model import texts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Not now. Nothing is lost, and the workload is looked at again."""

    reason: str
    message: str
    retry_after: float | None = None
    moving: bool = False
    warning: bool = False

    def __post_init__(self) -> None:
        _bound(self)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """Not like this: only a change of the workload, or of the configuration, can help."""

    reason: str
    message: str

    def __post_init__(self) -> None:
        _bound(self)


Obstacle = Wait | Reject


def _bound(obstacle: Wait | Reject) -> None:
    # A hook of somebody else's may answer with anything; what is no text is refused where answers are judged.
    if isinstance(obstacle.message, str):
        object.__setattr__(obstacle, "message", texts.bounded(obstacle.message))
