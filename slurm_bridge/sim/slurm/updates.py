"""POST job/{id}: what an update changes, and what it breaks.

the job          with mcs_label in the body     without
---------------  -----------------------------  -----------------------------------------------------------------
ended            2084                           2084
running          2073, nothing changed          fewer nodes: it shrinks, the released nodes are poisoned; then
                                                2073 for fields that only a pending job may change
pending          applied                        applied
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from slurm_bridge.sim.slurm import admission, fields, replies, requested_job, state, tres
from slurm_bridge.sim.slurm.call import SlurmCall
from slurm_bridge.sim.slurm.world import World

_SOURCE = "slurm_update_job2()"

#: Only a pending job accepts these; a running one answers 2073.
_PENDING_ONLY = (
    "account constraints cpus_per_task excluded_nodes minimum_cpus partition tasks tres_per_job tres_per_node"
    " tres_per_task wckey dependency shared begin_time"
).split()
_NODE_FIELDS = ("nodes", "minimum_nodes", "maximum_nodes", "required_nodes")
#: A running job accepts these, too.
_ANY_TIME = ("admin_comment", "comment", "extra", "name", "nice", "reservation", "time_limit")


def update(call: SlurmCall) -> replies.SlurmReply:
    """The verb."""
    body = call.fields
    if isinstance(body.get("job"), Mapping):  # written like a submit: the content is ignored
        reading = fields.ReadFields("#/job/", call.version)
        reading.warnings.extend(
            replies.Warn(
                f'Ignoring unknown field "{name}" of type string in DATA_PARSER_JOB_DESC_MSG', f"#/job/{name}/"
            )
            for name in body["job"]
        )
    else:
        reading = fields.read(body, where="#/", version=call.version)
    if reading.void:
        unread = replies.Error(9000, "Rejecting request. Failure parsing job update request.", "_job_post_update")
        errors = [*reading.errors, unread]
        return replies.SlurmReply(fields={"results": None}, errors=errors, warnings=reading.warnings)
    number = _apply(call, reading.values)
    refused = [replies.Error(number, "Job update requested failed", _SOURCE)] if number else []
    errors = [*reading.errors, *refused]
    return replies.SlurmReply(fields={"results": None}, errors=errors, warnings=reading.warnings)


def _apply(call: SlurmCall, values: Mapping[str, Any]) -> int:
    job = call.job()
    if job is None:
        return 2017
    refused = _may(call, job, values)
    if refused:
        return refused
    if job.over:
        return 2084
    if "mcs_label" in values and not job.pending:
        return 2073
    return _apply_pending(call.world, job, values) if job.pending else _apply_running(call.world, job, values)


def _may(call: SlurmCall, job: state.SlurmJob, values: Mapping[str, Any]) -> int:
    if values.get("user_id", job.user) not in (job.user, str(call.world.config.users.get(job.user))):
        return 2010
    if call.operator:
        return 0
    if job.user != call.caller:
        return 2010
    return 2002 if "admin_comment" in values or values.get("priority") else 0


# -- pending ---------------------------------------------------------------------------------------------------------


def _apply_pending(world: World, job: state.SlurmJob, values: Mapping[str, Any]) -> int:
    number = _refused(world, job, values)
    if number:
        return number
    # Without accounting there is no QOS to change to, and an empty label is a guard, not a value.
    known = {name: value for name, value in values.items() if name != "qos" and (name != "mcs_label" or value)}
    ask = _resized(job.ask, requested_job.apply(job.ask, known), known)
    changed = dataclasses.replace(job, ask=ask)
    world.put(_with_priority(world, changed, values))
    return 0


def _refused(world: World, job: state.SlurmJob, values: Mapping[str, Any]) -> int:
    """The number of the first error; 0 without one."""
    # A deleted node in either list fails every update, even one that would remove it.
    if any(name not in world.nodes for name in (*job.ask.required, *job.ask.excluded)):
        return 2018
    number = (
        admission.hosts(world, values, empty_clears=True)
        or admission.constraints(world, values)
        or admission.licenses(world, values)
        or _bad_gres(values)
        or _moves(world, job, values)
        or admission.reservation(world, values.get("reservation", ""), job.user)
    )
    if not number and values.get("tasks_per_node") == 0 and job.ask.tasks_per_node is not None:
        return 2069
    if not number and job.held and values.get("priority") and values.get("hold") is not False:
        return 2042
    return number


def _bad_gres(values: Mapping[str, Any]) -> int:
    try:
        for name in ("tres_per_node", "tres_per_task", "tres_per_job"):
            tres.parse_gres(values.get(name, ""))
    except tres.BadAmount:
        return 2115
    return 0


def _moves(world: World, job: state.SlurmJob, values: Mapping[str, Any]) -> int:
    """Without accounting neither the account nor the partition of a job can be changed."""
    names = [name for name in values.get("partition", "").split(",") if name]
    if any(name not in world.partitions for name in names):
        return 2000
    moved = bool(names) and tuple(names) != job.ask.partitions
    return 11 if moved or values.get("account", job.ask.text("account")) != job.ask.text("account") else 0


def _resized(old: state.RequestedJob, new: state.RequestedJob, values: Mapping[str, Any]) -> state.RequestedJob:
    """`cpus` is the given value, else tasks alone if they change, else tasks x cpus_per_task with nodes or gres.

    An unchanged number does not count as given. With another number of nodes each has at least the old task's cpus.
    """
    new = dataclasses.replace(new, tasks=max(new.tasks, new.minimum_nodes))
    if "minimum_cpus" in values and (new.minimum_cpus != old.minimum_cpus or new.tasks == old.tasks):
        moved = new.minimum_nodes != old.minimum_nodes
        cpus = max(new.minimum_cpus, new.minimum_nodes * old.cpus_per_task if moved else 0)
    elif new.tasks != old.tasks:
        cpus = new.tasks
    elif any(name in values for name in (*_NODE_FIELDS[:3], "tres_per_node", "tres_per_task", "tres_per_job")):
        cpus = new.tasks * new.cpus_per_task
    else:
        cpus = old.minimum_cpus
    return dataclasses.replace(new, minimum_cpus=cpus)


def _with_priority(world: World, job: state.SlurmJob, values: Mapping[str, Any]) -> state.SlurmJob:
    """Priority 0 and hold are the same; an operator's hold says so, a release computes the priority again."""
    if values.get("hold") or values.get("priority", 1) == 0:
        return dataclasses.replace(job, priority=0, reason="JobHeldAdmin", eligible=0)
    released = values.get("hold") is False or ("priority" in values and values["priority"] is None)
    if released and job.held:
        return dataclasses.replace(job, priority=max(1, -job.ask.nice), reason=state.NO_REASON, eligible=world.now)
    priority = values.get("priority")
    return job if priority is None else dataclasses.replace(job, priority=priority)


# -- running ---------------------------------------------------------------------------------------------------------


def _apply_running(world: World, job: state.SlurmJob, values: Mapping[str, Any]) -> int:
    """Nodes are released first, even if the rest is refused."""
    if any(name in values for name in _NODE_FIELDS):
        job = _shrink(world, job, values)
    if any(name in values for name in _PENDING_ONLY):
        return 2073
    if any(name in values for name in ("memory_per_node", "memory_per_cpu")):
        return 2036
    ask = requested_job.apply(job.ask, {name: values[name] for name in _ANY_TIME if name in values})
    changed = dataclasses.replace(job, ask=ask)
    if values.get("hold") or "priority" in values:
        changed = _with_priority(world, changed, values)
    world.put(changed)
    if "time_limit" in values:
        world.watch(changed)
    return 0


def _shrink(world: World, job: state.SlurmJob, values: Mapping[str, Any]) -> state.SlurmJob:
    """A smaller count, or a shorter list, takes nodes away from a running job."""
    assert job.grant is not None
    wanted = requested_job.apply(state.RequestedJob(), {name: values[name] for name in _NODE_FIELDS if name in values})
    keep = len(wanted.required) or wanted.maximum_nodes or len(job.grant.shares)
    if not 0 < keep < len(job.grant.shares):
        return job
    # The nodes that the job keeps are in front.
    shares = tuple(sorted(job.grant.shares, key=lambda share: share.node not in wanted.required))
    grant = dataclasses.replace(job.grant, shares=shares)
    released = world.shrink(dataclasses.replace(job, grant=grant), keep)
    if world.config.poison_on_shrink:
        for name in released:
            world.put_node(dataclasses.replace(world.nodes[name], responding=False))
    shrunk = world.jobs[job.job_id]
    cpus = sum(share.cpus for share in grant.shares[:keep])
    tasks = shrunk.ask.tasks if wanted.required else cpus // shrunk.ask.cpus_per_task
    ask = dataclasses.replace(shrunk.ask, minimum_nodes=keep, minimum_cpus=cpus, tasks=tasks)
    world.put(dataclasses.replace(shrunk, ask=ask))
    return world.jobs[job.job_id]
