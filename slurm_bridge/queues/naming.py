"""Names of partitions: outside each resource manager has its own, inside `xyz` of the manager `rm` is `rm_xyz`."""

import dataclasses
from typing import TypeVar

from slurm_bridge.queues import records
from slurm_bridge.queues.config import documents
from slurm_bridge.queues.records import Accepted, Allocation, AskId, News, Question, Rejected, Release, Released, Update

DEFAULT = "default"

T = TypeVar("T", records.Application, records.Ask, records.Node, AskId, records.Named, records.Subject)


def normalised(rm: str, partition: str) -> str:
    """The name inside."""
    return f"{rm}_{partition or DEFAULT}"


def own(rm: str, partition: str) -> str:
    """The name as the resource manager has it."""
    return partition.removeprefix(f"{rm}_")


def document_inside(rm: str, document: documents.Document) -> documents.Document:
    """A configuration with the names inside."""
    partitions = (dataclasses.replace(one, name=normalised(rm, one.name)) for one in document.partitions)
    return documents.Document(partitions=tuple(partitions))


def update_inside(update: Update) -> Update:
    """A request with the names inside."""
    rm = update.rm

    def inside(one: T) -> T:
        return dataclasses.replace(one, partition=normalised(rm, one.partition))

    return dataclasses.replace(
        update,
        configuration=update.configuration and document_inside(rm, update.configuration),
        nodes=tuple(map(inside, update.nodes)),
        applications=tuple(map(inside, update.applications)),
        standing=tuple(dataclasses.replace(one, ask=inside(one.ask)) for one in update.standing),
        started=tuple(map(inside, update.started)),
        asks=tuple(map(inside, update.asks)),
        evicting=tuple(
            dataclasses.replace(one, victim=inside(one.victim), asker=one.asker and inside(one.asker))
            for one in update.evicting
        ),
        releases=tuple(Release(id=inside(one.id), why=one.why) for one in update.releases),
        spared=tuple(map(inside, update.spared)),
        excused=tuple(map(inside, update.excused)),
        withdrawn=tuple(map(inside, update.withdrawn)),
        removed_applications=tuple(map(inside, update.removed_applications)),
        removed_nodes=tuple(map(inside, update.removed_nodes)),
    )


def question_outside(rm: str, question: Question) -> Question:
    """A question with the resource manager's own names."""
    without = tuple(_outside(rm, one) for one in question.without)
    return dataclasses.replace(question, ask=_outside(rm, question.ask), without=without)


def news_outside(rm: str, news: News) -> News:
    """News with the resource manager's own names."""
    return News(
        accepted=tuple(Accepted(subject=_outside(rm, one.subject), queue=one.queue) for one in news.accepted),
        rejected=tuple(Rejected(subject=_outside(rm, one.subject), reason=one.reason) for one in news.rejected),
        new=tuple(Allocation(ask=_outside(rm, one.ask), nodes=one.nodes) for one in news.new),
        released=tuple(
            Released(subject=_outside(rm, one.subject), why=one.why, nodes=one.nodes) for one in news.released
        ),
        evictions=tuple(
            dataclasses.replace(one, victim=_outside(rm, one.victim), asker=one.asker and _outside(rm, one.asker))
            for one in news.evictions
        ),
    )


def _outside(rm: str, one: T) -> T:
    return dataclasses.replace(one, partition=own(rm, one.partition))
