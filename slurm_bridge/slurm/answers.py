"""Slurm's answers as records of the model: parsed once, here, and frozen."""

import functools
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from slurm_bridge.model import hostlist, marks
from slurm_bridge.model.job import (
    Component,
    Cores,
    Gres,
    JobAllocation,
    JobState,
    JobStates,
    JobView,
    Memory,
    MemoryPer,
    NodeShare,
)
from slurm_bridge.model.names import JobId
from slurm_bridge.model.slurmnode import Partition, Ping, SlurmNode
from slurm_bridge.slurm import gres_text, shapes
from slurm_bridge.slurm.shapes import number

_IMPLIED_MAXIMUM = "JOB_IMPLICIT_MAX_NODES"

#: An id, or a distance between two of them: an unsigned number of 32 bits.
_ID: Final = re.compile(r"[0-9]{1,10}")
_DIGITS: Final = 10
#: 16 384 cores of one node, which is more than any has.
_BITMAP: Final = re.compile(r"(?:0[xX])?[0-9a-fA-F]{0,4096}")
#: Letters that are in no name of a node, and in no list of them.
_NO_HOSTS: Final = re.compile(r"[^!-~]")
#: Enough of a text that makes no sense.
_MOST_WORDS: Final = 40
#: Devices with their indices, as they go into an annotation of each pod.
_DEVICES: Final = re.compile(r"(?:[A-Za-z0-9_.:-]+\(IDX:[0-9][0-9,-]*\),?)*")
_MOST_DEVICES: Final = 1024


def state_of(words: list[str] | str | None) -> JobState:
    """State words; thousands of jobs share a few combinations of them."""
    # Asked for every job at every poll: too hot for runtime.caches, whose look-up takes four times as long.
    return _shared(frozenset([words] if isinstance(words, str) else words or ()))


@functools.lru_cache(maxsize=256)
def _shared(words: frozenset[str]) -> JobState:
    return JobState(words)


def states(rows: Iterable[shapes.StateRow], *, components: bool = True) -> Mapping[JobId, JobStates]:
    """Every id of its own; the leader of a heterogeneous job has all components, in their order.

    Without `components` those whose leader is listed too are only found in its entry.
    """
    alone: dict[JobId, JobStates] = {}
    # Of a few combinations, for thousands of jobs at a time.
    met: dict[tuple[str, ...], JobStates] = {}
    apart: list[shapes.StateRow] = []
    for row in rows:
        text = str(row.job_id)
        # Looked at before `int`, which would read the array task 7_1 as 71.
        if text.isdecimal() and text.isascii() and len(text) <= _DIGITS:
            words = (row.state,) if isinstance(row.state, str) else tuple(row.state or ())
            whole = met.get(words)
            if whole is None:
                whole = met[words] = JobStates(components=(Component(offset=0, state=state_of(row.state)),))
            alone[JobId(int(text))] = whole
        else:
            apart.append(row)
    return alone | _groups(apart, components=components)


def _groups(rows: Iterable[shapes.StateRow], *, components: bool) -> dict[JobId, JobStates]:
    """Slurm names every part of a heterogeneous job by its distance to the leader, the leader's own is 0."""
    parts: dict[JobId, dict[JobId, JobState]] = {}
    leaders: dict[JobId, JobId] = {}
    for row in rows:
        for whole in (ids := _ids(row.job_id)):
            parts.setdefault(whole, {})[ids[0]] = state_of(row.state)
            leaders[ids[0]] = whole
    found: dict[JobId, JobStates] = {}
    for whole, states_ in parts.items():
        # A leader that is not there itself has no state; a component then speaks for itself.
        if whole in states_ and (components or leaders[whole] == whole or leaders[whole] not in leaders):
            # The leader first: a restarted slurmctld lists them by id, whichever was chosen for it.
            ids = (whole, *sorted(states_.keys() - {whole}))
            listed = tuple(Component(offset=offset, state=states_[job_id]) for offset, job_id in enumerate(ids))
            found[whole] = JobStates(components=listed)
    return found


def job(row: shapes.JobRow) -> JobView:
    """One full record. Words that thousands of jobs have in common are one object."""
    return JobView(
        job_id=JobId(row.job_id),
        name=row.name or "",
        state=state_of(row.job_state),
        # Slurm writes the absence of a reason as the word None.
        reason=sys.intern("" if row.state_reason == "None" else row.state_reason or ""),
        owner=marks.read(row.admin_comment or ""),
        admin_comment=row.admin_comment or "",
        comment=row.comment or "",
        user=sys.intern(row.user_name or ""),
        user_id=number(row.user_id),
        partition=sys.intern(row.partition or ""),
        account=sys.intern(row.account or ""),
        qos=sys.intern(row.qos or ""),
        held=bool(row.hold),
        priority=number(row.priority) or 0,
        submit_time=number(row.submit_time) or 0,
        start_time=number(row.start_time) or 0,
        end_time=number(row.end_time) or 0,
        last_evaluation=number(row.last_sched_evaluation) or 0,
        time_limit_minutes=number(row.time_limit),
        nodes=hosts(row.nodes),
        required_nodes=hosts(row.required_nodes) or (),
        excluded=row.excluded_nodes or "",
        constraints=sys.intern(row.features or ""),
        minimum_nodes=number(row.node_count),
        maximum_nodes=maximum_nodes(row),
        tasks=number(row.tasks),
        cpus=number(row.cpus),
        cpus_per_task=number(row.cpus_per_task),
        memory=memory(row),
        gres=sys.intern(row.tres_per_node or row.tres_per_task or ""),
        licenses=row.licenses or "",
        mcs_label=row.mcs_label or "",
        reservation=row.resv_name or "",
        exclusive="none" in shapes.words(row.shared),
        het_job_id=JobId(number(row.het_job_id) or 0) or None,
        het_offset=number(row.het_job_offset) or 0,
        sluid=(row.step_id.sluid or "") if row.step_id else "",
    )


def memory(row: shapes.JobRow) -> Memory | None:
    """Per GPU stands beside a per-node amount that Slurm derived from it."""
    per_gpu = gres_text.read(row.memory_per_tres or "")
    if per_gpu:
        return Memory(mib=per_gpu[0].count, per=MemoryPer.GPU)
    per_cpu, per_node = number(row.memory_per_cpu), number(row.memory_per_node)
    if per_cpu is not None:
        return Memory(mib=per_cpu, per=MemoryPer.CPU)
    return None if per_node is None else Memory(mib=per_node)


def maximum_nodes(row: shapes.JobRow) -> int | None:
    """A maximum that was asked for. Before v0.0.45 one that Slurm implied (the tasks) looks the same."""
    return None if _IMPLIED_MAXIMUM in (row.flags or ()) else number(row.max_nodes) or None


def hosts(text: str | None) -> tuple[str, ...] | None:
    """A hostlist; None where the text is none, for then it is unknown which nodes it means."""
    if not text:
        return ()
    if _NO_HOSTS.search(text):
        return None
    try:
        return hostlist.expand(text)
    except ValueError:
        return None


def allocation(job_id: JobId, rows: Iterable[shapes.ResourceRow], threads: Mapping[str, int]) -> JobAllocation | None:
    """From `resources/{id}`, which counts cores: a job always holds all threads of its cores."""
    shares = tuple(
        NodeShare(
            node=row.node,
            cpus=_bits(row.core_bitmap).bit_count() * threads.get(row.node, 1),
            memory_mib=row.mem_alloc,
            gres=_plausible(Gres(name=one.name, type=one.type or "", count=one.count) for one in row.gres or ()),
            devices=_devices(row.gres or ()),
            cores=_which(row),
        )
        for row in rows
    )
    return JobAllocation(job_id=job_id, shares=shares) if shares else None


def _devices(rows: Iterable[shapes.ResourceGres]) -> str:
    """In the notation of `scontrol show job -d`; "" where an index is missing, or the text is none of Slurm's."""
    text = ",".join(
        f"{':'.join(part for part in (one.name, one.type, str(one.count)) if part)}(IDX:{one.index})"
        for one in rows
        if one.count
    )
    return text if len(text) <= _MOST_DEVICES and _DEVICES.fullmatch(text) else ""


def _which(row: shapes.ResourceRow) -> Cores | None:
    """None where it is not told how many the node has."""
    if not row.sockets_per_node or not row.cores_per_socket:
        return None
    return Cores(bits=_bits(row.core_bitmap), sockets=row.sockets_per_node, per_socket=row.cores_per_socket)


def _bits(bitmap: str | None) -> int:
    """A number like 0xF, with a bit for each core; raises ValueError when it is none."""
    if bitmap is not None and not _BITMAP.fullmatch(bitmap):
        raise ValueError(f"core_bitmap {bitmap[:_MOST_WORDS]!r} is not a hexadecimal number")
    return int(bitmap or "0", 16)


def allocation_of_job(row: shapes.JobRow) -> JobAllocation | None:
    """From the full record."""
    nodes = (row.job_resources.nodes.allocation if row.job_resources and row.job_resources.nodes else None) or ()
    details = [gres_text.read(text or "") for text in row.gres_detail or ()]
    details += [()] * (len(nodes) - len(details))
    shares = tuple(
        NodeShare(node=node.name, cpus=node.cpus.count, memory_mib=node.memory.allocated, gres=_plausible(gres))
        for node, gres in zip(nodes, details, strict=False)
    )
    return JobAllocation(job_id=JobId(row.job_id), shares=shares) if shares else None


def node(row: shapes.NodeRow, *, told: bool = True) -> SlurmNode:
    """One node. What CoreSpecCount, CpuSpecList and MemSpecLimit keep for the system is no job's.

    Where it is not told that nodes are external, a node is native whose slurmd has registered, or is still to register
    with a slurmctld that has just started.
    """
    states = shapes.words(row.state)
    native = "EXTERNAL" not in states and (told or bool(row.version) or "UNKNOWN" in states)
    features = row.features.split(",") if isinstance(row.features, str) else row.features
    return SlurmNode(
        name=row.name,
        states=states,
        cpus=row.effective_cpus or row.cpus,
        memory_mib=row.real_memory - (row.specialized_memory or 0),
        gres=gres_text.read(row.gres or ""),
        features=tuple(feature for feature in features or () if feature),
        partitions=tuple(row.partitions or ()),
        threads_per_core=max(1, row.threads),
        reason=row.reason or "",
        used_cpus=row.alloc_cpus,
        used_memory_mib=row.alloc_memory,
        used_gres=gres_text.read(row.gres_used or ""),
        topology=row.topology or "",
        comment=row.comment or "",
        native=native,
        slurmd=row.version or "",
    )


def partition(row: shapes.PartitionRow) -> Partition:
    """One partition."""
    exclusive = row.maximums.shares == 0 if row.partition.exclusive is None else row.partition.exclusive == "NODE"
    return Partition(
        name=row.name,
        states=shapes.words(row.partition.state),
        nodes=hosts(row.nodes.configured) or (),
        default_minutes=number(row.defaults.time),
        maximum_minutes=number(row.maximums.time),
        preempt_grace_seconds=row.grace_time,
        exclusive=exclusive,
        default="DEFAULT" in (row.flags or ()),
        minimum_nodes=row.minimums.get("nodes", 0),
        root_only="ROOT_ONLY" in (row.flags or ()),
        node_sets=frozenset(filter(None, (row.node_sets or "").split(","))),
    )


def ping(answer: shapes.Pings) -> Ping:
    """Any controller that responds will do; if none does, the first says why."""
    responding = any(row.responding for row in answer.pings)
    problem = "" if responding else next((row.status for row in answer.pings if row.status), "no controller responds")
    release = answer.meta.slurm.release if answer.meta and answer.meta.slurm else None
    return Ping(responding=responding, version=release or "", problem=problem)


def _plausible(found: Iterable[Gres]) -> tuple[Gres, ...]:
    """Slurm lists every type of the cluster on every node: a 0 beside a count of the same name says nothing."""
    gres = tuple(found)
    counted = {one.name for one in gres if one.count}
    return tuple(one for one in gres if one.count or one.name not in counted)


def _ids(text: str | int) -> tuple[JobId, ...]:
    """`235` → 235; `236+1` → 236 and its leader 235; rows of array jobs (`7_[1-3]`) are no placeholder.

    What stands behind the plus is the distance to the leader as an unsigned number of 32 bits: the leader of
    `27+4294467323` was submitted as 500000.
    """
    own, _, distance = str(text).partition("+")
    if not _ID.fullmatch(own) or (distance and not _ID.fullmatch(distance)):
        return ()
    leader = (int(own) - int(distance or 0)) % 2**32
    return tuple(JobId(one) for one in dict.fromkeys((int(own), leader)))
