"""Who is let in next is for the queues to say: by what they use of what they are entitled to."""

import collections

import pytest

from slurm_bridge.families.yunikorn import node_scores, setup
from slurm_bridge.families.yunikorn.demands import CoreDemand
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.members import UNSEEN_SECONDS, Stage
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.queues.config.documents import NodeSort
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.runtime.clock import VirtualClock
from tests.component.families.yunikorn.yunikorn_scenes import document, queue
from tests.effort import Work
from tests.unit.hooks import builders as scene

EACH = 250
AHEAD = 10
RUNNING = 20


def demand(path: str, number: int, cpus: int = 1) -> CoreDemand:
    """The so manieth workload of a queue."""
    return CoreDemand(
        uid=f"{path}-{number}",
        title=f"team/{path}-{number}",
        total={"vcore": 1000 * cpus, "pods": 1},
        priority=0,
        created=float(number),
        queue=path,
        user="ann",
        groups=(),
        tags={},
        node_sort="",
    )


class Waking:
    """A manager without threads, and whom it has woken."""

    def __init__(self, *queues: object, **options: object) -> None:
        self.woken: list[str] = []
        self.clock = VirtualClock()
        given = YunikornOptions.model_validate({"configuration": document(*queues), **options})
        services = HookServices(clock=self.clock, wake=self.woken.append, threads=False)
        self.manager = Manager(setup.make(given), services)
        self.manager.begin(())
        self.manager.measure({"vcore": 100_000})


@pytest.mark.thorough
@pytest.mark.parametrize(("guaranteed", "share"), [((None, None), 0.5), (("30", "10"), 0.75)])
def test_queues_share_by_what_they_are_guaranteed(guaranteed: tuple[str | None, ...], share: float) -> None:
    """Or alike where nothing is, though all of one queue came before the other's; within a tenth over 500 workloads."""
    resources = [{"resources": {"guaranteed": {"vcore": one}}} if one else {} for one in guaranteed]
    made = Waking(queue("a", **resources[0]), queue("b", **resources[1]), ahead=AHEAD)
    for path in ("root.a", "root.b"):
        for number in range(EACH):
            made.manager.enter(demand(path, number))
    started: collections.deque[str] = collections.deque()
    served: collections.Counter[str] = collections.Counter()
    while made.manager.ahead.count(0.0) and sum(served.values()) < EACH:
        given = (one for one in made.manager.members.values() if one.stage is Stage.GIVEN)
        first = min((one for one in given if one.demand.uid not in started), key=lambda one: one.turn)
        made.manager.started(first.demand.uid)
        started.append(first.demand.uid)
        served[first.demand.queue] += 1
        if len(started) > RUNNING:
            made.manager.leave(started.popleft())
    assert served["root.a"] / sum(served.values()) == pytest.approx(share, rel=0.1)


def test_who_is_let_in_and_never_seen_holds_up_nobody_for_long() -> None:
    """Slurm refuses its job, for example."""
    made = Waking(queue("a"), ahead=1)
    for number in (1, 2):
        made.manager.enter(demand("root.a", number))
    stages = []
    for seconds in (UNSEEN_SECONDS / 2, UNSEEN_SECONDS):
        made.clock.advance(seconds)
        made.manager.look_around()
        stages.append(made.manager.members["root.a-2"].stage)
    assert stages == [Stage.ASKED, Stage.GIVEN]


def test_many_that_wait_cost_little() -> None:
    """One more that enters is compared with each other once, and nobody else is measured again."""
    made = Waking(queue("a", resources={"max": {"vcore": "1"}}), ahead=0)
    for number in range(1_000):
        made.manager.enter(demand("root.a", number))
    with Work() as work:
        made.manager.enter(demand("root.a", 1_000))
    assert work.total < 1_500


def test_nodes_are_rated_by_what_is_used_of_them() -> None:
    """The emptiest are best for fair, the fullest for binpacking."""
    seen = scene.cluster([scene.node("a"), scene.node("b", allocatable={"cpu": "32"})])
    fair = node_scores.scores(seen, "fair", NodeSort())
    full = node_scores.scores(seen, "binpacking", NodeSort())
    assert (fair["a"], full["a"]) == (1.0, 0.0)
    assert node_scores.size(seen.columns)["vcore"] == 48_000
