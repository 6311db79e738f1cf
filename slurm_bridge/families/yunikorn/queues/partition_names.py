"""Names of partitions: outside each resource manager has its own, inside `xyz` of the manager `rm` is `rm_xyz`."""

import dataclasses
import operator
from typing import Any, TypeVar

from slurm_bridge.families.yunikorn.queues import records
from slurm_bridge.families.yunikorn.queues.config import documents
from slurm_bridge.families.yunikorn.queues.records import (
    Accepted,
    Allocation,
    AllocationAsk,
    AllocationRelease,
    AnswerSubject,
    Application,
    AskId,
    FitQuestion,
    News,
    Rejected,
    Released,
    Update,
)
from slurm_bridge.runtime import frozen_records

DEFAULT = "default"

#: What in a request has the name of its partition itself: most requests are short.
_NAMED = (
    "nodes",
    "started",
    "spared",
    "excused",
    "withdrawn",
    "removed_applications",
    "removed_nodes",
)

_named = operator.attrgetter(*_NAMED)

#: Of so many asks it is remembered what they are outside: each is asked about and told of at least once.
_MOST_ASKS = 4096

T = TypeVar("T", records.NodeReport, AskId, records.Named)


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


def ask_in(partition: str, one: AllocationAsk) -> AllocationAsk:
    """The same ask there; field by field, which takes half as long as `dataclasses.replace`."""
    return AllocationAsk(
        key=one.key,
        application=one.application,
        partition=partition,
        resource=one.resource,
        members=one.members,
        priority=one.priority,
        created=one.created,
        told=one.told,
        required_node=one.required_node,
        shape=one.shape,
        allow_preempt_self=one.allow_preempt_self,
        allow_preempt_other=one.allow_preempt_other,
        originator=one.originator,
    )


def application_in(partition: str, one: Application) -> Application:
    """The same application there, as `ask_in`."""
    return Application(
        name=one.name,
        partition=partition,
        queue=one.queue,
        user=one.user,
        groups=one.groups,
        tags=one.tags,
        submitted=one.submitted,
        node_sort=one.node_sort,
        placeholders=one.placeholders,
        forced=one.forced,
    )


def subject_outside(rm: str, one: AnswerSubject) -> AnswerSubject:
    """What an answer is about, with the resource manager's own name."""
    return AnswerSubject(thing=one.thing, partition=own(rm, one.partition), name=one.name, key=one.key)


class Names:
    """Those of one resource manager."""

    def __init__(self, rm: str) -> None:
        self._rm = rm
        #: Asks as they are inside and outside, by the number of the one inside, which lives as long as it is known.
        self._asks: dict[int, tuple[AllocationAsk, AllocationAsk]] = {}

    def inside(self, update: Update) -> Update:
        """A request with the names inside."""
        given: dict[str, Any] = {}
        if any(named := _named(update)):
            pairs = zip(_NAMED, named, strict=True)
            given = {field: tuple([self._inside(one) for one in some]) for field, some in pairs if some}
        if update.configuration is not None:
            given["configuration"] = document_inside(self._rm, update.configuration)
        if update.applications:
            given["applications"] = tuple(
                [application_in(normalised(self._rm, one.partition), one) for one in update.applications]
            )
        if update.asks:
            given["asks"] = tuple(map(self._ask_inside, update.asks))
        if update.standing:
            given["standing"] = tuple(
                Allocation(ask=self._ask_inside(one.ask), nodes=one.nodes) for one in update.standing
            )
        if update.evicting:
            given["evicting"] = tuple(
                dataclasses.replace(one, victim=self._inside(one.victim), asker=one.asker and self._inside(one.asker))
                for one in update.evicting
            )
        if update.releases:
            given["releases"] = tuple(
                AllocationRelease(id=self._inside(one.id), why=one.why) for one in update.releases
            )
        return Update(rm=update.rm, terminated=update.terminated, **given)

    def question(self, question: FitQuestion) -> FitQuestion:
        """A question with the resource manager's own names."""
        return FitQuestion(
            ask=self._ask_outside(question.ask),
            node=question.node,
            reserving=question.reserving,
            preempting=question.preempting,
            without=tuple(map(self._id_outside, question.without)) if question.without else (),
        )

    def outside(self, news: News) -> News:
        """News with the resource manager's own names."""
        rm = self._rm
        return News(
            accepted=tuple(
                [Accepted(subject=subject_outside(rm, one.subject), queue=one.queue) for one in news.accepted]
            ),
            rejected=tuple(
                [Rejected(subject=subject_outside(rm, one.subject), reason=one.reason) for one in news.rejected]
            ),
            new=tuple([Allocation(ask=self._ask_outside(one.ask), nodes=one.nodes) for one in news.new]),
            released=tuple(
                [
                    Released(subject=subject_outside(rm, one.subject), why=one.why, nodes=one.nodes)
                    for one in news.released
                ]
            ),
            evictions=tuple(
                [
                    dataclasses.replace(
                        one, victim=self._id_outside(one.victim), asker=one.asker and self._id_outside(one.asker)
                    )
                    for one in news.evictions
                ]
            ),
        )

    def _inside(self, one: T) -> T:
        return frozen_records.replaced(one, partition=normalised(self._rm, one.partition))

    def _id_outside(self, one: AskId) -> AskId:
        return AskId(partition=own(self._rm, one.partition), application=one.application, key=one.key)

    def _ask_inside(self, one: AllocationAsk) -> AllocationAsk:
        inside = ask_in(normalised(self._rm, one.partition), one)
        if one.partition == own(self._rm, inside.partition):
            self._remember(inside, one)
        return inside

    def _ask_outside(self, one: AllocationAsk) -> AllocationAsk:
        known = self._asks.get(id(one))
        # Its number may have been another one's.
        if known is not None and known[0] is one:
            return known[1]
        return self._remember(one, ask_in(own(self._rm, one.partition), one))

    def _remember(self, inside: AllocationAsk, outside: AllocationAsk) -> AllocationAsk:
        if len(self._asks) >= _MOST_ASKS:
            self._asks.clear()
        self._asks[id(inside)] = inside, outside
        return outside
