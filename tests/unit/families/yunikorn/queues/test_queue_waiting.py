"""Who waits and why, in words."""

from slurm_bridge.families.yunikorn.queues import wait_reasons
from tests.unit.families.yunikorn.queues.support_configs import queue
from tests.unit.families.yunikorn.queues.support_core import World, application, ask, documented, node


def reasons(world: World) -> dict[str, str]:
    """By application."""
    return {one.application: one.reason for one in wait_reasons.waits(world.scheduled(), world.clock.wall())}


def world_of(*asks: tuple[str, int], **fields: object) -> World:
    """One queue of these settings, two nodes of 10 vcores, and an application for each ask."""
    world = World()
    world.register(documented(queue("a", **fields)))
    world.update(nodes=(node("n1"), node("n2")))
    world.update(
        applications=tuple(application(name) for name, _ in asks),
        asks=tuple(ask(name, "1", vcore) for name, vcore in asks),
    )
    world.settle()
    return world


def test_who_has_what_it_asked_for_does_not_wait():
    """Nothing is said of it."""
    assert reasons(world_of(("app", 1_000))) == {}


def test_a_queue_at_its_maximum_is_named():
    """With what is left of it."""
    world = world_of(("first", 3_000), ("app", 3_000), resources={"max": {"vcore": "4"}})
    assert reasons(world) == {"app": "queue root.a has vcore 1000 left of its maximum; vcore 3000 are asked for"}


def test_a_full_cluster_is_no_queue_at_its_maximum():
    """The root has no maximum of its own."""
    world = world_of(("first", 10_000), ("second", 8_000), ("app", 3_000))
    left = "the cluster has memory 20000000000, vcore 2000 left of its maximum; vcore 3000 are asked for"
    assert reasons(world) == {"app": left}


def test_a_queue_that_runs_enough_applications_is_named():
    """With how many."""
    world = world_of(("first", 1_000), ("app", 1_000), maxapplications=1)
    assert reasons(world) == {"app": "queue root.a runs 1 of 1 applications"}


def test_a_limit_of_the_user_speaks_in_its_own_words():
    """Those of the limits."""
    world = world_of(("first", 2_000), ("app", 2_000), limits=[{"users": ["ann"], "maxresources": {"vcore": "3"}}])
    assert reasons(world)["app"].startswith("user ann has 2000m of 3000m that queue root.a allows")


def test_nodes_that_are_too_small_or_too_full_are_told_apart():
    """The first will not change by itself."""
    world = world_of(("first", 6_000), ("second", 6_000), ("app", 7_000), ("huge", 11_000))
    said = reasons(world)
    assert said["app"] == "waits for room on n1, which it holds"
    world = World()
    world.register()
    world.update(nodes=(node("n1", 3_000), node("n2", 3_000)), applications=(application("huge"),))
    world.update(asks=(ask("huge", "1", 4_000),))
    world.settle()
    assert reasons(world) == {"huge": "no node is large enough for vcore 4000"}


def test_who_is_too_young_to_hold_a_node_is_told_of_the_room():
    """How many nodes could hold it, were they empty."""
    world = World()
    world.register()
    world.update(nodes=(node("n1"), node("n2"), node("n3", 1_000)), applications=(application("app"),))
    now = world.clock.wall()
    world.update(asks=tuple(ask("app", f"{number}", 6_000, created=now) for number in range(3)))
    world.settle()
    assert reasons(world) == {"app": "no room for vcore 6000 on 2 of 3 nodes that could hold it"}


def test_an_ask_for_one_node_names_it():
    """Also while the node is not there."""
    world = World()
    world.register()
    world.update(nodes=(node("n1"),), applications=(application("app"),))
    world.update(asks=(ask("app", "1", required_node="n9"),))
    world.settle()
    assert reasons(world) == {"app": "waits for node n9"}


def test_a_pause_says_how_long_and_why():
    """Too many asks found no node."""
    properties = {"application.unschedasks.backoff": "1", "application.unschedasks.backoff.delay": "10s"}
    world = World()
    world.register(documented(queue("a", properties=properties)))
    world.update(nodes=(node("n1", 3_000), node("n2", 3_000)), applications=(application("app"),))
    world.update(asks=(ask("app", "1", 4_000),))
    world.settle()
    assert reasons(world) == {"app": "pauses for 10 s more: too many of its asks found no node"}


def test_a_pause_after_refusals_says_so():
    """The cache knows better, for whatever reason."""
    world = World()
    world.register()
    world.update(nodes=(node("n1"),), applications=(application("app"),), asks=(ask("app", "1"),))
    world.scheduled().applications["app"].refused_until = world.clock.wall() + 4
    assert reasons(world) == {"app": "pauses for 4 s more: it was refused again and again"}
