"""Reads the cluster: a snapshot for the hooks, the objects that they need, and the placeholders of pods."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from slurm_bridge import errors, ports
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.snapshot import EMPTY, ClusterSnapshot
from slurm_bridge.hooks import needs as needs_table
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.model import kinds, names
from slurm_bridge.model.groups import Job
from slurm_bridge.model.job import JobView, Phase
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.meta import Object
from slurm_bridge.model.names import JobId
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler import records
from slurm_bridge.scheduler.ids import IdRange
from slurm_bridge.translate import resources
from slurm_bridge.workloads import kind_table
from slurm_bridge.workloads.known import Known

T = TypeVar("T", bound=Object)

#: The ids of this many attempts are read one by one before all jobs are listed.
_ATTEMPTS = 4


class ListedObjects:
    """Implements needs.View on one list."""

    def __init__(self, kind: Kind[Any], items: Iterable[Object]) -> None:
        self._kind = kind
        self._items = {item.key: item for item in items}
        self._all = tuple(self._items.values())

    def get(self, namespace: str, name: str) -> Object | None:
        return self._items.get((namespace, name))

    def all(self) -> Sequence[Object]:
        return self._all

    def where(self, index: str, value: str) -> Sequence[Object]:
        """Nothing is filed: what is looked at once costs no more without an index."""
        values = kind_table.INDEXES[self._kind][index]
        return tuple(one for one in self._all if value in values(one))

    @property
    def version(self) -> int:
        return 0

    def __len__(self) -> int:
        return len(self._items)


@dataclasses.dataclass(frozen=True, slots=True)
class Servers:
    """The ports to both servers."""

    cluster: ports.Cluster
    slurm: ports.Slurm


class CurrentSnapshot:
    """The snapshot of this explanation, for hooks that read it in the background; empty before it was taken."""

    def __init__(self) -> None:
        self.seen = EMPTY

    def __call__(self) -> ClusterSnapshot:
        return self.seen


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterView:
    """Nodes of both servers and what pods use of them, at one moment; `bound` are the pods that have a node."""

    keeper: ClusterCache
    bound: Sequence[Pod]

    @property
    def snapshot(self) -> ClusterSnapshot:
        """The snapshot that hooks get."""
        return self.keeper.snapshot()


def scene(servers: Servers) -> ClusterView:
    """Read the current state."""
    keeper = ClusterCache(resources.requests_of)
    for node in servers.cluster.list(kinds.NODES).items:
        keeper.on_node(None, node)
    bound = servers.cluster.list(kinds.PODS, ports.Scope(fields="spec.nodeName!=")).items
    for pod in bound:
        keeper.on_pod(None, pod)
    keeper.set_slurm(servers.slurm.nodes(), servers.slurm.partitions(), heterogeneous=servers.slurm.heterogeneous())
    return ClusterView(keeper, bound)


def views(cluster: ports.Cluster, needs: Iterable[Need]) -> Mapping[Need, View]:
    """The objects that hooks declare that they need, and the optional kinds as far as they are served."""
    found = {need: _listed(cluster, needs_table.KINDS[need]) for need in needs}
    served = (need for need in needs_table.OPTIONAL if cluster.served(needs_table.KINDS[need]) is not None)
    return {**{need: _listed(cluster, needs_table.KINDS[need]) for need in served}, **found}


def _listed(cluster: ports.Cluster, kind: Kind[Object]) -> ListedObjects:
    return ListedObjects(kind, cluster.list(kind).items)


def pod(cluster: ports.Cluster, namespace: str, name: str) -> Pod:
    """The pod of this name; NotFound without one."""
    found = cluster.get(kinds.PODS, namespace, name)
    if found is None:
        raise errors.NotFound(f"there is no pod {name} in namespace {namespace}")
    return found


def mates(cluster: ports.Cluster, namespace: str) -> Iterable[Pod]:
    """All pods of a namespace."""
    return cluster.list(kinds.PODS, ports.Scope(namespace=namespace)).items


class CachedKnown:
    """Implements Known on another one, which is asked for each object once."""

    def __init__(self, inquiry: Known) -> None:
        self._asked = inquiry
        self._served: dict[Kind[Any], bool] = {}
        self._found: dict[tuple[Kind[Any], str, str], Object | None] = {}
        self._spent: dict[tuple[str, str], Sequence[Job]] = {}

    def served(self, kind: Kind[T]) -> bool:
        """As it was at the first call."""
        if kind not in self._served:
            self._served[kind] = self._asked.served(kind)
        return self._served[kind]

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """As it was at the first call."""
        key = (kind, namespace, name)
        if key not in self._found:
            self._found[key] = self._asked.find(kind, namespace, name)
        return cast("T | None", self._found[key])

    def spent(self, namespace: str, run: str) -> Sequence[Job]:
        """As they were at the first call."""
        key = (namespace, run)
        if key not in self._spent:
            self._spent[key] = self._asked.spent(namespace, run)
        return self._spent[key]


def jobs(slurm: ports.Slurm, seen: Iterable[Pod], owner: Owner, ids: IdRange | None) -> Sequence[JobView]:
    """The placeholders of these pods, the latest last: by the ids on the pods, by chosen ids, else by a scan."""
    read = map(slurm.job, _ids(seen, owner, ids))
    found = [view for view in read if view is not None and view.owner is not None and view.owner.same_workload(owner)]
    alive = [view for view in found if view.state.phase is not Phase.ENDED]
    return sorted(found if alive else slurm.find(owner), key=_attempt)


def _ids(seen: Iterable[Pod], owner: Owner, ids: IdRange | None) -> Iterable[JobId]:
    labels = (pod.metadata.labels.get(names.LABEL_JOB_ID, "") for pod in seen)
    carried = [JobId(int(label)) for label in labels if label.isascii() and label.isdigit()]
    chosen = (
        [ids.choose(records.for_attempt(owner, number, request="", plan="", members="")) for number in range(_ATTEMPTS)]
        if ids is not None
        else []
    )
    return dict.fromkeys([*carried, *chosen])


def _attempt(view: JobView) -> tuple[int, int]:
    return (view.owner.attempt if view.owner is not None else 0, view.submit_time)
