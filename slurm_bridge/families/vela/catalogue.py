"""Plugins by the name under which configuration asks for them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import pydantic

from slurm_bridge.families.vela.plugins.battery import BatteryLevel
from slurm_bridge.families.vela.plugins.fit import ResourcesFit
from slurm_bridge.families.vela.plugins.geo import GeoLocation
from slurm_bridge.families.vela.plugins.recency import LeastRecentlyUsed
from slurm_bridge.families.vela.plugins.rules import NodeRules
from slurm_bridge.families.vela.scene import FilterPlugin, Scorer

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
    allowed = [name for name, plugin in PLUGINS.items() if hasattr(plugin, method)]
    if one.name not in allowed:
        raise ValueError(f"plugin {one.name}: is not one that {use}; these are {', '.join(allowed)}")
    builder = PLUGINS[one.name]
    model = getattr(builder, "Options", None)
    if model is None and one.args:
        raise ValueError(f"plugin {one.name}: takes no args, and is given {', '.join(one.args)}")
    return builder() if model is None else builder(model.model_validate(dict(one.args)))


USUAL_FILTERS = (Filter(name="NodeRules"), Filter(name="ResourcesFit"))
USUAL_SCORES = (Score(name="ResourcesFit"),)
