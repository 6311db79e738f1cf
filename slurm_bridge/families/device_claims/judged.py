"""What is known of nodes for what pods ask for, as long as neither the node's devices nor the classes have changed."""

import threading
from collections.abc import Collection
from typing import Final, NamedTuple

from slurm_bridge.cluster.rules.devices import NodeDevice
from slurm_bridge.translate.device_claims import AskedDevices, Wish

#: So many wishes are remembered of all namespaces together.
MOST_WISHES: Final = 64


class JudgedNode(NamedTuple):
    """Its devices when it was judged, what it lacks, for how many pods it has some; `forms` are of an open request."""

    devices: tuple[NodeDevice, ...]
    lacks: str
    pods: int
    forms: tuple[AskedDevices, ...] = ()


#: By the name of the node.
Judged = dict[str, JudgedNode]


class JudgedWishes:
    """Where there are too many, the namespace with most of them loses its oldest one. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, dict[Wish, tuple[int, Judged]]] = {}

    def of(self, namespace: str, wish: Wish, classes: int) -> Judged:
        """To be looked at and added to; `classes` is the version of the DeviceClasses."""
        with self._lock:
            ours = self._known.setdefault(namespace, {})
            known = ours.pop(wish, None)
            if known is None or known[0] != classes:
                known = (classes, {})
            ours[wish] = known
            if sum(map(len, self._known.values())) > MOST_WISHES:
                self._make_room()
            return known[1]

    def _make_room(self) -> None:
        name = max(self._known, key=lambda one: len(self._known[one]))
        wishes = self._known[name]
        del wishes[next(iter(wishes))]
        if not wishes:
            del self._known[name]


def forget_gone(judged: Judged, nodes: Collection[str]) -> None:
    """Nodes that publish nothing any more; `nodes` are those that do."""
    if len(judged) > len(nodes):
        for name in list(judged):
            if name not in nodes:
                judged.pop(name, None)
