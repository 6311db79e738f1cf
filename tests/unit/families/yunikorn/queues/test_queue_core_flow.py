"""The flow of events: every row of the table that the core was designed by."""

import pytest

from slurm_bridge.families.yunikorn.queues.plans import PreemptionPlan
from slurm_bridge.families.yunikorn.queues.records import AllocationRelease, AskId, Thing, Why
from tests.unit.families.yunikorn.queues.flow_scenes import running, world_update
from tests.unit.families.yunikorn.queues.support_core import (
    World,
    application,
    ask,
    ask_id,
    named,
    node,
    vcores,
)


class TestJobs:
    def test_job_add_goes_through_the_cache_to_the_scheduler(self):
        """It is committed before the scheduler knows of it, and the manager hears its queue."""
        world = World()
        manager = world.register()
        world.core.update(
            world_update(applications=(application("app", "root.b"),)),
        )
        world.core.cache.handle()
        assert "app" in world.committed().applications
        assert "app" not in world.scheduled().applications
        world.core.drain()
        assert world.scheduled().applications["app"].queue.path == "root.b"
        assert (Thing.APPLICATION, "app", "root.b") in manager.accepted

    def test_job_remove_leaves_the_scheduler_before_the_cache(self):
        """Its allocations are released with it, and the manager hears of them first, then of the application."""
        world, manager = running()
        world.core.update(world_update(removed_applications=(named("app"),)))
        world.core.cache.handle()
        for scheduler in world.core.schedulers:
            scheduler.route()
        for lane in world.core.lanes():
            lane.handle()
        assert "app" not in world.scheduled().applications
        assert "app" in world.committed().applications
        world.core.drain()
        assert "app" not in world.committed().applications
        assert vcores(world.committed().root) == vcores(world.scheduled().root) == 0
        assert [(one.subject.thing, one.subject.key, one.why) for one in manager.released] == [
            (Thing.ALLOCATION, "one", Why.APPLICATION_REMOVED),
            (Thing.ALLOCATION, "two", Why.APPLICATION_REMOVED),
            (Thing.APPLICATION, "", Why.ASKED),
        ]

    def test_a_job_that_leaves_cannot_be_added_or_asked_for(self):
        """Until its removal is confirmed there is one of its name."""
        world, manager = running()
        world.core.update(world_update(removed_applications=(named("app"),)))
        world.core.update(world_update(applications=(application("app"),), asks=(ask("app", "late"),)))
        world.core.drain()
        assert "is still leaving" in manager.reasons(Thing.APPLICATION)[0]
        assert manager.reasons(Thing.ASK) == [
            "ask late of application app: there is no such application in partition default"
        ]

    def test_a_proposal_for_a_job_that_leaves_is_refused(self):
        """What was proposed before the scheduler heard of the removal comes to nothing."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one"),))
        (lane,) = world.core.lanes()
        world.core.update(world_update(removed_applications=(named("app"),)))
        world.core.cache.handle()
        lane.run()
        world.core.drain()
        assert manager.new == []
        assert manager.gone(Thing.APPLICATION) == [("app", "", Why.ASKED)]
        assert vcores(world.scheduled().root) == 0


class TestRequests:
    def test_request_add_goes_through_the_cache_to_the_scheduler(self):
        """Both know it, and it waits."""
        world = World()
        manager = world.register()
        world.update(applications=(application("app"),), asks=(ask("app", "one"),))
        assert list(world.committed().applications["app"].asks) == ["one"]
        assert list(world.scheduled().applications["app"].asks) == ["one"]
        assert (Thing.ASK, "app", "") in manager.accepted

    def test_an_invalid_request_comes_back_with_its_reason(self):
        """Without its application, without any amount, with a negative one, without members, or allocated already."""
        world, manager = running()
        world.update(
            asks=(
                ask("nobody", "one"),
                ask("app", "zero", 0),
                ask("app", "less", -5),
                ask("app", "none", members=0),
                ask("app", "one"),
                ask("app", ""),
                ask("app", "far", partition="elsewhere"),
            )
        )
        assert manager.reasons(Thing.ASK) == [
            "ask one of application nobody: there is no such application in partition default",
            "ask zero of application app: asks for nothing; use positive amounts",
            "ask less of application app: vcore is -5, less than nothing; use positive amounts",
            "ask none of application app: has 0 members; use 1 or more",
            "ask one of application app: is allocated already",
            "ask  of application app: has no key",
            "partition elsewhere is unknown; there are default",
        ]

    def test_request_remove_leaves_the_scheduler_before_the_cache(self):
        """It is confirmed, and nothing comes of it afterwards."""
        world, manager = running()
        world.update(withdrawn=(ask_id("app", "large"),))
        assert manager.gone(Thing.ASK) == [("app", "large", Why.ASKED)]
        assert world.committed().applications["app"].asks == {} == world.scheduled().applications["app"].asks
        assert world.scheduled().root.pending == {}

    def test_a_request_that_is_being_withdrawn_is_not_allocated_any_more(self):
        """Its proposal comes after the withdrawal, and is refused."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one"),))
        (lane,) = world.core.lanes()
        world.core.update(world_update(withdrawn=(ask_id("app", "one"),)))
        lane.run()
        world.core.drain()
        assert (manager.new, manager.gone(Thing.ASK)) == ([], [("app", "one", Why.ASKED)])

    def test_a_request_that_was_allocated_is_not_there_to_be_withdrawn(self):
        """The manager has heard of the allocation before."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one"),))
        (lane,) = world.core.lanes()
        lane.run()
        world.core.cache.handle()
        world.update(withdrawn=(ask_id("app", "one"),))
        assert manager.new == [("app", "one", ("n1",))]
        assert manager.reasons(Thing.ASK) == ["application app has no waiting ask one"]

    def test_nothing_is_removed_twice_or_asked_for_while_it_leaves(self):
        """The second removal could otherwise meet what has the name by then."""
        world, manager = running()
        twice = {
            "releases": (AllocationRelease(id=ask_id("app", "one")),),
            "withdrawn": (ask_id("app", "large"),),
            "removed_nodes": (named("n1"),),
        }
        world.core.update(world_update(**twice))
        world.core.update(world_update(**twice, asks=(ask("app", "large"),)))
        world.core.drain()
        assert manager.reasons(Thing.ALLOCATION) == ["allocation one of app is leaving already"]
        assert manager.reasons(Thing.NODE) == ["node n1 is leaving already"]
        assert manager.reasons(Thing.ASK) == [
            "ask large of application app: one of this key is still leaving; ask again once its removal is confirmed",
            "ask large of app is leaving already",
        ]
        # The allocation went by its own removal, and the other one with its node.
        world.update(asks=(ask("app", "large"), ask("app", "one")))
        assert len(world.scheduled().applications["app"].asks) == 2

    def test_a_request_that_was_withdrawn_does_not_wait_again_when_its_proposal_is_refused(self):
        """Nothing of it is left anywhere."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one", 9_000),))
        (lane,) = world.core.lanes()
        lane.run()
        world.core.update(world_update(nodes=(node("n1", 1_000),), withdrawn=(ask_id("app", "one"),)))
        world.core.drain()
        assert (manager.new, manager.gone(Thing.ASK)) == ([], [("app", "one", Why.ASKED)])
        assert world.committed().applications["app"].asks == {} == world.scheduled().applications["app"].asks
        assert world.scheduled().root.pending == {}

    @pytest.mark.parametrize("asked_now", [9_000, 2_000])
    def test_an_ask_that_is_sent_while_it_is_proposed_is_given_once(self, asked_now: int):
        """As it is asked for now: what was proposed for another amount is refused, and counts nowhere."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one", 9_000),))
        (lane,) = world.core.lanes()
        lane.run()
        world.core.update(world_update(asks=(ask("app", "one", asked_now),)))
        for part in (world.core.cache, *world.core.schedulers):
            part.handle()
        # A pass before the scheduler has its answer.
        lane.run()
        world.settle()
        assert manager.new == [("app", "one", ("n1",))]
        assert vcores(world.committed().root) == vcores(world.scheduled().root) == asked_now
        assert world.scheduled().root.pending == {} == world.scheduled().applications["app"].asks
        world.update(releases=(AllocationRelease(id=ask_id("app", "one"), why=Why.ASKED),))
        world.settle()
        assert vcores(world.committed().root) == vcores(world.scheduled().root) == 0


class TestAllocations:
    def test_allocation_remove_by_preemption_goes_from_the_scheduler_through_the_cache_to_the_manager(self):
        """Its room is not free before the manager confirms; then the asker has it."""
        world, manager = running()
        world.plans.append(
            PreemptionPlan(
                asker=ask_id("app", "large", "rm_default"),
                node="n1",
                victims=victims("one", "two"),
                message="make room",
            )
        )
        world.settle()
        assert [(one.victim.key, one.asker.key, one.message) for one in manager.evictions] == [
            ("one", "large", "make room"),
            ("two", "large", "make room"),
        ]
        assert world.committed().root.preempting == {"vcore": 8_000} == world.scheduled().root.preempting
        world.update(releases=(AllocationRelease(id=ask_id("app", "one"), why=Why.PREEMPTED),))
        world.settle()
        assert [key for _, key, _ in manager.new] == ["one", "two"]
        world.update(releases=(AllocationRelease(id=ask_id("app", "two"), why=Why.PREEMPTED),))
        world.settle()
        assert [key for _, key, _ in manager.new] == ["one", "two", "large"]
        assert manager.gone(Thing.ALLOCATION) == [("app", "one", Why.PREEMPTED), ("app", "two", Why.PREEMPTED)]
        assert world.committed().root.preempting == {} == world.scheduled().root.preempting

    def test_what_was_proposed_in_the_same_pass_may_have_to_go(self):
        """It is committed first, and then the manager is asked to evict it."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one"),))
        world.plans.append(PreemptionPlan(victims=victims("one"), message="over its maximum"))
        world.settle()
        assert [one.victim.key for one in manager.evictions] == ["one"]
        assert world.committed().root.preempting == {"vcore": 1_000} == world.scheduled().root.preempting

    def test_the_node_is_held_for_the_asker_before_anybody_is_asked_to_go(self):
        """Small ones that come meanwhile do not take what becomes free."""
        world, manager = running()
        world.plans.append(
            PreemptionPlan(
                asker=ask_id("app", "large", "rm_default"), node="n1", victims=victims("one"), message="make room"
            )
        )
        world.settle()
        world.update(
            releases=(AllocationRelease(id=ask_id("app", "one"), why=Why.PREEMPTED),), asks=(ask("app", "small", 1),)
        )
        world.settle()
        assert [key for _, key, _ in manager.new] == ["one", "two"]
        assert world.scheduled().holders[ask_id("app", "large", "rm_default")].on.keys() == {"n1"}

    def test_an_allocation_that_cannot_be_evicted_is_spared(self):
        """Nobody counts on its room any more, and it may be asked to go another time."""
        world, manager = running()
        plan = PreemptionPlan(asker=None, victims=victims("one"), message="over its maximum")
        world.plans.append(plan)
        world.settle()
        world.update(spared=(ask_id("app", "one"),))
        assert world.committed().root.preempting == {} == world.scheduled().root.preempting
        world.plans.append(plan)
        world.settle()
        assert [one.asker for one in manager.evictions] == [None, None]

    def test_allocation_remove_by_the_manager_is_confirmed(self):
        """From the scheduler, then from the cache; then its room is free for the next one."""
        world, manager = running()
        world.update(releases=(AllocationRelease(id=ask_id("app", "one")), AllocationRelease(id=ask_id("app", "two"))))
        assert manager.gone(Thing.ALLOCATION) == [("app", "one", Why.ASKED), ("app", "two", Why.ASKED)]
        world.settle()
        assert [key for _, key, _ in manager.new] == ["one", "two", "large"]
        assert vcores(world.committed().root) == vcores(world.scheduled().root) == 9_000

    def test_an_unknown_allocation_is_no_allocation_to_remove(self):
        """The manager is told that there is none."""
        world, manager = running()
        world.update(releases=(AllocationRelease(id=ask_id("app", "never")),))
        assert manager.reasons(Thing.ALLOCATION) == ["application app has no allocation never"]


def victims(*keys: str) -> tuple[AskId, ...]:
    """These allocations, with the partition as it is called inside."""
    return tuple(ask_id("app", key, "rm_default") for key in keys)
