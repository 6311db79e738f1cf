"""Requeue: refused for every job here, because external jobs are no batch jobs."""

from slurm_bridge.sim.slurm import replies
from slurm_bridge.sim.slurm.call import SlurmCall


def requeue(call: SlurmCall) -> replies.SlurmReply:
    """GET job/{id}/requeue."""
    number = 2017 if call.job() is None else 2039
    return replies.refusal(number, f"Requeue JobID={call.params['job_id']} failed", "op_handler_job_requeue")


def requeue_many(call: SlurmCall) -> replies.SlurmReply:
    """POST jobs/requeue."""
    ids = ",".join(str(job_id) for job_id in call.fields.get("jobs", []))
    return replies.refusal(2039, f"Requeue JobId={ids} failed", "op_handler_jobs_requeue")
