"""Arithmetic on whole columns, in whole numbers wherever Kubernetes counts in whole numbers."""

import numpy as np

from slurm_bridge.cluster.columns import Mask, Whole
from slurm_bridge.families.kube_scheduler.priorities.rule import ColumnReduce

#: The scale on which priorities rate as kube-scheduler 1.36 does; below it, as the policies of older releases.
NEWER = 100

#: Up to here a quotient that is just below a whole number, up to ten, is further from it than floating point can err.
_EXACT = 2**48


def quotient(above: Whole, below: Whole | int) -> Whole:
    """Division that rounds toward zero, by something positive."""
    if above.min(initial=0) >= 0:
        return above // below
    return np.where(above < 0, -(-above // below), above // below)


def shares(above: Whole, below: Whole) -> Whole:
    """Whole quotients of numbers of which none is below 0, each at most ten times what it is divided by; 0 through 0.

    Floating point is ten times as fast, and exact as long as a quotient of such numbers cannot be rounded up.
    """
    divisor = np.maximum(below, 1)
    if int(divisor.max(initial=0)) < _EXACT:
        found: Whole = (above / divisor).astype(np.int64)
        return found
    return above // divisor


def highest(values: Whole, nodes: Mask) -> int:
    """The greatest value of the candidates, 0 where none is above."""
    same = constant_of(values)
    return int(values.max(where=nodes, initial=0)) if same is None else max(same, 0)


def lowest(values: Whole, nodes: Mask) -> int:
    """The least value of the candidates, 0 where none is below."""
    same = constant_of(values)
    return int(values.min(where=nodes, initial=0)) if same is None else min(same, 0)


def constant(rows: int, value: int) -> Whole:
    """The same score everywhere, kept once; like every column it is not to be written into."""
    return np.broadcast_to(np.int64(value), (rows,))


def constant_of(values: Whole) -> int | None:
    """The one score that a constant column has, None for any other column. Most priorities say nothing of most pods."""
    return int(values[0]) if values.strides == (0,) and len(values) else None


def normalized(values: Whole, nodes: Mask, maximum: int, *, reverse: bool) -> Whole:
    """The highest candidate gets `maximum` and the others their share; in reverse the highest gets nothing.

    Where all are 0 there is nothing to share: they stay so, or in reverse are all as good as can be.
    """
    top = highest(values, nodes)
    if top == 0:
        return constant(len(values), maximum) if reverse else values
    shares = quotient(values * maximum, top)
    return maximum - shares if reverse else shares


def normalize(maximum: int, *, reverse: bool = False) -> ColumnReduce:
    """The reduce step that most priorities share."""
    return ColumnReduce(lambda _, values, nodes: normalized(values, nodes, maximum, reverse=reverse))
