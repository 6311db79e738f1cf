"""What is configured of one queue, in the terms in which the scheduler uses it."""

import enum
from dataclasses import dataclass

from slurm_bridge.families.yunikorn.queues.acl import Acl
from slurm_bridge.families.yunikorn.queues.amounts import Known
from slurm_bridge.families.yunikorn.queues.priorities import PriorityPolicy

_NOBODY = Acl()


class SortPolicy(enum.StrEnum):
    """In which order the children, or the applications, of a queue are served."""

    FAIR = "fair"
    FIFO = "fifo"


class PreemptionPolicy(enum.StrEnum):
    """Whether what runs in a queue may be taken back, and for which asks."""

    DEFAULT = "default"
    FENCE = "fence"  # those inside take back from inside only
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """What is configured of one queue; delays in seconds, and 0 applications for no limit of them."""

    guaranteed: Known = None
    max: Known = None
    max_applications: int = 0
    submit_acl: Acl = _NOBODY
    admin_acl: Acl = _NOBODY
    sort_policy: SortPolicy | None = None  # None: fair among queues, fifo among applications
    priority_sorting: bool = True
    priority_policy: PriorityPolicy = PriorityPolicy.DEFAULT
    offset: int = 0
    preemption_policy: PreemptionPolicy = PreemptionPolicy.DEFAULT
    preemption_delay: float = 30.0
    quota_preemption_delay: float = 0.0
    backoff: int = 0  # asks without room after which an application pauses; 0: never
    backoff_delay: float = 30.0
