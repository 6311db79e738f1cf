"""Several filters as one: those that know it of all nodes at once are asked once for a question, not for each round."""

import functools
import operator
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Mask
from slurm_bridge.families.vela import dice
from slurm_bridge.families.vela.scene import FilterPlugin, Rows, SamplingScene, WideFilter


class Sieve:
    """The filters for one question."""

    def __init__(
        self, scene: SamplingScene, wide: Callable[[SamplingScene], Mask | None], others: Sequence[FilterPlugin]
    ) -> None:
        self._scene = scene
        self._wide = wide
        self._others = others
        self._said: tuple[Mask | None] | None = None

    def kept(self, rows: Rows) -> Rows:
        """Those of these nodes that pass all filters."""
        mask = self._mask()
        return rows[self.places(rows)] if self._others or mask is None else rows[mask[rows]]

    def known(self, rows: Rows) -> Mask:
        """Which of these nodes pass the filters that know it of all nodes at once."""
        mask = self._mask()
        return np.ones(len(rows), np.bool_) if mask is None else mask[rows]

    def places(self, rows: Rows) -> NDArray[np.intp]:
        """Which of these nodes pass all filters, by their places, in order."""
        mask = self._mask()
        stay = dice.counting(len(rows)) if mask is None else mask[rows].nonzero()[0]
        for one in self._others:
            stay = stay[one.fits(self._scene, rows[stay])]
        return stay

    def _mask(self) -> Mask | None:
        if self._said is None:
            self._said = (self._wide(self._scene),)
        return self._said[0]


class Sift:
    """Filters as they are configured; their order is a matter of cost alone, as each node has to pass all of them."""

    def __init__(self, filters: Iterable[FilterPlugin]) -> None:
        every = tuple(filters)
        self._wide = tuple(one for one in every if isinstance(one, WideFilter))
        self._others = tuple(one for one in every if not isinstance(one, WideFilter))
        #: What they said last, and that together.
        self._last: tuple[list[Mask], Mask] | None = None

    def of(self, scene: SamplingScene) -> Sieve:
        """For this question."""
        return Sieve(scene, self._together, self._others)

    def _together(self, scene: SamplingScene) -> Mask | None:
        """They answer with the very same arrays for as long as nothing that matters to them has changed."""
        last, masks = self._last, [one.every(scene) for one in self._wide]
        if last is not None and all(map(operator.is_, last[0], masks)):
            return last[1]
        if not masks:
            return None
        found: Mask = functools.reduce(operator.and_, masks)
        self._last = masks, found
        return found
