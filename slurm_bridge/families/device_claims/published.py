"""The devices of each node, worked out again only for nodes whose ResourceSlices have changed."""

import threading
from collections.abc import Collection, Mapping

from slurm_bridge.cluster.rules import devices
from slurm_bridge.cluster.rules.devices import NodeDevice, NodeInventory
from slurm_bridge.hooks.needs import View
from slurm_bridge.model.devices import ResourceSlice

#: The slices of a node, and the devices in them.
_Known = tuple[list[ResourceSlice], NodeInventory]


class PublishedDevices:
    """Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = -1
        self._nodes: Mapping[str, _Known] = {}

    def on(self, node: str, slices: View) -> tuple[NodeDevice, ...]:
        """The devices of a node that may be given away; the same tuple as long as nothing of them has changed."""
        known = self._current(slices).get(node)
        return known[1].usable if known is not None else ()

    def kept_back(self, node: str, slices: View) -> tuple[NodeDevice, ...]:
        """Its others."""
        known = self._current(slices).get(node)
        return known[1].kept_back if known is not None else ()

    def nodes(self, slices: View) -> Collection[str]:
        """Those of which drivers publish something."""
        return self._current(slices).keys()

    def _current(self, slices: View) -> Mapping[str, _Known]:
        with self._lock:
            if self._version != slices.version:
                self._version = slices.version
                self._nodes = self._followed(slices)
            return self._nodes

    def _followed(self, slices: View) -> Mapping[str, _Known]:
        by_node: dict[str, list[ResourceSlice]] = {}
        for one in slices.all():
            if isinstance(one, ResourceSlice) and one.spec.node_name:
                by_node.setdefault(one.spec.node_name, []).append(one)
        return {node: self._of(node, found) for node, found in by_node.items()}

    def _of(self, node: str, found: list[ResourceSlice]) -> _Known:
        known = self._nodes.get(node)
        # What a watch has not replaced has not changed.
        if known is not None and len(known[0]) == len(found) and all(map(_same, known[0], found)):
            return known
        return found, devices.by_node(found).get(node, NodeInventory())


def _same(one: ResourceSlice, other: ResourceSlice) -> bool:
    return one is other
