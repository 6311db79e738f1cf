"""The table that turns a `JobRequest` into the JSON of a submit or an update: one row for each field of the record.

`submit` and `update` name what a row contributes; a field without an update cannot be changed in Slurm (cancel and
submit again), or must not be: `hold` and `priority` belong to the administrators once the job is there, and releasing
an administrator's hold by repeating ours would be taken for an order. An update carries the whole shape, because Slurm
recomputes cpus from tasks, and writes out what is *not* wanted, because it keeps what is left out.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from slurm_bridge.model import marks
from slurm_bridge.model.host_names import HostNames
from slurm_bridge.model.job import GresPer, JobRequest, MemoryPer
from slurm_bridge.model.marks import Owner
from slurm_bridge.slurm import gres_text

Pairs = Iterable[tuple[str, object]]
Row = Callable[[JobRequest], Pairs]


def _nothing(_: JobRequest) -> Pairs:
    """The field says something about another row, or is not sent here."""
    return ()


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """One field of `JobRequest`."""

    name: str
    submit: Row
    update: Row = _nothing


def _plain(field: str, key: str) -> Row:
    def row(request: JobRequest) -> Pairs:
        value = getattr(request, field)
        return () if value is None or value == "" else ((key, value),)

    return row


def _text(field: str, key: str) -> Row:
    """In an update an empty text clears what was there."""
    return lambda request: ((key, getattr(request, field) or ""),)


def _number(value: int) -> Mapping[str, object]:
    """Slurm's object for a number that might be unset or without end."""
    return {"set": True, "infinite": False, "number": value}


def _limit(request: JobRequest) -> Pairs:
    """Never written out as endless: that exceeds every partition's maximum, and such a job waits for ever."""
    return () if request.time_limit_minutes is None else (("time_limit", _number(request.time_limit_minutes)),)


def _hosts(names: tuple[str, ...]) -> list[str]:
    return [HostNames.of(names).written]


def _nodes(request: JobRequest) -> Pairs:
    return (("excluded_nodes", _hosts(request.excluded_nodes)),) if request.excluded_nodes else ()


def _nodes_or_none(request: JobRequest) -> Pairs:
    """`[""]` clears a list; `[]` would be taken for no change, and at submit `[""]` is an error.

    Nodes that an earlier version has required are cleared as well.
    """
    yield "required_nodes", _hosts(())
    yield "excluded_nodes", _hosts(request.excluded_nodes)


def _owner(request: JobRequest) -> Pairs:
    yield "admin_comment", marks.write(request.owner)


def _priority(request: JobRequest) -> Pairs:
    """Slurm takes a priority for the opposite of a hold: given both, the job starts."""
    return () if request.priority is None or request.hold else (("priority", _number(request.priority)),)


def _hold(request: JobRequest) -> Pairs:
    return (("hold", True),) if request.hold else ()


_MEMORY: Mapping[MemoryPer, Callable[[int], tuple[str, object]]] = {
    MemoryPer.NODE: lambda mib: ("memory_per_node", _number(mib)),
    MemoryPer.CPU: lambda mib: ("memory_per_cpu", _number(mib)),
    MemoryPer.GPU: lambda mib: ("memory_per_tres", f"gres/gpu:{mib}"),
}


def _memory(request: JobRequest) -> Pairs:
    yield _MEMORY[request.memory.per](request.memory.mib)


_GRES: Mapping[GresPer, str] = {GresPer.NODE: "tres_per_node", GresPer.TASK: "tres_per_task"}


def _gres(request: JobRequest) -> Pairs:
    return ((_GRES[request.gres_per], gres_text.write(request.gres)),) if request.gres else ()


def _gres_or_none(request: JobRequest) -> Pairs:
    """Both keys: else resources counted the other way before would stay."""
    wanted = gres_text.write(request.gres)
    return ((key, wanted if per is request.gres_per else "") for per, key in _GRES.items())


def _exclusive(request: JobRequest) -> Pairs:
    """`none` is Slurm's word for not sharing the node; `exclusive` creates a job and answers with an error."""
    return (("shared", ["none"]),) if request.exclusive else ()


def _minimum(request: JobRequest) -> Pairs:
    """Without one, Slurm's own default, so that an earlier minimum goes."""
    yield "minimum_nodes", request.minimum_nodes or 1


def _tasks(request: JobRequest) -> Pairs:
    """With the cpus: Slurm derives them from `tasks`, forgets `cpus_per_task`, and then never starts the job."""
    yield "tasks", request.tasks
    yield "minimum_cpus", request.tasks * request.cpus_per_task


FIELDS: tuple[Field, ...] = (
    # First: Slurm checks it before it applies anything, and refuses it once a job has started.
    Field("mcs_label", _plain("mcs_label", "mcs_label"), _text("mcs_label", "mcs_label")),
    Field("name", _plain("name", "name"), _plain("name", "name")),
    Field("owner", _owner, _owner),
    Field("job_id", _plain("job_id", "job_id")),
    Field("partition", _plain("partition", "partition")),
    Field("account", _plain("account", "account")),
    Field("qos", _plain("qos", "qos")),
    Field("reservation", _plain("reservation", "reservation")),
    Field("wckey", _plain("wckey", "wckey")),
    Field("licenses", _plain("licenses", "licenses"), _text("licenses", "licenses")),
    Field("constraints", _plain("constraints", "constraints"), _text("constraints", "constraints")),
    Field("user", _plain("user", "user_id")),
    Field("group", _plain("group", "group_id")),
    Field("priority", _priority),
    Field("nice", _plain("nice", "nice"), _plain("nice", "nice")),
    Field("hold", _hold),
    Field("time_limit_minutes", _limit, _limit),
    Field("minimum_nodes", _plain("minimum_nodes", "minimum_nodes"), _minimum),
    Field("maximum_nodes", _plain("maximum_nodes", "maximum_nodes"), _plain("maximum_nodes", "maximum_nodes")),
    Field("tasks", _plain("tasks", "tasks"), _tasks),
    Field("tasks_per_node", _plain("tasks_per_node", "tasks_per_node"), _plain("tasks_per_node", "tasks_per_node")),
    Field("cpus_per_task", _plain("cpus_per_task", "cpus_per_task"), _plain("cpus_per_task", "cpus_per_task")),
    Field("memory", _memory, _memory),
    Field("gres", _gres, _gres_or_none),
    Field("gres_per", _nothing),
    Field("exclusive", _exclusive),
    Field("excluded_nodes", _nodes, _nodes_or_none),
    Field("comment", _plain("comment", "comment"), _text("comment", "comment")),
    Field("components", _nothing),
)

#: What makes a job a placeholder: nothing runs, yet Slurm insists on an environment and a directory.
_PLACEHOLDER: Mapping[str, object] = {
    "environment": ["PATH=/usr/bin:/bin"],
    "current_working_directory": "/",
    # Else a job that lost a node stays RUNNING on the others.
    "kill_on_node_fail": True,
}


def submit(request: JobRequest) -> dict[str, object]:
    """A new placeholder; ValueError says what Slurm would silently have cast or cut."""
    check(request)
    few = ["PREFER_MINIMUM_NODE_COUNT"] if (request.maximum_nodes or 0) > (request.minimum_nodes or 0) else []
    return {
        "flags": ["EXTERNAL_JOB", *few],
        **_PLACEHOLDER,
        **dict(pair for field in FIELDS for pair in field.submit(request)),
    }


def components(request: JobRequest) -> list[dict[str, object]]:
    """What is submitted: the request, then its components, with the same owner: the leader may be forgotten first."""
    if any(one.components for one in request.components):
        raise ValueError("a component has no components of its own")
    return [submit(request), *(submit(dataclasses.replace(one, owner=request.owner)) for one in request.components)]


def update(request: JobRequest) -> dict[str, object]:
    """The whole shape of a placeholder that still waits; ValueError as above."""
    check(request)
    return dict(pair for field in FIELDS for pair in field.update(request))


def assign(owner: Owner, reservation: str, priority: int | None) -> dict[str, object]:
    """What is changed of a job that stays as it is: the reservation that it may use, and its turn; None leaves that."""
    turn = {} if priority is None else {"priority": _number(priority)}
    return {"admin_comment": marks.write(owner), "reservation": reservation, **turn}


def check(request: JobRequest) -> None:
    """Slurm casts numbers instead of refusing them, and parses names as lists: look before."""
    wrong = [words for words, bad in _MISTAKES if bad(request)]
    if wrong:
        raise ValueError("; ".join(wrong))


def _below(least: int, *values: int | None) -> bool:
    return any(value is not None and value < least for value in values)


_MISTAKES: tuple[tuple[str, Callable[[JobRequest], bool]], ...] = (
    ("tasks and cpus per task have to be at least 1", lambda job: _below(1, job.tasks, job.cpus_per_task)),
    ("memory has to be at least 1 MiB, 0 is the whole node", lambda job: _below(1, job.memory.mib)),
    ("generic resources have to be at least 1", lambda job: _below(1, *(one.count for one in job.gres))),
    ("memory per GPU needs a GPU", lambda job: job.memory.per is MemoryPer.GPU and not job.gres),
    ("a time limit has to be at least 1 minute", lambda job: _below(1, job.time_limit_minutes)),
    ("priority 0 would be a hold", lambda job: _below(1, job.priority)),
    ("a job id has to be positive", lambda job: _below(1, job.job_id)),
    ("node counts have to be at least 1", lambda job: _below(1, job.minimum_nodes, job.maximum_nodes)),
    ("fewer nodes allowed than needed", lambda job: _below(job.minimum_nodes or 1, job.maximum_nodes)),
    ("no task allowed on a node", lambda job: _below(1, job.tasks_per_node)),
    ("more nodes than tasks", lambda job: _below(job.minimum_nodes or 1, job.tasks)),
    ("a node name must not look like a list", lambda job: HostNames.of(job.excluded_nodes).misread),
)
