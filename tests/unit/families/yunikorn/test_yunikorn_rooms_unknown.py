"""Attempts to evict while it is not known yet what nodes have: they cost little, and hold up no other ask."""

import collections
from collections.abc import Iterable, Mapping, Sequence

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.yunikorn import setup
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.members import Stage
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.hooks.base import Ask, Nodes
from slurm_bridge.hooks.evictions import Answers, QueueSituation, Site
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.clock import VirtualClock
from tests.component.families.yunikorn.yunikorn_scenes import document, queue
from tests.unit.families.yunikorn.test_yunikorn_sharing import demand
from tests.unit.hooks import builders as scenes

STANDING = 30
WAITING = 20


class Nowhere:
    """Implements hooks.evictions.QueueSituation where hooks let the workload start nowhere."""

    ask = Ask(workload=scenes.workload(scenes.pod("mine")), request=scenes.request())
    submitted = True
    avoided: Nodes = frozenset()
    snapshot = scenes.cluster([])

    def answers(self, snapshot: ClusterSnapshot) -> Answers | None:  # noqa: ARG002 - as declared
        return None

    def placed(self, workload: WorkloadKey) -> Sequence[Pod]:  # noqa: ARG002 - as declared
        return ()

    def sites(self, request: JobRequest, nodes: Iterable[str]) -> Sequence[Site]:
        raise NotImplementedError

    def evictable(self) -> Mapping[str, Sequence[Pod]]:
        raise NotImplementedError

    def on_node(self, node: str) -> Iterable[Pod]:
        raise NotImplementedError


class Unknown:
    """Queue b has all of the cluster, queue a is guaranteed it, and nothing is known of nodes."""

    def __init__(self) -> None:
        self.asked: collections.Counter[str] = collections.Counter()
        self.roomless = ""
        self.clock = VirtualClock()
        owed = queue("a", resources={"guaranteed": {"vcore": "5000"}})
        given = YunikornOptions.model_validate({"configuration": document(owed, queue("b")), "ahead": 0})
        services = HookServices(clock=self.clock, wake=lambda _: None, threads=False, situation=self.situation)
        self.manager = Manager(setup.make(given), services)
        self.manager.begin(())
        for number in range(STANDING):
            self.manager.enter(demand("root.b", number))
            self.manager.started(demand("root.b", number).uid)
        self.manager.measure({"vcore": 1000 * STANDING, "pods": 1000})

    def situation(self, key: WorkloadKey) -> QueueSituation | None:
        """Slurm has to be asked first, except for one workload: that has no room."""
        self.asked[key] += 1
        return Nowhere() if key == self.roomless else None

    def wait(self) -> list[str]:
        """Asks that are owed what queue b has, old enough for an attempt."""
        for number in range(STANDING, STANDING + WAITING):
            self.manager.enter(demand("root.a", number))
        self.clock.advance(31)
        self.asked.clear()
        return [one.demand.uid for one in self.manager.members.values() if one.stage is Stage.ASKED]


def test_a_look_ends_with_the_first_ask_of_which_nothing_is_known_yet() -> None:
    """Each of the others would be searched victims for in vain, in every turn."""
    scene = Unknown()
    assert len(scene.wait()) == WAITING
    scene.manager.engine.turn()
    assert scene.asked.total() == 1


def test_an_ask_of_which_nothing_is_known_for_long_holds_up_no_other() -> None:
    """Look by look all have their turn, and then the first once more."""
    scene = Unknown()
    waiting = scene.wait()
    for _ in range(WAITING):
        scene.manager.engine.turn()
    assert scene.asked == dict.fromkeys(waiting, 1)
    scene.manager.engine.turn()
    assert scene.asked[waiting[0]] == 2


def test_only_the_ask_that_no_eviction_helps_is_let_in_before_those_like_it() -> None:
    """It waits in Slurm then; an older one of its size is kept back for what it is owed, and so are the others."""
    scene = Unknown()
    waiting = scene.wait()
    scene.roomless = waiting[1]
    for _ in range(WAITING):
        scene.manager.engine.turn()
    given = [uid for uid in waiting if scene.manager.members[WorkloadKey(uid)].stage is Stage.GIVEN]
    assert given == [scene.roomless]
