"""Filter and score plugins by the name under which configuration asks for them: those that ship, and a site's own."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import numpy as np
import pydantic
from pydantic_core import InitErrorDetails, PydanticCustomError

from slurm_bridge.cluster.columns import Mask, Whole
from slurm_bridge.families.vela import extensions, scores
from slurm_bridge.families.vela.plugins.battery import BatteryLevel
from slurm_bridge.families.vela.plugins.fit import ResourcesFit
from slurm_bridge.families.vela.plugins.geo import GeoLocation
from slurm_bridge.families.vela.plugins.recency import LeastRecentlyUsed
from slurm_bridge.families.vela.plugins.rules import NodeRules
from slurm_bridge.families.vela.scene import FilterPlugin, Rows, SamplingScene, ScorePlugin, Scorer

#: A class with an attribute `Options` (a pydantic model) is made of these, one without of nothing.
PLUGINS: Mapping[str, Callable[..., Any]] = {
    "NodeRules": NodeRules,
    "ResourcesFit": ResourcesFit,
    "GeoLocation": GeoLocation,
    "BatteryLevel": BatteryLevel,
    "LeastRecentlyUsed": LeastRecentlyUsed,
}


class PluginOptions(pydantic.BaseModel, frozen=True, extra="forbid"):
    """One plugin; `weight` counts for scores only. A bare name is a plugin with its defaults."""

    name: Annotated[str, pydantic.Field(min_length=1)]
    weight: Annotated[int, pydantic.Field(ge=1, le=10_000)] = 1
    args: Mapping[str, Any] = {}

    @pydantic.model_validator(mode="before")
    @classmethod
    def _bare(cls, written: Any) -> Any:
        return {"name": written} if isinstance(written, str) else written


class Filter(PluginOptions, frozen=True):
    """A plugin with the method `fits`."""

    @pydantic.model_validator(mode="after")
    def _known(self) -> "Filter":
        _build(self, "fits", "filters")
        return self


class Score(PluginOptions, frozen=True):
    """A plugin with the method `score`."""

    @pydantic.model_validator(mode="after")
    def _known(self) -> "Score":
        _build(self, "score", "scores")
        return self


def filters(configured: Iterable[PluginOptions]) -> tuple[FilterPlugin, ...]:
    """New ones, for one pipeline alone."""
    return tuple(_build(one, "fits", "filters") for one in configured)


def scorers(configured: Iterable[PluginOptions]) -> tuple[Scorer, ...]:
    """Likewise."""
    return tuple(Scorer(name=one.name, weight=one.weight, plugin=_build(one, "score", "scores")) for one in configured)


def _build(one: PluginOptions, method: str, use: str) -> Any:
    """ValueError names the plugin that is not there, not of this use, or not to be configured so."""
    name, foreign = one.name, one.name not in PLUGINS
    allowed = extensions.names(
        extensions.PLUGINS, [known for known, plugin in PLUGINS.items() if hasattr(plugin, method)]
    )
    if name not in allowed:
        raise ValueError(f"plugin {name}: is not one that {use}; these are {', '.join(allowed)}")
    builder: Callable[..., Any] = extensions.find("plugin", extensions.PLUGINS, name, PLUGINS)
    model = getattr(builder, "Options", None)
    if model is None and one.args:
        raise ValueError(f"plugin {name}: takes no args, and is given {', '.join(one.args)}")
    args = () if model is None else (_arguments(model, one.args),)
    has = {method: 2, "rejects": None} if method == "fits" else {method: 2}
    made = extensions.build("plugin", name, functools.partial(builder, *args), has)
    if not foreign:
        return made
    return ForeignFilter(name, made) if method == "fits" else ForeignScore(name, made)


def _arguments(model: type[pydantic.BaseModel], given: Mapping[str, Any]) -> pydantic.BaseModel:
    """The args of a plugin; the place of a mistake in them begins with `args`, as it is written."""
    try:
        return model.model_validate(dict(given))
    except pydantic.ValidationError as wrong:
        rows = [
            InitErrorDetails(
                type=PydanticCustomError(row["type"], row["msg"], row.get("ctx")),
                loc=("args", *row["loc"]),
                input=row["input"],
            )
            for row in wrong.errors(include_url=False)
        ]
        raise pydantic.ValidationError.from_exception_data(wrong.title, rows) from wrong


class ForeignFilter:
    """A filter plugin of a site, whose answers are checked."""

    def __init__(self, name: str, plugin: FilterPlugin) -> None:
        self._name, self._plugin = name, plugin
        self.rejects = str(plugin.rejects)

    def fits(self, scene: SamplingScene, rows: Rows) -> Mask:
        answer = np.asarray(self._plugin.fits(scene, rows))
        if answer.shape != rows.shape or answer.dtype != np.bool_:
            raise ValueError(f"plugin {self._name}: fits has to answer one truth value for each of {len(rows)} nodes")
        return answer


class ForeignScore:
    """A score plugin of a site, likewise."""

    def __init__(self, name: str, plugin: ScorePlugin) -> None:
        self._name, self._plugin = name, plugin

    def score(self, scene: SamplingScene, rows: Rows) -> Whole:
        answer = np.asarray(self._plugin.score(scene, rows))
        if answer.shape != rows.shape or (len(rows) and not 0 <= answer.min() <= answer.max() <= scores.HIGHEST):
            said = f"a number from 0 to {scores.HIGHEST} for each of {len(rows)} nodes"
            raise ValueError(f"plugin {self._name}: score has to answer {said}")
        return answer.astype(np.int64)


USUAL_FILTERS = (Filter(name="NodeRules"), Filter(name="ResourcesFit"))
USUAL_SCORES = (Score(name="ResourcesFit"),)
