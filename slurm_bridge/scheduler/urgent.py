"""The workloads that react: namespaces take turns, and within a namespace the first that came is the first served."""

from collections import OrderedDict

from slurm_bridge.model.names import WorkloadKey


class Urgent:
    """Not thread-safe: the queue calls it under its lock."""

    def __init__(self) -> None:
        self._namespaces: dict[WorkloadKey, str] = {}
        self._lines: OrderedDict[str, OrderedDict[WorkloadKey, None]] = OrderedDict()

    def __contains__(self, uid: WorkloadKey) -> bool:
        return uid in self._namespaces

    def __len__(self) -> int:
        return len(self._namespaces)

    def push(self, namespace: str, uid: WorkloadKey) -> None:
        """One more, unless it is there already."""
        if uid not in self._namespaces:
            self._namespaces[uid] = namespace
            self._lines.setdefault(namespace, OrderedDict())[uid] = None

    def pop(self) -> WorkloadKey | None:
        """The first of the namespace whose turn it is; that namespace is last then."""
        if not self._lines:
            return None
        namespace, line = self._lines.popitem(last=False)
        uid, _ = line.popitem(last=False)
        del self._namespaces[uid]
        if line:
            self._lines[namespace] = line
        return uid
