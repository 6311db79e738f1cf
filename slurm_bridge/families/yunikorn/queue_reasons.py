"""One that its queue has not let in: what its user reads meanwhile, and whether others might have to go for it."""

from slurm_bridge.families.yunikorn import reasons
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.members import QueueMember
from slurm_bridge.families.yunikorn.queues.committed import CommittedPartition
from slurm_bridge.model.verdict import Wait

#: What is said of a queue changes without an event for the workloads in it.
SAID_AGAIN = 120.0


def waits(manager: Manager, member: QueueMember, now: float) -> Wait:
    """What a workload waits for, and what has to happen."""

    def look(partition: CommittedPartition) -> Wait | None:
        application = partition.applications.get(member.application.name)
        if application is None:
            return None
        path, total = application.queue.path, member.demand.total
        never = reasons.never(application, total)
        if never:
            return Wait(reason="QueueTooSmall", message=never, retry_after=SAID_AGAIN, warning=True)
        held = reasons.waits(partition, application, member.demand, manager.setup.where) or _behind(path, manager, now)
        if member.roomless:
            held = f"{held}; no workload is evicted for this, because {member.roomless}"
        return Wait(
            reason="QueueWaiting", message=f"in queue {path}: {held}{member.demand.note}", retry_after=SAID_AGAIN
        )

    found = manager.engine.committed(look)
    return (
        found
        if isinstance(found, Wait)
        else Wait(reason="QueueWaiting", message="enters its queue", retry_after=SAID_AGAIN)
    )


def _behind(path: str, manager: Manager, now: float) -> str:
    most = manager.setup.ahead
    if most and manager.ahead.count(now) >= most:
        return f"{most} workloads are ahead and wait for nodes; the next one follows when one of them starts"
    return f"waits for its turn in {path}"


def may_preempt(manager: Manager, member: QueueMember) -> bool:
    """Something is guaranteed to its queue or above it, and no workload is evicted for it yet."""

    def look(partition: CommittedPartition) -> bool:
        application = partition.applications.get(member.application.name)
        return application is not None and any(queue.guaranteed for queue in application.queue.lineage)

    asks = member.demand.preempts and not manager.evictions.has_room(member.demand.uid)
    return asks and bool(manager.engine.committed(look))
