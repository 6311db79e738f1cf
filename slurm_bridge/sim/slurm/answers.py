"""Jobs in the JSON of slurmrestd, in the form of each API version."""

import math
from collections.abc import Iterator, Sequence

from slurm_bridge.model import hostlist
from slurm_bridge.sim.slurm import shapes, state, tres
from slurm_bridge.sim.slurm.shapes import Json, number
from slurm_bridge.sim.slurm.world import World

_NEWEST = "v0.0.45"


def job(world: World, record: state.SlurmJob, version: str) -> Json:
    """One job in full."""
    ask, identity = record.ask, world.config.users.get(record.user, 0)
    answer: Json = {
        **shapes.JOB,
        **{name: ask.text(name) for name in _TEXTS},
        **_times(world, record),
        **_size(world, record),
        **_het(record),
        "batch_host": record.grant.nodes[0] if record.grant else "",
        "flags": list(_flags(record)),
        "cluster": world.config.cluster,
        "derived_exit_code": shapes.SUCCESS,
        "exit_code": shapes.HUNG_UP if record.failed_node or record.reason == "BadConstraints" else shapes.SUCCESS,
        "failed_node": record.failed_node,
        "features": ask.constraints,
        "group_id": identity,
        "group_name": record.user,
        "user_id": identity,
        "user_name": record.user,
        "mail_user": record.user,
        "hold": record.held,
        "job_id": record.job_id,
        "job_state": state_words(record),
        "licenses_allocated": ask.text("licenses") if record.running else "",
        "name": ask.name,
        "nice": ask.nice,
        "partition": record.grant.partition if record.grant else ",".join(ask.partitions),
        "priority": number(record.priority),
        "resv_name": ask.reservation,
        "shared": ["none"] if ask.exclusive and version < _NEWEST else [],
        "state_description": record.description,
        "state_reason": record.reason,
    }
    if version < _NEWEST:
        for name in shapes.JOB_LACKS[version]:
            answer.pop(name, None)
        answer.update(shapes.JOB_INSTEAD)
    return answer


_TEXTS = (
    "account admin_comment comment current_working_directory dependency excluded_nodes extra licenses mcs_label"
    " memory_per_tres prefer qos required_nodes tres_per_job tres_per_node tres_per_task wckey"
).split()


def state_words(record: state.SlurmJob) -> list[str]:
    """The base state and the flags beside it."""
    if record.shown:
        return list(record.shown)
    words = [record.state]
    if record.configuring:
        words.append("CONFIGURING")
    if record.pending and record.reason == state.RESERVATION_DELETED:
        words.append("RESV_DEL_HOLD")
    return words


def job_state(record: state.SlurmJob) -> Json:
    """One line of jobs/state: the id is text, and `+N` is a difference of ids, even for chosen ones."""
    text = str(record.job_id)
    if record.leader:
        text += f"+{(record.job_id - record.leader) % 2**32}"
    return {"job_id": text, "state": state_words(record)}


def allocation(world: World, record: state.SlurmJob) -> list[Json]:
    """The nodes of a running job; GPUs of which Slurm has lost count are shown as 0."""
    assert record.grant is not None
    kinds = dict.fromkeys((part.name, part.type) for share in record.grant.shares for part in share.gres)
    return [
        {
            "node": share.node,
            "sockets_per_node": 1,
            "cores_per_socket": _cores(world, share),
            "mem_alloc": share.memory_mib,
            "core_bitmap": f"0x{sum(1 << core for core in share.cores):0{-(-_cores(world, share) // 4)}X}",
            "channel": shapes.UNSET,
            "gres": [
                {"name": name, "type": kind, "count": _shown(share, name, kind), "index": _index(share, name, kind)}
                for name, kind in kinds
            ],
        }
        for share in record.grant.shares
    ]


# -- parts of a job --------------------------------------------------------------------------------------------------


def _times(world: World, record: state.SlurmJob) -> Json:
    plan = world.plans.get(record.job_id) if record.pending else None
    start = plan.start if plan else record.started
    end = record.ended or (record.deadline if record.running else 0)
    seen = record.pending and not record.held and record.submitted <= world.last_pass
    return {
        "accrue_time": number(record.eligible),
        "eligible_time": number(record.eligible),
        "submit_time": number(record.submitted),
        "start_time": number(start),
        "end_time": number(end if end != math.inf else record.started + 365 * 86400),
        "last_sched_evaluation": number(world.last_pass if seen else record.evaluated),
        "time_limit": shapes.INFINITE if record.ask.minutes is None else number(record.ask.minutes),
        "scheduled_nodes": hostlist.compress(plan.nodes) if plan else "",
    }


def _size(world: World, record: state.SlurmJob) -> Json:
    ask, grant = record.ask, record.grant
    cpus = grant.cpus if grant else ask.minimum_cpus
    if grant:
        nodes = len(grant.shares)
    else:
        sizes = [world.nodes[name].cpus for part in ask.partitions for name in _nodes_of(world, part)]
        nodes = max(ask.minimum_nodes, -(-ask.minimum_cpus // max(sizes, default=1)))
    gres = grant.shares if grant and any(share.gres for share in grant.shares) else ()
    granted = tres.write(cpus=cpus, mib=sum(share.memory_mib for share in grant.shares), nodes=nodes) if grant else ""
    return {
        "billable_tres": {"set": grant is not None, "infinite": False, "number": float(cpus if grant else 0)},
        "cpus": number(cpus),
        "tasks_per_node": number(ask.tasks_per_node or 0),
        "cpus_per_task": number(ask.cpus_per_task),
        "minimum_cpus_per_node": number(ask.cpus_per_task),
        "node_count": number(nodes),
        "max_nodes": number(0 if grant else (ask.maximum_nodes or ask.tasks)),
        "tasks": number(ask.tasks if ask.tasks_given or not grant else max(ask.tasks, nodes)),
        "memory_per_cpu": _memory(ask, state.MemoryPer.CPU),
        "memory_per_node": _memory(ask, state.MemoryPer.NODE),
        "nodes": hostlist.compress(grant.nodes) if grant else "",
        "gres_detail": [None if share.hidden else tres.details(share.gres) for share in gres],
        "job_resources": _resources(world, grant) if grant else None,
        "tres_req_str": _requested(world, ask),
        "tres_alloc_str": granted,
    }


def _memory(ask: state.RequestedJob, per: state.MemoryPer) -> Json:
    if ask.memory_per is per and (ask.memory_given or per is state.MemoryPer.NODE):
        return number(ask.memory_mib)
    return shapes.UNSET


def _nodes_of(world: World, name: str) -> Sequence[str]:
    found = world.partitions.get(name)
    return [node for node in found.nodes[:1] if node in world.nodes] if found else []


def _requested(world: World, ask: state.RequestedJob) -> str:
    nodes = ask.minimum_nodes
    mib = (
        ask.memory_mib
        * {
            state.MemoryPer.NODE: nodes,
            state.MemoryPer.CPU: ask.minimum_cpus,
            state.MemoryPer.GPU: sum(part.count for part in ask.gres_per_node) * nodes
            + sum(part.count for part in ask.gres_per_task) * ask.tasks,
        }[ask.memory_per]
    )
    whole = [world.nodes[name].memory_mib for part in ask.partitions for name in _nodes_of(world, part)]
    return tres.write(
        cpus=ask.minimum_cpus, mib=mib if ask.memory_given else max(whole, default=0) * nodes, nodes=nodes
    )


def _het(record: state.SlurmJob) -> Json:
    return {
        "het_job_id": number(record.leader),
        "het_job_offset": number(record.offset),
        "het_job_id_set": _id_set(record.components),
        "step_id": {
            "sluid": record.sluid,
            "job_id": number(record.job_id),
            "step_het_component": shapes.UNSET,
            "step_id": "entire",
        },
    }


def _id_set(ids: Sequence[int]) -> str:
    """`93-94,950`: ascending, wherever the leader is."""
    runs: list[list[int]] = []
    for job_id in sorted(ids):
        if runs and job_id == runs[-1][-1] + 1:
            runs[-1].append(job_id)
        else:
            runs.append([job_id])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _flags(record: state.SlurmJob) -> Iterator[str]:
    ask = record.ask
    if ask.tasks_given:
        yield "EXACT_TASK_COUNT_REQUESTED"
    if record.running:
        yield "JOB_WAS_RUNNING"
    if ask.memory_given and ask.memory_per is not state.MemoryPer.GPU:
        yield "EXACT_MEMORY_REQUESTED"
    yield "EXTERNAL_JOB"
    yield "USING_DEFAULT_ACCOUNT"
    if ask.default_partition:
        yield "USING_DEFAULT_PARTITION"
    yield from ("USING_DEFAULT_QOS", "USING_DEFAULT_WCKEY")
    if ask.default_partition and record.grant:
        yield "PARTITION_ASSIGNED"
    if ask.prefer_few:
        yield "PREFER_MINIMUM_NODE_COUNT"
    if ask.maximum_nodes is None:
        yield "JOB_IMPLICIT_MAX_NODES"


def _shown(share: state.Share, name: str, kind: str) -> int:
    return 0 if share.hidden else sum(part.count for part in share.gres if (part.name, part.type) == (name, kind))


def _index(share: state.Share, name: str, kind: str) -> str | None:
    found = [number for part in share.gres if (part.name, part.type) == (name, kind) for number in part.indices]
    return tres.ranges(sorted(found)) if found and not share.hidden else None


def _cores(world: World, share: state.Share) -> int:
    found = world.nodes.get(share.node)
    return found.cpus // found.threads_per_core if found else share.cpus


def _resources(world: World, grant: state.Grant) -> Json:
    return {
        "select_type": ["CR_CORE_MEMORY"],
        "nodes": {
            "count": len(grant.shares),
            "select_type": ["ONE_ROW"],
            "list": hostlist.compress(grant.nodes),
            "whole": grant.whole,
            "allocation": [_share(world, index, share) for index, share in enumerate(grant.shares)],
        },
        "cpus": grant.cpus,
        "threads_per_core": shapes.UNSET,
    }


_CORE = tuple(
    tuple({"index": index, "status": [word]} for index in range(1024)) for word in ("UNALLOCATED", "ALLOCATED")
)


def _share(world: World, index: int, share: state.Share) -> Json:
    taken = set(share.cores)
    return {
        "index": index,
        "name": share.node,
        "cpus": {"count": share.cpus, "used": 0},
        "memory": {"used": 0, "allocated": share.memory_mib},
        "sockets": [{"index": 0, "cores": [_CORE[core in taken][core] for core in range(_cores(world, share))]}],
    }
