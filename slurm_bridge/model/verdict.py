"""Expected obstacles as values: a workload that waits, and one that cannot go on as it is.

`reason` is a CamelCase word for machines and events, `message` is for the user: it names the object, the field and
what would help. `retry_after` is for obstacles that end without an event; None means that a change wakes the workload.
`moving`: a pod that is created or ends on any node can change it, too; without it such pods do not wake the workload.
`warning`: the user gets an event, too, because nothing will happen by itself.
Messages are bounded here, before they come into conditions, events, logs and memory.
"""

import dataclasses

from slurm_bridge.model import texts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Not now. Nothing is lost, and the workload is scheduled again later."""

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
    # A hook of a site may answer with anything; a message that is no text is refused where answers are checked.
    if isinstance(obstacle.message, str):
        object.__setattr__(obstacle, "message", texts.bounded(obstacle.message))
