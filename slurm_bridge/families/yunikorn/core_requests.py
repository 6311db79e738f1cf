"""What the core is told of a workload: an ask for everything, of the application that it belongs to."""

import dataclasses

from slurm_bridge.families.yunikorn.engine import RM, SLURM
from slurm_bridge.families.yunikorn.members import QueueApplication, QueueMember, Stage
from slurm_bridge.families.yunikorn.queues.records import (
    Allocation,
    AllocationAsk,
    AllocationRelease,
    Application,
    AskId,
    Named,
    Update,
    Why,
)
from slurm_bridge.families.yunikorn.setup import PARTITION
from slurm_bridge.model.names import WorkloadKey


def application(known: QueueApplication) -> Application:
    """It enters the queue that its first workload asks for, or the one that placement rules find."""
    demand = known.first
    return Application(
        name=known.name,
        partition=PARTITION,
        queue=demand.queue,
        user=demand.user,
        groups=demand.groups,
        tags=demand.tags,
        submitted=demand.created,
    )


def forced(known: QueueApplication) -> Application:
    """One of which something is there, whatever its queue says now."""
    return dataclasses.replace(application(known), forced=True)


def ask(member: QueueMember) -> AllocationAsk:
    """All its pods at once; to the one node all asks are alike."""
    demand = member.demand
    return AllocationAsk(
        key=member.name,
        application=member.application.name,
        partition=PARTITION,
        resource=demand.total,
        priority=demand.priority,
        created=demand.created,
        told=member.since,
        shape="any",
        allow_preempt_self=not demand.opts_out,
        allow_preempt_other=demand.preempts,
    )


def id_of(member: QueueMember) -> AskId:
    """Of its ask, or of the allocation that came of it."""
    return AskId(partition=PARTITION, application=member.application.name, key=member.name)


def gone(uid: WorkloadKey) -> AskId:
    """Of one that is not there any more, and whose names in the core are not known."""
    return AskId(partition=PARTITION, application=f"gone#{uid}", key=f"gone#{uid}")


def standing(member: QueueMember) -> Allocation:
    """What it has, by being there."""
    return Allocation(ask=ask(member), nodes=(SLURM,))


def goodbye(member: QueueMember, *, evicted: bool) -> Update:
    """It leaves: with the last one its application goes."""
    one, why = id_of(member), Why.PREEMPTED if evicted else Why.ASKED
    release = (AllocationRelease(id=one, why=why),)
    if not member.application.members:
        named = Named(partition=PARTITION, name=member.application.name)
        return Update(rm=RM, releases=release if evicted else (), removed_applications=(named,))
    if member.stage is Stage.GIVEN:
        return Update(rm=RM, releases=release)
    return Update(rm=RM, withdrawn=(one,) if member.stage is Stage.ASKED else ())
