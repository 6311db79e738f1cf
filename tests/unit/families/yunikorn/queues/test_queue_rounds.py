"""How little the core does for what it is told: the passes that follow, the events, and the names of partitions."""

import threading

from slurm_bridge.families.yunikorn.queues.events import CoreEventQueue
from slurm_bridge.families.yunikorn.queues.partition import QueuePartition
from slurm_bridge.families.yunikorn.queues.records import News, Registration, Update
from tests.unit.families.yunikorn.queues.support_configs import queue
from tests.unit.families.yunikorn.queues.support_core import (
    FakeManager,
    World,
    application,
    ask,
    documented,
    node,
    vcores,
)

_LONG = 30.0
_MANY = 2_000


class Passes:
    """A preemptor without plans: it is asked at the end of every pass."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _partition: QueuePartition, _now: float) -> tuple[()]:
        self.count += 1
        return ()


class Greedy(FakeManager):
    """Asks for one more when it hears of what it got first."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def update(self, news: News) -> None:
        first = bool(news.new) and not self.new
        super().update(news)
        if first:
            self._world.core.update(Update(rm="rm", asks=(ask("app", "more"),)))


def test_what_was_proposed_and_stands_leads_to_no_further_pass() -> None:
    """It has counted since it was proposed."""
    passes = Passes()
    world = World(preemptor=passes)
    manager = world.register()
    world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one"),))
    world.settle()
    assert (manager.new, passes.count) == ([("app", "one", ("n1",))], 1)


def test_what_was_refused_leads_to_another_pass() -> None:
    """Two schedulers want the same room: one of them has to look for other room."""
    world = World(schedulers=2, preemptor=Passes())
    manager = world.register()
    names = [f"app{number}" for number in range(8)]
    world.update(
        nodes=tuple(node(f"n{number}", 1_000) for number in range(len(names))),
        applications=tuple(map(application, names)),
        asks=tuple(ask(name, "one") for name in names),
    )
    world.settle()
    assert sorted(name for name, _, _ in manager.new) == names
    assert vcores(world.committed().root) == 1_000 * len(names)


def test_what_a_manager_sends_when_it_hears_something_comes_to_rest_as_well() -> None:
    """Nothing is left behind in any queue."""
    world = World()
    manager = Greedy(world)
    request = Registration(rm="rm", configuration=documented(queue("a")))
    world.core.register_resource_manager(request, manager)
    world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one"),))
    world.settle()
    assert [key for _, key, _ in manager.new] == ["one", "more"]


def test_an_ask_is_asked_about_and_told_of_as_the_record_that_was_sent() -> None:
    """It is renamed on its way in, and not once more with each answer."""
    world = World()
    manager = world.register(predicates=True)
    sent = ask("app", "one")
    world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(sent,))
    world.settle()
    assert manager.asked[0].ask is sent
    assert [one.ask is sent for news in manager.heard for one in news.new] == [True]


def test_an_ask_of_no_partition_is_told_of_by_its_name() -> None:
    """Whoever names none means the default one."""
    world = World()
    manager = world.register()
    without = (application("app", partition=""),), (ask("app", "one", partition=""),)
    world.update(nodes=(node("n1"),), applications=without[0], asks=without[1])
    world.settle()
    assert [one.ask.partition for news in manager.heard for one in news.new] == ["default"]


def test_no_event_is_lost_between_threads() -> None:
    """The events of each thread that puts some stay in order."""
    events: CoreEventQueue[tuple[int, int]] = CoreEventQueue()
    taken: list[tuple[int, int]] = []

    def put(who: int) -> None:
        for number in range(_MANY):
            events.put((who, number))

    threads = [threading.Thread(target=put, args=(who,)) for who in (0, 1)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        taken.extend(events.take())
    for thread in threads:
        thread.join(_LONG)
    taken.extend(events.take())
    assert [[number for who, number in taken if who == one] for one in (0, 1)] == [list(range(_MANY))] * 2
