"""Short digests of a request: has anything changed since it was submitted, and can an update bring it about?

A field at its default is left out of the text that is digested: a field that a later release adds changes no digest,
and an upgrade does not submit every waiting placeholder anew.
"""

import dataclasses
import hashlib
from collections.abc import Iterable

import msgspec

from slurm_bridge.model.job import JobRequest

#: Whose job it is and under which number: the same request whatever they are.
IDENTITY = ("owner", "job_id")

#: Slurm cannot change these on a waiting job, or nobody but an administrator may.
FIXED = ("partition", "account", "qos", "reservation", "wckey", "user", "group", "priority", "hold", "exclusive")

#: A value can be changed but not taken away again, so their absence belongs to what is fixed.
NOT_REMOVABLE = ("time_limit_minutes", "maximum_nodes", "nice")

#: What an update carries.
SHAPE = (
    *NOT_REMOVABLE,
    "name",
    "licenses",
    "constraints",
    "minimum_nodes",
    "tasks",
    "cpus_per_task",
    "memory",
    "gres",
    "gres_per",
    "required_nodes",
    "excluded_nodes",
    "mcs_label",
    "comment",
)

#: Written by the emitter from the cluster's state, not by the user.
NODES = ("required_nodes", "excluded_nodes")

_DEFAULTS = {field.name: field.default for field in dataclasses.fields(JobRequest)}


def digest(request: JobRequest) -> str:
    """`<fixed>:<shape>`: a different first half asks for a new job, a different second one for an update."""
    absent = [field for field in NOT_REMOVABLE if getattr(request, field) is None]
    return f"{_hash(request, FIXED, *absent)[:8]}:{_hash(request, SHAPE)[:8]}"


def intent(request: JobRequest, retry: str) -> str:
    """What the user wants, on whichever nodes. `retry` is the user's word that asks for another try of the same.

    Of a request before Slurm's limits are in it, or an administrator's change would be taken for the user's.
    """
    wanted = [field for field in (*FIXED, *SHAPE) if field not in NODES]
    return _hash(request, wanted, retry)[:12]


def _hash(request: JobRequest, fields: Iterable[str], *more: str) -> str:
    written = [[field, _plain(field, getattr(request, field))] for field in sorted(fields) if _is_said(request, field)]
    return hashlib.sha256(msgspec.json.encode([written, more])).hexdigest()


def _is_said(request: JobRequest, field: str) -> bool:
    return bool(getattr(request, field) != _DEFAULTS[field])


def _plain(field: str, value: object) -> object:
    """A set of nodes is the same in any order."""
    return sorted(value) if field in NODES and isinstance(value, tuple) else value
