"""The verbs that only read: ping, jobs, states, allocations, nodes, partitions, reservations, licenses, diag."""

import time
from typing import Any

from slurm_bridge.sim.slurm import answers, machines, replies, shapes, state
from slurm_bridge.sim.slurm.call import SlurmCall
from slurm_bridge.sim.slurm.replies import Plain, SlurmReply, Warn
from slurm_bridge.sim.slurm.shapes import number


def ping_answer(version: str, *, responding: bool, status: str) -> SlurmReply:
    """Always 200: the body says whether slurmctld answers."""
    line: dict[str, Any] = {"hostname": "slurm", "responding": responding, "latency": 500, "primary": True}
    if version >= "v0.0.45":
        line["status"] = status
    else:
        line |= {"pinged": "UP" if responding else "DOWN", "mode": "primary"}
    return SlurmReply(fields={"pings": [line]})


def ping(call: SlurmCall) -> SlurmReply:
    """GET ping/."""
    return ping_answer(call.version, responding=True, status="No error")


def jobs(call: SlurmCall) -> SlurmReply:
    """GET jobs/: everything, or nothing if nothing has changed; the empty list then does not mean "no jobs"."""
    since = call.asked("update_time")
    if since is not None and not since.isdigit():
        return _bad_time(since, "op_handler_jobs")
    if since is not None and call.world.jobs_changed < int(since):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(int(since)))
        warning = Warn(f"No job changes since update_time[{since}]={stamp}", "op_handler_jobs")
        return SlurmReply(fields=_job_list(call, [], updated=0), warnings=[warning])
    warnings = unknown_parameters(call, "JOB_INFO", "update_time", "flags")
    if not call.world.jobs:
        warnings.append(Warn("Zero jobs to dump", ""))
    return SlurmReply(fields=_job_list(call, list(call.world.jobs.values()), updated=call.world.now), warnings=warnings)


def job(call: SlurmCall) -> SlurmReply:
    """GET job/{id}: all components of a leader, in full; an error for a while after a component is forgotten."""
    found = call.job()
    gap = found is not None and call.world.gaps.get(found.job_id, 0.0) > call.world.now
    if found is None or gap:
        missing = _job_list(call, [], updated=0)
        words = f"Unable to query JobId={call.params['job_id']}"
        return replies.refusal(-1 if gap else 2017, words, "_handle_job_get", **missing)
    family = call.world.family(found) if found.offset == 0 else [found]
    return SlurmReply(fields=_job_list(call, family, updated=call.world.now))


def _job_list(call: SlurmCall, found: list[state.SlurmJob], *, updated: float) -> dict[str, Any]:
    # Any flag but DETAIL leaves out the details of the allocation.
    flags = call.query.get("flags", ["DETAIL"])
    details: dict[str, Any] = {} if "DETAIL" in flags else {"gres_detail": [], "job_resources": None}
    return {
        "jobs": [{**answers.job(call.world, record, call.version), **details} for record in found],
        "last_backfill": number(call.world.last_pass if updated else 0),
        "last_update": number(updated),
    }


def job_states(call: SlurmCall) -> SlurmReply | Plain:
    """GET jobs/state/: all jobs, or the requested ids one by one; unknown ids are left out."""
    warnings = unknown_parameters(call, "JOB_STATE", "job_id")
    asked = call.query.get("job_id")
    if asked is None:
        found = list(call.world.jobs.values())
    elif any("," in text for text in asked):
        return replies.UNSPECIFIED
    elif not all(text.replace("+", "").isdigit() for text in asked):
        return replies.refusal(9000, "Rejecting request. Failure parsing query", "op_handler_job_states")
    else:
        found = [record for text in asked for record in _asked_for(call, text)]
    return SlurmReply(fields={"jobs": [answers.job_state(record) for record in found]}, warnings=warnings)


def unknown_parameters(call: SlurmCall, parser: str, *known: str) -> list[Warn]:
    """An unknown parameter gets a warning only."""
    text = "Ignoring unknown field {name!r} of type string in DATA_PARSER_OPENAPI_{parser}_QUERY"
    return [
        Warn(text.format(name=name, parser=parser).replace("'", '"'), f"#/{name}/")
        for name in call.query
        if name not in known
    ]


def _asked_for(call: SlurmCall, text: str) -> list[state.SlurmJob]:
    """A leader stands for all its components."""
    found = SlurmCall(world=call.world, version=call.version, caller=call.caller, params={"job_id": text}).job()
    if found is None:
        return []
    return call.world.family(found) if found.offset == 0 else [found]


def resources(call: SlurmCall) -> SlurmReply:
    """GET resources/{id}."""
    found = call.job()
    if found is None or not found.running:
        number_ = 2017 if found is None else 2085
        return replies.refusal(number_, f"Unable to query JobId={call.params['job_id']}", "_handle_get", nodes=[])
    return SlurmReply(fields={"nodes": answers.allocation(call.world, found)})


def _bad_time(since: str, source: str) -> SlurmReply:
    errors = [
        replies.Error(9202, f"Parsing of {since} for timestamp failed", "#/update_time/"),
        replies.Error(9000, "Rejecting request. Failure parsing query.", source),
    ]
    return SlurmReply(errors=errors, status=422)


def nodes(call: SlurmCall) -> SlurmReply | Plain:
    """GET nodes/."""
    since = call.asked("update_time")
    if since is not None and not since.isdigit():
        return _bad_time(since, "_dump_nodes")
    if _unchanged(call, int(call.world.nodes_changed)):
        return replies.NOT_MODIFIED
    return _node_list(call, list(call.world.nodes.values()))


def node(call: SlurmCall) -> SlurmReply:
    """GET node/{name}: an unknown name is 200 with error number 0 and no nodes at all."""
    name = call.params["node_name"]
    if name not in call.world.nodes:
        return replies.refusal(0, f"Failure to query node {name}", "_dump_nodes")
    return _node_list(call, [call.world.nodes[name]])


def _node_list(call: SlurmCall, found: list[state.Node]) -> SlurmReply:
    answer = [machines.node(call.world, record, call.version) for record in found]
    return SlurmReply(fields={"nodes": answer, "last_update": number(int(call.world.now))})


def partitions(call: SlurmCall) -> SlurmReply | Plain:
    """GET partitions/."""
    if _unchanged(call, call.world.booted):
        return replies.NOT_MODIFIED
    return _partition_list(call, list(call.world.partitions.values()))


def partition(call: SlurmCall) -> SlurmReply:
    """GET partition/{name}: an unknown name is 200 with a warning."""
    name = call.params["partition_name"]
    if name not in call.world.partitions:
        return SlurmReply(warnings=[Warn(f"Unable to find partition {name}", "_partition_get")])
    return _partition_list(call, [call.world.partitions[name]])


def _partition_list(call: SlurmCall, found: list[state.Partition]) -> SlurmReply:
    answer = [machines.partition(call.world, record, call.version) for record in found]
    text = "Slurm accounting storage is disabled. Could not query the following: [TRES]."
    fields = {"partitions": answer, "last_update": number(call.world.booted)}
    return SlurmReply(fields=fields, warnings=[Warn(text, "")])


def reservations(call: SlurmCall) -> SlurmReply:
    """GET reservations/."""
    answer = [machines.reservation(call.world, record) for record in call.world.reservations.values()]
    return SlurmReply(fields={"reservations": answer, "last_update": number(call.world.now)})


def reservation(call: SlurmCall) -> SlurmReply:
    """GET reservation/{name}: an unknown name is 200 with error number 0."""
    found = call.world.reservations.get(call.params["reservation_name"])
    if found is None:
        return replies.refusal(0, "Unable to query reservations", "slurm_load_reservations()")
    answer = [machines.reservation(call.world, found)]
    return SlurmReply(fields={"reservations": answer, "last_update": number(call.world.now)})


def licenses(call: SlurmCall) -> SlurmReply:
    """GET licenses/."""
    answer = [machines.license_(call.world, name, call.version) for name in call.world.licenses]
    return SlurmReply(fields={"licenses": answer, "last_update": number(call.world.now)})


def conf(call: SlurmCall) -> SlurmReply:
    """GET conf: the lines that have an effect here; the pocket never suspends."""
    lines = {
        "ClusterName": call.world.config.cluster,
        "FirstJobId": call.world.config.first_job_id,
        "GresTypes": sorted(call.world.known_gres),
        "MaxJobCount": call.world.config.maximum_job_count,
        "MaxJobId": call.world.config.highest_job_id,
        "MinJobAge": int(call.world.config.minimum_job_age),
        "PreemptMode": ["DISABLED"],
        "SchedulerParameters": [],
        "SchedulerType": "sched/backfill" if call.world.config.backfill else "sched/builtin",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": ["CR_CORE_MEMORY"],
    }
    return SlurmReply(fields={"slurm_conf": lines})


def diag(call: SlurmCall) -> SlurmReply:
    """GET diag/: the numbers that have a meaning here."""
    world = call.world
    ended = [record.state for record in world.jobs.values() if record.over]
    statistics = {
        "req_time": number(world.now),
        "req_time_start": number(world.booted),
        "server_thread_count": 1,
        "schedule_queue_length": len(world.pending),
        "jobs_submitted": world.next_id - world.config.first_job_id,
        "jobs_started": sum(1 for record in world.jobs.values() if record.started),
        "jobs_completed": ended.count("COMPLETED"),
        "jobs_canceled": ended.count("CANCELLED"),
        "jobs_failed": ended.count("FAILED"),
        "jobs_pending": len(world.pending),
        "jobs_running": len(world.running),
        "job_states_ts": number(world.last_pass),
        "bf_when_last_cycle": number(world.last_pass) if world.last_pass else shapes.ZERO,
        "bf_active": False,
    }
    return SlurmReply(fields={"statistics": statistics})


def _unchanged(call: SlurmCall, changed: float) -> bool:
    since = call.asked("update_time")
    return since is not None and since.isdigit() and changed < int(since)
