"""Several who propose at the same time, and partitions that hold each other up as little as managers do."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurm_bridge.families.yunikorn.queues.config.documents import Document
from slurm_bridge.families.yunikorn.queues.events import ProposalAnswer
from slurm_bridge.families.yunikorn.queues.lane import Lane
from slurm_bridge.families.yunikorn.queues.records import FitQuestion, News, Registration, Thing, Update
from slurm_bridge.runtime.clock import SystemClock
from slurm_bridge.runtime.threads import Supervisor
from tests.unit.families.yunikorn.queues.support_configs import partition, queue
from tests.unit.families.yunikorn.queues.support_core import (
    FakeManager,
    World,
    application,
    ask,
    documented,
    node,
    several,
    vcores,
)

_LONG = 30.0
_OURS = ("queues ", "pass ", "news ")


class Listener(FakeManager):
    """Tells whoever waits that something was heard; `gates` hold up the questions about a node."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()
        self.gates: dict[str, threading.Event] = {}

    def update(self, news: News) -> None:
        with self._changed:
            super().update(news)
            self._changed.notify_all()

    def predicate(self, question: FitQuestion) -> str:
        gate = self.gates.get(question.node)
        assert gate is None or gate.wait(_LONG)
        return super().predicate(question)

    def waits_for(self, fact: Callable[[], bool]) -> bool:
        """Until it is so."""
        with self._changed:
            return self._changed.wait_for(fact, _LONG)


class Served(World):
    """A core whose threads run, and time with them: who is refused again and again pauses."""

    def __init__(self, **options: Any) -> None:
        super().__init__(SystemClock(), **options)
        self.died: list[tuple[str, Exception | None]] = []
        self.supervisor = Supervisor(lambda name, error: self.died.append((name, error)))
        for name, target in self.core.tasks():
            self.supervisor.add(name, target)
        self.supervisor.start()

    def hear(self, listener: Listener, document: Document | None = None, rm: str = "rm", **fields: Any) -> Listener:
        request = Registration(rm=rm, configuration=document or documented(queue("a"), queue("b")), **fields)
        self.core.register_resource_manager(request, listener)
        assert listener.waits_for(lambda: bool(listener.accepted or listener.rejected))
        return listener

    def send(self, rm: str = "rm", **fields: Any) -> None:
        self.core.update(Update(rm=rm, **fields))


@pytest.fixture
def served() -> Iterator[Callable[..., Served]]:
    """Cores that are stopped in the end, none of whose threads has died."""
    made: list[Served] = []

    def make(**options: Any) -> Served:
        made.append(Served(**options))
        return made[-1]

    yield make
    for one in made:
        one.supervisor.stop.set()
    for thread in threading.enumerate():
        if thread.name.startswith(_OURS):
            thread.join(_LONG)
            assert not thread.is_alive(), thread.name
    assert [one.died for one in made] == [[] for _ in made]


def usage(world: World) -> tuple[int, int]:
    """What the leaf and the root have; no node has more than it can hold."""
    committed = world.committed()
    assert all(one.allocated.get("vcore", 0) <= one.record.capacity["vcore"] for one in committed.nodes.values())
    return vcores(committed.root.children["a"]), vcores(committed.root)


class TestConflicts:
    def test_two_schedulers_that_want_the_same_room_get_it_once(self):
        """One after the other, both from the state before: the cache refuses what no longer fits, and none is lost."""
        world = World(schedulers=2)
        manager = world.register()
        world.update(nodes=(node("n1"),), applications=tuple(application(f"app{number}") for number in range(10)))
        world.update(asks=tuple(ask(f"app{number}", "1", 2_000) for number in range(10)))
        proposed = [lane.run() for lane in world.core.lanes()]
        assert min(proposed) >= 4
        world.core.cache.handle()
        assert usage(world) == (10_000, 10_000)
        world.settle()
        assert len(manager.new) == 5
        for scheduler in world.core.schedulers:
            assert vcores(scheduler.lanes["rm_default"].partition.root) == 10_000
        waiting = [
            name
            for scheduler in world.core.schedulers
            for name, one in scheduler.lanes["rm_default"].partition.applications.items()
            if one.asks
        ]
        assert sorted([*waiting, *(name for name, _, _ in manager.new)]) == [f"app{number}" for number in range(10)]

    def test_a_maximum_is_not_exceeded_by_several_schedulers(self):
        """What the first commits leaves less for the second."""
        world = World(schedulers=3)
        manager = world.register(documented(queue("a", resources={"max": {"vcore": "5"}})))
        world.update(nodes=(node("n1"), node("n2")), applications=tuple(application(f"{n}") for n in range(30)))
        world.update(asks=tuple(ask(f"{n}", "1", 1_000) for n in range(30)))
        world.settle()
        assert (len(manager.new), usage(world)) == (5, (5_000, 5_000))

    def test_schedulers_in_threads_propose_at_once_and_lose_nothing(self):
        """All begin at the same moment: at least one proposal is refused, and in the end all have their room."""
        world = World(schedulers=4)
        manager = world.register(documented(queue("a", resources={"max": {"vcore": "40"}})))
        names = [f"app{number}" for number in range(100)]
        world.update(nodes=tuple(node(f"n{number}") for number in range(5)))
        world.update(
            applications=tuple(application(name) for name in names),
            asks=tuple(ask(name, "1", 1_000) for name in names),
        )
        lanes, together = world.core.lanes(), threading.Barrier(4)

        def propose(lane: Lane) -> None:
            together.wait(_LONG)
            lane.run()

        threads = [threading.Thread(target=propose, args=(lane,)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_LONG)
        bundles = world.core.cache.from_schedulers
        assert len(bundles) >= 2
        world.core.cache.handle()
        assert refused(world) > 0
        world.settle()
        assert len(manager.new) == 40
        assert usage(world) == (40_000, 40_000)
        world.update(configuration=documented(queue("a")))
        world.update(nodes=tuple(node(f"more{number}") for number in range(5)))
        for _ in range(3):
            world.clock.advance(60)
            world.settle()
        assert sorted(name for name, _, _ in manager.new) == sorted(names)


def refused(world: World) -> int:
    """How many proposals the schedulers will hear were refused."""
    count = 0
    for scheduler in world.core.schedulers:
        for event in scheduler.events.take():
            count += isinstance(event, ProposalAnswer) and bool(event.refused)
            scheduler.events.put(event)
    return count


class TestThreads:
    def test_a_core_with_all_its_threads_serves_everybody(self, served: Callable[..., Served]):
        """Four schedulers, two partitions, a hundred asks: each is allocated once."""
        world = served(schedulers=4)
        manager = world.hear(Listener(), several(partition(queue("a"), name="x"), partition(queue("a"), name="y")))
        for name in ("x", "y"):
            world.send(nodes=tuple(node(f"{name}{n}", partition=name) for n in range(5)))
            world.send(applications=tuple(application(f"{n}", partition=name) for n in range(50)))
            world.send(asks=tuple(ask(f"{n}", "1", partition=name) for n in range(50)))
        assert manager.waits_for(lambda: len(manager.new) == 100)
        assert len({on for _, _, on in manager.new}) == 10
        assert world.failed == []

    def test_a_partition_that_hangs_does_not_delay_another(self, served: Callable[..., Served]):
        """Its manager does not answer the question about its node; the other one allocates, and releases."""
        world = served()
        manager = Listener()
        gate = manager.gates["slow"] = threading.Event()
        document = several(partition(queue("a"), name="x"), partition(queue("a"), name="y"))
        world.hear(manager, document, predicates=True)
        world.send(nodes=(node("slow", partition="x"), node("fast", partition="y")))
        world.send(applications=(application("app", partition="x"),), asks=(ask("app", "1", partition="x"),))
        world.send(applications=(application("app", partition="y"),), asks=(ask("app", "1", partition="y"),))
        assert manager.waits_for(lambda: manager.new == [("app", "1", ("fast",))])
        world.send(asks=(ask("app", "2", partition="y"),))
        assert manager.waits_for(lambda: len(manager.new) == 2)
        gate.set()
        assert manager.waits_for(lambda: len(manager.new) == 3)

    def test_a_partition_that_fails_is_reported_and_tried_again(self, served: Callable[..., Served]):
        """The failure is not the end of its thread."""
        world = served()
        manager = world.hear(Listener(), predicates=True)
        manager.next_question = RuntimeError("no answer")
        world.send(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "1"),))
        assert manager.waits_for(lambda: len(manager.new) == 1)
        assert [name for name, _ in world.failed] == ["partition rm_default: pass"]

    def test_a_manager_that_hangs_does_not_delay_another(self, served: Callable[..., Served]):
        """News of each are delivered by a thread of its own."""
        world = served()
        gate = threading.Event()

        class Slow(Listener):
            def update(self, news: News) -> None:
                super().update(news)
                if news.new:
                    assert gate.wait(_LONG)

        slow, fast = world.hear(Slow(), rm="slow"), world.hear(Listener(), rm="fast")
        for rm in ("slow", "fast"):
            world.send(rm, nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "1"),))
        assert slow.waits_for(lambda: len(slow.new) == 1)
        world.send("fast", asks=(ask("app", "2"),))
        assert fast.waits_for(lambda: len(fast.new) == 2)
        gate.set()

    def test_partitions_that_go_take_their_threads_along(self, served: Callable[..., Served]):
        """After the termination none of them runs."""
        world = served()
        manager = world.hear(Listener())
        world.send(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "1"),))
        assert manager.waits_for(lambda: len(manager.new) == 1)
        (lane,) = world.core.lanes()
        passing = [thread for thread in threading.enumerate() if thread.name == "pass rm_default"]
        assert passing
        world.send(terminated=True)
        assert manager.waits_for(lambda: bool(manager.gone(Thing.CONFIGURATION)))
        lane.inbox.wake()
        for thread in passing:
            thread.join(_LONG)
        assert not any(thread.is_alive() for thread in passing)
