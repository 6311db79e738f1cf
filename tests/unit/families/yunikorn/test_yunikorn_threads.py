"""What takes too long for a pass is done by the core's own thread: answers come later, and wake whom they are for."""

import dataclasses
import queue as queues
from collections.abc import Iterator

import pytest

from slurm_bridge.families.shared.inline import IN_A_ROW, InlineBudget
from slurm_bridge.families.yunikorn import setup
from slurm_bridge.families.yunikorn.demands import CoreDemand
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.members import QueueMember, Stage
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.restorer import RestoredWorkload
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.runtime.clock import SystemClock, VirtualClock
from tests.component.families.yunikorn.yunikorn_scenes import document, queue

SECONDS = 20.0


def never() -> InlineBudget:
    """Nothing is short enough, and that is known."""
    inline = InlineBudget(VirtualClock(), most_seconds=-1.0)
    for _ in range(IN_A_ROW):
        inline.end(inline.begin())
    return inline


def demand(uid: str, cpus: int = 1) -> CoreDemand:
    """A workload of queue a."""
    return CoreDemand(
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
    made = Manager(setup.make(options), HookServices(clock=SystemClock(), wake=woken.put), never())
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


def await_given(member: QueueMember, woken: "queues.SimpleQueue[str]") -> None:
    """Until it is woken and may go on."""
    while woken.get(timeout=SECONDS) != member.demand.uid or member.stage is not Stage.GIVEN:
        pass


def test_who_has_entered_a_queue_is_woken_to_be_told_why_it_waits(
    manager: Manager, woken: "queues.SimpleQueue[str]"
) -> None:
    """The pass in which it entered knew only that it enters."""
    manager.begin([RestoredWorkload(demand=demand("runs", 2))])
    waits = manager.enter(demand("waits"))
    assert woken.get(timeout=SECONDS) == "waits"
    assert (waits.stage, waits.queue) == (Stage.ASKED, "root.a")


def test_what_runs_is_known_when_it_begins(manager: Manager) -> None:
    """Before any thread could have told it."""
    manager.begin([RestoredWorkload(demand=demand("runs"))])
    assert manager.members["runs"].queue == "root.a"
    assert manager.engine.committed(lambda partition: partition.root.allocated["vcore"]) == 1000


def test_who_has_to_go_is_woken(woken: "queues.SimpleQueue[str]") -> None:
    """It may be about to be submitted just then."""
    mine = queue("a", resources={"guaranteed": {"vcore": "1"}})
    team = queue("team", mine, queue("b"), resources={"max": {"vcore": "2"}})
    options = YunikornOptions.model_validate({"configuration": document(team)})
    made = Manager(setup.make(options), HookServices(clock=SystemClock(), wake=woken.put), never())
    known = [dataclasses.replace(demand(f"b{number}"), queue="root.team.b", created=number) for number in (1, 2)]
    made.begin(RestoredWorkload(demand=one) for one in known)
    waiting = made.enter(dataclasses.replace(demand("mine"), queue="root.team.a"))
    while woken.get(timeout=SECONDS) not in ("b1", "b2"):
        pass
    (gone,) = made.evictions.recalls()
    made.gone(gone)
    await_given(waiting, woken)
    made.close()


def test_what_is_short_is_answered_to_the_one_who_asks(woken: "queues.SimpleQueue[str]") -> None:
    """Nobody has to look at it a second time; whom its going lets in is woken as ever."""
    options = YunikornOptions.model_validate({"configuration": document(queue("a", resources={"max": {"vcore": "2"}}))})
    always = InlineBudget(VirtualClock(), most_seconds=SECONDS)
    made = Manager(setup.make(options), HookServices(clock=SystemClock(), wake=woken.put), always)
    try:
        made.begin(())
        first, second = made.enter(demand("first", 2)), made.enter(demand("second"))
        assert (first.stage, second.stage, second.queue) == (Stage.GIVEN, Stage.ASKED, "root.a")
        assert woken.empty()
        made.leave("first")
        await_given(second, woken)
    finally:
        made.close()


def test_once_it_is_closed_nothing_is_decided(woken: "queues.SimpleQueue[str]") -> None:
    """Another one has taken over what there is to decide."""
    options = YunikornOptions.model_validate({"configuration": document(queue("a", resources={"max": {"vcore": "2"}}))})
    made = Manager(setup.make(options), HookServices(clock=SystemClock(), wake=woken.put))
    made.begin(())
    made.close()
    assert made.enter(demand("late")).stage is Stage.ASKED
