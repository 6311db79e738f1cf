"""The error of a pod that fits nowhere, in kube-scheduler's words."""

import collections
import dataclasses
import itertools
from collections.abc import Mapping

from slurm_bridge.cluster.columns import Reasons
from slurm_bridge.hooks import explain


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FitError:
    """Why each node failed, of how many in all; nodes that nobody looked at have no reasons."""

    nodes: int
    reasons: Mapping[str, tuple[str, ...]]

    @property
    def message(self) -> str:
        """As in `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had disk pressure.`."""
        return message(self.nodes, self.reasons)


def message(nodes: int, failed: Mapping[str, tuple[str, ...]]) -> str:
    """Every reason with how often it was given, sorted as text; even without any, the sentence has its colon."""
    counts = failed.counts() if isinstance(failed, Reasons) else _counts(failed)
    return f"0/{nodes} nodes are available: {explain.summary(counts)}."


def _counts(failed: Mapping[str, tuple[str, ...]]) -> Mapping[str, int]:
    return collections.Counter(itertools.chain.from_iterable(failed.values()))
