"""Several schedulers that propose at the same time: the cache refuses what no longer fits, and none loses anything."""

import threading

from slurm_bridge.families.yunikorn.queues.events import ProposalAnswer
from slurm_bridge.families.yunikorn.queues.lane import Lane
from tests.unit.families.yunikorn.queues.support_configs import queue
from tests.unit.families.yunikorn.queues.support_core import World, application, ask, documented, node, vcores

_LONG = 30.0


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
