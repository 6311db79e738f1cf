"""Short digests of a request: whether it has changed since it was submitted, and whether an update is enough.

A field at its default is left out of the text that is digested: a field that a later release adds changes no digest,
and an upgrade does not submit every waiting placeholder anew.
"""

import dataclasses
import hashlib
from collections.abc import Iterable

import msgspec

from slurm_bridge.model.job import GresPer, JobRequest, MemoryPer
from slurm_bridge.translate.shapes import Form
from slurm_bridge.translate.translator import Translated

#: Owner and id: a request is the same whatever they are.
IDENTITY = ("owner", "job_id")

#: Slurm cannot change these on a pending job, or only an administrator may.
FIXED = ("partition", "account", "qos", "reservation", "wckey", "user", "group", "priority", "hold", "exclusive")

#: These values can be changed but not removed, so their absence belongs to what is fixed.
NOT_REMOVABLE = ("time_limit_minutes", "maximum_nodes", "nice")

#: The fields of an update.
SHAPE = (
    *NOT_REMOVABLE,
    "name",
    "licenses",
    "constraints",
    "minimum_nodes",
    "tasks",
    "tasks_per_node",
    "cpus_per_task",
    "memory",
    "gres",
    "gres_per",
    "excluded_nodes",
    "mcs_label",
    "comment",
)

#: Written by the emitter from the cluster's state, not by the user.
NODES = ("excluded_nodes",)

_DEFAULTS = {field.name: field.default for field in dataclasses.fields(JobRequest)}


#: The components of a heterogeneous job are jobs of their own, and an update changes one at most.
PARTS = ("components",)

#: These change with every member of a gang, the other fields only with the shapes of its members.
COUNTS = ("tasks",)


def digest(request: JobRequest) -> str:
    """`<fixed>:<shape>`: a different first half asks for a new job, a different second one for an update."""
    if request.components:
        # A changed set of nodes is no reason to queue again: nodes are checked once more before pods are bound.
        lasting = [field for field in (*FIXED, *SHAPE) if field not in NODES]
        parts = [_hash(part, lasting) for part in (request, *request.components)]
        return f"{_hash(request, FIXED, *parts)[:8]}:{_hash(request, lasting)[:8]}"
    return f"{_hash(request, FIXED, *_not_changeable(request))[:8]}:{_hash(request, SHAPE)[:8]}"


def _not_changeable(request: JobRequest) -> list[str]:
    """The fields that an update would leave wrong.

    Slurm keeps amounts that were counted for something else, and computes cpus from the old ones when the number of
    nodes changes: too many, and the job waits for ever.
    """
    found = [field for field in NOT_REMOVABLE if getattr(request, field) is None]
    if request.memory.per is not MemoryPer.NODE:
        found.append(f"memory per {request.memory.per.value}")
    if request.gres_per is not GresPer.NODE:
        found.append(f"gres per {request.gres_per.value}")
    if request.maximum_nodes == request.minimum_nodes and (request.minimum_nodes or 1) > 1:
        found.append(f"{request.minimum_nodes} nodes")
    if request.tasks_per_node is not None:
        # Slurm takes another number, and refuses to do without one. Its absence is not told: earlier releases had none.
        found.append("tasks per node")
    return found


def intent(translated: Translated, retry: str) -> str:
    """A digest of what the user wants, on whichever nodes. `retry` is the annotation that asks for another try.

    It is taken before Slurm's limits are applied, or an administrator's change would count as the user's. The number of
    members of a gang is left out, or every member that comes or goes would count as a change by the user.
    """
    wanted = [field for field in (*FIXED, *SHAPE) if field not in NODES]
    of_gang: list[str] = []
    if translated.form is not Form.SINGLE:
        wanted = [field for field in wanted if field not in COUNTS]
        of_gang = sorted({msgspec.json.encode(shape.needs).decode() for shape in translated.shapes})
        of_gang.append(f"one per node {translated.one_per_node}, memory per node {translated.node_memory_mib}")
    return _hash(translated.request, wanted, retry, *of_gang)[:12]


def _hash(request: JobRequest, fields: Iterable[str], *more: str) -> str:
    written: list[list[object]] = []
    for field in sorted(fields):
        value = getattr(request, field)
        if value != _DEFAULTS[field]:
            # The order of nodes does not matter.
            written.append([field, sorted(value) if field in NODES and isinstance(value, tuple) else value])
    return hashlib.sha256(msgspec.json.encode([written, more])).hexdigest()
