"""Why a workload waits in its queue, in its user's words: what is used up, of what, and what can change that."""

from collections.abc import Iterator, Mapping

from slurm_bridge.families.yunikorn.demands import MEMORY, CoreDemand
from slurm_bridge.families.yunikorn.queues import tree
from slurm_bridge.families.yunikorn.queues.committed import Application, CommittedPartition
from slurm_bridge.families.yunikorn.queues.preemptors import crowded
from slurm_bridge.families.yunikorn.queues.preemptors.balance import Balance
from slurm_bridge.families.yunikorn.queues.quantities import VCORE
from slurm_bridge.families.yunikorn.queues.tree import Queue

_UNITS = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


def never(application: Application, total: Mapping[str, int]) -> str:
    """Why it could not start if it were alone in the cluster; "" where it could."""
    for queue in application.queue.lineage:
        for kind, most in (queue.max or {}).items():
            wanted = total.get(kind, 0)
            if wanted > most:
                return (
                    f"asks for {said(kind, wanted)} {kind}, and queue {queue.path} never has more than "
                    f"{said(kind, most)}: it has to ask for less, or go into another queue"
                )
    return ""


def waits(
    partition: CommittedPartition, application: Application, demand: CoreDemand, where: str = "the cluster"
) -> str:
    """What holds it now; "" where nothing does, and it only has to wait for its turn. `where` are all nodes."""
    return next(filter(None, _obstacles(partition, application, demand, where)), "")


def _obstacles(
    partition: CommittedPartition, application: Application, demand: CoreDemand, where: str
) -> Iterator[str]:
    name, leaf, total = application.record.name, application.queue, demand.total
    if not application.running and not tree.can_run(leaf):
        yield _crowded(leaf)
    yield from (_full(queue, total) for queue in leaf.lineage)
    if not application.running:
        refused = partition.limits.may_start(name)
        yield refused.words if refused else ""
    refusal = partition.limits.refusal(name, total)
    yield refusal.words if refusal else ""
    yield _full_cluster(partition, leaf, demand, where)


def _crowded(leaf: Queue) -> str:
    for queue in leaf.lineage:
        if queue.max_applications and queue.running >= queue.max_applications:
            return (
                f"queue {queue.path} runs {queue.running} of {queue.max_applications} applications; "
                f"one has to end first"
            )
    return f"queue {leaf.path} runs as many applications as it may; one has to end first"


def _full(queue: Queue, total: Mapping[str, int]) -> str:
    for kind, most in (queue.max or {}).items():
        used, wanted = queue.allocated.get(kind, 0), total.get(kind, 0)
        if wanted > 0 and used + wanted > most:
            return (
                f"queue {queue.path} uses {said(kind, used)} of {said(kind, most)} {kind}, and this asks for "
                f"{said(kind, wanted)}; others in {queue.path} have to end first"
            )
    return ""


def _full_cluster(partition: CommittedPartition, leaf: Queue, demand: CoreDemand, where: str) -> str:
    """No queue holds it: it waits until what is guaranteed to its queue becomes free."""
    size, used, total = partition.size, partition.root.allocated, demand.total
    short = crowded.missing(size, used, total)
    if not size or not short or not demand.preempts or not crowded.is_owed(Balance(leaf), leaf, total, short):
        return ""
    kind = min(short)
    whose = next(queue for queue in leaf.lineage if kind in (queue.guaranteed or ()))
    return (
        f"{where} is full ({said(kind, used.get(kind, 0))} of {said(kind, size[kind])} {kind} are given out): "
        f"{whose.path} is guaranteed more than it has"
    )


def said(kind: str, amount: int) -> str:
    """An amount as people write it."""
    if kind == VCORE:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if kind == MEMORY:
        for factor, unit in _UNITS:
            if amount and amount % factor == 0:
                return f"{amount // factor}{unit}"
    return str(amount)


def all_of(total: Mapping[str, int]) -> str:
    """Several of them, for a line."""
    return ", ".join(f"{kind} {said(kind, amount)}" for kind, amount in sorted(total.items())) or "nothing"
