"""The queues as they are shown: the tree with its usage, applications, waiting workloads, evictions, refusals."""

import collections
from collections.abc import Iterable, Mapping
from typing import Any

from slurm_bridge.families.yunikorn import evictions_view, reasons
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.members import QueueApplication, QueueMember, Stage
from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.committed import CommittedPartition
from slurm_bridge.families.yunikorn.queues.config import documents
from slurm_bridge.families.yunikorn.queues.tree import Queue

#: At most so many applications and waiting workloads are shown, the oldest first; all of them are counted.
MOST = 500

Picture = Mapping[str, Any]


def picture(manager: Manager, now: float) -> Picture:
    """Plain values; the names of fields are those of the page."""
    with manager.lock:
        members = tuple(manager.members.values())
        applications = [_application(one) for one in _oldest(manager.applications.all())]
        setup = manager.setup
    waiting = sorted((one for one in members if one.stage is Stage.ASKED), key=lambda one: one.demand.created)
    written = dict(documents.walk(setup.written.root))
    pending = _pending(waiting)

    def look(partition: CommittedPartition) -> dict[str, Any]:
        return {
            "queues": _queue(partition.root, written, pending),
            "waiting": [_waiting(partition, one, setup.where) for one in waiting[:MOST]],
            "users": [_user(one) for one in partition.limits.used()],
        }

    found = manager.engine.committed(look)
    shown: dict[str, Any] = dict(found) if isinstance(found, dict) else {"queues": None, "waiting": [], "users": []}
    return {
        "mode": setup.options.mode,
        "partition": setup.written.name,
        "ahead": {"now": manager.ahead.count(now), "most": setup.ahead},
        **({"size": dict(manager.engine.size)} if setup.own else {}),
        **shown,
        "applications": applications,
        "preemption": evictions_view.shown(manager.evictions, {one.demand.uid: one for one in members}, now),
        "rejected": [
            # Without the number that tells the entries of one application apart.
            {
                "at": one.at,
                "application": one.rejected.subject.name.rpartition("#")[0],
                "reason": one.rejected.reason,
            }
            for one in reversed(manager.engine.rejected)
        ],
    }


def _oldest(applications: Iterable[QueueApplication]) -> list[QueueApplication]:
    return sorted(applications, key=lambda one: one.first.created)[:MOST]


def _application(application: QueueApplication) -> dict[str, Any]:
    """One application; how many of its workloads were let in, and how many wait."""
    stages = collections.Counter(member.stage for member in application.members.values())
    return {
        "application": application.first.identity.title,
        "queue": application.queue,
        "user": application.first.user,
        "since": application.first.created,
        "runs": stages[Stage.GIVEN],
        "waits": stages[Stage.ASKED],
    }


def _pending(waiting: Iterable[QueueMember]) -> Mapping[str, tuple[int, dict[str, int]]]:
    """By queue and all above it: how many wait there, and for how much together."""
    found: dict[str, tuple[int, dict[str, int]]] = {}
    for one in waiting:
        path = one.queue
        while path:
            count, total = found.get(path, (0, {}))
            amounts.add(total, one.demand.total)
            found[path] = count + 1, total
            path = path.rpartition(".")[0]
    return found


def _queue(
    queue: Queue, written: Mapping[str, documents.QueueDocument], pending: Mapping[str, tuple[int, dict[str, int]]]
) -> dict[str, Any]:
    """One queue with those below it; limits are shown as they were written, also where they do not count."""
    stated = written.get(queue.path, queue)
    count, total = pending.get(queue.path, (0, {}))
    return {
        "path": queue.path,
        "state": queue.state.value,
        "configured": queue.managed,
        "guaranteed": dict(stated.guaranteed or {}),
        "max": dict(stated.max or {}),
        "used": dict(queue.allocated),
        "pending": dict(total),
        "running": queue.running,
        "waiting": count,
        "maxapplications": stated.max_applications,
        "queues": [_queue(child, written, pending) for child in queue.children.values()],
    }


def _waiting(partition: CommittedPartition, member: QueueMember, where: str) -> dict[str, Any]:
    application = partition.applications.get(member.application.name)
    why = ""
    if application is not None:
        total = member.demand.total
        why = reasons.never(application, total) or reasons.waits(partition, application, member.demand, where)
    return {
        "workload": member.demand.title,
        "application": member.demand.identity.title,
        "queue": member.queue,
        "user": member.demand.user,
        "since": member.demand.created,
        "priority": member.demand.priority,
        "wants": dict(member.demand.total),
        "why": why or "waits for its turn",
    }


def _user(used: Any) -> dict[str, Any]:
    return {
        "queue": used.queue,
        "subject": used.subject,
        "used": dict(used.allocated),
        "running": used.applications,
        "max": dict(used.max_resources or {}),
        "maxapplications": used.max_applications,
    }
