"""Nodes that are kept for workloads which others pass: a hook says for which ones, and the scheduler keeps them."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from slurm_bridge.model.names import WorkloadKey


@runtime_checkable
class Reserves(Protocol):
    """A hook that says for which workloads nodes are kept; called by any thread."""

    #: For so many workloads at once; 0: for none.
    reservations: int
    #: Nodes that are not used within so many seconds are for all again, and others have their turn.
    reserve_seconds: float

    def passed(self) -> Sequence[WorkloadKey]:
        """Workloads that have waited for nodes for long enough while others came by; the next one first."""

    def keeps(self, nodes: frozenset[str]) -> None:
        """These are reserved in Slurm for such workloads just now, by the names that Kubernetes has for them."""

    def count(self, what: str, amount: int = 1) -> None:
        """Something happened to a reservation."""
