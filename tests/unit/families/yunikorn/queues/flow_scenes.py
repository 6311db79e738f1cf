"""Applications that run, and their victims."""

from typing import Any

from slurm_bridge.families.yunikorn.queues.records import Update
from tests.unit.families.yunikorn.queues.support_core import (
    FakeManager,
    World,
    application,
    ask,
    node,
)


def running(**options: Any) -> tuple[World, FakeManager]:
    """An application with two allocations of one node, and an ask that is too large for what is left."""
    world = World(**options)
    manager = world.register()
    world.update(
        nodes=(node("n1"),),
        applications=(application("app"),),
        asks=(ask("app", "one", 4_000), ask("app", "two", 4_000)),
    )
    world.settle()
    world.update(asks=(ask("app", "large", 9_000),))
    world.settle()
    return world, manager


def world_update(**fields: Any) -> Update:
    """A request that is not sent yet."""
    return Update(rm="rm", **fields)
