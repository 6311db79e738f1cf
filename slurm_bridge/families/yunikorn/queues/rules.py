"""The rules of a partition, as its configuration and its resource manager set them."""

import dataclasses

from slurm_bridge.families.yunikorn.queues.config import documents
from slurm_bridge.families.yunikorn.queues.orders import NodePolicy
from slurm_bridge.families.yunikorn.queues.records import NodeMode, Origin


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AllocationRules:
    """How it allocates, in seconds. `node_sort`: of applications without their own; `alike`: without predicates."""

    mode: NodeMode = NodeMode.FREE
    node_sort: str = "fair"
    reservation_delay: float = 2.0
    reservation_timeout: float = 3600.0
    preempts: bool = False
    alike: bool = False


def configured(
    rules: AllocationRules, settings: documents.PartitionDocument, origin: Origin, *, plans: bool
) -> AllocationRules:
    """Those of a partition; `plans`: it alone plans its preemption."""
    return dataclasses.replace(
        rules,
        mode=origin.mode,
        node_sort=settings.node_sort.policy or NodePolicy.FAIR.value,
        preempts=settings.preemption.enabled and plans,
        alike=not origin.predicates,
    )
