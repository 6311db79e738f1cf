"""What a preemptor plans: victims, the asker, and what is kept for it."""

import dataclasses
from collections.abc import Callable, Iterable

from slurm_bridge.families.yunikorn.queues.partition import QueuePartition
from slurm_bridge.families.yunikorn.queues.records import AskId


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionPlan:
    """These victims make room for the asker on this node, which is held for it before any victim is evicted.

    Several `nodes` are held where it needs them. Without an asker a queue is over its maximum, and nothing is held.
    """

    victims: tuple[AskId, ...]
    message: str
    asker: AskId | None = None
    node: str = ""
    nodes: tuple[str, ...] = ()

    @property
    def held(self) -> tuple[str, ...]:
        """Every node that is held, once."""
        return tuple(dict.fromkeys((*((self.node,) if self.node else ()), *self.nodes)))


#: Looks at a partition after each of its passes. It changes nothing; what it plans is done before it goes on.
Preemptor = Callable[[QueuePartition, float], Iterable[PreemptionPlan]]
