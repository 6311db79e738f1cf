"""Nodes, partitions, reservations and licenses in the JSON of slurmrestd, in the form of each API version."""

from collections.abc import Iterator

from slurm_bridge.model import hostlist
from slurm_bridge.sim.slurm import ledger, shapes, state, tres
from slurm_bridge.sim.slurm.shapes import Json, number
from slurm_bridge.sim.slurm.world import World

_NEWEST = "v0.0.45"
#: The first that tells that nodes are external.
_TOLD = "v0.0.44"
#: Of every slurmd that has registered.
_SLURMD = "26.05.5"


def node(world: World, record: state.Node, version: str) -> Json:
    """One node in full."""
    free = world.free[record.name]
    owned = ledger.everything(record).gres
    used = {kind: owned[kind] - free.gres[kind] - free.lost.get(kind, 0) for kind in owned}
    memory = record.memory_mib - free.memory_mib
    cpus = record.cpus - free.cpus
    answer = {
        **shapes.NODE,
        "name": record.name,
        "hostname": record.name,
        "cores": record.cpus // record.threads_per_core,
        "threads": record.threads_per_core,
        "cpus": record.cpus,
        "effective_cpus": record.cpus,
        "real_memory": record.memory_mib,
        "features": list(record.features),
        "active_features": list(record.features),
        "gres": tres.write_gres(record.gres),
        "gres_used": tres.write_gres(record.gres, used),
        "state": list(_node_words(world, record, version)),
        "partitions": [partition.name for partition in world.partitions.values() if record.name in partition.nodes],
        "comment": record.comment,
        "topology": record.topology,
        "version": "" if record.external else _SLURMD,
        "reason": record.reason,
        "reason_set_by_user": record.reason_by,
        "reason_changed_at": number(record.reason_at),
        "alloc_cpus": cpus,
        "alloc_idle_cpus": free.cpus,
        "alloc_memory": memory,
        "tres": tres.write(cpus=record.cpus, mib=record.memory_mib),
        "tres_used": f"cpu={cpus},mem={tres.memory(memory)}" if cpus else "",
    }
    if version < _NEWEST:
        answer.pop("suspend_time")
        answer.update(shapes.NODE_INSTEAD)
    return answer


def partition(world: World, record: state.Partition, version: str) -> Json:
    """One partition in full."""
    nodes = [world.nodes[name] for name in record.nodes if name in world.nodes]
    cpus, newest = sum(item.cpus for item in nodes), version >= _NEWEST
    default, maximum = record.default_minutes, record.maximum_minutes
    shares = 0 if newest or record.exclusive else 1
    total = tres.write(cpus=cpus, mib=sum(item.memory_mib for item in nodes), nodes=len(nodes))
    extra: Json = {"exclusive": "NODE" if record.exclusive else "NO", "oversubscribe": "NO"} if newest else {}
    answer: Json = {
        **shapes.PARTITION,
        "name": record.name,
        "nodes": {"allowed_allocation": "", "configured": hostlist.compress(record.nodes), "total": len(nodes)},
        "tres": {"billing_weights": "", "configured": total},
        "select_type": ["NONE"] if newest else [],
        "cpus": {"task_binding": [] if newest else 0, "total": cpus},
        "defaults": {
            "memory_per_cpu": 0,
            "partition_memory_per_cpu": shapes.UNSET,
            "partition_memory_per_node": shapes.ZERO,
            "time": shapes.UNSET if default is None else number(default),
            "job": "",
        },
        "partition": {**extra, "state": [record.state]},
        "grace_time": record.grace_seconds,
        "maximums": {
            "cpus_per_node": shapes.INFINITE,
            "cpus_per_socket": shapes.INFINITE,
            "memory_per_cpu": 0,
            "partition_memory_per_cpu": shapes.UNSET,
            "partition_memory_per_node": shapes.ZERO,
            "nodes": shapes.INFINITE,
            "shares": shares,
            "oversubscribe": {"jobs": shares, "flags": []},
            "time": shapes.INFINITE if maximum is None else number(maximum),
            "over_time_limit": shapes.UNSET,
        },
        "priority": {"job_factor": 1, "tier": record.priority},
        "topology": record.topology,
        "node_sets": record.feature,
    }
    if newest:
        flags = {"DEFAULT": record.default, "ROOT_ONLY": record.root_only}
        answer["flags"] = [flag for flag, is_set in flags.items() if is_set]
        answer["preempt_mode"] = ["CLUSTER_GLOBAL"]
    return answer


def reservation(world: World, record: state.Reservation) -> Json:
    """One reservation in full."""
    cores = sum(world.nodes[name].cpus // world.nodes[name].threads_per_core for name in record.nodes)
    return {
        **shapes.RESERVATION,
        "accounts": ",".join(record.accounts),
        "core_count": cores,
        "end_time": number(record.end),
        "flags": [*record.flags, "SPEC_NODES"],
        "name": record.name,
        "node_count": len(record.nodes),
        "node_list": hostlist.compress(record.nodes),
        "start_time": number(record.start),
        "tres": f"cpu={sum(world.nodes[name].cpus for name in record.nodes)}",
        "users": ",".join(record.users),
    }


def license_(world: World, name: str, version: str) -> Json:
    """One license."""
    total, used = world.licenses[name], world.licenses_used[name]
    answer: Json = {"LicenseName": name, "Total": total, "Used": used, "Free": total - used, "Remote": False}
    answer |= dict.fromkeys(("Reserved", "LastConsumed", "LastDeficit", "LastUpdate"), 0)
    return answer if version == "v0.0.43" else {**answer, "Nodes": ""}


def _node_words(world: World, record: state.Node, version: str) -> Iterator[str]:
    """v0.0.43 has no state EXTERNAL."""
    free = world.free[record.name]
    if record.down:
        yield "DOWN"
    elif not free.jobs:
        yield "IDLE"
    else:
        yield "MIXED" if free.cpus else "ALLOCATED"
    if record.external and version >= _TOLD:
        yield "EXTERNAL"
    if record.dynamic:
        yield "DYNAMIC_NORM"
    if record.drain:
        yield "DRAIN"
    if not record.responding:
        yield "NOT_RESPONDING"
    now = world.now
    if any(record.name in held.nodes and held.active(now) for held in world.reservations.values()):
        yield "RESERVED"
    if free.cpus and any(record.name in plan.nodes for plan in world.plans.values()):
        yield "PLANNED"
