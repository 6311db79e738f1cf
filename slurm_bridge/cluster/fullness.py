"""On how few nodes tasks have room, and on how many Slurm may put them: arithmetic over the room on each node.

Nodes are counted by their room, so that nothing has to be sorted however many there are.
"""

import numpy as np

from slurm_bridge.cluster.columns import Whole


def fewer(seen: Whole, real: Whole, tasks: int, minimum: int = 0) -> int | None:
    """On how few nodes so many tasks have room; None where there is not enough, or where as many are taken anyhow.

    `seen` and `real` are the room by node; `minimum` is how many nodes the partition gives at least.
    """
    seen = np.minimum(seen, tasks)
    real = np.minimum(real, tasks) * (seen > 0)
    often = _often(real)
    sizes = np.arange(len(often))
    least = _filled(sizes[::-1], often[::-1], tasks)
    most = _filled(sizes, often, tasks)
    if least is None or most is None:
        return None
    number = max(least, minimum)
    return number if number < most and not _deceptive(seen, real, tasks, number) else None


def _deceptive(seen: Whole, real: Whole, tasks: int, number: int) -> bool:
    """Among so many nodes Slurm may choose one on which it would put more tasks than there is room for."""
    worst = int(np.max(seen, initial=0, where=seen > real))
    if not worst:
        return False
    others = _often(seen)
    others[worst] -= 1
    taken = np.diff(np.minimum(np.cumsum(others[::-1]), number - 1), prepend=0)
    return worst + int(taken @ np.arange(len(others))[::-1]) >= tasks


def _often(rooms: Whole) -> Whole:
    """How many nodes have each room, where they have any: no more than all tasks, so that it is a short list."""
    often = np.bincount(rooms, minlength=1)
    often[0] = 0
    return often


def _filled(sizes: Whole, often: Whole, tasks: int) -> int | None:
    """How many nodes are needed, of those of each size so many, in this order."""
    totals = np.cumsum(sizes * often)
    last = int(np.searchsorted(totals, tasks))
    if last == len(totals):
        return None
    size, number = int(sizes[last]), int(often[last])
    return int(often[:last].sum()) - (int(totals[last]) - size * number - tasks) // size
