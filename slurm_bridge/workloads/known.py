"""What is known of the objects that make or group pods, without asking anybody; and how sites want them treated."""

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
    """What holds where an object does not say; `member_lost` None: as its kind suggests."""

    job: Literal["pod", "gang"] = "pod"
    jobset: Literal["auto", "gang", "replicatedjob", "pod"] = "auto"
    member_lost: MemberLost | None = None


class Known(Protocol):
    """Objects that make or group pods. What the daemon uses reads memory only: it is asked for every pod."""

    def served(self, kind: Kind[T]) -> bool:
        """The cluster has this kind, and its objects are known."""

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """The object of this name as last heard."""

    def spent(self, namespace: str, run: str) -> Sequence[Job]:
        """The Jobs of this run of a JobSet there (see `run_of`) that need fewer pods than in the beginning."""


class NoObjects:
    """Knows no kind, and no object."""

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
    """What informers hold. `stores` may gain kinds later, and a kind counts as soon as its first list is there."""

    def __init__(self, stores: Mapping[Kind[Any], Store[Any]]) -> None:
        self._stores = stores

    def served(self, kind: Kind[T]) -> bool:
        """Its informer runs and has a whole list."""
        store = self._stores.get(kind)
        return store is not None and store.synced

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """From the store of that kind."""
        store = self._stores.get(kind)
        return store.get(namespace, name) if store is not None else None

    def spent(self, namespace: str, run: str) -> Sequence[Job]:
        """By an index, so that a JobSet of thousands of Jobs that have only begun costs nothing."""
        store = self._stores.get(kinds.JOBS)
        return store.where(BY_RUN, f"{namespace}/{run}") if store is not None else ()


class Asked:
    """Asks the server each time: for programs that look once."""

    def __init__(self, cluster: ports.Cluster) -> None:
        self._cluster = cluster

    def served(self, kind: Kind[T]) -> bool:
        """As the server says."""
        return self._cluster.served(kind) is not None

    def find(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """As the server says."""
        return self._cluster.get(kind, namespace, name) if self.served(kind) else None

    def spent(self, namespace: str, run: str) -> Sequence[Job]:
        """Out of all Jobs of the JobSet."""
        uid, _, _ = run.partition(":")
        scope = ports.Scope(namespace=namespace, labels=f"{names.LABEL_JOBSET_UID}={uid}")
        return tuple(job for job in self._cluster.list(kinds.JOBS, scope).items if f"{namespace}/{run}" in runs(job))


def wants_node(pod: Pod) -> bool:
    """It is alive, nobody holds it back, and it has no node: what counts as a member that is there."""
    return not (pod.terminal or pod.terminating or pod.bound or pod.gated)


def run_of(marked: Object, uid: str) -> str:
    """Which run of the JobSet with this uid a Job or pod of it belongs to: `<uid>:<attempt>`."""
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
    """What counts of an object for the pods that it speaks for. The rest is progress, which changes all the time."""
    metadata = found.metadata
    spec = getattr(found, "spec", None)
    return metadata.uid, metadata.annotations, metadata.labels, metadata.owner_references, spec
