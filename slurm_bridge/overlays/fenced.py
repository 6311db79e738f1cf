"""Refuses writes as soon as the lead is lost: a replica that may have been replaced must not act any more.

An order that was sent already is not fenced. Preconditions, chosen job ids and owner records prevent what must not
happen twice; the fence keeps the number of such races small.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from slurm_bridge import errors, ports
from slurm_bridge.model.job import JobAllocation, JobRequest, JobStates, JobView, Outcome
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.lease import Lease
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.meta import Manifest, Object
from slurm_bridge.model.names import JobId
from slurm_bridge.model.reservation import Reservation
from slurm_bridge.model.slurmnode import NewNodes, NodeChange, NodeListing, Partition, SlurmNode

T = TypeVar("T", bound=Object)


class _Fence:
    """Checks the lead before every write."""

    def __init__(self, allowed: Callable[[], bool]) -> None:
        self._allowed = allowed

    def check(self, order: str) -> None:
        """Raise unless this replica leads."""
        if not self._allowed():
            raise errors.NotLeading(f"{order}: not sent, this replica does not lead")


class FencedSlurm:
    """Implements ports.Slurm."""

    def __init__(self, inner: ports.Slurm, allowed: Callable[[], bool]) -> None:
        self._inner = inner
        self._fence = _Fence(allowed)

    def heterogeneous(self) -> bool:
        return self._inner.heterogeneous()

    def submit(self, request: JobRequest) -> Outcome:
        self._fence.check("submit")
        return self._inner.submit(request)

    def update(self, job_id: JobId, request: JobRequest) -> Outcome:
        self._fence.check("update")
        return self._inner.update(job_id, request)

    def cancel(self, job_id: JobId) -> Outcome:
        self._fence.check("cancel")
        return self._inner.cancel(job_id)

    def cancel_many(self, job_ids: Sequence[JobId]) -> Mapping[JobId, Outcome]:
        self._fence.check("cancel_many")
        return self._inner.cancel_many(job_ids)

    def note(self, job_id: JobId, owner: Owner) -> Outcome:
        self._fence.check("note")
        return self._inner.note(job_id, owner)

    def assign(self, job_id: JobId, owner: Owner, reservation: str, priority: int | None) -> Outcome:
        self._fence.check("assign")
        return self._inner.assign(job_id, owner, reservation, priority)

    def reserve(self, name: str, nodes: Sequence[str], user: str, seconds: int) -> Outcome:
        self._fence.check("reserve")
        return self._inner.reserve(name, nodes, user, seconds)

    def unreserve(self, name: str) -> Outcome:
        self._fence.check("unreserve")
        return self._inner.unreserve(name)

    def reservations(self) -> Sequence[Reservation]:
        return self._inner.reservations()

    def states(self, job_ids: Collection[JobId] | None = None) -> Mapping[JobId, JobStates]:
        return self._inner.states(job_ids)

    def job(self, job_id: JobId) -> JobView | None:
        return self._inner.job(job_id)

    def components(self, job_id: JobId) -> Sequence[JobView]:
        return self._inner.components(job_id)

    def jobs(self) -> Sequence[JobView]:
        return self._inner.jobs()

    def allocation(self, job_id: JobId) -> JobAllocation | None:
        return self._inner.allocation(job_id)

    def find(self, owner: Owner) -> Sequence[JobView]:
        return self._inner.find(owner)

    def nodes(self) -> Sequence[SlurmNode]:
        return self._inner.nodes()

    def partitions(self) -> Sequence[Partition]:
        return self._inner.partitions()

    def node_listing(self, seen: NodeListing | None = None) -> NodeListing:
        return self._inner.node_listing(seen)

    def change_nodes(self, names: Collection[str], change: NodeChange) -> Outcome:
        self._fence.check("change_nodes")
        return self._inner.change_nodes(names, change)

    def create_nodes(self, new: NewNodes) -> Outcome:
        self._fence.check("create_nodes")
        return self._inner.create_nodes(new)

    def delete_nodes(self, names: Collection[str]) -> Outcome:
        self._fence.check("delete_nodes")
        return self._inner.delete_nodes(names)


class FencedCluster:
    """Implements ports.Cluster; the Lease itself is not fenced, or no replica could ever win it."""

    def __init__(self, inner: ports.Cluster, allowed: Callable[[], bool]) -> None:
        self._inner = inner
        self._fence = _Fence(allowed)

    def served(self, kind: Kind[T]) -> str | None:
        return self._inner.served(kind)

    def list(self, kind: Kind[T], scope: ports.Scope = ports.EVERYWHERE) -> ports.Listing[T]:
        return self._inner.list(kind, scope)

    def watch(self, kind: Kind[T], since: str, scope: ports.Scope = ports.EVERYWHERE) -> ports.Changes[T]:
        return self._inner.watch(kind, since, scope)

    def get(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        return self._inner.get(kind, namespace, name)

    def create(self, kind: Kind[T], namespace: str, manifest: Manifest) -> T:
        self._fence.check("create")
        return self._inner.create(kind, namespace, manifest)

    def patch(self, kind: Kind[T], target: T, changes: Manifest, subresource: str = "") -> T:
        self._fence.check("patch")
        return self._inner.patch(kind, target, changes, subresource)

    def delete(self, kind: Kind[T], target: T, grace_seconds: int | None = None, version: str = "") -> None:
        self._fence.check("delete")
        self._inner.delete(kind, target, grace_seconds, version)

    def evict(self, namespace: str, name: str, uid: str) -> None:
        self._fence.check("evict")
        self._inner.evict(namespace, name, uid)

    def bind(self, binding: ports.Binding) -> None:
        self._fence.check("bind")
        self._inner.bind(binding)

    def event(self, note: ports.Note) -> None:
        self._fence.check("event")
        self._inner.event(note)

    def lease(self, namespace: str, name: str) -> Lease | None:
        return self._inner.lease(namespace, name)

    def write_lease(self, lease: Lease) -> Lease:
        return self._inner.write_lease(lease)
