"""What the core is told of a workload: an application with one ask for everything."""

import dataclasses

from slurm_bridge.families.yunikorn.engine import SLURM
from slurm_bridge.families.yunikorn.members import QueueMember
from slurm_bridge.families.yunikorn.queues.records import Allocation, AllocationAsk, Application, AskId
from slurm_bridge.families.yunikorn.setup import PARTITION

#: The one ask of an application.
KEY = "pods"


def application(member: QueueMember) -> Application:
    """It enters the queue that it asks for, or the one that placement rules find."""
    demand = member.demand
    return Application(
        name=member.name,
        partition=PARTITION,
        queue=demand.queue,
        user=demand.user,
        groups=demand.groups,
        tags=demand.tags,
        submitted=demand.created,
        node_sort=demand.node_sort,
    )


def ask(member: QueueMember) -> AllocationAsk:
    """All its pods at once; to the one node all asks are alike."""
    demand = member.demand
    return AllocationAsk(
        key=KEY,
        application=member.name,
        partition=PARTITION,
        resource=demand.total,
        priority=demand.priority,
        created=demand.created,
        told=member.since,
        shape="any",
        allow_preempt_other=demand.preempts,
    )


def id_of(name: str) -> AskId:
    """Of the one ask, or the allocation, of the application with this name."""
    return AskId(partition=PARTITION, application=name, key=KEY)


def forced(member: QueueMember) -> Application:
    """Of one that is there, whatever its queue says now."""
    return dataclasses.replace(application(member), forced=True, node_sort="")


def standing(member: QueueMember) -> Allocation:
    """What it has, by being there."""
    return Allocation(ask=ask(member), nodes=(SLURM,))
