"""Both servers as two ports that remember what they were asked to do: no HTTP, no state, always in a good mood."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from slurm_bridge import errors, ports
from slurm_bridge.model.job import (
    Component,
    Done,
    JobAllocation,
    JobRequest,
    JobState,
    JobStates,
    JobView,
    Outcome,
    Refusal,
    Refused,
)
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.meta import Manifest, Object
from slurm_bridge.model.names import JobId
from slurm_bridge.model.reservation import Reservation
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.slurm import calls, fields
from tests.fuzz.generators import Json
from tests.fuzz.strangers import Shelf

T = TypeVar("T", bound=Object)


class Slurm:
    """Takes every job whose JSON can be written, and says of each that it waits."""

    def __init__(self, nodes: Sequence[SlurmNode], partitions: Sequence[Partition]) -> None:
        self._nodes, self._partitions = nodes, partitions
        self.sent: list[tuple[JobRequest, Json]] = []
        self._views: dict[JobId, JobView] = {}

    def clear(self) -> None:
        """Nothing was ever asked."""
        self.sent.clear()
        self._views.clear()

    def submit(self, request: JobRequest) -> Outcome:
        """As the adapter writes it."""
        try:
            call = calls.submit(fields.components(request))
        except ValueError as mistake:
            return Refused(why=Refusal.INVALID, code=0, message=str(mistake))
        self.sent.append((request, msgspec.json.decode(call.body or b"")))
        job_id = request.job_id or JobId(len(self.sent))
        state = JobState(frozenset({"PENDING"}))
        self._views[job_id] = JobView(job_id=job_id, name=request.name, state=state, owner=request.owner)
        return Done(job_id=job_id)

    def update(self, job_id: JobId, request: JobRequest) -> Outcome:
        """Every update is an order like a submit."""
        calls.update(job_id, fields.update(request))
        return Done(job_id=job_id)

    def note(self, job_id: JobId, _owner: Owner) -> Outcome:
        return Done(job_id=job_id)

    def assign(self, job_id: JobId, _owner: Owner, _reservation: str, _priority: int | None) -> Outcome:
        return Done(job_id=job_id)

    def cancel(self, job_id: JobId) -> Outcome:
        self._views.pop(job_id, None)
        return Done(job_id=job_id)

    def cancel_many(self, job_ids: Sequence[JobId]) -> Mapping[JobId, Outcome]:
        return {job_id: self.cancel(job_id) for job_id in job_ids}

    def reserve(self, _name: str, _nodes: Sequence[str], _user: str, _seconds: int) -> Outcome:
        return Done(job_id=JobId(0))

    def unreserve(self, _name: str) -> Outcome:
        return Done(job_id=JobId(0))

    def reservations(self) -> Sequence[Reservation]:
        return ()

    def states(self, job_ids: Collection[JobId] | None = None) -> Mapping[JobId, JobStates]:
        wanted = self._views if job_ids is None else self._views.keys() & set(job_ids)
        alone = {one: (Component(offset=0, state=self._views[one].state),) for one in wanted}
        return {one: JobStates(components=parts) for one, parts in alone.items()}

    def job(self, job_id: JobId) -> JobView | None:
        return self._views.get(job_id)

    def components(self, job_id: JobId) -> Sequence[JobView]:
        return [view] if (view := self._views.get(job_id)) is not None else []

    def jobs(self) -> Sequence[JobView]:
        return tuple(self._views.values())

    def allocation(self, _job_id: JobId) -> JobAllocation | None:
        return None

    def find(self, owner: Owner) -> Sequence[JobView]:
        return [one for one in self._views.values() if one.owner is not None and one.owner.same_workload(owner)]

    def heterogeneous(self) -> bool:
        return True

    def nodes(self) -> Sequence[SlurmNode]:
        return self._nodes

    def partitions(self) -> Sequence[Partition]:
        return self._partitions


class Cluster:
    """Reads from a shelf; remembers what was written, and what was deleted."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.said: list[tuple[str, str]] = []
        self.deleted: list[str] = []
        self.bound: list[ports.Binding] = []

    def served(self, kind: Kind[Any]) -> str | None:
        return self.shelf.served(kind)

    def get(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        return self.shelf.get(kind, namespace, name)

    def list(self, kind: Kind[T], *_: object, **__: object) -> ports.Listing[T]:
        return ports.Listing(items=self.shelf.all(kind), resource_version="1")

    def watch(self, *_: object, **__: object) -> ports.Changes[Any]:
        raise errors.Unavailable("no watch here")

    def create(self, kind: Kind[T], _namespace: str, _manifest: Manifest) -> T:
        raise errors.Invalid(f"no {kind.plural} are made here")

    def patch(self, kind: Kind[T], target: T, changes: Manifest, *_: object, **__: object) -> T:
        """What it says is looked at word by word."""
        for name, text in _texts(changes):
            self.said.append((f"{kind.kind} {name}", text))
        return target

    def delete(self, _kind: Kind[T], target: T, *_: object, **__: object) -> None:
        self.deleted.append(target.uid)

    def evict(self, _namespace: str, _name: str, uid: str) -> None:
        self.deleted.append(uid)

    def bind(self, binding: ports.Binding) -> None:
        self.bound.append(binding)

    def event(self, note: ports.Note) -> None:
        self.said.append(("event", note.message))

    def lease(self, _namespace: str, _name: str) -> None:
        return None

    def write_lease(self, _lease: object) -> None:
        raise errors.Invalid("no lease here")


def _texts(value: object, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(name, value)] if name in ("message", "reason") else []
    if isinstance(value, Mapping):
        return [found for key, inner in value.items() for found in _texts(inner, key)]
    return [found for inner in value for found in _texts(inner, name)] if isinstance(value, list | tuple) else []
