"""The observer of updates can fail: an update without a cause is a broken promise, what something called for is not."""

import dataclasses
from collections.abc import Callable

import msgspec
import pytest

from slurm_bridge.model.names import JobId
from tests.simulation.broken_promise import Broken
from tests.simulation.manual_daemon import Hand
from tests.simulation.update_rules import FREE
from tests.simulation.world import World


class Waiting:
    """A pod of ours, `a`, whose job pends at the first attempt of some course."""

    def __init__(self, world: World) -> None:
        world.pod("a")
        self.world, self._hand = world, Hand(world)
        world.slurm.control.pause()
        found = world.find("a")
        assert found is not None
        request = self._hand.request("a", found["metadata"]["uid"])
        self._request = dataclasses.replace(request, owner=msgspec.structs.replace(request.owner, plan="c:1:0"))
        self._job_id: JobId = self._hand.ask(self._request)

    def update(self, plan: str, by: Hand | None = None) -> None:
        """A daemon writes it anew."""
        owner = msgspec.structs.replace(self._request.owner, plan=plan)
        (by or self._hand).slurm.update(self._job_id, dataclasses.replace(self._request, owner=owner))


@pytest.fixture
def waiting(make_world: Callable[[int], World]) -> Waiting:
    """In a world of its own."""
    return Waiting(make_world(1))


def test_i8_the_same_attempt_again_and_again(waiting: Waiting) -> None:
    """A few are forgiven."""
    for _ in range(FREE):
        waiting.update("c:1:0")
    with pytest.raises(Broken, match="I8"):
        waiting.update("c:1:0")


def test_i8_pods_that_come_and_go_are_no_reason(waiting: Waiting) -> None:
    """Neither is their being bound: that is what moves scores."""
    for number in range(FREE):
        waiting.world.pod(f"other{number}")
        waiting.world.bind(f"other{number}", "n1")
        waiting.update("c:1:0")
    with pytest.raises(Broken, match="I8"):
        waiting.update("c:1:0")


def test_i8_a_node_that_changes_is_a_reason(waiting: Waiting) -> None:
    """So is each attempt."""
    for number in range(5):
        waiting.world.cordon("n1", on=number % 2 == 0)
        waiting.update("c:1:0")
    for number in range(2, 7):
        waiting.update(f"c:{number}:0")


def test_i9_an_earlier_attempt(waiting: Waiting) -> None:
    """Of another course, or of other hooks, it is the first one of all."""
    waiting.update("d:0:0")
    waiting.world.updates.configured()
    waiting.update("c:1:0")
    with pytest.raises(Broken, match="I9"):
        waiting.update("c:0:0")


def test_i8_what_another_leader_has_overwritten_may_be_written_again(waiting: Waiting) -> None:
    """As long as both write; one that writes what it has written itself has no more reason than before."""
    other = Hand(waiting.world, "other")
    for _ in range(10):
        waiting.update("c:1:0", other)
        waiting.update("c:1:0")
    for _ in range(2):
        waiting.update("c:1:0")
    with pytest.raises(Broken, match="I8"):
        waiting.update("c:1:0")
