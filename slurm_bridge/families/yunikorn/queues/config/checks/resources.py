"""Guarantees, maxima and numbers of applications of a queue against its parent and its children."""

from collections.abc import Iterator

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.amounts import Known
from slurm_bridge.families.yunikorn.queues.config import documents, records
from slurm_bridge.families.yunikorn.queues.config.problems import QueueProblem, problem


def partition(checked: documents.PartitionDocument) -> Iterator[QueueProblem]:
    """Every queue of the partition."""
    yield from _queue(checked.root, None)


def said(kind: str, amount: int) -> str:
    """An amount as it could be written in the configuration."""
    return f"{amount}m" if kind == "vcore" else str(amount)


def _queue(queue: documents.QueueDocument, above: Known) -> Iterator[QueueProblem]:
    """`above` is the effective maximum of the parent."""
    yield from _own(queue, above)
    here = amounts.smaller(queue.max, above)
    yield from _guaranteed(queue, here)
    yield from _applications(queue)
    for child in queue.queues:
        yield from _queue(child, here)


def _own(queue: documents.QueueDocument, above: Known) -> Iterator[QueueProblem]:
    for one in (queue, queue.template) if queue.template else (queue,):
        for kind, amount in _exceeding(one.guaranteed, one.max):
            where = _at(one.where, "guaranteed", kind)
            allowed = f"use at most its maximum, {said(kind, (one.max or {})[kind])}"
            yield problem("guaranteed_above_max", where, f"is {said(kind, amount)}", allowed)
    for kind, amount in _exceeding(queue.max, above):
        allowed = f"use at most what the queues above it allow, {said(kind, (above or {})[kind])}"
        yield problem("max_above_parent", _at(queue.where, "max", kind), f"is {said(kind, amount)}", allowed)


def _guaranteed(queue: documents.QueueDocument, maximum: Known) -> Iterator[QueueProblem]:
    wanted = _of_children(queue)
    names = ", ".join(child.name for child in queue.queues)
    for kind, amount in _exceeding(wanted, queue.guaranteed):
        there = f"is {said(kind, (queue.guaranteed or {})[kind])}"
        allowed = f"its children {names} are guaranteed {said(kind, amount)} together"
        yield problem("children_guaranteed_above_parent", _at(queue.where, "guaranteed", kind), there, allowed)
    for kind, amount in _exceeding(wanted, maximum):
        there = f"is {said(kind, (maximum or {})[kind])}, with the maxima above it"
        allowed = f"its children {names} are guaranteed {said(kind, amount)} together"
        yield problem("children_guaranteed_above_max", _at(queue.where, "max", kind), there, allowed)


def _applications(queue: documents.QueueDocument) -> Iterator[QueueProblem]:
    most = queue.max_applications
    for child in queue.queues if most else ():
        where = f"{child.where}.maxapplications"
        if not child.max_applications:
            allowed = f"use 1 to {most}, because {queue.name} allows {most}"
            yield problem("maxapplications_missing", where, "is missing or 0, which is no limit", allowed)
        elif child.max_applications > most:
            allowed = f"use at most those of {queue.name}, {most}"
            yield problem("maxapplications_above_parent", where, f"is {child.max_applications}", allowed)


def _of_children(queue: documents.QueueDocument) -> Known:
    """What its children are guaranteed; one that says nothing is guaranteed what its own children are."""
    total: Known = None
    for child in queue.queues:
        total = amounts.plus(total, _of_children(child) if amounts.is_empty(child.guaranteed) else child.guaranteed)
    return total


def _exceeding(amount: Known, most: Known) -> Iterator[tuple[str, int]]:
    """What is above, of the types that are defined there."""
    return ((kind, one) for kind, one in (amount or {}).items() if most and one > most.get(kind, one))


def _at(where: str, field: str, kind: str) -> str:
    return records.field(f"{where}.resources.{field}", kind)
