"""The pods of ours as last heard: by uid, by controller, and by the node they are on. Fed by watches only."""

import threading
from collections import OrderedDict

from slurm_bridge.model.pod import Pod

#: How many ended pods are remembered, so that their jobs are cancelled without asking whether they really ended.
REMEMBERED = 50_000


class Census:
    """Thread-safe; what is in it is frozen."""

    def __init__(self, *, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._lock = threading.Lock()
        self._pods: dict[str, Pod] = {}
        self._made_by: dict[str, dict[str, None]] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()

    def put(self, old: Pod | None, new: Pod | None) -> None:
        """A pod appeared, changed or went."""
        with self._lock:
            if old is not None:
                self._remove(old)
            if new is not None:
                self._add(new)
            elif old is not None:
                self._bury(old.uid)

    def _add(self, pod: Pod) -> None:
        self._pods[pod.uid] = pod
        for owner in pod.metadata.owner_references:
            self._made_by.setdefault(owner.uid, {})[pod.uid] = None
        if pod.bound and not pod.terminal:
            self._on_node.setdefault(pod.spec.node_name, {})[pod.uid] = None

    def _remove(self, pod: Pod) -> None:
        known = self._pods.pop(pod.uid, None)
        if known is None:
            return
        for owner in known.metadata.owner_references:
            _unfile(self._made_by, owner.uid, pod.uid)
        _unfile(self._on_node, known.spec.node_name, pod.uid)

    def _bury(self, uid: str) -> None:
        self._gone[uid] = None
        while len(self._gone) > self._remembered:
            self._gone.popitem(last=False)

    def get(self, uid: str) -> Pod | None:
        """The pod of this uid, None when it was never there or is gone."""
        return self._pods.get(uid)

    def seen_gone(self, uid: str) -> bool:
        """We watched it go."""
        return uid in self._gone

    def made_by(self, owner_uid: str) -> tuple[str, ...]:
        """The uids of the pods that name this owner."""
        with self._lock:
            return tuple(self._made_by.get(owner_uid, ()))

    def on_node(self, node: str) -> tuple[Pod, ...]:
        """Our pods that are bound there and not over."""
        with self._lock:
            return tuple(self._pods[uid] for uid in self._on_node.get(node, ()))

    def uids(self) -> tuple[str, ...]:
        """Every pod."""
        with self._lock:
            return tuple(self._pods)


def _unfile(files: dict[str, dict[str, None]], name: str, uid: str) -> None:
    filed = files.get(name)
    if filed is None:
        return
    filed.pop(uid, None)
    if not filed:
        del files[name]
