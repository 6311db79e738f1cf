"""With the core's own threads the answers come later, and wake whom they are for."""

import queue as queues
from collections.abc import Iterator

import pytest

from slurm_bridge.hooks.background import Backstage
from slurm_bridge.hooks.yunikorn import setup
from slurm_bridge.hooks.yunikorn.demands import Demand
from slurm_bridge.hooks.yunikorn.manager import Manager
from slurm_bridge.hooks.yunikorn.members import Member, Stage
from slurm_bridge.hooks.yunikorn.options import YunikornOptions
from slurm_bridge.runtime.clock import SystemClock
from tests.unit.hooks.yunikorn.yunikorn_scenes import document, queue

SECONDS = 20.0


def demand(uid: str, cpus: int = 1) -> Demand:
    """A workload of queue a."""
    return Demand(
        uid=uid,
        title=f"team/{uid}",
        total={"vcore": 1000 * cpus, "pods": 1},
        priority=0,
        created=1.0,
        queue="root.a",
        user="ann",
        groups=(),
        tags={},
        node_sort="",
    )


@pytest.fixture
def woken() -> "queues.SimpleQueue[str]":
    """Whom the manager has woken."""
    return queues.SimpleQueue()


@pytest.fixture
def manager(woken: "queues.SimpleQueue[str]") -> Iterator[Manager]:
    """Queue a has two cpus."""
    options = YunikornOptions.model_validate({"configuration": document(queue("a", resources={"max": {"vcore": "2"}}))})
    made = Manager(setup.make(options), Backstage(clock=SystemClock(), wake=woken.put))
    yield made
    made.close()


def test_who_is_let_in_is_woken(manager: Manager, woken: "queues.SimpleQueue[str]") -> None:
    """And whoever waits behind it when that has gone."""
    manager.begin(())
    first, second = manager.enter(demand("first", 2)), manager.enter(demand("second"))
    await_given(first, woken)
    assert (first.stage, second.stage) == (Stage.GIVEN, Stage.ASKED)
    manager.leave("first")
    await_given(second, woken)
    assert second.queue == "root.a"


def await_given(member: Member, woken: "queues.SimpleQueue[str]") -> None:
    """Until it is woken and may go on."""
    while woken.get(timeout=SECONDS) != member.demand.uid or member.stage is not Stage.GIVEN:
        pass


def test_who_has_entered_a_queue_is_woken_to_be_told_why_it_waits(
    manager: Manager, woken: "queues.SimpleQueue[str]"
) -> None:
    """The pass in which it entered knew only that it enters."""
    manager.begin([(demand("runs", 2), True)])
    waits = manager.enter(demand("waits"))
    assert woken.get(timeout=SECONDS) == "waits"
    assert (waits.stage, waits.queue) == (Stage.ASKED, "root.a")


def test_what_runs_is_known_when_it_begins(manager: Manager) -> None:
    """Before any thread could have told it."""
    manager.begin([(demand("runs"), True)])
    assert manager.members["runs"].queue == "root.a"
    assert manager.committed(lambda partition: partition.root.allocated["vcore"]) == 1000
