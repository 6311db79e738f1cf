"""POST job/submit: one job, or the components of a heterogeneous one, and all their errors."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from slurm_bridge.sim.slurm import admission, fields, replies, schedule, state
from slurm_bridge.sim.slurm.call import SlurmCall
from slurm_bridge.sim.slurm.replies import Error, SlurmReply, Warn

_SINGLE, _HET = "slurm_submit_batch_job()", "slurm_submit_batch_het_job()"
_NO_SCRIPT = 'Populated "script" field is required for job submission'

_UNKNOWN_USER = 2166

#: The obstacle for now -> the text of the warning.
_NOT_NOW = {
    admission.TOO_LARGE: replies.WORDS[2015],
    admission.PARTITION_DOWN: "Partition in DOWN state",
    admission.NODE_NOT_AVAILABLE: "Required node not available (down, drained or reserved)",
    2042: replies.WORDS[2042],
}


def submit(call: SlurmCall) -> SlurmReply:
    """The verb."""
    body = call.fields
    if "job" in body and "jobs" in body:
        return replies.refusal(9000, 'Specify only one "job" or "jobs" fields but never both', "_job_post")
    unknown = [
        Warn(
            f'Ignoring unknown field "{name}" of type {fields.kind(value)} in DATA_PARSER_JOB_SUBMIT_REQ', f"#/{name}/"
        )
        for name, value in body.items()
        if name not in ("job", "jobs", "script")
    ]
    reply = _het(call) if "jobs" in body else _single(call, body.get("job"), body.get("script"))
    return dataclasses.replace(reply, warnings=[*unknown, *reply.warnings])


def _single(call: SlurmCall, job: Any, script: Any) -> SlurmReply:
    if job is None:
        return replies.refusal(9000, _NO_SCRIPT, "_job_post")
    if not isinstance(job, Mapping):
        return replies.refusal(9209, f"Rejecting {fields.kind(job)} when dictionary expected", "#/job/")
    reading = fields.read(job, where="#/job/", version=call.version)
    if reading.void:
        return SlurmReply(errors=reading.errors, warnings=reading.warnings)
    outcome = _make_single(call, reading.values, script or reading.values.get("script"))
    if isinstance(outcome, Error):
        mine = (outcome,) if outcome.number == _UNKNOWN_USER else (*reading.errors, outcome)
        return SlurmReply(errors=mine, warnings=reading.warnings)
    # An error beside a job id: the job exists all the same.
    warnings = [*reading.warnings, *_waiting("Job", outcome, _SINGLE)]
    answer = {"job_id": outcome.job_id, "step_id": "batch", "job_submit_user_msg": ""}
    return SlurmReply(fields=answer, errors=reading.errors, warnings=warnings)


def _make_single(call: SlurmCall, values: Mapping[str, Any], script: Any) -> state.SlurmJob | Error:
    external = "EXTERNAL_JOB" in values.get("flags", ())
    if not (script or external):
        return Error(9000, _NO_SCRIPT, "_job_post")
    application = _application(call, values, external=external)
    if isinstance(application, Error):
        return application
    outcome = 2189 if script and external else _take_in(call, application)
    return Error(outcome, "Batch job submission failed", _SINGLE) if isinstance(outcome, int) else outcome


def _waiting(what: str, job: state.SlurmJob, source: str) -> list[Warn]:
    warning = 2042 if job.held else _WARNED.get(job.reason, 0)
    if not warning:
        return []
    text = _NOT_NOW[warning]
    return [Warn(f"{what} submission resulted in non-zero return code: {text}", source), Warn(text, _SINGLE)]


#: The reason of a job that was just accepted -> the number of the warning.
_WARNED = {
    "PartitionConfig": admission.TOO_LARGE,
    "PartitionDown": admission.PARTITION_DOWN,
    "ReqNodeNotAvail": admission.NODE_NOT_AVAILABLE,
}


def _application(call: SlurmCall, values: Mapping[str, Any], *, external: bool) -> admission.JobApplication | Error:
    """The user of the job: a name or a number of a known user; missing or 99 means the token's own."""
    wanted, users = str(values.get("user_id", "99")), call.world.config.users
    by_number = {str(number): name for name, number in users.items()}
    user = call.caller if wanted in ("", "99") else wanted if wanted in users else by_number.get(wanted)
    if user is None:
        return Error(_UNKNOWN_USER, f"Unable to resolve user: {wanted}", "#/job/user_id/")
    return admission.JobApplication(
        values=values, caller=call.caller, user=user, operator=call.operator, external=external
    )


#: A refusal for the reservation leaves no job. Every other refusal of this stage leaves a FAILED job: its id is taken.
_LEAVES_NOTHING = (2052, 2053)


def _take_in(call: SlurmCall, application: admission.JobApplication) -> state.SlurmJob | int:
    """Check everything, then create the job; a failure after the id was issued uses the id up."""
    world = call.world
    ask = admission.examine(world, application)
    if isinstance(ask, int):
        return ask
    job_id = application.values.get("job_id") or world.issue_id()
    outcome = admission.place(world, ask, application)
    number, reason = (outcome, state.NO_REASON) if isinstance(outcome, int) else (0, outcome)
    if number in _LEAVES_NOTHING:
        return number
    job = _make(call, application, ask, reason, job_id)
    world.put(job)
    if not number and application.values.get("immediate") and not schedule.start_now(world, job):
        number = 2078
    if number:
        world.end(dataclasses.replace(job, reason="BadConstraints"), "FAILED")
    return number or world.jobs[job_id]


def _make(
    call: SlurmCall, application: admission.JobApplication, ask: state.RequestedJob, reason: str, job_id: int
) -> state.SlurmJob:
    now = call.world.now
    priority = ask.priority if ask.priority is not None and application.operator else max(1, -ask.nice)
    held = ask.hold or ask.priority == 0
    return state.SlurmJob(
        job_id=job_id,
        ask=ask,
        user=application.user,
        priority=0 if held else priority,
        reason="JobHeldUser" if held else reason,
        submitted=now,
        eligible=0 if held else now,
        evaluated=now,
        sluid=call.world.sluid(job_id),
    )


# -- heterogeneous jobs ----------------------------------------------------------------------------------------------


def _het(call: SlurmCall) -> SlurmReply:
    """All components or none; but those created before the refusal stay, ended."""
    bodies = call.fields["jobs"]
    if not isinstance(bodies, Sequence) or isinstance(bodies, str) or not bodies:
        return replies.refusal(11, "Refusing HetJob submission without any components", "_job_post_het_submit")
    readings = [fields.read(job, where=f"#/jobs[{i}]/", version=call.version) for i, job in enumerate(bodies)]
    errors = [error for reading in readings for error in reading.errors]
    warnings = [warning for reading in readings for warning in reading.warnings]
    if any(reading.void for reading in readings):
        return SlurmReply(errors=errors, warnings=warnings)
    # Components never share a node, so that no two may require the same one.
    required = [name for reading in readings for name in set(reading.values.get("required_nodes", ())) if name]
    if len(required) != len(set(required)):
        return SlurmReply(errors=[*errors, Error(2018, "HetJob submission failed", _HET)], warnings=warnings)
    made: list[state.SlurmJob] = []
    for reading in readings:
        outcome = _component(call, reading.values, first=not made)
        if not isinstance(outcome, state.SlurmJob):
            return SlurmReply(errors=[*errors, _abandon(call, made, outcome)], warnings=warnings)
        made.append(outcome)
    _join(call, made)
    # Only the last component's is reported.
    warnings += _waiting("HetJob", made[-1], _HET)
    answer = {"job_id": made[0].job_id, "step_id": "batch", "job_submit_user_msg": ""}
    return SlurmReply(fields=answer, errors=errors, warnings=warnings)


def _component(call: SlurmCall, values: Mapping[str, Any], *, first: bool) -> state.SlurmJob | Error:
    external = "EXTERNAL_JOB" in values.get("flags", ())
    if external and not first and not call.world.config.external_components:
        return Error(2189, "HetJob submission failed", _HET)
    application = _application(call, values, external=external)
    if isinstance(application, Error):
        return application
    outcome = _take_in(call, application)
    return Error(outcome, "HetJob submission failed", _HET) if isinstance(outcome, int) else outcome


def _abandon(call: SlurmCall, made: Sequence[state.SlurmJob], error: Error) -> Error:
    for job in made:
        call.world.put(dataclasses.replace(job, leader=made[0].job_id))
        call.world.end(call.world.jobs[job.job_id], "CANCELLED")
    return error


def _join(call: SlurmCall, made: Sequence[state.SlurmJob]) -> None:
    """Components have automatic ids, also if the leader's id was chosen."""
    ids = tuple(job.job_id for job in made)
    for offset, job in enumerate(made):
        sluid = call.world.sluid(ids[0], offset)
        call.world.put(dataclasses.replace(job, leader=ids[0], offset=offset, components=ids, sluid=sluid))
