"""What a preemptor plans: who has to go, for whom, and what is kept for them."""

import dataclasses
from collections.abc import Callable, Sequence

from slurm_bridge.queues.partition import Partition
from slurm_bridge.queues.records import AskId


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """These victims make room for the asker on this node, which is held for it before anybody is asked to go.

    Without an asker a queue is over its maximum, and nothing is held.
    """

    victims: tuple[AskId, ...]
    message: str
    asker: AskId | None = None
    node: str = ""


#: Looks at a partition after each of its passes. It changes nothing; what it plans is done at once.
Preemptor = Callable[[Partition, float], Sequence[Plan]]


def nothing(_partition: Partition, _now: float) -> Sequence[Plan]:
    """Nobody is preempted."""
    return ()
