"""What a kind needs to gather a workload."""

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from slurm_bridge.model.pod import Pod
from slurm_bridge.workloads.chain import OwnerChains
from slurm_bridge.workloads.known import Known, Options


class Members(Protocol):
    """The pods of one workload that want a node, as defined by `known.wants_node`."""

    def __len__(self) -> int:
        """How many there are, in constant time."""

    def any(self) -> Pod:
        """One of them; LookupError when there is none."""

    def all(self) -> Sequence[Pod]:
        """A copy, in any order; its cost grows with the workload."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What is known of the owners of the pods, and what the site has configured.

    `started`: some members have nodes already. Then the workload is complete with any number of members.
    """

    owners: OwnerChains
    options: Options
    started: bool = False

    @property
    def known(self) -> Known:
        """The objects in memory, and those that `owners` has read."""
        return self.owners.known
