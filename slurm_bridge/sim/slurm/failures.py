"""What each verb answers if slurmctld cannot be asked: a wrong token, a hung controller, or none.

Observed verb by verb, because they differ: some hide the reason, one loses its errors, and a cancel says "not
permitted" (403) although the result is unknown.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from slurm_bridge.sim.slurm import queries, replies, shapes
from slurm_bridge.sim.slurm.call import SlurmCall

WRONG_TOKEN, HUNG, DOWN = 1007, 5004, 1800

_NO_JOBS = {"jobs": [], "last_backfill": shapes.ZERO, "last_update": shapes.ZERO}
_NO_UPDATE = {"last_update": shapes.ZERO}
_PING = {
    WRONG_TOKEN: "Protocol authentication error",
    HUNG: "Unable to contact slurm controller (receive failure)",
    DOWN: "Unable to contact slurm controller (connect failure)",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FailureWords:
    """The error texts of one verb. `outage` replaces the number if slurmctld is hung or down."""

    description: str
    source: str
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    outage: int | None = None
    silent: bool = False
    patience: int = 1


VOICES: Mapping[str, FailureWords] = {
    "jobs/state": FailureWords(
        description="Unable to query job states", source="slurm_load_job_state()", fields={"jobs": None}, outage=-1
    ),
    "jobs": FailureWords(description="Unable to query jobs", source="slurm_load_jobs()", fields=_NO_JOBS),
    "job": FailureWords(
        description="Unable to query JobId={job_id}", source="_handle_job_get", fields=_NO_JOBS, outage=-1, patience=2
    ),
    "resources": FailureWords(
        description="Unable to query JobId={job_id}", source="_handle_get", fields={"nodes": []}, outage=-1
    ),
    "nodes": FailureWords(description="Failure to query nodes", source="_dump_nodes"),
    "node": FailureWords(description="Failure to query node {node_name}", source="_dump_nodes"),
    "partitions": FailureWords(description="", source="", silent=True),
    "partition": FailureWords(description="Unable to query partitions", source="_partition_get"),
    "licenses": FailureWords(
        description="slurm_load_licenses() was unable to load licenses",
        source="op_handler_licenses",
        fields={"licenses": [], **_NO_UPDATE},
    ),
    "reservations": FailureWords(description="Unable to query reservations", source="slurm_load_reservations()"),
    "reserve": FailureWords(description="Error creating reservation", source="slurm_create_reservation"),
    "unreserve": FailureWords(
        description="Error deleting reservation {reservation_name}", source="slurm_delete_reservation"
    ),
    "diag": FailureWords(
        description="slurm_get_statistics() failed to get slurmctld statistics", source="op_handler_diag"
    ),
    "conf": FailureWords(description="slurm_load_ctl_conf() failed", source="_dump_config"),
    "cancel": FailureWords(
        description="Signal request failed", source="slurm_kill_jobs()", fields={"status": []}, outage=1
    ),
    "update": FailureWords(
        description="Job update requested failed", source="slurm_update_job2()", fields={"results": None}, outage=1000
    ),
    "submit": FailureWords(description="Batch job submission failed", source="slurm_submit_batch_job()"),
    "submit-het": FailureWords(description="HetJob submission failed", source="slurm_submit_batch_het_job()"),
    "requeue": FailureWords(description="Requeue JobID={job_id} failed", source="op_handler_job_requeue"),
    "update-node": FailureWords(description="Failure to update node {node_name}", source="_update_node"),
    "update-nodes": FailureWords(description="Failure to update nodes", source="_update_nodes"),
    "create-node": FailureWords(description="Failure to create node", source="_create_node"),
    "delete-node": FailureWords(description="Failure to delete node {node_name}", source="op_handler_node"),
    "reconfigure": FailureWords(description="slurm_reconfigure() failed", source="op_handler_reconfigure"),
}


def answer(name: str, call: SlurmCall, number: int) -> replies.SlurmReply:
    """The answer of this verb if slurmctld cannot be asked for this reason."""
    if name == "ping":
        return queries.ping_answer(call.version, responding=False, status=_PING[number])
    if name == "submit" and "jobs" in call.fields:
        name = "submit-het"
    voice = VOICES[name]
    if voice.silent:
        return replies.SlurmReply(status=replies.STATUS[number])
    if voice.outage is not None and number != WRONG_TOKEN:
        number = voice.outage
    error = replies.Error(number, voice.description.format(**call.params), voice.source)
    return replies.SlurmReply(fields=voice.fields, errors=[error])


def patience(name: str, number: int) -> int:
    """The number of timeouts that the verb waits through before it answers."""
    if number == WRONG_TOKEN or (name == "ping" and number == DOWN):
        return 0
    return VOICES[name].patience if name in VOICES else 1
