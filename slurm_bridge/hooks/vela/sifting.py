"""Several filters as one: those that know it of all nodes at once are asked once for a question, not for each round."""

import functools
import operator
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.hooks.columns import Mask
from slurm_bridge.hooks.vela.scene import FilterPlugin, Rows, Scene, WideFilter


class Sieve:
    """The filters for one question."""

    def __init__(self, scene: Scene, wide: Sequence[WideFilter], others: Sequence[FilterPlugin]) -> None:
        self._scene = scene
        self._wide = wide
        self._others = others

    def places(self, rows: Rows) -> NDArray[np.intp]:
        """Which of these nodes pass all filters, by their places, in order."""
        stay = np.arange(len(rows)) if self._mask is None else np.flatnonzero(self._mask[rows])
        for one in self._others:
            stay = stay[one.fits(self._scene, rows[stay])]
        return stay

    @functools.cached_property
    def _mask(self) -> Mask | None:
        masks = [one.every(self._scene) for one in self._wide]
        return functools.reduce(operator.and_, masks) if masks else None


class Sift:
    """Filters as they are configured; their order is a matter of cost alone, as each node has to pass all of them."""

    def __init__(self, filters: Iterable[FilterPlugin]) -> None:
        every = tuple(filters)
        self._wide = tuple(one for one in every if isinstance(one, WideFilter))
        self._others = tuple(one for one in every if not isinstance(one, WideFilter))

    def of(self, scene: Scene) -> Sieve:
        """For this question."""
        return Sieve(scene, self._wide, self._others)
