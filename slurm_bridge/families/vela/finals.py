"""The final scores of what was decided for a workload, as the chain hears them."""

from collections.abc import Sequence

import numpy as np

from slurm_bridge.cluster.columns import Mask, NodeColumns, Numbers, Whole
from slurm_bridge.families.vela.decision import SamplingDecision
from slurm_bridge.hooks.base import Scores, Tiers

#: Candidates are tried as they are, and not in tiers of their own.
_WHOLE = Tiers(count=1)
#: Nothing was decided.
UNRATED = Scores(nodes={}, tiers=_WHOLE)


def rated(columns: NodeColumns, decisions: Sequence[SamplingDecision]) -> Scores:
    """Of a node that several decisions have, the highest; computed at the first use."""
    return Scores(nodes=Numbers(columns, lambda: _finals(columns, decisions)), tiers=_WHOLE)


def _finals(columns: NodeColumns, decisions: Sequence[SamplingDecision]) -> tuple[Whole, Mask]:
    values, mask = np.zeros(len(columns), np.int64), np.zeros(len(columns), np.bool_)
    for decision in decisions:
        rows = decision.rows_in(columns)
        rows, scores = rows[rows >= 0], decision.scores[rows >= 0]
        values[rows] = np.where(mask[rows], np.maximum(values[rows], scores), scores)
        mask[rows] = True
    return values, mask
