"""The JSON of slurmrestd's answers, as far as they are read; everything else is skipped without being built.

Slurm writes null for empty lists, an object for numbers that may be unset or infinite, and ids as text or number.
Nothing here is kept: records of the model are made from it at once, so none of it takes part in garbage collection.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec


class WireShape(msgspec.Struct, frozen=True, gc=False):
    """Base of all answers."""


class Number(WireShape, frozen=True, gc=False):
    """A number that may be absent or without end."""

    set: bool = False
    infinite: bool = False
    number: float = 0


MaybeNumber = Number | int | float | None


class Problem(WireShape, frozen=True, gc=False):
    """One entry of `errors` or `warnings`."""

    description: str | None = None
    error_number: int = 0
    error: str | None = None
    source: str | None = None


class Envelope(WireShape, frozen=True, gc=False):
    """What every answer of slurmrestd has around its content."""

    errors: list[Problem] | None = None
    warnings: list[Problem] | None = None


class Submitted(Envelope, frozen=True, gc=False):
    """POST job/submit."""

    job_id: MaybeNumber = None


class KillError(WireShape, frozen=True, gc=False):
    """Why one job was not ended."""

    code: int = 0
    message: str | None = None


class Killed(WireShape, frozen=True, gc=False):
    """One job that was not simply ended; `step_id` is the id that was asked for."""

    error: KillError | None = None
    step_id: str | int = ""


class Kills(Envelope, frozen=True, gc=False, kw_only=True):
    """DELETE job or jobs: only what did *not* go smoothly is listed."""

    status: list[Killed] | None


class UpdateResult(WireShape, frozen=True, gc=False):
    """One of several records that an update touched."""

    error_code: MaybeNumber = None
    error: str | None = None


class Updated(Envelope, frozen=True, gc=False, kw_only=True):
    """POST job/{id}."""

    results: list[UpdateResult] | None


class StateRow(WireShape, frozen=True, gc=False):
    """One job in jobs/state; a component of a heterogeneous job calls itself `235+0`."""

    job_id: str | int
    state: list[str] | str | None = None


class States(Envelope, frozen=True, gc=False, kw_only=True):
    """GET jobs/state."""

    jobs: list[StateRow]


class StatesUnread(Envelope, frozen=True, gc=False, kw_only=True):
    """The same with the rows as they came."""

    jobs: msgspec.Raw


class StepId(WireShape, frozen=True, gc=False):
    """Carries the only identity of a job that is never issued twice."""

    sluid: str | None = None


class CpuCount(WireShape, frozen=True, gc=False):
    """Cpus of one node of an allocation."""

    count: int = 0


class MemoryCount(WireShape, frozen=True, gc=False):
    """Memory of one node of an allocation, MiB."""

    allocated: int = 0


class AllocatedNode(WireShape, frozen=True, gc=False):
    """One node of `job_resources`."""

    name: str
    cpus: CpuCount = CpuCount()
    memory: MemoryCount = MemoryCount()


class AllocatedNodes(WireShape, frozen=True, gc=False):
    """The nodes of `job_resources`."""

    allocation: list[AllocatedNode] | None = None


class JobResources(WireShape, frozen=True, gc=False):
    """What a running job holds, inside its full record."""

    nodes: AllocatedNodes | None = None


class JobRow(WireShape, frozen=True, gc=False, kw_only=True):
    """One full job record."""

    job_id: int
    name: str | None = None
    job_state: list[str] | str | None = None
    state_reason: str | None = None
    admin_comment: str | None = None
    comment: str | None = None
    user_name: str | None = None
    user_id: MaybeNumber = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    hold: bool | None = None
    priority: MaybeNumber = None
    nice: MaybeNumber = None
    submit_time: MaybeNumber = None
    start_time: MaybeNumber = None
    end_time: MaybeNumber = None
    last_sched_evaluation: MaybeNumber = None
    time_limit: MaybeNumber = None
    nodes: str | None = None
    required_nodes: str | None = None
    excluded_nodes: str | None = None
    features: str | None = None
    node_count: MaybeNumber = None
    max_nodes: MaybeNumber = None
    tasks: MaybeNumber = None
    tasks_per_node: MaybeNumber = None
    cpus: MaybeNumber = None
    cpus_per_task: MaybeNumber = None
    memory_per_node: MaybeNumber = None
    memory_per_cpu: MaybeNumber = None
    memory_per_tres: str | None = None
    tres_per_node: str | None = None
    tres_per_task: str | None = None
    licenses: str | None = None
    mcs_label: str | None = None
    resv_name: str | None = None
    shared: list[str] | str | None = None
    het_job_id: MaybeNumber = None
    het_job_offset: MaybeNumber = None
    het_job_id_set: str | None = None
    step_id: StepId | None = None
    flags: list[str] | None = None
    #: null for a node on which Slurm lost count of the GPUs.
    gres_detail: list[str | None] | None = None
    job_resources: JobResources | None = None


class Jobs(Envelope, frozen=True, gc=False, kw_only=True):
    """GET job/{id} and jobs."""

    jobs: list[JobRow]


class RawJobs(Envelope, frozen=True, gc=False, kw_only=True):
    """The same with its rows as they came."""

    jobs: list[msgspec.Raw]


class ResourceGres(WireShape, frozen=True, gc=False):
    """A generic resource of one node in resources/{id}."""

    name: str
    type: str | None = None
    count: int = 0
    index: str | int | None = None


class ResourceRow(WireShape, frozen=True, gc=False):
    """One node in resources/{id}. The bitmap counts cores, not threads."""

    node: str
    mem_alloc: int = 0
    core_bitmap: str | None = None
    sockets_per_node: int | None = None
    cores_per_socket: int | None = None
    gres: list[ResourceGres] | None = None


class Resources(Envelope, frozen=True, gc=False, kw_only=True):
    """GET resources/{id}."""

    nodes: list[ResourceRow]


class NodeRow(WireShape, frozen=True, gc=False):
    """One node."""

    name: str
    state: list[str] | str | None = None
    cpus: int = 0
    effective_cpus: int | None = None
    real_memory: int = 0
    specialized_memory: int | None = None
    gres: str | None = None
    features: list[str] | str | None = None
    partitions: list[str] | None = None
    threads: int = 1
    reason: str | None = None
    alloc_cpus: int = 0
    alloc_memory: int = 0
    gres_used: str | None = None
    topology: str | None = None
    comment: str | None = None
    version: str | None = None


class Nodes(Envelope, frozen=True, gc=False, kw_only=True):
    """GET nodes."""

    nodes: list[NodeRow]
    last_update: MaybeNumber = None


class PartitionNodes(WireShape, frozen=True, gc=False):
    """Members of a partition, as a hostlist."""

    configured: str | None = None


class PartitionLimits(WireShape, frozen=True, gc=False):
    """`defaults` and `maximums`; before v0.0.45 zero `shares` among the maximums mean that jobs get whole nodes."""

    time: MaybeNumber = None
    shares: int = 1


class PartitionState(WireShape, frozen=True, gc=False):
    """`partition`; only v0.0.45 has a word for exclusive."""

    state: list[str] | None = None
    exclusive: str | None = None


class PartitionRow(WireShape, frozen=True, gc=False):
    """One partition."""

    name: str
    nodes: PartitionNodes = PartitionNodes()
    node_sets: str | None = None
    partition: PartitionState = PartitionState()
    defaults: PartitionLimits = PartitionLimits()
    maximums: PartitionLimits = PartitionLimits()
    minimums: dict[str, int] = {}
    grace_time: int = 0
    flags: list[str] | None = None


class Partitions(Envelope, frozen=True, gc=False, kw_only=True):
    """GET partitions."""

    partitions: list[PartitionRow]


class ReservationRow(WireShape, frozen=True, gc=False):
    """One reservation."""

    name: str
    node_list: str | None = None
    users: str | None = None
    end_time: MaybeNumber = None


class Reservations(Envelope, frozen=True, gc=False, kw_only=True):
    """GET reservations."""

    reservations: list[ReservationRow]


class PingRow(WireShape, frozen=True, gc=False):
    """One controller."""

    hostname: str | None = None
    responding: bool = False
    status: str | None = None


class Release(WireShape, frozen=True, gc=False):
    """Part of `meta`."""

    release: str | None = None


class Meta(WireShape, frozen=True, gc=False):
    """The server that answered."""

    slurm: Release | None = None


class Pings(Envelope, frozen=True, gc=False, kw_only=True):
    """GET ping."""

    pings: list[PingRow]
    meta: Meta | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Listed:
    """Where the rows of a list stand, what each of them is, and what users call one."""

    name: str
    row: type[Any]
    kind: str


#: Lists whose rows have nothing to do with each other: one that cannot be read costs that row only. Those that are not
#: here count as a whole: half an allocation is none.
LISTS: Final[Mapping[type[Envelope], Listed]] = {
    Jobs: Listed("jobs", JobRow, "job"),
    States: Listed("jobs", StateRow, "job"),
    Nodes: Listed("nodes", NodeRow, "node"),
    Partitions: Listed("partitions", PartitionRow, "partition"),
    Reservations: Listed("reservations", ReservationRow, "reservation"),
}


def number(value: MaybeNumber) -> int | None:
    """The number, None when it is unset or without end."""
    if isinstance(value, Number):
        return number(value.number) if value.set and not value.infinite else None
    return None if value is None or not math.isfinite(value) else int(value)


def words(value: list[str] | str | None) -> frozenset[str]:
    """State words, however they are sent."""
    return frozenset([value] if isinstance(value, str) else value or ())
