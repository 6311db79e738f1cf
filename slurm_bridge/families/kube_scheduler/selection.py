"""How many feasible nodes are enough, and which they are."""

import numpy as np

from slurm_bridge.cluster.columns import Mask

#: Fewer nodes than these are never worth leaving out.
ENOUGH = 100

#: Without a percentage: half of the nodes of a small cluster, fewer of a large one, but never less than the last.
_FROM, _LESS_PER, _LEAST = 50, 125, 5


def num_feasible_nodes(percentage: int, number: int) -> int:
    """How many feasible nodes of so many are enough; 0 percent lets the number of nodes decide."""
    if number < ENOUGH or percentage >= 100:  # noqa: PLR2004 - percent
        return number
    wanted = percentage if percentage > 0 else max(_LEAST, _FROM - number // _LESS_PER)
    return max(ENOUGH, number * wanted // 100)


def some(feasible: Mask, number: int, start: int) -> Mask:
    """So many of the feasible nodes, from a row on and around: starting elsewhere each time treats all alike."""
    rows = np.flatnonzero(feasible)
    chosen = np.roll(rows, -int(np.searchsorted(rows, start)))[:number]
    mask = np.zeros(len(feasible), np.bool_)
    mask[chosen] = True
    return mask
