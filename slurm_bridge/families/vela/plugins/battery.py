"""BatteryLevel: nodes whose battery is full enough, where the pod asks for that."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pydantic

from slurm_bridge.cluster.columns import Coded, Mask, NodeColumns
from slurm_bridge.families.vela.scene import Rows, SamplingScene, UnreadablePod
from slurm_bridge.model import names, texts
from slurm_bridge.model.node import Node


def enough(
    level: int | None, capacity_mah: int | None, *, min_level: int | None, min_capacity_mah: int | None = None
) -> bool:
    """Whether a node passes: only a pod with a minimum level asks at all, and a node without a level has no battery."""
    if min_level is None or level is None:
        return True
    if capacity_mah is None:
        return False
    return level >= min_level and capacity_mah >= (min_capacity_mah or 0)


class BatteryOptions(pydantic.BaseModel, frozen=True, extra="forbid"):
    """The node labels with what a battery has, and the annotations with what a pod wants: percent, and mAh."""

    node_level: str = names.NODE_PREFIX + "battery-level"
    node_capacity_mah: str = names.NODE_PREFIX + "battery-capacity-mah"
    pod_min_level: str = names.SCHEDULER_PREFIX + "battery-min-level"
    pod_min_capacity_mah: str = names.SCHEDULER_PREFIX + "battery-min-capacity-mah"


class BatteryLevel:
    """The rule over labels and annotations."""

    Options: ClassVar = BatteryOptions
    rejects: ClassVar = "have too little in their battery"

    def __init__(self, options: BatteryOptions) -> None:
        self._options = options

    def fits(self, scene: SamplingScene, rows: Rows) -> Mask:
        annotations = scene.pod.metadata.annotations
        min_level = _wanted(annotations, self._options.pod_min_level)
        if min_level is None:
            return np.ones(len(rows), np.bool_)
        min_capacity = _wanted(annotations, self._options.pod_min_capacity_mah)
        passed = self._batteries(scene.nodes).where(
            lambda battery: enough(*battery, min_level=min_level, min_capacity_mah=min_capacity)
        )
        return passed[rows]

    def _batteries(self, nodes: NodeColumns) -> Coded[tuple[int | None, int | None]]:
        level, capacity = self._options.node_level, self._options.node_capacity_mah

        def battery(node: Node) -> tuple[int | None, int | None]:
            labels = node.metadata.labels
            return _number(labels.get(level)), _number(labels.get(capacity))

        return nodes.of_node(f"battery {level} {capacity}", battery)


def _wanted(annotations: Mapping[str, str], key: str) -> int | None:
    written = annotations.get(key)
    if written is not None and _number(written) is None:
        raise UnreadablePod(f"annotation {key}: {texts.shown(written)!r} is not a whole number")
    return _number(written)


def _number(text: str | None) -> int | None:
    """None for what is not a whole number: such a node says nothing about its battery."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 18 else None  # noqa: PLR2004 - within 64 bits
