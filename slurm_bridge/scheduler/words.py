"""What is said to users: sentences about a placeholder in words they can act on, with Slurm's own beside them."""

import datetime as dt
from collections.abc import Iterable, Sequence

from slurm_bridge.model.job import JobRequest, JobView, Phase
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.scheduler.reservations import node_record
from slurm_bridge.translate.translator import Value

#: Annotations that an event names.
MOST_SAID = 6

#: Nodes that a sentence names.
MOST_NODES = 4

#: Slurm's pending reasons that a user can do something about, or will ask about. Others are shown as they are.
REASONS = {
    "Resources": "the cluster is full; it is next when nodes become free",
    "Priority": "other jobs are before it",
    "BeginTime": "it may not begin yet",
    "Dependency": "it waits for another job",
    "Licenses": "the licenses it asks for are in use",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition is inactive",
    "PartitionNodeLimit": "it asks for more nodes than the partition allows or has",
    "PartitionTimeLimit": "it asks for more time than the partition allows",
    "ReqNodeNotAvail": "nodes that it could use are not available now",
    "Reservation": "it waits for its reservation",
    "JobHeldAdmin": "an administrator holds it",
    "JobHeldUser": "it is held",
    "BadConstraints": "no node has the features it asks for",
    "AssocGrpCpuLimit": "the account has reached its limit of cpus",
    "AssocMaxJobsLimit": "the account has reached its limit of jobs",
    "QOSMaxJobsPerUserLimit": "the user has reached the QOS's limit of jobs",
    "QOSGrpCpuLimit": "the QOS has reached its limit of cpus",
}

#: Why a placeholder ended, by the state word that says it.
ENDS = {
    "CANCELLED": "was cancelled",
    "TIMEOUT": "reached its time limit",
    "PREEMPTED": "was preempted",
    "NODE_FAIL": "lost a node",
    "BOOT_FAIL": "got a node that did not boot",
    "DEADLINE": "missed its deadline",
    "OUT_OF_MEMORY": "ran out of memory",
    "FAILED": "failed",
    "COMPLETED": "completed",
}


def waiting(placeholder: Placeholder) -> str:
    """Why a placeholder does not run yet."""
    head = f"Slurm job {placeholder.job_id} is {placeholder.phase.value}"
    view = placeholder.view
    if view is None or placeholder.phase is not Phase.PENDING:
        return head
    return head + _reason(view) + _start(view) + _kept(placeholder)


def _reason(view: JobView) -> str:
    if not view.reason or view.reason == "None":
        return ""
    known = REASONS.get(view.reason)
    return f" ({view.reason}: {known})" if known else f" ({view.reason})"


def _start(view: JobView) -> str:
    if not view.start_time:
        return ""
    when = dt.datetime.fromtimestamp(view.start_time, tz=dt.UTC)
    return f", estimated start {when:%Y-%m-%d %H:%M} UTC"


def _kept(placeholder: Placeholder) -> str:
    """Which nodes are kept for it, and until when."""
    kept = node_record.read(placeholder.owner.reserved)
    if kept is None:
        return ""
    more = f" and {len(kept.nodes) - MOST_NODES} more" if len(kept.nodes) > MOST_NODES else ""
    nodes = f"node{'s' * (len(kept.nodes) > 1)} {', '.join(kept.nodes[:MOST_NODES])}{more}"
    until = dt.datetime.fromtimestamp(kept.until, tz=dt.UTC)
    return f"; {nodes} {'are' if len(kept.nodes) > 1 else 'is'} kept for it until {until:%H:%M} UTC"


def refused(placeholder: Placeholder) -> bool:
    """Slurm has looked at it, and had no nodes for it."""
    return placeholder.view is not None and placeholder.view.reason not in ("", "None")


def nowhere(wanted: Sequence[str], text: str) -> str:
    """The same for a workload that was tried wherever its own requirement lets it, which the user reads first."""
    return f"unschedulable on cluster: {'; '.join(wanted)}; {text}" if wanted else text


def key(placeholder: Placeholder) -> str:
    """What has to change before the same waiting is worth another write; the estimate alone is not."""
    reason = placeholder.view.reason if placeholder.view is not None else ""
    return f"{placeholder.job_id} {placeholder.phase.value} {reason} {placeholder.owner.reserved}".rstrip()


def end_word(placeholder: Placeholder) -> str:
    """The state word that says why it ended: CANCELLED, TIMEOUT, …; GONE when Slurm no longer knows the job."""
    return next((word for word in ENDS if word in placeholder.state.words), "GONE")


def ended(placeholder: Placeholder) -> str:
    """Why a placeholder is over."""
    word = end_word(placeholder)
    if word == "GONE":
        return f"Slurm no longer knows job {placeholder.job_id}"
    # Of a reading from before its end the reason is that of a wait.
    view = placeholder.view
    reason = view.reason if view is not None and view.state.phase is Phase.ENDED else ""
    tail = f" ({word}: {reason})" if reason and reason != "None" else f" ({word})"
    return f"Slurm job {placeholder.job_id} {ENDS[word]}{tail}"


def asked(request: JobRequest) -> str:
    """In what partition and for how much, in a few words."""
    where = f" in partition {request.partition}" if request.partition else ""
    return f"{where}: " + " and ".join(_asked_of(part) for part in (request, *request.components))


def said(values: Iterable[Value]) -> str:
    """What annotations had a say in, and whose; more than an event can hold is left to `explain`."""
    told = [f"{one.key}={one.value} from {one.subject}" for one in values if one.key]
    more = [f"and {len(told) - MOST_SAID} more"] if len(told) > MOST_SAID else []
    return "; " + ", ".join([*told[:MOST_SAID], *more]) if told else ""


def _asked_of(part: JobRequest) -> str:
    each = f"{part.tasks} tasks of " if part.tasks > 1 else ""
    gres = "".join(f", {one.count} {one.name}" for one in part.gres)
    return f"{each}{part.cpus_per_task} cpus, {part.memory.mib} MiB{gres}"
