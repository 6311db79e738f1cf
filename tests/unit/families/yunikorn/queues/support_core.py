"""A core with fake resource managers, driven without threads, for several tests."""

from typing import Any

from slurm_bridge.families.yunikorn.queues import core, records
from slurm_bridge.families.yunikorn.queues.config import validation
from slurm_bridge.families.yunikorn.queues.config.documents import Document
from slurm_bridge.families.yunikorn.queues.plans import PreemptionPlan
from slurm_bridge.families.yunikorn.queues.ports import Clock
from slurm_bridge.families.yunikorn.queues.records import (
    AllocationAsk,
    AskId,
    Eviction,
    FitQuestion,
    Named,
    News,
    NodeReport,
    Registration,
    Rejected,
    Released,
    Thing,
    Update,
    Why,
)
from slurm_bridge.runtime.clock import VirtualClock
from tests.unit.families.yunikorn.queues.support_configs import Mapping, config, partition, queue

GIGA = 1_000_000_000


class FakeManager:
    """Keeps all that it hears; predicates say what `refuses` has for a node."""

    def __init__(self) -> None:
        self.heard: list[News] = []
        self.refuses: dict[str, str] = {}
        self.asked: list[FitQuestion] = []
        self.next_error: Exception | None = None
        self.next_question: Exception | None = None

    def update(self, news: News) -> None:
        if self.next_error is not None:
            error, self.next_error = self.next_error, None
            raise error
        self.heard.append(news)

    def predicate(self, question: FitQuestion) -> str:
        if self.next_question is not None:
            error, self.next_question = self.next_question, None
            raise error
        self.asked.append(question)
        return self.refuses.get(question.node, "")

    @property
    def new(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Application, key and nodes of everything allocated."""
        return [(one.ask.application, one.ask.key, one.nodes) for news in self.heard for one in news.new]

    @property
    def rejected(self) -> list[Rejected]:
        return [one for news in self.heard for one in news.rejected]

    @property
    def released(self) -> list[Released]:
        return [one for news in self.heard for one in news.released]

    @property
    def evictions(self) -> list[Eviction]:
        return [one for news in self.heard for one in news.evictions]

    @property
    def accepted(self) -> list[tuple[Thing, str, str]]:
        return [(one.subject.thing, one.subject.name, one.queue) for news in self.heard for one in news.accepted]

    def reasons(self, thing: Thing) -> list[str]:
        """Why things of this kind were rejected."""
        return [one.reason for one in self.rejected if one.subject.thing is thing]

    def gone(self, thing: Thing) -> list[tuple[str, str, Why]]:
        """What of this kind is no longer there."""
        return [(one.subject.name, one.subject.key, one.why) for one in self.released if one.subject.thing is thing]


class World:
    """A core, the time, its managers, and what was reported as failed."""

    def __init__(self, clock: Clock | None = None, **options: Any) -> None:
        self.clock = clock or VirtualClock()
        self.failed: list[tuple[str, Exception]] = []
        #: What the preemptor plans, each of them once.
        self.plans: list[PreemptionPlan] = []
        self.core = core.QueueCore(
            self.clock,
            lambda name, error: self.failed.append((name, error)),
            **{"preemptor": lambda _partition, _now: [self.plans.pop(0)] if self.plans else [], **options},
        )

    def register(self, document: Document | None = None, rm: str = "rm", **fields: Any) -> FakeManager:
        manager = FakeManager()
        request = Registration(rm=rm, configuration=document or documented(queue("a"), queue("b")), **fields)
        self.core.register_resource_manager(request, manager)
        self.core.drain()
        return manager

    def update(self, rm: str = "rm", **fields: Any) -> None:
        """Send it and let its events come to rest, without any pass."""
        self.core.update(Update(rm=rm, **fields))
        self.core.drain()

    def settle(self) -> None:
        self.core.settle()

    def committed(self, partition: str = "rm_default") -> Any:
        return self.core.cache.ledger.partitions[partition]

    def scheduled(self, partition: str = "rm_default") -> Any:
        """The first scheduler's state."""
        return self.core.schedulers[0].lanes[partition].partition


def documented(*queues: Mapping, **fields: Any) -> Document:
    """A configuration of one partition in which everybody may submit everywhere."""
    made = partition(*queues, **fields)
    made["queues"][0]["submitacl"] = "*"
    return validation.load(config(made))


def several(*partitions: Mapping) -> Document:
    """A configuration of these partitions, open to everybody."""
    for one in partitions:
        one["queues"][0]["submitacl"] = "*"
    return validation.load(config(*partitions))


def node(name: str, vcore: int = 10_000, partition: str = "default", **fields: Any) -> NodeReport:
    """A node of so many vcores, and memory enough."""
    return NodeReport(name=name, partition=partition, capacity={"vcore": vcore, "memory": 10 * GIGA}, **fields)


def application(name: str, queue: str = "root.a", partition: str = "default", **fields: Any) -> records.Application:
    """An application of ann's."""
    return records.Application(name=name, queue=queue, partition=partition, **{"user": "ann", **fields})


def ask(application: str, key: str, vcore: int = 1_000, partition: str = "default", **fields: Any) -> AllocationAsk:
    """An ask for vcores."""
    return AllocationAsk(key=key, application=application, partition=partition, resource={"vcore": vcore}, **fields)


def ask_id(application: str, key: str, partition: str = "default") -> AskId:
    """The ask or allocation of this key."""
    return AskId(partition=partition, application=application, key=key)


def named(name: str, partition: str = "default") -> Named:
    """An application or node that is to go."""
    return Named(partition=partition, name=name)


def vcores(queue: Any) -> int:
    """What of it is in use."""
    return int(queue.allocated.get("vcore", 0))
