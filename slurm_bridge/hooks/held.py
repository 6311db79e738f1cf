"""What a workload keeps of the cluster: for hooks that count it, and know nothing yet when the program starts."""

import dataclasses
from collections.abc import Mapping

from slurm_bridge.hooks.base import Ask
from slurm_bridge.model.names import NO_WORKLOAD, WorkloadKey


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A workload with a job in Slurm, or with pods on nodes. `started`: none of its pods waits for a node any more.

    `makes_room_for` is the key of whom it was to make room for, as its pods say; `leaves`: it is on its way out. One
    that `waits` keeps nothing: it is told of because others, here by key with their names, were to make room for it.
    """

    ask: Ask
    started: bool
    makes_room_for: WorkloadKey = NO_WORKLOAD
    leaves: bool = False
    waits: bool = False
    room_made_by: Mapping[WorkloadKey, str] = dataclasses.field(default_factory=dict)

    @property
    def uid(self) -> WorkloadKey:
        """The key of its root."""
        return self.ask.workload.root.key
