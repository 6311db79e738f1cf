"""The core as a whole: several managers, what applications may have, predicates, gangs, failures that stay alone."""

import dataclasses

import pytest

from slurm_bridge import errors
from slurm_bridge.families.yunikorn.queues import ledger
from slurm_bridge.families.yunikorn.queues.partition import AllocationRules
from slurm_bridge.families.yunikorn.queues.records import Allocation, AllocationRelease, NodeMode, Thing
from tests.unit.families.yunikorn.queues.support_configs import partition, queue
from tests.unit.families.yunikorn.queues.support_core import (
    World,
    application,
    ask,
    ask_id,
    documented,
    named,
    node,
    several,
    vcores,
)


def waiting_for(world: World, *asks: tuple[str, str, int], **fields: object) -> None:
    """Applications of these names with these asks."""
    world.update(
        applications=tuple(application(name, **fields) for name in dict.fromkeys(name for name, _, _ in asks)),
        asks=tuple(ask(name, key, vcore) for name, key, vcore in asks),
    )


class TestManagers:
    def test_two_managers_share_one_core_and_see_nothing_of_each_other(self):
        """The same partition, node, queue and application names, each with its own state and its own news."""
        world = World()
        one, other = world.register(rm="one"), world.register(rm="other", mode=NodeMode.ALLOCATABLE)
        for rm in ("one", "other"):
            world.update(rm, nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", rm, 8_000),))
        world.update("other", asks=(ask("app", "more", 8_000),))
        world.settle()
        assert one.new == [("app", "one", ("n1",))]
        assert other.new == [("app", "other", ("n1",)), ("app", "more", ("n1",))]
        world.update("one", removed_applications=(named("app"),))
        assert "app" in world.committed("other_default").applications
        assert other.released == []

    def test_a_manager_cannot_touch_what_is_another_ones(self):
        """Whatever it calls the partition, it is its own."""
        world = World()
        one, _ = world.register(rm="one"), world.register(rm="other")
        world.update("one", nodes=(node("n1", partition="other_default"),))
        assert one.reasons(Thing.NODE) == ["partition other_default is unknown; there are default"]

    def test_two_managers_whose_partitions_would_be_called_the_same_are_told(self):
        """The second one is refused, with the name of the first."""
        world = World()
        world.register(several(partition(queue("a"), name="b_c")), rm="a")
        second = world.register(several(partition(queue("a"), name="c")), rm="a_b")
        assert second.reasons(Thing.CONFIGURATION) == ["partition a_b_c: is, inside, one of resource manager a already"]

    def test_an_unknown_manager_is_told_at_once(self):
        """There is nobody whom the answer could be sent to."""
        world = World()
        world.register(rm="one")
        with pytest.raises(errors.NotFound, match="resource manager two: is not registered; there are one"):
            world.update("two")

    def test_a_manager_has_a_name(self):
        """Its partitions are called by it."""
        world = World()
        with pytest.raises(errors.Invalid, match="a resource manager has a name"):
            world.register(rm="")

    def test_a_manager_that_cannot_listen_holds_up_nobody(self):
        """It is reported, and the next news are delivered again."""
        world = World()
        one, other = world.register(rm="one"), world.register(rm="other")
        one.next_error = RuntimeError("no ears")
        for rm in ("one", "other"):
            world.update(rm, nodes=(node("n1"),))
        assert [name for name, _ in world.failed] == ["resource manager one: callback"]
        world.update("one", nodes=(node("n2"),))
        assert [name for _, name, _ in one.accepted] == ["", "n2"]
        assert [name for _, name, _ in other.accepted] == ["", "n1"]


class TestApplications:
    def test_rejected_applications_are_kept_to_be_shown(self):
        """With the moment and the reason, and no more of them than so many."""
        world = World()
        manager = world.register()
        world.clock.advance(5)
        world.update(applications=(application("app", "root.nowhere"),))
        (kept,) = world.core.cache.rejected
        assert (kept.at, kept.rm, kept.rejected.subject.name) == (world.clock.wall(), "rm", "app")
        assert "root.nowhere" in kept.rejected.reason
        assert manager.reasons(Thing.APPLICATION) == [kept.rejected.reason]
        world.update(applications=tuple(application(f"{n}", "root.x") for n in range(ledger.REMEMBERED)))
        assert world.core.cache.rejected[0].rejected.subject.name == "0"
        assert len(world.core.cache.rejected) == ledger.REMEMBERED

    def test_an_application_of_a_name_that_is_there_is_rejected(self):
        """Two of one name cannot be told apart; in another partition there may be one."""
        world = World()
        manager = world.register(several(partition(queue("a"), name="x"), partition(queue("a"), name="y")))
        for name in ("x", "y", "x"):
            world.update(applications=(application("app", partition=name),))
        assert manager.reasons(Thing.APPLICATION) == ["application app: is in queue root.a already"]

    def test_an_application_without_a_name_is_rejected(self):
        """It could never be removed."""
        world = World()
        manager = world.register()
        world.update(applications=(application(""),))
        assert manager.reasons(Thing.APPLICATION) == ["an application has a name"]

    def test_an_application_chooses_its_own_order_of_nodes(self):
        """Beside one in the partition's order, which is fair."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"), node("n2")))
        waiting_for(world, ("packs", "1", 1_000), ("packs", "2", 1_000), node_sort="binpacking")
        world.settle()
        waiting_for(world, ("fair", "1", 1_000), ("fair", "2", 1_000))
        world.settle()
        nodes = {(name, key): on for name, key, on in manager.new}
        assert nodes["packs", "1"] == nodes["packs", "2"] == ("n1",)
        assert nodes["fair", "1"] == nodes["fair", "2"] == ("n2",)

    def test_an_unknown_order_of_nodes_is_a_rejection_that_names_all_orders(self):
        """The application enters no queue."""
        world = World()
        manager = world.register()
        world.update(applications=(application("other", node_sort="smallest"),))
        assert manager.reasons(Thing.APPLICATION) == [
            "application other: node sort 'smallest' is unknown; use one of binpacking, fair"
        ]

    def test_a_partition_has_its_own_order_of_nodes(self):
        """That of its configuration."""
        world = World()
        manager = world.register(documented(queue("a"), nodesortpolicy={"type": "binpacking"}))
        world.update(nodes=(node("n1"), node("n2")))
        waiting_for(world, ("app", "1", 1_000), ("app", "2", 1_000))
        world.settle()
        assert [on for _, _, on in manager.new] == [("n1",), ("n1",)]

    def test_no_more_applications_run_than_the_queue_allows(self):
        """The next one runs when one has gone."""
        world = World()
        manager = world.register(documented(queue("a", maxapplications=1)))
        world.update(nodes=(node("n1"),))
        waiting_for(world, ("first", "1", 1_000), ("second", "1", 1_000))
        world.settle()
        assert [name for name, _, _ in manager.new] == ["first"]
        world.update(removed_applications=(named("first"),))
        world.settle()
        assert [name for name, _, _ in manager.new] == ["first", "second"]

    def test_no_user_has_more_than_the_limit(self):
        """Another user's application goes on; what the first one releases it may have again."""
        world = World()
        limit = [{"users": ["ann"], "maxresources": {"vcore": "2"}}]
        manager = world.register(documented(queue("a", limits=limit)))
        world.update(nodes=(node("n1"),))
        waiting_for(world, ("hers", "1", 2_000), ("hers", "2", 2_000), user="ann")
        waiting_for(world, ("his", "1", 2_000), user="bob")
        world.settle()
        assert sorted((name, key) for name, key, _ in manager.new) == [("hers", "1"), ("his", "1")]
        world.update(removed_applications=(named("hers"),))
        waiting_for(world, ("again", "1", 2_000), user="ann")
        world.settle()
        assert [name for name, _, _ in manager.new][-1] == "again"

    def test_a_gang_larger_than_its_queue_is_rejected(self):
        """Before anything of it waits."""
        world = World()
        manager = world.register(documented(queue("a", resources={"max": {"vcore": "1"}})))
        world.update(applications=(application("gang", placeholders={"vcore": 2_000}),))
        assert manager.reasons(Thing.APPLICATION) == [
            "application gang: queue root.a has a maximum, there or above, that is smaller than the gang"
        ]

    def test_too_many_asks_without_room_set_an_application_aside(self):
        """It is passed over until its pause is over, even when there is room meanwhile."""
        properties = {"application.unschedasks.backoff": "2", "application.unschedasks.backoff.delay": "10s"}
        world = World()
        manager = world.register(documented(queue("a", properties=properties)))
        world.update(nodes=tuple(node(f"n{number}", 4_000) for number in range(3)))
        waiting_for(world, ("app", "1", 5_000), ("app", "2", 5_000), ("app", "small", 1_000))
        world.settle()
        world.update(nodes=(node("large", 20_000),))
        world.settle()
        assert manager.new == []
        world.clock.advance(10.5)
        world.settle()
        assert [key for _, key, _ in manager.new] == ["1", "2", "small"]

    @pytest.mark.parametrize(("more", "pauses"), [(0, False), (1, False), (2, True)])
    def test_one_ask_without_room_time_and_again_sets_its_application_aside(self, more: int, pauses: bool):
        """Each node that comes and has no room for it counts; then it is not tried until the pause is over."""
        properties = {"application.unschedasks.backoff": "3", "application.unschedasks.backoff.delay": "10s"}
        world = World()
        manager = world.register(documented(queue("a", properties=properties)))
        world.update(nodes=(node("n1", 4_000), node("n2", 4_000)))
        waiting_for(world, ("app", "1", 5_000))
        world.settle()
        for number in range(more):
            world.update(nodes=(node(f"more{number}", 4_000),))
            world.settle()
        world.update(nodes=(node("large", 20_000),))
        world.settle()
        assert (manager.new == []) is pauses
        world.clock.advance(10.5)
        world.settle()
        assert manager.new == [("app", "1", ("large",))]

    def test_an_application_that_gets_something_begins_to_count_anew(self):
        """Its first ask found room at last, so that the second one has all its tries."""
        properties = {"application.unschedasks.backoff": "2", "application.unschedasks.backoff.delay": "10s"}
        world = World()
        manager = world.register(documented(queue("a", properties=properties)))
        waiting_for(world, ("app", "1", 5_000))
        for name, size in (("n1", 4_000), ("n2", 5_000)):
            world.update(nodes=(node(name, size),))
            world.settle()
        world.update(asks=(ask("app", "2", 5_000),))
        world.settle()
        world.update(nodes=(node("n3", 5_000),))
        world.settle()
        assert [key for _, key, _ in manager.new] == ["1", "2"]

    def test_where_another_scheduler_has_the_nodes_their_news_end_a_pause(self):
        """What was refused there is not room that is missing, but a place that may be free now."""
        properties = {"application.unschedasks.backoff": "2", "application.unschedasks.backoff.delay": "30s"}
        world = World()
        manager = world.register(
            documented(queue("a", properties=properties)), mode=NodeMode.ALLOCATABLE, predicates=True
        )
        manager.refuses["slurm"] = "no place"
        world.update(nodes=(node("slurm"),))
        waiting_for(world, ("app", "1", 1_000), ("other", "2", 1_000))
        world.settle()
        world.update(nodes=(node("slurm"),))
        world.settle()
        asked = len(manager.asked)
        world.update(removed_applications=(named("other"),))
        world.settle()
        assert len(manager.asked) == asked
        manager.refuses.clear()
        world.update(nodes=(node("slurm"),))
        world.settle()
        assert manager.new == [("app", "1", ("slurm",))]

    def test_an_application_that_is_refused_again_is_asked_for_less_often(self):
        """One refusal may be a coincidence; after more of them it pauses, each time for longer."""
        world = World()
        world.register()
        world.update(nodes=(node("n1"),))
        waiting_for(world, ("app", "1", 1_000))
        (lane,) = world.core.lanes()
        # The two sides are made to disagree, as no event ever lets them.
        world.committed().nodes["n1"].allocated = {"vcore": 10_000}
        passes = 0
        for _ in range(4):
            while lane.run():
                passes += 1
                world.core.drain()
            assert passes <= 5
            world.clock.advance(1.5)
        assert passes == 4
        world.committed().nodes["n1"].allocated = {}
        world.clock.advance(3)
        world.settle()
        assert "1" in world.committed().applications["app"].allocations

    def test_what_stands_has_no_more_nodes_than_members(self):
        """Nor none at all."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"),), applications=(application("app"),))
        world.update(
            standing=(
                Allocation(ask=ask("app", "1"), nodes=()),
                Allocation(ask=ask("app", "2"), nodes=("n1", "n1")),
                Allocation(ask=ask("app", "3", partition="x"), nodes=("n1",)),
            )
        )
        assert manager.reasons(Thing.ALLOCATION) == [
            "allocation 1 of application app: has 0 nodes for 1 members",
            "allocation 2 of application app: has 2 nodes for 1 members",
            "partition x is unknown; there are default",
        ]

    def test_partitions_that_are_unknown_are_named_in_every_answer(self):
        """For what comes in and what goes."""
        world = World()
        manager = world.register()
        world.update(
            applications=(application("app", partition="x"),),
            releases=(AllocationRelease(id=ask_id("app", "1", "x")),),
            withdrawn=(ask_id("app", "1", "x"), ask_id("app", "1")),
            removed_nodes=(named("n1", "x"),),
            spared=(ask_id("app", "1", "x"),),
        )
        unknown = "partition x is unknown; there are default"
        assert manager.reasons(Thing.APPLICATION) == manager.reasons(Thing.NODE) == [unknown]
        assert manager.reasons(Thing.ALLOCATION) == [unknown]
        assert manager.reasons(Thing.ASK) == [unknown, "application app has no waiting ask 1"]


class TestAsks:
    def test_an_ask_that_is_sent_again_takes_the_place_of_the_first(self):
        """What waits is what was asked last."""
        world = World()
        manager = world.register()
        waiting_for(world, ("app", "1", 9_000))
        world.update(asks=(ask("app", "1", 2_000),), nodes=(node("n1", 2_000),))
        assert world.scheduled().root.pending == {"vcore": 2_000}
        world.settle()
        assert manager.new == [("app", "1", ("n1",))]

    def test_a_gang_gets_room_for_all_members_or_none(self):
        """Nodes that have room for some of them stay empty; then each member has its node."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"), node("n2")), applications=(application("app"),))
        world.update(asks=(ask("app", "gang", 6_000, members=3),))
        world.settle()
        assert (manager.new, vcores(world.committed().root)) == ([], 0)
        world.update(nodes=(node("n3"),))
        world.settle()
        assert [(key, sorted(on)) for _, key, on in manager.new] == [("gang", ["n1", "n2", "n3"])]
        assert vcores(world.committed().root) == 18_000 == vcores(world.scheduled().root)

    def test_members_share_a_node_where_they_fit(self):
        """In the order of the nodes, as if one came after the other."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"), node("n2", 20_000)), applications=(application("app"),))
        world.update(asks=(ask("app", "gang", 5_000, members=6),))
        world.settle()
        ((_, _, on),) = manager.new
        assert sorted(on) == ["n1"] * 2 + ["n2"] * 4

    def test_a_gang_that_waits_holds_nodes_until_it_fits(self):
        """As many as it needs when they are empty: small ones that keep arriving do not starve it."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"), node("n2"), node("n3")), applications=(application("small"),))
        world.update(asks=tuple(ask("small", f"{number}", 6_000) for number in range(3)))
        world.settle()
        world.update(applications=(application("app"),), asks=(ask("app", "gang", 10_000, members=2),))
        world.clock.advance(3)
        world.settle()
        held = world.scheduled().holders[ask_id("app", "gang", "rm_default")]
        assert sorted(held.on) == ["n1", "n2"]
        world.update(asks=(ask("small", "next", 4_000),))
        world.settle()
        assert ("small", "next", ("n3",)) in manager.new
        world.update(removed_applications=(named("small"),))
        world.settle()
        assert [on for name, _, on in manager.new if name == "app"] == [("n1", "n2")]
        assert world.scheduled().holders == {}

    def test_losing_a_node_leaves_a_gang_its_other_members(self):
        """The manager hears on which node, and the others stay counted."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"), node("n2")), applications=(application("app"),))
        world.update(asks=(ask("app", "gang", 6_000, members=2),))
        world.settle()
        world.update(removed_nodes=(named("n2"),))
        assert [one.nodes for one in manager.released if one.subject.thing is Thing.ALLOCATION] == [("n2",)]
        assert vcores(world.committed().root) == 6_000 == vcores(world.scheduled().root)


class TestModes:
    def test_by_allocatable_only_the_capacity_of_nodes_counts(self):
        """What is in use does not, and the root has no maximum: another scheduler queues."""
        world = World()
        manager = world.register(documented(queue("a", resources={"max": {"vcore": "30"}})), mode=NodeMode.ALLOCATABLE)
        world.update(nodes=(node("n1"),))
        waiting_for(world, *(("app", f"{number}", 9_000) for number in range(4)), ("app", "large", 11_000))
        world.settle()
        assert [key for _, key, _ in manager.new] == ["0", "1", "2"]
        assert world.committed().root.max is None is world.scheduled().root.max

    def test_by_allocatable_members_of_a_gang_share_the_capacity(self):
        """Two that fill a node need two nodes."""
        world = World()
        manager = world.register(mode=NodeMode.ALLOCATABLE)
        world.update(nodes=(node("n1"), node("n2")), applications=(application("app"),))
        world.update(asks=(ask("app", "gang", 10_000, members=2), ask("app", "huge", 10_000, members=3)))
        world.settle()
        assert manager.new == [("app", "gang", ("n1", "n2"))]


class TestPredicates:
    def test_the_manager_is_asked_about_nodes_with_room(self):
        """In its own words, and the next node is tried where it says no."""
        world = World()
        manager = world.register(predicates=True)
        manager.refuses["n1"] = "taint"
        world.update(nodes=(node("n1"), node("n2"), node("n3", 10)))
        waiting_for(world, ("app", "1", 1_000))
        world.settle()
        assert manager.new == [("app", "1", ("n2",))]
        assert [(one.node, one.ask.partition, one.reserving) for one in manager.asked] == [
            ("n1", "default", False),
            ("n2", "default", False),
        ]

    def test_asks_of_one_shape_are_asked_for_once(self):
        """What one was refused, the others are not offered until something has changed."""
        world = World()
        manager = world.register(predicates=True)
        manager.refuses["n1"] = "taint"
        world.update(nodes=(node("n1"),), applications=(application("app"),))
        now = world.clock.wall()
        world.update(asks=tuple(ask("app", f"{number}", shape="s", created=now) for number in range(5)))
        world.settle()
        assert len(manager.asked) == 1
        manager.refuses.clear()
        world.update(nodes=(node("n1"),))
        world.settle()
        assert len(manager.new) == 5

    def test_a_node_is_only_held_where_the_predicate_allows_it(self):
        """Otherwise it would be kept from everybody for nothing."""
        world = World()
        manager = world.register(predicates=True)
        manager.refuses["n1"] = "taint"
        world.update(nodes=(node("n1"), node("n2")), applications=(application("app"),))
        world.update(asks=(ask("app", "1", 10_000), ask("app", "2", 10_000)))
        world.settle()
        assert list(world.scheduled().holders[ask_id("app", "2", "rm_default")].on) == ["n2"]

    def test_a_predicate_that_fails_ends_the_pass_and_loses_nothing(self):
        """What was decided before is proposed, and the next pass goes on."""
        world = World()
        manager = world.register(predicates=True)
        world.update(nodes=(node("n1"),))
        waiting_for(world, ("app", "1", 1_000))
        manager.next_question = RuntimeError("no answer")
        with pytest.raises(RuntimeError):
            world.settle()
        world.settle()
        assert manager.new == [("app", "1", ("n1",))]

    def test_a_manager_that_is_gone_takes_nothing(self):
        """A pass may still ask while the termination is under way."""
        world = World()
        world.register(predicates=True)
        world.update(nodes=(node("n1"),))
        waiting_for(world, ("app", "1", 1_000))
        (lane,) = world.core.lanes()
        world.update(terminated=True)
        assert lane.run() == 0


class TestReservations:
    def test_delay_and_timeout_are_rules_of_the_core(self):
        """Younger asks hold nothing."""
        world = World(rules=AllocationRules(reservation_delay=60))
        world.register()
        world.update(nodes=(node("n1"), node("n2")), applications=(application("app"),))
        now = world.clock.wall()
        world.update(asks=tuple(ask("app", f"{number}", 6_000, created=now) for number in range(3)))
        world.settle()
        world.clock.advance(60)
        world.settle()
        assert world.scheduled().holders == {}
        world.clock.advance(0.5)
        world.settle()
        assert list(world.scheduled().holders) == [ask_id("app", "2", "rm_default")]

    def test_schedulers_leave_out_what_another_one_holds(self):
        """Where two hold the same node, the first keeps it."""
        world = World(schedulers=2)
        world.register()
        world.update(nodes=(node("n1"), node("n2")))
        names = [f"app{number}" for number in range(12)]
        waiting_for(world, *((name, "1", 6_000) for name in names))
        world.settle()
        first, second = (one.lanes["rm_default"].partition for one in world.core.schedulers)
        assert sorted(on for waiting in first.holders.values() for on in waiting.on) == ["n1", "n2"]
        assert second.holders == {}
        assert second.nodes.get("n1").elsewhere == {0}


def test_what_fails_in_one_event_is_reported_and_the_next_one_is_handled():
    """A broken record must not take the core with it."""
    world = World()
    manager = world.register()
    broken = dataclasses.replace(node("n1"), capacity=None)
    world.update(nodes=(broken,))
    world.update(nodes=(node("n2"),))
    assert [name for name, _ in world.failed] == ["cache: RequestUpdated"]
    assert (Thing.NODE, "n2", "") in manager.accepted
