"""DELETE job/{id} and DELETE jobs/: ends jobs, and answers 200 also for jobs that could not be ended.

A requeue is refused for every job here, because external jobs are no batch jobs.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from slurm_bridge.sim.slurm import replies, shapes, state
from slurm_bridge.sim.slurm.call import SlurmCall

_SOURCE = "slurm_kill_jobs()"
_KILL = ("KILL", "SIGKILL", "9")
_KNOWN_SIGNALS = frozenset(
    "HUP INT QUIT ABRT KILL ALRM TERM USR1 USR2 URG CONT STOP TSTP TTIN TTOU XCPU SIGTERM SIGKILL".split()
)


def cancel(call: SlurmCall) -> replies.SlurmReply:
    """One job; the leader of a heterogeneous job stands for all components."""
    warnings = [
        replies.Warn(
            f'Ignoring unknown field "{name}" of type string in DATA_PARSER_OPENAPI_JOB_INFO_DELETE_QUERY', f"#/{name}/"
        )
        for name in call.query
        if name not in ("signal", "flags")
    ]
    job_id = call.params["job_id"]
    if int(job_id.partition("+")[0]) > call.world.config.highest_job_id:
        return replies.refusal(2017, f"Invalid JobID={job_id} rejected", "op_handler_job")
    return _kill(call, [job_id], call.asked("signal"), warnings)


def cancel_many(call: SlurmCall) -> replies.SlurmReply:
    """A list of ids, which should be text."""
    ids = call.fields.get("jobs", [])
    warnings = [
        replies.Warn(
            "Expected OpenAPI type=string (Slurm type=string) but got OpenAPI type=integer "
            f"(Slurm type=64 bit integer): {job_id}",
            "#/jobs/",
        )
        for job_id in ids
        if isinstance(job_id, int)
    ]
    return _kill(call, [str(job_id) for job_id in ids], call.fields.get("signal"), warnings)


def _kill(call: SlurmCall, ids: Sequence[str], signal: str | None, warnings: list[replies.Warn]) -> replies.SlurmReply:
    if not ids:
        errors = [replies.Error(2173, "Signal request failed", _SOURCE)]
        return replies.SlurmReply(fields={"status": []}, errors=errors)
    if any(not job_id.partition("+")[0].isdigit() for job_id in ids):
        errors = [replies.Error(2137, "Signal request failed", _SOURCE)]
        return replies.SlurmReply(fields={"status": []}, errors=errors, warnings=warnings)
    errors = []
    if signal is not None and not signal.isdigit() and signal not in _KNOWN_SIGNALS:
        errors = [replies.Error(0, "Unknown signal (null)", "#/signal/")]
    status = [line for job_id in ids for line in _kill_one(call, job_id, signal or "KILL")]
    return replies.SlurmReply(fields={"status": status}, errors=errors, warnings=warnings)


def _kill_one(call: SlurmCall, job_id: str, signal: str) -> Iterator[dict[str, Any]]:
    call = dataclasses.replace(call, params={"job_id": job_id})
    job = call.job()
    if job is None:
        yield _line(2017, job_id)
        return
    family = call.world.family(job) if job.offset == 0 else [job]
    for member in family:
        if member.over:
            yield _line(2021, _step(member), member)
    if any(member.over for member in family) and not job.over:
        yield _line(2021, _step(job), job)  # although this call ends it
    for member in (member for member in family if not member.over):
        if signal in _KILL or member.pending:
            call.world.end(member, "CANCELLED")
        elif call.world.config.poison_on_signal and member.grant is not None:
            # No process takes the signal: Slurm believes that the node has failed.
            for name in member.grant.nodes:
                call.world.put_node(dataclasses.replace(call.world.nodes[name], responding=False))


def _step(job: state.SlurmJob) -> str:
    return f"{job.leader}+{job.offset}" if job.offset else str(job.job_id)


def _line(number: int, step: str, job: state.SlurmJob | None = None) -> dict[str, Any]:
    words = replies.WORDS[number]
    return {
        "error": {"string": words, "code": number, "message": words},
        "step_id": step,
        "job_id": shapes.UNSET if job is None else shapes.number(job.job_id),
        "federation": {"sibling": ""},
    }


def requeue(call: SlurmCall) -> replies.SlurmReply:
    """GET job/{id}/requeue."""
    number = 2017 if call.job() is None else 2039
    return replies.refusal(number, f"Requeue JobID={call.params['job_id']} failed", "op_handler_job_requeue")


def requeue_many(call: SlurmCall) -> replies.SlurmReply:
    """POST jobs/requeue."""
    ids = ",".join(str(job_id) for job_id in call.fields.get("jobs", []))
    return replies.refusal(2039, f"Requeue JobId={ids} failed", "op_handler_jobs_requeue")
