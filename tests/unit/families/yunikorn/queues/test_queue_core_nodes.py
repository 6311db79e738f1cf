"""The flow of events about nodes, proposals, configurations and resource managers."""

import pytest

from slurm_bridge import errors
from slurm_bridge.families.yunikorn.queues.records import Allocation, AllocationRelease, Thing, Why
from tests.unit.families.yunikorn.queues.flow_scenes import running, world_update
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


class TestNodes:
    def test_node_add_goes_through_the_cache_to_the_scheduler(self):
        """The root is as large as all nodes."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"), node("n2")))
        assert world.committed().root.max["vcore"] == 20_000 == world.scheduled().root.max["vcore"]
        assert (Thing.NODE, "n1", "") in manager.accepted

    def test_node_add_counts_what_stands_on_it_already(self):
        """Also beyond what anybody may have: it runs."""
        world = World()
        manager = world.register()
        world.update(
            nodes=(node("n1"),),
            applications=(application("app"),),
            standing=(Allocation(ask=ask("app", "old", 12_000), nodes=("n1",)),),
        )
        assert vcores(world.committed().root) == 12_000 == vcores(world.scheduled().root)
        assert (Thing.ALLOCATION, "app", "") in manager.accepted

    def test_what_stands_on_unknown_nodes_is_rejected(self):
        """The node has to be there first."""
        world = World()
        manager = world.register()
        world.update(applications=(application("app"),), standing=(Allocation(ask=ask("app", "old"), nodes=("n1",)),))
        assert manager.reasons(Thing.ALLOCATION) == [
            "allocation old of application app: node n1 is not in partition default"
        ]

    def test_an_invalid_node_is_rejected(self):
        """With less than nothing, without a name, or in a partition that nobody configured."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1", -1), node(""), node("n2", partition="other")))
        assert manager.reasons(Thing.NODE) == [
            "node 'n1': vcore is -1, less than nothing",
            "node '': has no name",
            "partition other is unknown; there are default",
        ]

    def test_a_node_of_another_partition_is_rejected(self):
        """Partitions share no node."""
        world = World()
        manager = world.register(several(partition(queue("a"), name="x"), partition(queue("a"), name="y")))
        world.update(nodes=(node("n1", partition="x"), node("n1", partition="y")))
        assert manager.reasons(Thing.NODE) == ["node n1: is in partition x already; partitions share no node"]

    def test_node_remove_leaves_the_scheduler_before_the_cache(self):
        """With all that is on it, and whoever holds it holds nothing."""
        world, manager = running()
        world.update(removed_nodes=(named("n1"),))
        assert manager.gone(Thing.ALLOCATION) == [("app", "one", Why.NODE_REMOVED), ("app", "two", Why.NODE_REMOVED)]
        assert manager.gone(Thing.NODE) == [("n1", "", Why.ASKED)]
        for root in (world.committed().root, world.scheduled().root):
            assert (root.allocated, root.max["vcore"]) == ({}, 0)

    def test_a_proposal_on_a_node_that_leaves_is_refused(self):
        """It is counted nowhere, and its ask waits again."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one"),))
        (lane,) = world.core.lanes()
        world.core.update(world_update(removed_nodes=(named("n1"),)))
        lane.run()
        world.core.drain()
        assert (manager.new, manager.gone(Thing.NODE)) == ([], [("n1", "", Why.ASKED)])
        assert vcores(world.committed().root) == vcores(world.scheduled().root) == 0
        assert list(world.scheduled().applications["app"].asks) == ["one"]

    def test_a_proposal_that_was_committed_before_its_node_left_goes_with_the_node(self):
        """The scheduler hears of the commitment after it has let go of the node, and does not count it again."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one"),))
        (lane,) = world.core.lanes()
        lane.run()
        world.core.cache.handle()
        world.core.update(world_update(removed_nodes=(named("n1"),)))
        world.core.drain()
        assert manager.new == [("app", "one", ("n1",))]
        assert manager.gone(Thing.ALLOCATION) == [("app", "one", Why.NODE_REMOVED)]
        assert vcores(world.committed().root) == vcores(world.scheduled().root) == 0

    def test_a_node_that_leaves_cannot_be_added_again_before_it_has_left(self):
        """Nor does anything stand on it."""
        world, manager = running()
        world.core.update(world_update(removed_nodes=(named("n1"),)))
        world.core.update(
            world_update(nodes=(node("n1"),), standing=(Allocation(ask=ask("app", "old"), nodes=("n1",)),))
        )
        world.core.drain()
        assert manager.reasons(Thing.NODE) == ["node n1: is still leaving; add it again once its removal is confirmed"]
        assert manager.reasons(Thing.ALLOCATION) == [
            "allocation old of application app: node n1 is not in partition default"
        ]
        assert world.committed().nodes == {}

    def test_an_unknown_node_or_job_is_none_to_remove(self):
        """The manager is told."""
        world = World()
        manager = world.register()
        world.update(removed_nodes=(named("n9"),), removed_applications=(named("app9"),))
        assert manager.reasons(Thing.NODE) == ["node n9 is not in partition default"]
        assert manager.reasons(Thing.APPLICATION) == ["application app9 is not in partition default"]


class TestProposals:
    def test_an_accepted_proposal_goes_to_the_manager_and_to_the_scheduler(self):
        """Committed and scheduled usage are the same afterwards."""
        world, manager = running()
        assert manager.new == [("app", "one", ("n1",)), ("app", "two", ("n1",))]
        assert (
            world.committed().nodes["n1"].allocated == world.scheduled().nodes.get("n1").allocated == {"vcore": 8_000}
        )

    def test_a_rejected_proposal_comes_back_to_the_scheduler(self):
        """The ask waits again, and gets what there is later."""
        world = World()
        manager = world.register()
        world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one", 9_000),))
        (lane,) = world.core.lanes()
        world.core.update(world_update(nodes=(node("n1", 5_000),)))
        lane.run()
        world.core.cache.handle()
        assert vcores(world.scheduled().root) == 9_000
        world.core.drain()
        assert manager.new == []
        assert vcores(world.scheduled().root) == vcores(world.committed().root) == 0
        assert world.scheduled().root.pending == {"vcore": 9_000}
        assert world.scheduled().root.running == 0
        world.update(nodes=(node("n1", 9_000),))
        world.settle()
        assert manager.new == [("app", "one", ("n1",))]

    def test_each_proposal_of_a_bundle_is_decided_for_itself(self):
        """The first fits, the second no longer does."""
        world = World()
        manager = world.register()
        world.update(
            nodes=(node("n1"),),
            applications=(application("app"),),
            asks=(ask("app", "one", 5_000), ask("app", "two", 5_000)),
        )
        (lane,) = world.core.lanes()
        world.core.update(world_update(nodes=(node("n1", 5_000),)))
        lane.run()
        world.core.drain()
        assert manager.new == [("app", "one", ("n1",))]
        assert list(world.scheduled().applications["app"].asks) == ["two"]


class TestConfigurations:
    def test_initially_the_scheduler_copies_what_the_cache_was_configured_with(self):
        """Two trees of the same queues, each with its own usage."""
        world = World()
        manager = world.register(documented(queue("a", queue("c")), queue("b")))
        paths = {one.path for one in world.scheduled().leaf(world.scheduled().root).queue.children.values()}
        assert paths == {"root.a", "root.b"} == {one.path for one in world.committed().root.children.values()}
        assert world.committed().root is not world.scheduled().root
        assert manager.accepted == [(Thing.CONFIGURATION, "", "")]

    def test_update_of_queues_goes_through_the_cache_to_the_scheduler(self):
        """A queue that is gone drains: what is in it is served, and nobody new comes in; then it is gone."""
        world, manager = running()
        world.update(configuration=documented(queue("b")), applications=(application("new"),))
        assert "root.a is draining" in manager.reasons(Thing.APPLICATION)[0]
        world.update(releases=(AllocationRelease(id=ask_id("app", "one")), AllocationRelease(id=ask_id("app", "two"))))
        world.settle()
        assert [key for _, key, _ in manager.new] == ["one", "two", "large"]
        world.update(removed_applications=(named("app"),))
        assert list(world.committed().root.children) == ["b"] == list(world.scheduled().root.children)

    def test_a_configuration_that_does_not_fit_what_runs_is_refused_as_a_whole(self):
        """A queue in use stays a leaf, and a partition in use stays."""
        world, manager = running()
        world.update(configuration=documented(queue("a", queue("inner"))))
        world.update(configuration=documented(queue("a"), name="other"))
        first, second = manager.reasons(Thing.CONFIGURATION)
        assert "queue_kind" in first
        assert second == "partition default: cannot go while it has 1 applications"
        assert list(world.committed().root.children) == ["a", "b"]

    def test_partitions_come_and_go_with_the_configuration(self):
        """An empty one goes, its lane with it."""
        world = World()
        world.register(several(partition(queue("a"), name="x"), partition(queue("a"), name="y")))
        world.update(configuration=several(partition(queue("a"), name="y"), partition(queue("a"), name="z")))
        assert set(world.core.cache.ledger.partitions) == {"rm_y", "rm_z"}
        assert set(world.core.schedulers[0].lanes) == {"rm_y", "rm_z"}

    def test_a_raised_maximum_lets_what_waits_go_on(self):
        """The scheduler looks again at what did not fit before."""
        world = World()
        manager = world.register(documented(queue("a", resources={"max": {"vcore": "1"}})))
        world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one", 2_000),))
        world.settle()
        assert manager.new == []
        world.update(configuration=documented(queue("a", resources={"max": {"vcore": "2"}})))
        world.settle()
        assert manager.new == [("app", "one", ("n1",))]


class TestManagers:
    def test_registration_creates_partitions_under_the_managers_name(self):
        """Inside, partition `xyz` of the manager `rm` is `rm_xyz`; outside it keeps its name."""
        world = World()
        manager = world.register(several(partition(queue("a"), name="xyz")))
        world.update(nodes=(node("n1", partition="xyz"),), applications=(application("app", partition="xyz"),))
        world.update(asks=(ask("app", "one", partition="xyz"),))
        world.settle()
        assert list(world.core.cache.ledger.partitions) == ["rm_xyz"]
        subjects = {one.subject.partition for news in manager.heard for one in news.accepted}
        assert subjects == {"", "xyz"}
        assert {one.ask.partition for news in manager.heard for one in news.new} == {"xyz"}

    def test_registration_again_removes_everything_of_the_old_one(self):
        """The new one begins empty, and the old callback hears nothing more."""
        world, old = running()
        heard = len(old.heard)
        new = world.register()
        assert (world.committed().applications, world.committed().nodes) == ({}, {})
        assert world.scheduled().applications == {}
        world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "one"),))
        world.settle()
        assert new.new == [("app", "one", ("n1",))]
        assert len(old.heard) == heard

    def test_what_was_under_way_for_the_old_registration_concerns_nobody(self):
        """A removal and a proposal that come late change nothing of the new one."""
        world, _ = running()
        (lane,) = world.core.lanes()
        world.core.update(world_update(removed_applications=(named("app"),)))
        world.core.cache.handle()
        world.core.schedulers[0].route()
        lane.handle()
        new = world.register()
        world.update(nodes=(node("n1"),), applications=(application("app"),))
        world.settle()
        assert "app" in world.committed().applications
        assert new.released == []

    def test_termination_removes_everything(self):
        """The last thing that the manager hears is that."""
        world, manager = running()
        world.update(terminated=True)
        assert world.core.cache.ledger.partitions == {} == world.core.schedulers[0].lanes
        assert manager.gone(Thing.CONFIGURATION) == [("", "", Why.ASKED)]
        with pytest.raises(errors.NotFound):
            world.update(nodes=(node("n1"),))
