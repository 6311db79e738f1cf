"""Pods that have been promised a node and are not on it yet: other pods there have to leave room for them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from slurm_bridge.model.pod import Pod

ByNode = Mapping[str, Sequence[Pod]]

#: No pod was promised a node.
NOBODY: ByNode = MappingProxyType({})


class Nominations:
    """Fed with every pod; there are few promises at a time, mostly none."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._by_node = NOBODY

    def hear(self, uid: str, pod: Pod | None) -> bool:
        """What a pod is now, None when it is gone; whether that changes anything here."""
        waits = pod is not None and not pod.bound and not pod.terminal
        promised = pod if pod is not None and waits and pod.status.nominated_node_name else None
        known = self._pods.get(uid)
        if promised is None and known is None:
            return False
        if promised is not None and known is not None:
            same = promised.status.nominated_node_name == known.status.nominated_node_name
            if same and promised.spec == known.spec:
                return False
        self._pods.pop(uid, None)
        if promised is not None:
            self._pods[uid] = promised
        found: dict[str, list[Pod]] = {}
        for one in self._pods.values():
            found.setdefault(one.status.nominated_node_name or "", []).append(one)
        self._by_node = MappingProxyType({node: tuple(some) for node, some in found.items()})
        return True

    @property
    def by_node(self) -> ByNode:
        """The pods by the node that they were promised; the same object again while nothing changed."""
        return self._by_node
