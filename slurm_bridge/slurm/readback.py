"""Did an update take? Slurm applies fields one by one and answers 200 where it silently kept some of them.

One row for each field that an update carries; a row compares in Slurm's own terms what was asked with what is there.
"""

from collections.abc import Callable

from slurm_bridge.model import marks
from slurm_bridge.model.job import GresPer, JobRequest, Phase
from slurm_bridge.slurm import answers, gres_text, shapes

Same = Callable[[JobRequest, shapes.JobRow], bool]


def differences(request: JobRequest, row: shapes.JobRow) -> tuple[str, ...]:
    """The fields in which the job is not what was asked for."""
    pending = answers.state_of(row.job_state).phase is Phase.PENDING
    rows = ROWS + WHILE_PENDING if pending else ROWS
    return tuple(field for field, same in rows if not same(request, row))


def _gres(request: JobRequest, row: shapes.JobRow) -> bool:
    there = {GresPer.NODE: row.tres_per_node, GresPer.TASK: row.tres_per_task}
    return all(
        set(gres_text.read(text or "")) == set(request.gres if per is request.gres_per else ())
        for per, text in there.items()
    )


def _hosts(text: str | None) -> set[str] | None:
    found = answers.hosts(text)
    return None if found is None else set(found)


def _maximum(request: JobRequest, row: shapes.JobRow) -> bool:
    """A maximum cannot be taken back; one that Slurm derived from the number of tasks is none."""
    there = answers.maximum_nodes(row)
    return there == request.maximum_nodes or (request.maximum_nodes is None and there == request.tasks)


ROWS: tuple[tuple[str, Same], ...] = (
    ("owner", lambda request, row: marks.read(row.admin_comment or "") == request.owner),
    ("tasks", lambda request, row: shapes.number(row.tasks) == request.tasks),
    ("cpus_per_task", lambda request, row: shapes.number(row.cpus_per_task) in (request.cpus_per_task, None)),
    # Slurm may add some, for whole cores or for memory; with too few the job would wait for ever.
    ("cpus", lambda request, row: (shapes.number(row.cpus) or 0) >= request.tasks * request.cpus_per_task),
    ("memory", lambda request, row: answers.memory(row) == request.memory),
    ("gres", _gres),
    ("required_nodes", lambda _, row: not _hosts(row.required_nodes)),
    ("excluded_nodes", lambda request, row: _hosts(row.excluded_nodes) == set(request.excluded_nodes)),
    ("constraints", lambda request, row: (row.features or "") == (request.constraints or "")),
    ("licenses", lambda request, row: (row.licenses or "") == (request.licenses or "")),
    ("comment", lambda request, row: (row.comment or "") == request.comment),
    ("name", lambda request, row: row.name == request.name),
    ("nice", lambda request, row: request.nice is None or shapes.number(row.nice) == request.nice),
    ("components", lambda _, row: not shapes.number(row.het_job_id)),
)

#: A start fills these with what the job got.
WHILE_PENDING: tuple[tuple[str, Same], ...] = (
    ("time_limit_minutes", lambda request, row: shapes.number(row.time_limit) == request.time_limit_minutes),
    ("minimum_nodes", lambda request, row: shapes.number(row.node_count) == (request.minimum_nodes or 1)),
    ("maximum_nodes", _maximum),
    ("tasks_per_node", lambda request, row: (shapes.number(row.tasks_per_node) or None) == request.tasks_per_node),
)
