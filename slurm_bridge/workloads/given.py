"""What a kind is given when it is asked for the whole of a workload."""

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from slurm_bridge.model.pod import Pod
from slurm_bridge.workloads.chain import OwnerChains
from slurm_bridge.workloads.known import Known, Options


class Members(Protocol):
    """The pods of one workload that want a node, as `known.wants_node` says."""

    def __len__(self) -> int:
        """How many there are; costs the same for any number."""

    def any(self) -> Pod:
        """One of them; LookupError when there is none."""

    def all(self) -> Sequence[Pod]:
        """A copy, in any order: for those who have reason to look at each."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What is known of those above the pods, and what the site wants.

    `started`: some members have nodes already and are among those given. Then whoever is there counts, and no minimum.
    """

    owners: OwnerChains
    options: Options
    started: bool = False

    @property
    def known(self) -> Known:
        """In memory, with what owners have learned by asking."""
        return self.owners.known
