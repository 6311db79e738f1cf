"""GeoLocation: nodes near the place that the pod names."""

import math
import re
from typing import ClassVar, NamedTuple

import numpy as np
import pydantic
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Mask, NodeColumns, Whole
from slurm_bridge.families.vela.scene import Rows, SamplingScene, SceneCache, UnreadablePod, same_node
from slurm_bridge.model import names, texts
from slurm_bridge.model.node import Node

EARTH_RADIUS_KM = 6371.0
MAX_DISTANCE_KM = 10.0

#: In degrees; NaN where a node does not say where it is.
Degrees = NDArray[np.float64]


class Coordinates(NamedTuple):
    """In degrees."""

    latitude: float
    longitude: float


_NUMBER = r"[+-]?[0-9]{1,3}(?:\.[0-9]{1,12})?"
_PLACE = re.compile(rf"\s*({_NUMBER})\s*,\s*({_NUMBER})\s*")


def parse(text: str) -> Coordinates:
    """`48.2,16.37`; ValueError for anything else."""
    found = _PLACE.fullmatch(text)
    place = Coordinates(float(found[1]), float(found[2])) if found else None
    if place is None or abs(place.latitude) > 90 or abs(place.longitude) > 180:  # noqa: PLR2004 - degrees
        raise ValueError(f"{texts.shown(text)!r} is not LATITUDE,LONGITUDE in degrees, such as 48.2,16.37")
    return place


def distance(target: Coordinates, latitudes: Degrees, longitudes: Degrees) -> NDArray[np.float64]:
    """Kilometres along the great circle; NaN for nodes without a place."""
    here, there = np.radians(target.latitude), np.radians(latitudes)
    along = np.radians(longitudes - target.longitude)
    half = np.sin((there - here) / 2) ** 2 + np.cos(here) * np.cos(there) * np.sin(along / 2) ** 2
    kilometres: NDArray[np.float64] = 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(half, 1.0)))
    return kilometres


def fits(target: Coordinates | None, latitudes: Degrees, longitudes: Degrees, most: float = MAX_DISTANCE_KM) -> Mask:
    """Not farther than that, and known to be; without a target every node."""
    if target is None:
        return np.ones(len(latitudes), np.bool_)
    return distance(target, latitudes, longitudes) <= most


def score(target: Coordinates | None, latitudes: Degrees, longitudes: Degrees, most: float = MAX_DISTANCE_KM) -> Whole:
    """100 at the target itself, 1 at the farthest that is allowed; 0 beyond, and for unknown distances."""
    if target is None:
        return np.full(len(latitudes), 100, np.int64)
    kilometres = distance(target, latitudes, longitudes)
    return np.where(kilometres <= most, np.ceil(100 - 99 * kilometres / most), 0).astype(np.int64)


class GeoOptions(pydantic.BaseModel, frozen=True, extra="forbid"):
    """The annotations: where a node is, where a pod wants to be, and how far away at most (kilometres)."""

    node_location: str = names.NODE_PREFIX + "geo-location"
    pod_target: str = names.SCHEDULER_PREFIX + "geo-target"
    pod_max_distance_km: str = names.SCHEDULER_PREFIX + "geo-max-distance-km"
    max_distance_km: float = pydantic.Field(default=MAX_DISTANCE_KM, gt=0)


class GeoLocation:
    """The rule over annotations; a pod without a target may be anywhere."""

    Options: ClassVar = GeoOptions
    rejects: ClassVar = "are too far away from its target, or nowhere"

    def __init__(self, options: GeoOptions) -> None:
        self._options = options
        self._places: SceneCache[str, tuple[Degrees, Degrees]] = SceneCache(same_node)

    def fits(self, scene: SamplingScene, rows: Rows) -> Mask:
        return fits(self._target(scene), *self._where(scene, rows), self._most(scene))

    def score(self, scene: SamplingScene, rows: Rows) -> Whole:
        return score(self._target(scene), *self._where(scene, rows), self._most(scene))

    def _target(self, scene: SamplingScene) -> Coordinates | None:
        written = scene.pod.metadata.annotations.get(self._options.pod_target)
        try:
            return parse(written) if written else None
        except ValueError as wrong:
            raise UnreadablePod(f"annotation {self._options.pod_target}: {wrong}") from None

    def _most(self, scene: SamplingScene) -> float:
        written = scene.pod.metadata.annotations.get(self._options.pod_max_distance_km)
        most = _number(written) if written else self._options.max_distance_km
        if not 0 < most < math.inf:
            said = texts.shown(written or "")
            raise UnreadablePod(f"annotation {self._options.pod_max_distance_km}: {said!r} is not a number above 0")
        return most

    def _where(self, scene: SamplingScene, rows: Rows) -> tuple[Degrees, Degrees]:
        latitudes, longitudes = self._places.get(scene.nodes, "", lambda: self._read(scene.nodes))
        return latitudes[rows], longitudes[rows]

    def _read(self, nodes: NodeColumns) -> tuple[Degrees, Degrees]:
        key = self._options.node_location

        def written(node: Node) -> str | None:
            return node.metadata.annotations.get(key)

        coded = nodes.of_node(f"annotation {key}", written)
        places = [_place(text) for text in coded.values]
        table = np.array([*places, (np.nan, np.nan)], np.float64)[coded.codes]
        return table[:, 0], table[:, 1]


def _number(text: str) -> float:
    """NaN for what is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _place(text: str | None) -> tuple[float, float]:
    """A node with an unreadable place is a node without one."""
    try:
        return parse(text or "")
    except ValueError:
        return np.nan, np.nan
