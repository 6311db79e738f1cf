"""GET conf: what slurmrestd tells of slurm.conf, from v0.0.45 on."""

import msgspec

from slurm_bridge.model.slurmconf import SlurmConf
from slurm_bridge.slurm import calls, shapes

CALL = calls.read("/conf")


class ConfRow(shapes.WireShape, frozen=True, gc=False, rename="pascal"):
    """The lines that are read."""

    select_type: str | None = None
    select_type_parameters: list[str] | None = None
    gres_types: list[str] | None = None
    preempt_mode: list[str] | None = None
    scheduler_type: str | None = None
    scheduler_parameters: list[str] | None = None
    max_job_count: shapes.MaybeNumber = None
    max_job_id: shapes.MaybeNumber = None
    proctrack_type: str | None = None
    task_plugin: list[str] | None = None
    prolog: list[str] | None = None
    epilog: list[str] | None = None
    prolog_slurmctld: list[str] | None = None
    epilog_slurmctld: list[str] | None = None
    mcs_plugin: str | None = msgspec.field(default=None, name="MCSPlugin")
    mcs_parameters: list[str] | None = msgspec.field(default=None, name="MCSParameters")


class Conf(shapes.Envelope, frozen=True, gc=False, kw_only=True):
    """The answer."""

    conf: ConfRow = msgspec.field(name="slurm_conf")


def read(row: ConfRow) -> SlurmConf:
    """As a record of the model."""
    return SlurmConf(
        select_type=row.select_type or "",
        select_parameters=frozenset(row.select_type_parameters or ()),
        gres_types=tuple(row.gres_types or ()),
        preempt_modes=frozenset(row.preempt_mode or ()),
        scheduler_type=row.scheduler_type or "",
        scheduler_parameters=tuple(row.scheduler_parameters or ()),
        max_job_count=shapes.number(row.max_job_count),
        max_job_id=shapes.number(row.max_job_id),
        proctrack_type=row.proctrack_type or "",
        task_plugins=tuple(row.task_plugin or ()),
        prolog=tuple(row.prolog or ()),
        epilog=tuple(row.epilog or ()),
        prolog_ctld=tuple(row.prolog_slurmctld or ()),
        epilog_ctld=tuple(row.epilog_slurmctld or ()),
        mcs_plugin=row.mcs_plugin or "",
        mcs_parameters=tuple(row.mcs_parameters or ()),
    )
