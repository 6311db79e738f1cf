"""Slurm's own configuration, as far as the bridge's assumptions rest on it."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlurmConf:
    """A few lines of slurm.conf as slurmctld has them now."""

    select_type: str = ""
    select_parameters: frozenset[str] = frozenset()
    gres_types: tuple[str, ...] = ()
    preempt_modes: frozenset[str] = frozenset()
    scheduler_type: str = ""
    scheduler_parameters: tuple[str, ...] = ()
    max_job_count: int | None = None
    max_job_id: int | None = None
    proctrack_type: str = ""
    task_plugins: tuple[str, ...] = ()
    prolog: tuple[str, ...] = ()
    epilog: tuple[str, ...] = ()
    prolog_ctld: tuple[str, ...] = ()
    epilog_ctld: tuple[str, ...] = ()
    mcs_plugin: str = ""
    mcs_parameters: tuple[str, ...] = ()
