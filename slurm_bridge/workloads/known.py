"""The objects that make or group pods, as known in memory, and how a site wants their pods grouped."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeVar

from slurm_bridge import ports
from slurm_bridge.informers.store import Store
from slurm_bridge.model import kinds, names
from slurm_bridge.model.groups import Job
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import MemberLost

T = TypeVar("T", bound=Object)

#: The index of Jobs by the run of the JobSet that made them.
BY_RUN: Final = "run"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings for objects that do not say otherwise; `member_lost` None: the policy of the kind.

    `creators`: the records of the users that created objects count.
    """

    job: Literal["pod", "gang"] = "pod"
    jobset: Literal["auto", "gang", "replicatedjob", "pod"] = "auto"
    member_lost: MemberLost | None = None
    creators: bool = False


class Known(Protocol):
    """Objects that make or group pods. The daemon's implementation reads memory only, because every pod asks it."""

    def served(self, kind: Kind[T]) -> bool:
        """The cluster has this kind, and its objects are known."""

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """The object of this name as last delivered."""

    def spent(self, namespace: str, run: str) -> Sequence[Job]:
        """The Jobs of this run of a JobSet (see `run_of`) that need fewer pods than in the beginning."""


class NoObjects:
    """No kind is served, and no object known."""

    def served(self, _kind: Kind[T]) -> bool:
        """Never."""
        return False

    def find(self, _kind: Kind[T], _namespace: str, _name: str) -> T | None:
        """Never."""
        return None

    def spent(self, _namespace: str, _run: str) -> Sequence[Job]:
        """None."""
        return ()


NOTHING: Known = NoObjects()


class Stores:
    """The stores of informers. `stores` may gain kinds later; a kind counts as served after its first list."""

    def __init__(self, stores: Mapping[Kind[Any], Store[Any]]) -> None:
        self._stores = stores

    def served(self, kind: Kind[T]) -> bool:
        """The store of the kind holds a whole list."""
        store = self._stores.get(kind)
        return store is not None and store.synced

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """The object in the store of its kind."""
        store = self._stores.get(kind)
        return store.get(namespace, name) if store is not None else None

    def spent(self, namespace: str, run: str) -> Sequence[Job]:
        """Read from an index, so that a JobSet of thousands of Jobs that have not finished a pod costs nothing."""
        store = self._stores.get(kinds.JOBS)
        return store.where(BY_RUN, f"{namespace}/{run}") if store is not None else ()


class DirectObjects:
    """Reads from the API server each time: for commands that run once."""

    def __init__(self, cluster: ports.Cluster) -> None:
        self._cluster = cluster

    def served(self, kind: Kind[T]) -> bool:
        """As the API server says."""
        return self._cluster.served(kind) is not None

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """As the API server says."""
        return self._cluster.get(kind, namespace, name) if self.served(kind) else None

    def spent(self, namespace: str, run: str) -> Sequence[Job]:
        """Filtered from all Jobs of the JobSet."""
        uid, _, _ = run.partition(":")
        scope = ports.Scope(namespace=namespace, labels=f"{names.LABEL_JOBSET_UID}={uid}")
        return tuple(job for job in self._cluster.list(kinds.JOBS, scope).items if f"{namespace}/{run}" in runs(job))


def wants_node(pod: Pod) -> bool:
    """The pod is alive and has no node and no scheduling gate: such a pod counts as a member that is there."""
    return not (pod.terminal or pod.terminating or pod.bound or pod.gated)


def run_of(marked: Object, uid: str) -> str:
    """The run of the JobSet with this uid that a Job or pod belongs to: `<uid>:<attempt>`."""
    return f"{uid}:{marked.metadata.labels.get(names.LABEL_JOBSET_ATTEMPT, '0')}"


def runs(job: Job) -> Sequence[str]:
    """The key of a Job in the index BY_RUN, where it needs fewer pods than in the beginning.

    Only its controller tells to which JobSet it belongs: any user may write labels.
    """
    above = kinds.JOBSETS.maker_of(job)
    if above is None or job.pods_to_come >= job.spec.pods:
        return ()
    return (f"{job.metadata.namespace}/{run_of(job, above.uid)}",)


def meaning(found: Object) -> object:
    """The part of an object that matters to its pods. The rest is progress, which changes all the time."""
    metadata = found.metadata
    spec = getattr(found, "spec", None)
    return metadata.uid, metadata.annotations, metadata.labels, metadata.owner_references, spec
