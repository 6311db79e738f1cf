"""A full cluster behind which another scheduler queues: which asks stay in their queues until others have made room.

    there is room                   let in
    full, and nothing owed          let in: it waits with the other scheduler, which ranks it there
      room is being made            kept back until that is over
    full, and a guarantee covers    kept back: others go for it, after the delay of its queue
      no victim helps it            let in, like all others that nothing is owed to

Only where the nodes state how large they are, and where the partition preempts: else nothing of this is looked at.
"""

from collections.abc import Hashable

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Amount, Known
from slurm_bridge.families.yunikorn.queues.applications import PendingAsk
from slurm_bridge.families.yunikorn.queues.flights import Flight
from slurm_bridge.families.yunikorn.queues.partition import QueuePartition
from slurm_bridge.families.yunikorn.queues.preemptors import crowded
from slurm_bridge.families.yunikorn.queues.preemptors.balance import Balance
from slurm_bridge.families.yunikorn.queues.tree import Queue


def size(partition: QueuePartition) -> Known:
    """What all of it must fit into; None where nothing is evicted for that."""
    return partition.nodes.stated if partition.rules.preempts else None


def kind(partition: QueuePartition, waiting: PendingAsk) -> Hashable:
    """What it has in common with those for which an attempt comes to the same."""
    leaf = partition.applications[waiting.ask.application].queue
    alike = waiting.size if partition.rules.alike else waiting.kind
    return leaf, alike, waiting.ask.members, waiting.ask.priority


def keeps_back(partition: QueuePartition, waiting: PendingAsk, leaf: Queue, now: float) -> bool:
    """It waits here although no queue is full: for what others are to leave it, or until they have left that."""
    flight = partition.flights.get(waiting.id)
    if flight is not None:
        return awaits(partition, flight)
    most = size(partition)
    short = crowded.missing(most, _taken(partition), waiting.total) if most and not waiting.ask.required_node else None
    if not short:
        return False
    # Else an evicted workload would be let in again, before the one for which it was evicted.
    under_way = any(flight.victims for flight in partition.flights)
    return under_way or _is_owed(partition, waiting, leaf, short, now)


def _is_owed(partition: QueuePartition, waiting: PendingAsk, leaf: Queue, short: Amount, now: float) -> bool:
    if not waiting.ask.allow_preempt_other or not any(queue.guaranteed for queue in leaf.lineage):
        return False
    vain = partition.vain
    believed = vain and max(vain.get(kind(partition, waiting), now), vain.get(waiting.id, now)) > now
    return not believed and crowded.is_owed(promised(partition, leaf), leaf, waiting.total, short)


def awaits(partition: QueuePartition, flight: Flight) -> bool:
    """Its room is not there yet: some are still to go, or were spared. Once all have gone it is let in in any case."""
    most = size(partition)
    if most is None or not (flight.victims or flight.spared):
        return False
    if not most:
        # After a restart it is not known at first how large the cluster is.
        return bool(flight.victims)
    return bool(crowded.missing(most, amounts.minus(_taken(partition), flight.kept), flight.total))


def promised(partition: QueuePartition, leaf: Queue) -> Balance:
    """As it will be once all askers have what is evicted for them."""
    balance = Balance(leaf)
    for flight in partition.flights:
        balance.add(flight.queue, flight.total)
    return balance


def _taken(partition: QueuePartition) -> dict[str, int]:
    """What uses it, or for what it is kept."""
    return amounts.plus(partition.root.allocated, partition.root.promised)
