"""Reports how long each call took, and how it ended."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from slurm_bridge import errors, ports
from slurm_bridge.model.callers import Caller, Token
from slurm_bridge.model.job import Done, JobAllocation, JobRequest, JobStates, JobView, Outcome, Refused
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.lease import Lease
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.meta import Manifest, Object
from slurm_bridge.model.names import JobId
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.reservation import Reservation
from slurm_bridge.model.slurmnode import NewNodes, NodeChange, NodeListing, Partition, SlurmNode

T = TypeVar("T", bound=Object)

#: Called with the operation, how it ended, and its seconds.
Observe = Callable[[str, str, float], None]


class _Meter:
    """Measures; an error counts under its own name."""

    def __init__(self, clock: ports.Clock, observe: Observe) -> None:
        self._clock = clock
        self._observe = observe

    @contextlib.contextmanager
    def reading(self, operation: str) -> Iterator[None]:
        """Measures a call that succeeds unless it raises."""
        begin = self._clock.now()
        outcome = "error"
        try:
            yield
            outcome = "ok"
        except errors.BridgeError as error:
            outcome = type(error).__name__
            raise
        finally:
            self._observe(operation, outcome, self._clock.now() - begin)

    def order(self, operation: str, give: Callable[[], Outcome]) -> Outcome:
        """Measures a call whose outcome says how it ended."""
        begin = self._clock.now()
        ended = "error"
        try:
            outcome = give()
            ended = "ok" if isinstance(outcome, Done) else "unknown"
            if isinstance(outcome, Refused):
                ended = outcome.why.name.lower()
        except errors.BridgeError as error:
            ended = type(error).__name__
            raise
        finally:
            self._observe(operation, ended, self._clock.now() - begin)
        return outcome


class MeteredSlurm:
    """Implements ports.Slurm."""

    def __init__(self, inner: ports.Slurm, clock: ports.Clock, observe: Observe) -> None:
        self._inner = inner
        self._meter = _Meter(clock, observe)

    def heterogeneous(self) -> bool:
        with self._meter.reading("heterogeneous"):
            return self._inner.heterogeneous()

    def submit(self, request: JobRequest) -> Outcome:
        return self._meter.order("submit", lambda: self._inner.submit(request))

    def update(self, job_id: JobId, request: JobRequest) -> Outcome:
        return self._meter.order("update", lambda: self._inner.update(job_id, request))

    def cancel(self, job_id: JobId) -> Outcome:
        return self._meter.order("cancel", lambda: self._inner.cancel(job_id))

    def cancel_many(self, job_ids: Sequence[JobId]) -> Mapping[JobId, Outcome]:
        with self._meter.reading("cancel_many"):
            return self._inner.cancel_many(job_ids)

    def note(self, job_id: JobId, owner: Owner) -> Outcome:
        return self._meter.order("note", lambda: self._inner.note(job_id, owner))

    def assign(self, job_id: JobId, owner: Owner, reservation: str, priority: int | None) -> Outcome:
        return self._meter.order("assign", lambda: self._inner.assign(job_id, owner, reservation, priority))

    def reserve(self, name: str, nodes: Sequence[str], user: str, seconds: int) -> Outcome:
        return self._meter.order("reserve", lambda: self._inner.reserve(name, nodes, user, seconds))

    def unreserve(self, name: str) -> Outcome:
        return self._meter.order("unreserve", lambda: self._inner.unreserve(name))

    def reservations(self) -> Sequence[Reservation]:
        with self._meter.reading("reservations"):
            return self._inner.reservations()

    def states(self, job_ids: Collection[JobId] | None = None) -> Mapping[JobId, JobStates]:
        with self._meter.reading("states" if job_ids is not None else "states_all"):
            return self._inner.states(job_ids)

    def job(self, job_id: JobId) -> JobView | None:
        with self._meter.reading("job"):
            return self._inner.job(job_id)

    def components(self, job_id: JobId) -> Sequence[JobView]:
        with self._meter.reading("components"):
            return self._inner.components(job_id)

    def jobs(self) -> Sequence[JobView]:
        with self._meter.reading("jobs"):
            return self._inner.jobs()

    def allocation(self, job_id: JobId) -> JobAllocation | None:
        with self._meter.reading("allocation"):
            return self._inner.allocation(job_id)

    def find(self, owner: Owner) -> Sequence[JobView]:
        with self._meter.reading("find"):
            return self._inner.find(owner)

    def nodes(self) -> Sequence[SlurmNode]:
        with self._meter.reading("nodes"):
            return self._inner.nodes()

    def partitions(self) -> Sequence[Partition]:
        with self._meter.reading("partitions"):
            return self._inner.partitions()

    def node_listing(self, seen: NodeListing | None = None) -> NodeListing:
        with self._meter.reading("node_listing"):
            return self._inner.node_listing(seen)

    def change_nodes(self, names: Collection[str], change: NodeChange) -> Outcome:
        return self._meter.order("change_nodes", lambda: self._inner.change_nodes(names, change))

    def create_nodes(self, new: NewNodes) -> Outcome:
        return self._meter.order("create_nodes", lambda: self._inner.create_nodes(new))

    def delete_nodes(self, names: Collection[str]) -> Outcome:
        return self._meter.order("delete_nodes", lambda: self._inner.delete_nodes(names))


class MeteredCluster:
    """Implements ports.Cluster; of a watch, the opening is measured."""

    def __init__(self, inner: ports.Cluster, clock: ports.Clock, observe: Observe) -> None:
        self._inner = inner
        self._meter = _Meter(clock, observe)

    def served(self, kind: Kind[T]) -> str | None:
        # Nearly always answered from memory: not measured.
        return self._inner.served(kind)

    def list(self, kind: Kind[T], scope: ports.Scope = ports.EVERYWHERE) -> ports.Listing[T]:
        with self._meter.reading(f"list_{kind.plural}"):
            return self._inner.list(kind, scope)

    def watch(self, kind: Kind[T], since: str, scope: ports.Scope = ports.EVERYWHERE) -> ports.Changes[T]:
        with self._meter.reading(f"watch_{kind.plural}"):
            return self._inner.watch(kind, since, scope)

    def get(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        with self._meter.reading(f"get_{kind.plural}"):
            return self._inner.get(kind, namespace, name)

    def create(self, kind: Kind[T], namespace: str, manifest: Manifest) -> T:
        with self._meter.reading(f"create_{kind.plural}"):
            return self._inner.create(kind, namespace, manifest)

    def patch(self, kind: Kind[T], target: T, changes: Manifest, subresource: str = "") -> T:
        with self._meter.reading("_".join(filter(None, ("patch", kind.plural, subresource)))):
            return self._inner.patch(kind, target, changes, subresource)

    def delete(self, kind: Kind[T], target: T, grace_seconds: int | None = None, version: str = "") -> None:
        with self._meter.reading(f"delete_{kind.plural}"):
            self._inner.delete(kind, target, grace_seconds, version)

    def evict(self, namespace: str, name: str, uid: str) -> None:
        with self._meter.reading("evict"):
            self._inner.evict(namespace, name, uid)

    def bind(self, binding: ports.Binding) -> None:
        with self._meter.reading("bind"):
            self._inner.bind(binding)

    def event(self, note: ports.Note) -> None:
        with self._meter.reading("event"):
            self._inner.event(note)

    def lease(self, namespace: str, name: str) -> Lease | None:
        with self._meter.reading("get_leases"):
            return self._inner.lease(namespace, name)

    def write_lease(self, lease: Lease) -> Lease:
        with self._meter.reading("write_leases"):
            return self._inner.write_lease(lease)


class MeteredCallers:
    """Implements ports.Callers; a caller without the right counts as an error."""

    def __init__(self, inner: ports.Callers, clock: ports.Clock, observe: Observe) -> None:
        self._inner = inner
        self._meter = _Meter(clock, observe)

    def who(self, token: Token) -> Caller | None:
        with self._meter.reading("review_tokens"):
            return self._inner.who(token)

    def may(self, token: Token, verb: str, kind: Kind[T], namespace: str = "") -> bool:
        with self._meter.reading("review_access"):
            return self._inner.may(token, verb, kind, namespace)

    def create_pod(self, namespace: str, manifest: Manifest, token: Token) -> Pod:
        with self._meter.reading("create_pods"):
            return self._inner.create_pod(namespace, manifest, token)
