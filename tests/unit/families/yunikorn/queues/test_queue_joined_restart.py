"""A restart at any point of a preemption: nobody is evicted twice, and nobody is forgotten.

The manager here keeps what a real one finds again after a restart: what waits and what runs, and of every eviction the
record, until its asker has its place. News that it had not heard are lost with the core that sent them.
"""

import collections
import dataclasses
from collections.abc import Callable

import hypothesis
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import records
from slurm_bridge.families.yunikorn.queues.records import (
    Allocation,
    AllocationAsk,
    AllocationRelease,
    AskId,
    Eviction,
    FitQuestion,
    News,
    NodeMode,
    Update,
    Why,
)
from tests.examples import examples
from tests.unit.families.yunikorn.queues.support_configs import queue
from tests.unit.families.yunikorn.queues.support_core import World, application, ask, ask_id, documented, node

#: What two asks of four vcores take back from allocations of two.
_NEEDED = 4


class Keeper:
    """The manager with its memory; a new core is told all of it at once."""

    def __init__(self, mode: NodeMode, size: int) -> None:
        self.mode = mode
        self.world = World(preemptor=None)
        now = self.world.clock.wall()
        self.nodes = tuple(node(f"n{number}", 8_000) for number in (1, 2))
        self.applications = tuple(self._application(name, now) for name in "ab")
        self.standing = {
            one.id: Allocation(ask=one, nodes=(f"n{1 + number // 4}",))
            for number in range(8)
            for one in [ask("b", f"b{number}", 2_000, created=now - 100 + number)]
        }
        wanted = [ask("a", f"a{number}", size, created=now) for number in range(8_000 // size)]
        others = [ask("b", f"c{number}", 2_000, created=now - 50, priority=3) for number in range(3)]
        self.asks: dict[AskId, AllocationAsk] = {one.id: one for one in (*wanted, *others)}
        self.records: dict[AskId, Eviction] = {}
        self.evicted: collections.Counter[AskId] = collections.Counter()
        self.start()

    @staticmethod
    def _application(name: str, now: float) -> records.Application:
        return application(name, f"root.p.{name}", submitted=now, forced=True)

    def start(self) -> None:
        """A core that knows nothing, and hears everything in one request."""
        clock = self.world.clock
        self.world = World(preemptor=None)
        self.world.clock.advance(clock.now())
        parent = queue(
            "p", queue("a", resources={"guaranteed": {"vcore": "8"}}), queue("b"), resources={"max": {"vcore": "16"}}
        )
        request = records.Registration(rm="rm", configuration=documented(parent), mode=self.mode)
        self.world.core.register_resource_manager(request, self)
        self.world.core.update(
            Update(
                rm="rm",
                nodes=self.nodes,
                applications=self.applications,
                standing=tuple(self.standing.values()),
                asks=tuple(self.asks.values()),
                evicting=tuple(self.records.values()),
            )
        )
        self.world.core.drain()

    # -- what it hears -----------------------------------------------------------------------------------------------

    def update(self, news: News) -> None:
        assert not news.rejected
        for allocation in news.new:
            del self.asks[allocation.ask.id]
            self.standing[allocation.ask.id] = allocation
            self.records = {
                key: one
                for key, one in self.records.items()
                if one.asker != allocation.ask.id or one.victim in self.standing
            }
        for eviction in news.evictions:
            self.evicted[eviction.victim] += 1
            self.records[eviction.victim] = eviction

    def predicate(self, _question: FitQuestion) -> str:
        return ""

    # -- what happens ------------------------------------------------------------------------------------------------

    def end_one(self) -> None:
        """The first of those that are to go has gone."""
        victim = next((one for one in self.records if one in self.standing), None)
        if victim is None:
            return
        del self.standing[victim]
        if self.records[victim].asker not in self.asks:
            del self.records[victim]
        self.world.core.update(Update(rm="rm", releases=(AllocationRelease(id=victim, why=Why.PREEMPTED),)))

    def finish(self) -> None:
        """Let everything come to its end."""
        for _ in range(12):
            self.world.settle()
            while any(one in self.standing for one in self.records):
                self.end_one()
                self.world.settle()
            self.world.clock.advance(16)


Action = Callable[[Keeper], None]


def passes(keeper: Keeper) -> None:
    """One of every lane."""
    for lane in keeper.world.core.lanes():
        lane.run()


def cache(keeper: Keeper) -> None:
    """The cache handles what it has."""
    keeper.world.core.cache.handle()


def schedulers(keeper: Keeper) -> None:
    """The schedulers handle what they have."""
    for scheduler in keeper.world.core.schedulers:
        scheduler.route()
    for lane in keeper.world.core.lanes():
        lane.handle()


def hears(keeper: Keeper) -> None:
    """The manager is told, after everything else has been handled."""
    keeper.world.core.drain()


def waits(keeper: Keeper) -> None:
    """Time goes by."""
    keeper.world.clock.advance(17)


ACTIONS: st.SearchStrategy[Action] = st.sampled_from(
    [passes, cache, schedulers, hears, waits, Keeper.end_one, Keeper.start]
)


def check(keeper: Keeper, needed: int) -> None:
    """The guaranteed queue has its share, for as little as that takes."""
    assert keeper.world.failed == []
    assert not any(one.application == "a" for one in keeper.asks)
    assert set(keeper.evicted.values()) <= {1}
    assert len(keeper.evicted) == needed
    for root in (keeper.world.committed().root, keeper.world.scheduled().root):
        assert root.preempting == {}
        assert root.allocated == {"vcore": 16_000}
        assert root.children["p"].children["a"].allocated == {"vcore": 8_000}
    assert len(keeper.world.scheduled().flights) == 0


@hypothesis.settings(max_examples=examples(150))
@hypothesis.given(st.lists(ACTIONS, max_size=40), st.sampled_from(NodeMode), st.sampled_from([2_000, 4_000]))
def test_a_restart_neither_evicts_twice_nor_forgets(actions: list[Action], mode: NodeMode, size: int):
    """Whatever was under way, in both modes."""
    keeper = Keeper(mode, size)
    for action in actions:
        action(keeper)
    keeper.finish()
    check(keeper, _NEEDED)


def test_the_room_of_victims_that_went_meanwhile_is_still_the_askers():
    """Others are of higher priority, and came first."""
    keeper = Keeper(NodeMode.FREE, 4_000)
    keeper.world.clock.advance(31)
    keeper.world.settle()
    assert len(keeper.records) == _NEEDED
    while any(one in keeper.standing for one in keeper.records):
        keeper.end_one()
    keeper.start()
    keeper.finish()
    check(keeper, _NEEDED)


def test_what_is_marked_counts_as_such_at_once():
    """Before any pass."""
    keeper = Keeper(NodeMode.FREE, 4_000)
    keeper.world.clock.advance(31)
    keeper.world.settle()
    keeper.start()
    scheduled = keeper.world.scheduled()
    assert scheduled.root.preempting == {"vcore": 8_000} == keeper.world.committed().root.preempting
    assert [flight.total for flight in scheduled.flights] == [{"vcore": 4_000}] * 2
    assert {name for waiting in scheduled.holders.values() for name in waiting.on} == {
        name for one in keeper.records.values() for name in one.nodes
    }


def test_a_record_of_what_is_gone_on_both_sides_is_rejected():
    """It can be forgotten."""
    keeper = Keeper(NodeMode.FREE, 4_000)
    old = Eviction(victim=ask_id("b", "b99"), asker=None, message="over its maximum")
    heard: list[News] = []
    keeper.update = heard.append  # type: ignore[method-assign]
    keeper.world.update(evicting=(old, dataclasses.replace(old, victim=ask_id("zed", "b0"))))
    assert len([one for news in heard for one in news.rejected]) == 2
